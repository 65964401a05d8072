package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/store"
)

// checkOwned tries to open a directory that the given process has open.
func checkOwned(t *testing.T, dir string, pid int) {
	t.Helper()
	s, err := Open(dir, []store.Table{things()}, Options{})
	if err == nil {
		_ = s.Close()
		t.Fatal("the directory has two owners")
	}
	if !errors.Is(err, store.ErrOwned) {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{dir, fmt.Sprint(pid), filepath.Base(os.Args[0]), "since 20", "stop that process"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestOneOwner(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, []store.Table{things()}, Options{})
	checkOwned(t, dir, os.Getpid())
	// By other names it is the same directory.
	link := filepath.Join(t.TempDir(), "link")
	failtest.On(t, os.Symlink(dir, link))
	checkOwned2 := func(name string) {
		if _, err := Open(name, nil, Options{}); !errors.Is(err, store.ErrOwned) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	checkOwned2(link)
	checkOwned2(dir + "/../" + filepath.Base(dir) + "/.")
	t.Chdir(dir)
	checkOwned2(".")
	do(t, s, put("still", "works"))
	failtest.On(t, s.Close())
	if _, err := os.Stat(filepath.Join(dir, ownerFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("owner file after Close: %v", err)
	}
	open(t, dir, []store.Table{things()}, Options{})
}

func TestStaleOwner(t *testing.T) {
	for name, content := range map[string]string{"of a dead process": `{"pid":1,"command":"projector run","since":"2024-01-02T03:04:05Z"}`, "torn": `{"pi`, "empty": ""} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			failtest.On(t, os.WriteFile(filepath.Join(dir, ownerFile), []byte(content), 0o644))
			open(t, dir, []store.Table{things()}, Options{})
			checkOwned(t, dir, os.Getpid())
		})
	}
}

func TestOwnerFileTorn(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, nil, Options{})
	failtest.On(t, os.WriteFile(filepath.Join(dir, ownerFile), []byte("{"), 0o644))
	_, err := Open(dir, nil, Options{})
	if !errors.Is(err, store.ErrOwned) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("error %v", err)
	}
}

// TestUnusableDirectory: an error that has another cause than an owner does not look
// like ErrOwned.
func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	failtest.On(t, os.WriteFile(file, nil, 0o644))
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err := Open(dir, nil, Options{})
		if err == nil || errors.Is(err, store.ErrOwned) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: error %v", dir, err)
		}
	}
}

// TestFailedOpenLetsGo: an Open that fails releases the directory.
func TestFailedOpenLetsGo(t *testing.T) {
	fs, bad := vfs.NewMem(), things()
	failtest.On(t, open(t, "data", []store.Table{things()}, Options{FS: fs}).Close())
	bad.Key.Sort.Name = "other"
	for range 2 {
		if _, err := Open("data", []store.Table{bad}, Options{FS: fs}); err == nil || errors.Is(err, store.ErrOwned) {
			t.Fatalf("error %v", err)
		}
	}
	open(t, "data", []store.Table{things()}, Options{FS: fs})
}
