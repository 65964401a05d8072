package embedded

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard is the file system for Pebble. When the disk refuses a write, a sync or a new
// file, guard ends the process at once, before any caller gets the error. The reason:
// after a failed sync the content of the file is unknown, a second sync may succeed
// without that content, and nothing may be appended to a log that lacks a record.
//
// guard also reports files that are made and deleted to the list of the store's files.
type guard struct {
	vfs.FS
	fatal func(reason string)
	files *files
}

// checkFatal ends the process if err is not nil. In tests, in which Fatal may return, it
// returns err.
func (g guard) checkFatal(doing, name string, err error) error {
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

// wrapFile wraps a file that was just opened for writing.
func (g guard) wrapFile(name string, f vfs.File, err error) (vfs.File, error) {
	if g.checkFatal("create", name, err) != nil {
		return nil, err
	}
	return guardedFile{f, g, name, g.files.trackFile(name)}, nil
}

// changeList changes the list of files. The disk may refuse that, too.
func (g guard) changeList(change func(name string) error, name string) error {
	return g.checkFatal("list", name, change(name))
}

// Create makes a file.
func (g guard) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.changeList(g.files.beforeMaking, name); err != nil {
		return nil, err
	}
	f, err := g.FS.Create(name, c)
	return g.wrapFile(name, f, err)
}

// OpenReadWrite opens a file, and makes it if it does not exist.
func (g guard) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.OpenReadWrite(name, c, opts...)
	return g.wrapFile(name, f, err)
}

// ReuseForWrite makes a file from one that is no longer needed.
func (g guard) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := g.changeList(g.files.beforeRemoving, old); err != nil {
		return nil, err
	}
	f, err := g.FS.ReuseForWrite(old, name, c)
	return g.wrapFile(name, f, err)
}

// OpenDir opens a directory, which is done to sync it.
func (g guard) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return guardedFile{f, g, name, nil}, nil
}

// Rename renames a file.
func (g guard) Rename(old, name string) error {
	err := g.checkFatal("rename", old, g.FS.Rename(old, name))
	if err == nil {
		g.files.trackRenamed(old, name)
	}
	return err
}

// Remove deletes a file.
func (g guard) Remove(name string) error {
	if err := g.changeList(g.files.beforeRemoving, name); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

// Unwrap returns the file system below the guard.
func (g guard) Unwrap() vfs.FS { return g.FS }

// guardedFile is a file whose failures end the process.
type guardedFile struct {
	vfs.File
	g    guard
	name string
	t    *tracked // nil for a file that is never listed
}

// Write appends to the file.
func (f guardedFile) Write(p []byte) (int, error) {
	if f.t != nil { // before the write, which may change p; a short write ends the process
		f.t.noteWritten(p)
	}
	n, err := f.File.Write(p)
	return n, f.g.checkFatal("write", f.name, err)
}

// WriteAt writes at any offset.
func (f guardedFile) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p, at)
	return n, f.g.checkFatal("write", f.name, err)
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

// SyncTo makes the beginning durable, or starts to.
func (f guardedFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.g.checkFatal("sync", f.name, err)
}

// durable syncs the file and, if the list of files has it, notes there how far it is durable.
func (f guardedFile) durable(sync func() error) error {
	if f.t == nil {
		return f.g.checkFatal("sync", f.name, sync())
	}
	at := f.t.stage()
	if err := f.g.checkFatal("sync", f.name, sync()); err != nil {
		return err
	}
	return f.g.checkFatal("list", f.name, f.g.files.noteSynced(f.name, f.t, at))
}
