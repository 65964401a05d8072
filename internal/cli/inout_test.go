package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCheckOutput(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll("data/rows", 0o755))
	for _, name := range []string{"in", "other", "data/rows/1"} {
		must(os.WriteFile(name, []byte("x"), 0o644))
	}
	must(os.Symlink("in", "soft"))
	must(os.Link("in", "hard"))
	must(os.Symlink(dir, "here"))
	must(os.Symlink("data/rows/1", "softrow"))
	for path, good := range map[string]bool{
		"in": false, "./in": false, "here/in": false, "soft": false, "hard": false, filepath.Join(dir, "in"): false,
		"data/new": false, "data/rows/1": false, "here/data/rows/new": false, "softrow": false,
		"other": true, "new": true, "here/new": true, os.DevNull: true,
	} {
		err := CheckOutput(path, "data", "-", "missing", "in", os.DevNull)
		if (err == nil) != good {
			t.Errorf("%s: %v", path, err)
		}
	}
	must(CheckOutput("data/new", "", "in"))
	must(CheckOutput("data/new", "no-such-directory", "in"))
}
