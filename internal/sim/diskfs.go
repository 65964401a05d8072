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

// disk is the file system under a machine's store, in memory. It knows how much of the
// store's newest log is synced, fails when it is told to, and produces the disk that the next
// process finds. What it does depends only on how much is written, not on in how many
// pieces.
type disk struct {
	vfs.FS
	mem *vfs.MemFS

	mu      sync.Mutex
	log     *diskLog   // the newest log
	synced  int        // of the newest log
	marks   []int      // how long the log was after each sync that was asked for
	armed   Kind       // the next sync fails in this way
	limit   int        // how long the log can get then
	left    int        // how many more files and writes there is room for; -1: any
	lying   bool       // it reports syncs that it does not do
	image   *vfs.MemFS // the files that the next process finds, except for the newest log
	name    string     // of that log
	content []byte     // all bytes written to it

	before  *disk // without the changed bytes
	flipped bool  // a byte that was durable is changed
}

func newDisk() *disk { return diskOn(vfs.NewCrashableMem()) }

func diskOn(mem *vfs.MemFS) *disk { return &disk{FS: mem, mem: mem, left: -1} }

// armSync makes the next sync fail. For DiskFull and ShortWrite it also makes writes to the
// newest log fail, and of that log the next process finds at most the given number of bytes
// behind the synced ones.
func (p *disk) armSync(k Kind, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.limit, p.lying = k, p.synced+bytes, false
}

// limitRoom leaves room for n more files and writes.
func (p *disk) limitRoom(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = n
}

// ignoreSyncs makes it sync nothing any more until it is armed.
func (p *disk) ignoreSyncs() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.left, p.lying = "", -1, true
}

// noteSync notes a sync that was asked for and that succeeded.
func (p *disk) noteSync() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks = append(p.marks, p.synced)
}

// syncedBefore is how much of the newest log was synced at the sync before the last one that was
// asked for.
func (p *disk) syncedBefore() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]int{0, 0}, p.marks...)[len(p.marks)]
}

// keepImage keeps the files for the next process: all that was written or, after a power cut, all
// that was synced. From then on nothing fails.
func (p *disk) keepImage(power bool) {
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

// diskAfter is the disk that the next process finds, with the newest log cut to a length.
func (p *disk) diskAfter(length int) *disk {
	p.keepImage(false)
	q := diskOn(p.image)
	if q.name = p.name; q.name != "" {
		q.content = p.content[:min(length, len(p.content))]
		q.putLog()
	}
	return q
}

// logLength is how much of the newest log is written.
func (p *disk) logLength() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.image != nil || p.log == nil {
		return len(p.content)
	}
	return p.log.written
}

// putLog writes the newest log as the next process is to find it.
func (p *disk) putLog() {
	f, err := p.mem.Create(p.name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(slices.Clone(p.content)) // under the race detector Pebble overwrites buffers
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err) // the file is in memory
	}
	if dir, err := p.mem.OpenDir(path.Dir(p.name)); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// changedCopy is a copy with other bytes in a part of the newest log.
func (p *disk) changedCopy(from, to int, f func(byte) byte) *disk {
	q := p.copyDisk()
	for i := from; i < to; i++ {
		q.content[i] = f(q.content[i])
	}
	q.putLog()
	q.before = p
	return q
}

// copyDisk is a file system with the same content and the same newest log.
func (p *disk) copyDisk() *disk {
	q := diskOn(p.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))}))
	q.name, q.content = p.name, slices.Clone(p.content)
	return q
}

// takeRoom takes the room for one more file or write; the error is ENOSPC if none is left. The
// manifest always has room: a store that cannot write it retries until its process ends.
func (p *disk) takeRoom(name string) error {
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

// wrapFile wraps a file that was created. A log becomes the newest log.
func (p *disk) wrapFile(name string, f vfs.File, err error) (vfs.File, error) {
	switch {
	case err == nil && path.Base(name) == "SYNCED":
		return diskNote{f, p}, nil
	case err != nil || path.Ext(name) != ".log":
		return diskFile{f, p, name}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = &diskLog{File: f, p: p, name: name}
	p.synced, p.marks = 0, nil
	return p.log, nil
}

// Create creates a file.
func (p *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := p.takeRoom(name); err != nil {
		return nil, err
	}
	f, err := p.FS.Create(name, c)
	return p.wrapFile(name, f, err)
}

// ReuseForWrite makes a new file of one that is no longer needed.
func (p *disk) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.ReuseForWrite(old, name, c)
	return p.wrapFile(name, f, err)
}

// diskFile is any other file. Its writes need room.
type diskFile struct {
	vfs.File
	p    *disk
	name string
}

// Write appends to the file.
func (f diskFile) Write(b []byte) (int, error) {
	if err := f.p.takeRoom(f.name); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

// diskNote is the file in which the store notes its syncs. Notes about syncs that were
// not done, as only this simulation knows, do not reach the disk.
type diskNote struct {
	vfs.File
	p *disk
}

// WriteAt writes at an offset.
func (f diskNote) WriteAt(b []byte, at int64) (int, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	if f.p.lying {
		return len(b), nil
	}
	return f.File.WriteAt(b, at)
}

// diskLog is a log of the store.
type diskLog struct {
	vfs.File
	p       *disk
	name    string
	written int
}

// Write appends to the log.
func (f *diskLog) Write(b []byte) (n int, err error) {
	if err := f.p.takeRoom(f.name); err != nil {
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

// Sync makes the log durable, or fails, or does neither while the disk lies.
func (f *diskLog) Sync() error {
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

// SyncData is the same as Sync.
func (f *diskLog) SyncData() error { return f.Sync() }
