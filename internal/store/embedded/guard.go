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
type guard struct {
	vfs.FS
	fatal func(reason string)
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
	return guardedFile{f, g, name}, nil
}

// Create makes a file.
func (g guard) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
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
	f, err := g.FS.ReuseForWrite(old, name, c)
	return g.file(name, f, err)
}

// OpenDir opens a directory, to sync it.
func (g guard) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return guardedFile{f, g, name}, nil
}

// Rename gives a file another name.
func (g guard) Rename(old, name string) error {
	return g.check("rename", old, g.FS.Rename(old, name))
}

// Unwrap is the file system below.
func (g guard) Unwrap() vfs.FS { return g.FS }

type guardedFile struct {
	vfs.File
	g    guard
	name string
}

// Write writes at the end.
func (f guardedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.g.check("write", f.name, err)
}

// WriteAt writes anywhere.
func (f guardedFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	return n, f.g.check("write", f.name, err)
}

// Sync makes data and metadata durable.
func (f guardedFile) Sync() error { return f.g.check("sync", f.name, f.File.Sync()) }

// SyncData makes data durable.
func (f guardedFile) SyncData() error { return f.g.check("sync", f.name, f.File.SyncData()) }

// SyncTo makes the beginning durable, or begins to.
func (f guardedFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.g.check("sync", f.name, err)
}
