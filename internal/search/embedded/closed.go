package embedded

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"weir/internal/summed"
)

// The pages of root.bolt have no checksums. They say which documents of a segment are
// deleted, so a wrong bit there brings documents back or hides them. Closing an index
// therefore leaves a checksum of the whole file. Opening the index checks the checksum
// and deletes it before scorch may write. An index whose process was killed has no
// checksum; all that it holds is checked instead (content.go).

// The file is a mark and no data: an index that lacks it is only opened more slowly.
const closedFile = "CLOSED"

// rootOf is the content of the checksum file, as summed.Marshal writes it.
func rootOf(dir string) (summed.Prefix, error) {
	f, err := os.Open(filepath.Join(dir, rootFile))
	if err != nil {
		return summed.Prefix{}, err
	}
	defer f.Close()
	return summed.Read(f, math.MaxInt64)
}

// writeChecksum writes the checksum of an index that scorch has closed.
func writeChecksum(dir string) error {
	c, err := rootOf(dir)
	if err != nil {
		return err
	}
	b, err := summed.Marshal(c)
	if err != nil {
		return err
	}
	return replaceFile(dir, closedFile, b)
}

// replaceFile makes a file durable with new content. A crash leaves the old file or the new one.
func replaceFile(dir, name string, b []byte) error {
	path := filepath.Join(dir, name)
	if err := writeSynced(path+".new", b); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(dir)
}

// writeSynced writes a file and syncs it.
func writeSynced(path string, b []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// checkClosed compares an index that was closed with its checksum. Without a checksum
// it checks nothing, and closed is false.
func checkClosed(dir string) (closed bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, closedFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var want summed.Prefix
	if err := summed.Unmarshal(b, &want); err != nil {
		return false, fmt.Errorf("%s cannot be read: %w", closedFile, err)
	}
	got, err := rootOf(dir)
	if err == nil && got != want {
		err = fmt.Errorf("%s is not as it was when the index was closed", rootFile)
	}
	return err == nil, err
}

// removeChecksum deletes the checksum; from now on the index may be written.
func removeChecksum(dir string) error {
	err := os.Remove(filepath.Join(dir, closedFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(dir)
}
