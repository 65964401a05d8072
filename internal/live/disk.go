package live

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk is the file system as spools use it. What a method created is durable when the
// method returns: a directory, or a file with the content of its last Sync. What a method
// removed may reappear after a power cut.
type Disk interface {
	// MkdirAll creates a directory and its parents.
	MkdirAll(dir string) error
	// List lists the names in a directory, sorted; none if the directory does not exist.
	List(dir string) ([]string, error)
	// Create creates an empty file and replaces one that exists.
	Create(path string) (File, error)
	// Open opens a file for reading and writing. Its directory entry is durable when Open
	// returns.
	Open(path string) (File, error)
	Remove(path string) error
	RemoveAll(dir string) error
}

// File is one file of a Disk. After WriteAt or Sync has failed, it is not known which bytes
// written since the last successful Sync exist: the caller writes them again.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// machine is the file system of this machine.
type machine struct{}

// MkdirAll also makes the names of the last two directories durable, which Create relies on.
func (machine) MkdirAll(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(syncDir(filepath.Dir(dir)), syncDir(filepath.Dir(filepath.Dir(dir))))
}

// List returns the names in order, none if there is no directory.
func (machine) List(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Create makes an empty file whose name survives a power cut: the directory is synced before it
// returns.
func (machine) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Open opens a file to read and write, and syncs its directory: the process that created it may
// have died before it did.
func (machine) Open(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o644)
	if err != nil { // a nil *os.File in a File would not be nil
		return nil, err
	}
	if err := syncDir(filepath.Dir(path)); err != nil { // its creator may have died before this
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Remove deletes a file. After a power cut it may be back, which a spool expects.
func (machine) Remove(path string) error { return os.Remove(path) }

// RemoveAll deletes a directory with all that is in it; one that does not exist is no error.
func (machine) RemoveAll(dir string) error { return os.RemoveAll(dir) }
