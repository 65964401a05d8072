package embedded

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/store/storetest"
)

// open opens a store and closes it when the test ends.
func open(t testing.TB, dir string, tables []store.Table, opts Options) *Store {
	t.Helper()
	s, err := Open(dir, tables, opts)
	failtest.On(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T, tables []store.Table) store.Store {
		return open(t, "data", tables, Options{FS: vfs.NewMem()})
	})
}

func TestContractOnDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite has run in memory")
	}
	storetest.Run(t, func(t *testing.T, tables []store.Table) store.Store {
		return open(t, t.TempDir(), tables, Options{Shards: 1, MemTableBytes: 256 << 10, RowCacheBytes: 1536 << 10})
	})
}

// A closed store is garbage at once. A sync.Pool in it would keep it for two collections more, and
// a process that opens stores one after the other would keep more of them with each collection.
func TestClosedStoreIsGarbage(t *testing.T) {
	closed := func() weak.Pointer[Store] {
		s, err := Open("data", []store.Table{things()}, Options{FS: vfs.NewMem()})
		failtest.On(t, err)
		if out, err := s.Write(context.Background(), []store.Write{put("a", "b")}); err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
		failtest.On(t, s.Close())
		return weak.Make(s)
	}()
	time.Sleep(100 * time.Millisecond) // what ran in the background ends a moment after Close
	runtime.GC()
	if closed.Value() != nil {
		t.Error("after a collection, the closed store is still in memory")
	}
}
