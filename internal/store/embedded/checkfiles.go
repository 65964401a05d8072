package embedded

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"weir/internal/summed"
)

// readList reads the list. A directory without one is new, and must have no file that would be in it:
// the list is written before any of these.
func readList(fs vfs.FS, dir string) (list listing, err error) {
	path := fs.PathJoin(dir, filesFile)
	b, err := readWhole(fs, path)
	if errors.Is(err, os.ErrNotExist) {
		names, err := fs.List(dir)
		if slices.ContainsFunc(names, func(name string) bool { return isListed(name) || isTable(name) }) {
			return list, fmt.Errorf("%w: %s, the list of its files, is missing", ErrDamaged, path)
		}
		return listing{Closed: true}, err
	}
	if err != nil {
		return list, err
	}
	if err := summed.Unmarshal(b, &list); err != nil {
		return list, fmt.Errorf("%w: %s, the list of its files, cannot be read: %w", ErrDamaged, path, err)
	}
	return list, nil
}

// checkFiles checks a directory that no process has open, and changes nothing in it. It
// returns the list for the next owner, and whether the store was closed.
// Every error but those of the file system wraps ErrDamaged.
func checkFiles(fs vfs.FS, dir string) (l *files, closed bool, err error) {
	list, err := readList(fs, dir)
	if err != nil {
		return nil, false, err
	}
	for _, name := range slices.Sorted(maps.Keys(list.Files)) {
		if err := checkStage(fs, fs.PathJoin(dir, name), list.Files[name]); err != nil {
			return nil, false, err
		}
	}
	if err := checkMarker(fs, dir, list); err != nil {
		return nil, false, err
	}
	l = &files{fs: fs, dir: dir, known: map[string]*tracked{}}
	for name, at := range list.Files {
		t := &tracked{manifest: isManifest(name), written: at, synced: at, shown: at}
		t.listed.Store(true)
		l.known[name] = t
	}
	return l, list.Closed, nil
}

// checkStage checks the beginning of a file against the list.
func checkStage(fs vfs.FS, path string, want summed.Prefix) error {
	f, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, path)
	}
	if err != nil {
		return err
	}
	got, err := summed.Read(f, want.Bytes)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	switch {
	case got.Bytes < want.Bytes:
		return fmt.Errorf("%w: %s has %d bytes of %d", ErrDamaged, path, got.Bytes, want.Bytes)
	case got.Sum != want.Sum:
		return fmt.Errorf("%w: the first %d bytes of %s are not those that were written", ErrDamaged, want.Bytes, path)
	}
	return nil
}

// checkMarker checks that Pebble will open its last manifest: the marker must name a
// manifest in the list. The marker may be missing only if the store had not been made
// yet.
func checkMarker(fs vfs.FS, dir string, list listing) error {
	name, err := atomicfs.ReadMarker(fs, dir, "manifest")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if _, listed := list.Files[name]; name != "" && !listed {
		return fmt.Errorf("%w: its marker names %s, which is not one of its files", ErrDamaged, fs.PathJoin(dir, name))
	}
	if name != "" {
		return nil
	}
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, other := range names {
		if isLog(other) || isTable(other) {
			return fmt.Errorf("%w: %s exists, and no marker that names a manifest (marker.manifest.…)", ErrDamaged, fs.PathJoin(dir, other))
		}
	}
	return nil
}

// readWhole reads a file to its end. It is for files that are small: lists and manifests.
func readWhole(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}
