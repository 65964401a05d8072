package embedded

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard is the file system as the key-value store sees it. The first write, sync or
// new file that the disk refuses ends the process, before anybody hears of it: what
// a failed sync leaves in a file nobody knows, a second one may succeed without it,
// and a log that lacks a record must not get another.
//
// It also tells the list of the store's files of what is made and deleted.
type guard struct {
	vfs.FS
	fatal func(reason string)
	files *files
}

func (g guard) check(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	reason := err.Error()
	if path := (*fs.PathError)(nil); !errors.As(err, &path) {
		reason = fmt.Sprintf("%s %s: %v", doing, name, err)
	}
	g.fatal(reason)
	return err
}

func (g guard) file(name string, f vfs.File, err error) (vfs.File, error) {
	if g.check("create", name, err) != nil {
		return nil, err
	}
	return guardedFile{f, g, name, g.files.made(name)}, nil
}

// list has the list of files changed, which the disk may refuse too.
func (g guard) list(change func(name string) error, name string) error {
	return g.check("list", name, change(name))
}

// Create makes a file.
func (g guard) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.list(g.files.making, name); err != nil {
		return nil, err
	}
	f, err := g.FS.Create(name, c)
	return g.file(name, f, err)
}

// OpenReadWrite opens a file, or makes it.
func (g guard) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.OpenReadWrite(name, c, opts...)
	return g.file(name, f, err)
}

// ReuseForWrite makes a file out of one that nobody needs.
func (g guard) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.list(g.files.removing, old); err != nil {
		return nil, err
	}
	f, err := g.FS.ReuseForWrite(old, name, c)
	return g.file(name, f, err)
}

// OpenDir opens a directory, to sync it.
func (g guard) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return guardedFile{f, g, name, nil}, nil
}

// Rename gives a file another name.
func (g guard) Rename(old, name string) error {
	err := g.check("rename", old, g.FS.Rename(old, name))
	if err == nil {
		g.files.renamed(old, name)
	}
	return err
}

// Remove deletes a file.
func (g guard) Remove(name string) error {
	if err := g.list(g.files.removing, name); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

// Unwrap is the file system below.
func (g guard) Unwrap() vfs.FS { return g.FS }

type guardedFile struct {
	vfs.File
	g    guard
	name string
	t    *tracked // nil for one that is never listed
}

// Write writes at the end.
func (f guardedFile) Write(p []byte) (int, error) {
	if f.t != nil { // a file may spoil p, and one that takes less ends the process
		f.t.wrote(p)
	}
	n, err := f.File.Write(p)
	return n, f.g.check("write", f.name, err)
}

// WriteAt writes anywhere.
func (f guardedFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	return n, f.g.check("write", f.name, err)
}

// Close ends the file.
func (f guardedFile) Close() error {
	if f.t != nil {
		f.t.ended()
	}
	return f.File.Close()
}

// Sync makes data and metadata durable.
func (f guardedFile) Sync() error { return f.durable(f.File.Sync) }

// SyncData makes data durable.
func (f guardedFile) SyncData() error { return f.durable(f.File.SyncData) }

// SyncTo makes the beginning durable, or begins to.
func (f guardedFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.g.check("sync", f.name, err)
}

func (f guardedFile) durable(sync func() error) error {
	if f.t == nil {
		return f.g.check("sync", f.name, sync())
	}
	at := f.t.stage()
	if err := f.g.check("sync", f.name, sync()); err != nil {
		return err
	}
	return f.g.check("list", f.name, f.g.files.synced(f.name, f.t, at))
}
