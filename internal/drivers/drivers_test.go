package drivers

import (
	"testing"

	"weir/internal/memory"
	"weir/internal/openfiles"
	"weir/internal/store/embedded"
)

// TestMemory: the caches of a store are shares of what its process may have.
func TestMemory(t *testing.T) {
	for size, unit := range map[memory.Size]int64{0: 1 << 20, memory.Default: 1 << 20, memory.Least: 1 << 19, memory.GB: 4 << 20} {
		at := Place{Data: t.TempDir(), Memory: size}
		db, _, err := at.Open(t.Context(), nil, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		o := db.(*embedded.Store).Options()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		got := [4]int64{o.CacheBytes, o.RowCacheBytes, o.TailBytes, int64(o.MemTableBytes)}
		if want := [4]int64{12 * unit, 24 * unit, 12 * unit, 16 * unit}; got != want {
			t.Errorf("%s: %d, want %d", size, got, want)
		}
	}
}

// TestPlaces: each way to say where rows and documents are has one driver of each.
func TestPlaces(t *testing.T) {
	here, there := openfiles.Need{Indexes: 1}, served
	for _, c := range []struct {
		at    Place
		store string
		index openfiles.Need // none is no index
		dir   string
	}{
		{Place{Data: "d"}, "d", here, "d"},
		{Place{Data: "d", OpenSearch: "u"}, "d", there, "d"},
		{Place{Data: "d", AWS: true}, "DynamoDB", openfiles.Need{}, ""},
		{Place{Data: "d", AWS: true, OpenSearch: "u"}, "DynamoDB", there, ""},
		{Place{}, "", openfiles.Need{}, ""},
	} {
		index := openfiles.Need{}
		if ix := c.at.Index(); ix != nil {
			index = ix.Files(1)
		}
		if name := c.at.Store().Name(c.at); name != c.store || index != c.index || c.at.Dir() != c.dir {
			t.Errorf("%+v: rows in %q, documents with %+v, in %q", c.at, name, index, c.at.Dir())
		}
		if shared := c.at.Store().Shared(); shared != c.at.AWS || shared != c.at.Store().Deploys() {
			t.Errorf("%+v: shared is %v", c.at, shared)
		}
	}
}
