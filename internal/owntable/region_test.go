package owntable

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// TestRegionFence: of regions that take over at the same time one does, whatever the keys of the table are, and a row of the
// application is not written over.
func TestRegionFence(t *testing.T) {
	for _, kind := range []value.Kind{value.String, value.Number, value.Binary} {
		table := store.Table{Name: "t", Key: store.KeySchema{Partition: store.KeyAttr{Name: "a", Type: kind}, Sort: store.KeyAttr{Name: "b", Type: kind}}}
		s, err := embedded.Open("s", []store.Table{table}, embedded.Options{FS: vfs.NewMem(), Now: time.Now})
		failtest.On(t, err)
		at := RegionFenceOf(&table)
		is := func() RegionFence {
			row, err := store.GetRow(t.Context(), s, at)
			failtest.On(t, err)
			if !IsRegionFence(&table, row) {
				return RegionFence{}
			}
			return RegionFenceFrom(row)
		}
		write := func(w store.Write) error { _, err := store.WriteRow(t.Context(), s, w); return err }
		none := is()
		failtest.On(t, write(none.Becomes(at, &table, "x")))
		first := is()
		if first != (RegionFence{"x", 1}) {
			t.Errorf("%v: %+v", kind, first)
		}
		for was, region := range map[RegionFence]string{none: "y", {"x", 2}: "y", {"z", 1}: "y"} {
			if err := write(was.Becomes(at, &table, region)); !errors.Is(err, store.ErrCondition) {
				t.Errorf("%v, as of %+v: %v", kind, was, err)
			}
		}
		failtest.On(t, write(first.Becomes(at, &table, "y")))
		if second := is(); second != (RegionFence{"y", 2}) {
			t.Errorf("%v: %+v", kind, second)
		}
		failtest.On(t, write(store.Write{Ref: at, Put: table.Item(at.Key)}))
		if err := write(none.Becomes(at, &table, "y")); !errors.Is(err, store.ErrCondition) || IsRegionFence(&table, table.Item(at.Key)) {
			t.Errorf("%v: a row of the application is written over: %v", kind, err)
		}
		failtest.On(t, s.Close())
	}
}
