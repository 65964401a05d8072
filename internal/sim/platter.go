package sim

import (
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// platter is the file system under a machine's store, in memory. It knows of the
// store's newest log how much is synced, fails when it is told to, and gives what
// the next process finds. What it does depends on how much is written alone, not on
// in how many pieces.
type platter struct {
	vfs.FS
	mem *vfs.MemFS

	mu      sync.Mutex
	log     *platterLog // the newest log
	synced  int         // of it
	marks   []int       // how long it was after each sync that was asked for
	armed   Kind        // the next sync fails this way
	limit   int         // how long the log gets then
	left    int         // how many more files and writes there is room for; -1: any
	lying   bool        // it says that it syncs, and does not
	image   *vfs.MemFS  // what the next process finds, but for the newest log
	name    string      // of that log
	content []byte      // what was written of it

	before  *platter // without the bytes that were changed
	flipped bool     // a byte that was durable is another
}

func newPlatter() *platter { return platterOn(vfs.NewCrashableMem()) }

func platterOn(mem *vfs.MemFS) *platter { return &platter{FS: mem, mem: mem, left: -1} }

// arm has the next sync fail, and the last write before it too when it is one that
// ends so many bytes behind what is synced.
func (p *platter) arm(k Kind, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.limit, p.lying = k, p.synced+bytes, false
}

// fill leaves room for so many more files and writes.
func (p *platter) fill(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = n
}

// lies has it sync nothing any more, until it is armed.
func (p *platter) lies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.left, p.lying = "", -1, true
}

// asked notes a sync that was asked for, and was done.
func (p *platter) asked() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks = append(p.marks, p.synced)
}

// told is how much of the newest log was synced before the last sync that was asked
// for.
func (p *platter) told() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]int{0, 0}, p.marks...)[len(p.marks)]
}

// dies keeps what the next process finds: all that was written, or, after a power cut,
// all that was synced. From then on nothing fails.
func (p *platter) dies(power bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.image != nil {
		return
	}
	percent := 100
	if power {
		percent = 0
	}
	p.image = p.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(0, 0))})
	if p.log != nil {
		b, _ := p.mem.UnsafeGetFileDataBuffer(p.log.name)
		p.name, p.content = p.log.name, slices.Clone(b[:min(len(b), p.log.written)])
		if p.armed == DiskFull || p.armed == ShortWrite {
			p.content = p.content[:min(len(p.content), p.limit)]
		}
	}
	p.armed, p.left, p.lying = "", -1, true
}

// after is what the next process finds, with a newest log of that length.
func (p *platter) after(length int) *platter {
	p.dies(false)
	q := platterOn(p.image)
	if q.name = p.name; q.name != "" {
		q.content = p.content[:min(length, len(p.content))]
		q.put()
	}
	return q
}

// length is how much of the newest log is written.
func (p *platter) length() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.image != nil || p.log == nil {
		return len(p.content)
	}
	return p.log.written
}

// put writes the newest log as it is to be found.
func (p *platter) put() {
	f, err := p.mem.Create(p.name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(slices.Clone(p.content)) // with the race detector, Pebble's files spoil what they were given
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err) // it is memory
	}
	if dir, err := p.mem.OpenDir(path.Dir(p.name)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// changed is the same, with other bytes in the newest log.
func (p *platter) changed(from, to int, f func(byte) byte) *platter {
	q := p.copy()
	for i := from; i < to; i++ {
		q.content[i] = f(q.content[i])
	}
	q.put()
	q.before = p
	return q
}

func (p *platter) copy() *platter {
	q := platterOn(p.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))}))
	q.name, q.content = p.name, slices.Clone(p.content)
	return q
}

// room reports whether there is room for one more file or write. For the manifest there
// is always: a store that cannot write that never comes to rest, unless its process ends.
func (p *platter) room(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.Contains(strings.ToLower(path.Base(name)), "manifest"):
	case p.left == 0:
		return syscall.ENOSPC
	case p.left > 0:
		p.left--
	}
	return nil
}

func (p *platter) file(name string, f vfs.File, err error) (vfs.File, error) {
	switch {
	case err == nil && path.Base(name) == "SYNCED":
		return platterNote{f, p}, nil
	case err != nil || path.Ext(name) != ".log":
		return platterFile{f, p, name}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = &platterLog{File: f, p: p, name: name}
	p.synced, p.marks = 0, nil
	return p.log, nil
}

// Create makes a file.
func (p *platter) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := p.room(name); err != nil {
		return nil, err
	}
	f, err := p.FS.Create(name, c)
	return p.file(name, f, err)
}

// ReuseForWrite makes a file out of one that nobody needs.
func (p *platter) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.ReuseForWrite(old, name, c)
	return p.file(name, f, err)
}

type platterFile struct {
	vfs.File
	p    *platter
	name string
}

// Write writes at the end.
func (f platterFile) Write(b []byte) (int, error) {
	if err := f.p.room(f.name); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

// platterNote is what the store notes of its syncs. What it notes of syncs that were
// none, which only this simulation knows, does not reach the disk.
type platterNote struct {
	vfs.File
	p *platter
}

// WriteAt writes in place.
func (f platterNote) WriteAt(b []byte, at int64) (int, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	if f.p.lying {
		return len(b), nil
	}
	return f.File.WriteAt(b, at)
}

// platterLog is a log of the store's.
type platterLog struct {
	vfs.File
	p       *platter
	name    string
	written int
}

// Write writes at the end.
func (f *platterLog) Write(b []byte) (n int, err error) {
	if err := f.p.room(f.name); err != nil {
		return 0, err
	}
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	switch {
	case f.p.log != f:
	case f.p.armed == DiskFull:
		return 0, syscall.ENOSPC
	case f.p.armed == ShortWrite:
		return 0, io.ErrShortWrite
	}
	n, err = f.File.Write(b)
	f.written += n
	return n, err
}

// Sync makes it durable, or not.
func (f *platterLog) Sync() error {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	switch {
	case f.p.lying:
		return nil
	case f.p.log == f && f.p.armed != "":
		return syscall.EIO
	}
	if f.p.log == f {
		f.p.synced = f.written
	}
	return f.File.Sync()
}

// SyncData is Sync.
func (f *platterLog) SyncData() error { return f.Sync() }
