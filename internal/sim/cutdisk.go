package sim

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// cutDisk is a file system in memory on which something happens at one change: the process dies, or
// the disk is full from then on. The next process finds the changes until then.
// After the moment the process goes on, and its later changes are lost.
type cutDisk struct {
	vfs.FS
	mem *vfs.MemFS

	mu    sync.Mutex
	left  int  // changes before the moment; negative: none comes, or it is past
	kind  Kind // the fault that strikes then
	dice  *dice
	image *vfs.MemFS // the content that the next process finds; nil before the moment
	full  bool
}

func newCutDisk() *cutDisk { return cutDiskOn(vfs.NewCrashableMem()) }

func cutDiskOn(mem *vfs.MemFS) *cutDisk { return &cutDisk{FS: mem, mem: mem, left: -1} }

// strikeAfter has something happen after so many changes more.
func (c *cutDisk) strikeAfter(k Kind, changes int, d *dice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kind, c.left, c.dice = k, changes, d
}

// disarm has nothing happen any more.
func (c *cutDisk) disarm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = -1
}

// hasStruck reports whether it has happened.
func (c *cutDisk) hasStruck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.image != nil || c.full
}

// keepImage keeps the content for the next process, unless it is kept already. From then on nothing fails.
func (c *cutDisk) keepImage() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.image == nil {
		c.cloneDisk(100)
	}
	c.full = false
}

// afterCrash is the disk that the next process finds.
func (c *cutDisk) afterCrash() *cutDisk {
	c.keepImage()
	return cutDiskOn(c.image)
}

// cloneDisk keeps all synced data, and so many percent of the other.
func (c *cutDisk) cloneDisk(percent int) {
	var seed uint64
	if c.dice != nil {
		seed = c.dice.next()
	}
	c.image = c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 0))})
}

// countChange comes before each change of the manifest and of the files of a load: tables that will land, and files to
// sort in. When the store changes its other files, and in how many pieces, depends on timing. The error is that of a
// full disk. The manifest always has room: a store that cannot write it ends its process, which machine has.
func (c *cutDisk) countChange(name string) error {
	base := path.Base(name)
	manifest := strings.HasPrefix(base, "MANIFEST")
	if !manifest && !strings.HasPrefix(base, "landing-") && !strings.HasPrefix(base, "scratch-") {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 && c.image == nil {
		switch c.kind {
		case PowerCut:
			c.cloneDisk(0)
		case TornLog:
			c.cloneDisk(1 + c.dice.n(99))
		case CrashAfter:
			c.cloneDisk(100)
		default:
			c.full = true
		}
	}
	if c.left >= 0 {
		c.left--
	}
	if !c.full || manifest {
		return nil
	}
	return syscall.ENOSPC
}

// wrapFile is a file that was opened for writing, whose changes are counted.
func (c *cutDisk) wrapFile(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return cutFile{f, c, name}, nil
}

func (c *cutDisk) Create(name string, w vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.countChange(name); err != nil {
		return nil, err
	}
	f, err := c.FS.Create(name, w)
	return c.wrapFile(name, f, err)
}

func (c *cutDisk) OpenReadWrite(name string, w vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if err := c.countChange(name); err != nil {
		return nil, err
	}
	f, err := c.FS.OpenReadWrite(name, w, o...)
	return c.wrapFile(name, f, err)
}

func (c *cutDisk) ReuseForWrite(old, name string, w vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.countChange(name); err != nil {
		return nil, err
	}
	f, err := c.FS.ReuseForWrite(old, name, w)
	return c.wrapFile(name, f, err)
}

func (c *cutDisk) OpenDir(name string) (vfs.File, error) {
	f, err := c.FS.OpenDir(name)
	return c.wrapFile(name, f, err)
}

// List sorts, so that the same process does the same changes.
func (c *cutDisk) List(dir string) ([]string, error) {
	names, err := c.FS.List(dir)
	slices.Sort(names)
	return names, err
}

// Link, Rename and Remove need no room.

func (c *cutDisk) Link(old, name string) error {
	_ = c.countChange(old)
	return c.FS.Link(old, name)
}

func (c *cutDisk) Rename(old, name string) error {
	_ = c.countChange(name)
	return c.FS.Rename(old, name)
}

// Remove removes a file. When the store removes an old manifest depends on timing.
func (c *cutDisk) Remove(name string) error {
	if !strings.HasPrefix(path.Base(name), "MANIFEST") {
		_ = c.countChange(name)
	}
	return c.FS.Remove(name)
}

// cutFile is a file of a cutDisk.
type cutFile struct {
	vfs.File
	c    *cutDisk
	name string
}

func (f cutFile) Write(b []byte) (int, error) {
	if err := f.c.countChange(f.name); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f cutFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.c.countChange(f.name); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, at)
}

func (f cutFile) Sync() error {
	_ = f.c.countChange(f.name)
	return f.File.Sync()
}

func (f cutFile) SyncData() error {
	_ = f.c.countChange(f.name)
	return f.File.SyncData()
}
