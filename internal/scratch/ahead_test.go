package scratch_test

import (
	"context"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/scratch"
	"weir/internal/store"
)

// sized is a store whose tables have so many bytes each, and that reads no row.
type sized struct {
	store.Store
	bytes int64
}

func (s sized) Identity(context.Context, string) (store.Identity, error) {
	return store.Identity{ID: "it", Rows: 10, Bytes: s.bytes}, nil
}

// TestAhead: before a pass, its read units and the room that it needs are known, and it is refused without the room.
func TestAhead(t *testing.T) {
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	tables := int64(len(m.Tables) + 1) // and weir's own, owntable.TableName
	for bytes, fits := range map[int64]bool{0: true, 40_000: true, 1 << 50: false} {
		v := scratch.Verify{Model: m, Store: sized{bytes: bytes}, Dir: t.TempDir()}
		a, err := v.Ahead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if a.Rows != 10*tables || a.ReadUnits() != (tables*bytes+4095)/4096 || a.Free <= 0 {
			t.Errorf("%d bytes of each of %d tables with %s: %+v, %d read units", bytes, tables, owntable.TableName, a, a.ReadUnits())
		}
		if err := a.Check(); fits != (err == nil) || err != nil && !strings.Contains(err.Error(), a.Dir+", which has") {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
}
