package sim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/live"
)

// The errors of a disk on which a fault strikes.
var (
	errFull = errors.New("no space left on device")
	errDisk = errors.New("input/output error")
)

// host is a machine that runs processes of weir, one at a time. Its disk outlives them.
type host struct {
	*world
	name    string
	n       *node // the process on it; nil for none
	off     bool  // it lost its power, and no process has run on it since
	files   map[string]*file
	removed map[string]*file           // until a file is created beside it, it may come back
	kept    map[string]events.Position // how far processes claimed to have each shard here
}

// file is a file as a process sees it, and what a power cut leaves of it.
type file struct {
	now, durable []byte
	dirty        []span // written, and not durable before the next Sync
}

type span struct{ from, to int }

// newHost adds a machine with an empty disk.
func (w *world) newHost() *host {
	h := &host{world: w, name: fmt.Sprintf("h%d", len(w.hosts)+1), files: map[string]*file{}, removed: map[string]*file{}, kept: map[string]events.Position{}}
	w.hosts = append(w.hosts, h)
	return h
}

// cut is a power cut. Of each write that was not durable, all or nothing survives. After
// TornLog a part of it survives, after FlippedLog all of it with one byte changed. Removed
// files may come back.
func (h *host) cut(k Kind) {
	d := h.faults.dice
	for _, name := range slices.Sorted(maps.Keys(h.removed)) {
		if h.files[name] == nil && d.chance(0.5) {
			h.files[name] = h.removed[name]
		}
	}
	clear(h.removed)
	if k != PowerCut { // what was durable may be gone too
		clear(h.kept)
	}
	for _, name := range slices.Sorted(maps.Keys(h.files)) {
		f := h.files[name]
		for _, s := range f.dirty {
			if b := slices.Clone(f.now[min(s.from, len(f.now)):min(s.to, len(f.now))]); k != PowerCut || d.chance(0.5) {
				f.durable = overlay(f.durable, damaged(b, k, d), s.from)
			}
		}
		f.now, f.dirty = slices.Clone(f.durable), nil
	}
	h.note(h.name, string(k), nil)
}

// keeps notes that a process reads a shard on from a position: it has the records up to
// there on its disk, or does not need them.
func (h *host) keeps(table, shard string, after events.Position) {
	if at := table + "|" + shard; h != nil && h.kept[at].Compare(after) < 0 {
		h.kept[at] = after
	}
}

// damaged is what survives of the bytes b after a fault of a kind. It may change b in
// place.
func damaged(b []byte, k Kind, d *dice) []byte {
	switch {
	case len(b) == 0:
	case k == TornLog:
		b = b[:d.n(len(b))]
	case k == FlippedLog:
		b[d.n(len(b))] ^= byte(1 + d.n(255))
	}
	return b
}

// spooled are the segment files that hold something. The second list has those of them that
// are followed by another segment of the same spool.
func (h *host) spooled() (all, pausing []string) {
	for _, name := range slices.Sorted(maps.Keys(h.files)) {
		if len(h.files[name].durable) == 0 || path.Base(name) == "end" {
			continue
		}
		if n := len(all); n > 0 && path.Dir(all[n-1]) == path.Dir(name) {
			pausing = append(pausing, all[n-1])
		}
		all = append(all, name)
	}
	return all, pausing
}

// wear damages the end of a durable segment file, preferably of one that another follows.
func (h *host) wear(k Kind) {
	logs, pausing := h.spooled()
	if len(logs) == 0 {
		return
	}
	if len(pausing) > 0 && h.faults.dice.chance(0.7) {
		h.reach("a file of a spool is damaged that others go on from")
		logs = pausing
	}
	f := h.files[pick(h.faults.dice, logs)]
	from := max(0, len(f.durable)-1-h.faults.dice.n(2000))
	f.durable = append(f.durable[:from:from], damaged(slices.Clone(f.durable[from:]), k, h.faults.dice)...)
	f.now = slices.Clone(f.durable)
}

// overlay writes b into a file's bytes at an offset, and lengthens them if necessary.
func overlay(to, b []byte, at int) []byte {
	if short := at + len(b) - len(to); short > 0 {
		to = append(to, make([]byte, short)...)
	}
	copy(to[at:], b)
	return to
}

// diskLink is a process's access to the disk of its machine. It implements live.Disk.
type diskLink struct {
	*host
	n *node
}

// do traces a change of the disk.
func (d diskLink) do(what, name string) {
	d.changes++
	d.note(d.n.running.name, "disk "+what, []string{name})
}

// before may kill the process before it changes something.
func (d diskLink) before() {
	if d.might(CrashBefore, 0.3) {
		panic(crash{})
	}
}

// after may kill the process after it changed something.
func (d diskLink) after() {
	if d.might(CrashAfter, 0.3) {
		panic(crash{})
	}
}

// MkdirAll does nothing: directories exist as soon as they have files.
func (d diskLink) MkdirAll(dir string) error {
	d.do("mkdir", dir)
	return nil
}

// List lists the names in a directory, sorted.
func (d diskLink) List(dir string) (names []string, err error) {
	for name := range d.files {
		if rest, in := strings.CutPrefix(name, dir+"/"); in {
			first, _, _ := strings.Cut(rest, "/")
			names = append(names, first)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Create creates an empty file, or empties the one that exists. Its directory entry is
// durable at once, as live.Disk promises. After a power cut an emptied file may have its old
// content again.
func (d diskLink) Create(name string) (live.File, error) {
	d.do("create", name)
	d.before()
	if d.might(DiskFull, 0.5) {
		return nil, errFull
	}
	f := d.files[name]
	if f == nil {
		f = &file{}
		d.files[name] = f
	}
	f.now, f.dirty = nil, nil
	for other := range d.removed { // removed files of this directory are gone for good now
		if path.Dir(other) == path.Dir(name) {
			delete(d.removed, other)
		}
	}
	d.after()
	return fileLink{d, name, f}, nil
}

// Open opens a file. The error is fs.ErrNotExist if there is none.
func (d diskLink) Open(name string) (live.File, error) {
	if f := d.files[name]; f != nil {
		return fileLink{d, name, f}, nil
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// Remove removes a file. After a power cut it may be back, unless another file was created
// in the same directory since then.
func (d diskLink) Remove(name string) error {
	d.do("remove", name)
	d.before()
	f := d.files[name]
	if f == nil {
		return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	delete(d.files, name)
	d.removed[name] = f
	return nil
}

// RemoveAll removes the files below a directory. A crash may leave some of them.
func (d diskLink) RemoveAll(dir string) error {
	if d.trims != nil {
		d.trims.spoolGoes(d.host, dir)
	}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		if strings.HasPrefix(name, dir+"/") {
			if err := d.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// fileLink is a process's access to one file.
type fileLink struct {
	diskLink
	name string
	*file
}

// ReadAt reads what was written, durable or not.
func (f fileLink) ReadAt(b []byte, at int64) (int, error) {
	if at >= int64(len(f.now)) {
		return 0, io.EOF
	}
	n := copy(b, f.now[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes, and may write nothing or only a part. What it wrote is durable if the next
// Sync succeeds, and forgotten by a power cut if that fails.
func (f fileLink) WriteAt(b []byte, at int64) (int, error) {
	f.do("write", fmt.Sprintf("%s %d+%d", f.name, at, len(b)))
	f.before()
	n, err := len(b), error(nil)
	switch {
	case f.might(DiskFull, 3):
		n, err = 0, errFull
	case f.might(ShortWrite, 8):
		n, err = f.faults.dice.n(len(b)), io.ErrShortWrite
	}
	f.now = overlay(f.now, b[:n], int(at))
	f.dirty = append(f.dirty, span{int(at), int(at) + n})
	f.after()
	return n, err
}

// Sync makes durable what was written since the last Sync, even if those writes failed.
// After a failed Sync the writes can still be read, but a power cut loses them.
func (f fileLink) Sync() error {
	f.do("sync", f.name)
	for _, k := range []Kind{TornLog, FlippedLog, PowerCut} {
		if f.might(k, 0.35) {
			f.host.cut(k)
			panic(crash{})
		}
	}
	f.before()
	if f.might(FailedSync, 10) {
		f.dirty = nil
		return errDisk
	}
	durable := make([]byte, len(f.now))
	copy(durable, f.durable)
	for _, s := range f.dirty {
		if to := min(s.to, len(f.now)); s.from < to {
			copy(durable[s.from:to], f.now[s.from:to])
		}
	}
	f.durable, f.dirty = durable, nil
	f.after()
	return nil
}

// Truncate cuts the file off. The cut is durable after the next successful Sync.
func (f fileLink) Truncate(size int64) error {
	f.do("truncate", fmt.Sprintf("%s %d", f.name, size))
	if f.strike(DiskFull) {
		return errDisk
	}
	f.now = f.now[:min(int(size), len(f.now))]
	return nil
}

func (f fileLink) Close() error { return nil }
