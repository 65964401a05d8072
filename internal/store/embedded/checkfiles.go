package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"weir/internal/summed"
)

// readList reads the list; ok is false if there is none.
func readList(fs vfs.FS, dir string) (list listing, ok bool, err error) {
	path := fs.PathJoin(dir, filesFile)
	b, err := readWhole(fs, path)
	if errors.Is(err, os.ErrNotExist) {
		return list, false, nil
	}
	if err != nil {
		return list, false, err
	}
	if err := summed.Unmarshal(b, &list); err != nil {
		return list, false, fmt.Errorf("%w: %s, the list of its files, cannot be read: %w", ErrDamaged, path, err)
	}
	return list, true, nil
}

// checkFiles checks a directory that no process has open, and changes nothing in it. It
// returns the list for the next owner, and whether the store was closed. A directory
// without a list is new, or was written by an older version; it is checked as far as
// that is possible without a list.
// Every error but those of the file system wraps ErrDamaged.
func checkFiles(fs vfs.FS, dir string) (l *files, closed bool, err error) {
	list, ok, err := readList(fs, dir)
	if err != nil {
		return nil, false, err
	}
	if !ok {
		_, err := fs.Stat(fs.PathJoin(dir, ownerFile))
		closed = errors.Is(err, os.ErrNotExist)
		if list, err = adopt(fs, dir, closed); err != nil {
			return nil, false, err
		}
		list.Closed = closed
	}
	for _, name := range slices.Sorted(maps.Keys(list.Files)) {
		if err := checkStage(fs, fs.PathJoin(dir, name), list.Files[name]); err != nil {
			return nil, false, err
		}
	}
	if list.Closed {
		if err := checkSizes(fs, dir, list.Sizes); err != nil {
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

// checkSizes compares the sizes of a directory's files with those noted when the store was
// closed. A file that is missing or has another size is ErrDamaged; nothing is written.
func checkSizes(fs vfs.FS, dir string, want map[string]int64) error {
	if want == nil {
		return nil
	}
	got, err := sizes(fs, dir)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		path := fs.PathJoin(dir, name)
		switch n, there := got[name]; {
		case !there:
			return fmt.Errorf("%w: %s is missing", ErrDamaged, path)
		case n != want[name]:
			return fmt.Errorf("%w: %s has %d bytes, and had %d when the store was closed", ErrDamaged, path, n, want[name])
		}
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

// adopt lists the files of a directory without a list. If the store was closed, the
// whole manifest must be readable. Otherwise its beginning must be readable, which
// names all files that there were.
func adopt(fs vfs.FS, dir string, closed bool) (listing, error) {
	list := listing{Files: map[string]summed.Prefix{}}
	names, err := fs.List(dir)
	if err != nil {
		return list, err
	}
	current, err := atomicfs.ReadMarker(fs, dir, "manifest")
	if err != nil {
		return list, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for _, name := range names {
		if !isListed(name) {
			continue
		}
		path := fs.PathJoin(dir, name)
		b, err := readWhole(fs, path)
		if err != nil {
			return list, err
		}
		list.Files[name] = summed.Prefix{}.With(b)
		if name == current {
			if err := checkManifest(b, closed); err != nil {
				return list, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
			}
		}
	}
	return list, nil
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

// checkManifest reads the records of a manifest: all of them if whole is set, or else
// at least the first.
func checkManifest(b []byte, whole bool) error {
	r := record.NewReader(bytes.NewReader(b), 0)
	for n := 0; ; n++ {
		at := r.Offset()
		next, err := r.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, next)
		}
		switch {
		case err == nil:
		case n > 0 && (err == io.EOF || !whole):
			return nil
		default:
			return fmt.Errorf("it cannot be read from about byte %d on: %w", at, err)
		}
	}
}
