package embedded

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/store"
)

// TestFree: a load on a disk knows that there is room, and one in memory does not.
func TestFree(t *testing.T) {
	for _, c := range []struct {
		dir   string
		fs    vfs.FS
		known bool
	}{{t.TempDir(), vfs.Default, true}, {"data", vfs.NewMem(), false}} {
		l, err := open(t, c.dir, []store.Table{things()}, Options{FS: c.fs}).Load(t.Context(), store.LoadOptions{Tables: []string{"things"}})
		failtest.On(t, err)
		if free := l.Free(); (free > 0) != c.known {
			t.Errorf("%s has %d bytes free", c.dir, free)
		}
	}
}
