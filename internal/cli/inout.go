package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckOutput refuses, as a usage error, a file for output that is one of the inputs or
// belongs to the directory of data: by its own name, a relative path, a symbolic or a
// hard link. To create it would empty what is to be read. Call it before anything is
// opened. "-" among the inputs is stdin; inputs that are not there, and data of "", are
// passed over. Devices and pipes may be both.
func CheckOutput(path, data string, inputs ...string) error {
	out, err := os.Stat(path)
	if err == nil && !out.Mode().IsRegular() {
		return nil
	}
	if err == nil {
		for _, name := range inputs {
			if in, err := inputInfo(name); err == nil && os.SameFile(in, out) {
				return Usage("%s is read, so nothing can be written there: it would be emptied first; name another file", path)
			}
		}
	}
	if data == "" {
		return nil
	}
	if inside(path, data, out) {
		return Usage("%s belongs to the data directory %s; name a file elsewhere", path, data)
	}
	return nil
}

// inputInfo describes an input, where "-" is stdin.
func inputInfo(name string) (fs.FileInfo, error) {
	if name == "-" {
		return os.Stdin.Stat()
	}
	return os.Stat(name)
}

// inside reports whether a file that is to be made is in a directory, or, when it is
// there, is one of its files by another name.
func inside(path, dir string, there fs.FileInfo) (found bool) {
	home, err := os.Stat(dir)
	if err != nil {
		return false
	}
	if abs, err := filepath.Abs(path); err == nil {
		if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			for up := real; !found; up = filepath.Dir(up) {
				info, err := os.Stat(up)
				found = err == nil && os.SameFile(info, home)
				if up == filepath.Dir(up) {
					break
				}
			}
		}
	}
	if there == nil || found {
		return found
	}
	stop := errors.New("found")
	return filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil && os.SameFile(info, there) {
			return stop
		}
		return nil
	}) == stop
}
