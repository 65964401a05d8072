package live

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk is what spools need of a file system. What it makes is there after a power
// cut, when the call that made it has returned: a directory, and a file, with what
// it held at its last Sync. What it removes may come back then.
type Disk interface {
	// MkdirAll makes a directory, and those above it.
	MkdirAll(dir string) error
	// List lists the names in a directory, in order; none where it is not there.
	List(dir string) ([]string, error)
	// Create makes an empty file, in the place of one that is there.
	Create(path string) (File, error)
	// Open opens a file to be read and written. That it is there is durable then.
	Open(path string) (File, error)
	Remove(path string) error
	RemoveAll(dir string) error
}

// File is one file of a Disk. After an error of WriteAt or Sync nobody knows what of
// that which was written since the last Sync is there: it is to be written again.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// machine is the Disk of this machine.
type machine struct{}

func (machine) MkdirAll(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(syncDir(filepath.Dir(dir)), syncDir(filepath.Dir(filepath.Dir(dir))))
}

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

func (machine) Open(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o644)
	if err != nil { // no File that is not nil and holds nothing
		return nil, err
	}
	if err := syncDir(filepath.Dir(path)); err != nil { // who made it may have died before that
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (machine) Remove(path string) error { return os.Remove(path) }

func (machine) RemoveAll(dir string) error { return os.RemoveAll(dir) }
