package cli

import (
	"os"
	"path/filepath"
)

// CheckOutput refuses, as a usage error, a file for output that is one of the inputs, also as a link to it, or
// is in the directory of data. To create it would empty what is to be read. Call it before anything is
// opened. "-" among the inputs is stdin; inputs that are not there, and data of "", are
// passed over. Devices and pipes may be both.
func CheckOutput(path, data string, inputs ...string) error {
	out, err := os.Stat(path)
	if err == nil && !out.Mode().IsRegular() {
		return nil
	}
	if err == nil {
		for _, name := range inputs {
			if name == "-" {
				name = "/dev/stdin"
			}
			if in, err := os.Stat(name); err == nil && os.SameFile(in, out) {
				return Usage("%s is read, so nothing can be written there: it would be emptied first; name another file", path)
			}
		}
	}
	if data != "" && inside(path, data) {
		return Usage("%s belongs to the data directory %s; name a file elsewhere", path, data)
	}
	return nil
}

// inside reports whether a file, which need not exist, is in a directory. Symbolic links are followed.
func inside(path, dir string) bool {
	home, err := realPath(dir)
	if err != nil {
		return false
	}
	at, err := realPath(path)
	if err != nil {
		at, err = realPath(filepath.Dir(path))
	}
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(home, at)
	return err == nil && filepath.IsLocal(rel)
}

// realPath is the absolute path of a file that exists, without symbolic links.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}
