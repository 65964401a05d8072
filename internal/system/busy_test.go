package system_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// busy is an application of a model that writes and removes core rows all the time.
type busy struct {
	model string
	put   func(d *rand.Rand, i int) (table string, row value.Item)
}

func row(attrs ...string) value.Item {
	var out []value.Attr
	for i := 0; i+1 < len(attrs); i += 2 {
		out = append(out, value.Attr{Name: attrs[i], Value: value.OfString(attrs[i+1])})
	}
	return value.NewItem(out...)
}

var busies = []busy{
	{"gallery", func(d *rand.Rand, i int) (string, value.Item) {
		album := fmt.Sprint(d.IntN(12))
		if i%5 == 0 {
			return "gallery", row("PK", "ALBUM#"+album, "SK", "METADATA", "EntityType", "Album", "id", album, "title", fmt.Sprint("album ", i), "isPublic", "true", "createdAt", "2025-01-01T00:00:00Z")
		}
		m := fmt.Sprint(d.IntN(40))
		return "gallery", row("PK", "ALBUM#"+album, "SK", "MEDIA#"+m, "EntityType", "AlbumMedia", "albumId", album, "mediaId", m, "addedAt", fmt.Sprint(i))
	}},
	{"wardrobe", func(d *rand.Rand, i int) (string, value.Item) {
		item := fmt.Sprint(d.IntN(30))
		return "WardrobeTable", row("PK", "ITEM#"+item, "SK", "METADATA", "EntityType", "Item", "ItemId", item, "UserId", "u"+fmt.Sprint(d.IntN(3)), "Name", fmt.Sprint("name ", i%7), "Category", fmt.Sprint(i%3), "Season", "summer", "CreatedAt", "2025-01-01T00:00:00Z")
	}},
	{"viewing", func(d *rand.Rand, i int) (string, value.Item) {
		asset := fmt.Sprint(d.IntN(200))
		return "viewing-history", row("profileId", fmt.Sprint("p", d.IntN(2)), "sk", "IN_PROGRESS|"+asset, "a.assetId", asset, "a.state", "IN_PROGRESS", "m", fmt.Sprint(i))
	}},
}

// spoilSome takes some of weir's bookkeeping and rows away, or makes it wrong.
func (b *busy) spoilSome(t *testing.T, s *system.System, d *rand.Rand) (n int) {
	m := s.Models[0].Model
	spoil := func(table *store.Table, row value.Item, bad value.Item) {
		key, _ := table.KeyOf(row)
		w := store.Write{Ref: store.Ref{Table: table.Name, Key: key}, Put: bad, Delete: bad == nil}
		w.If = store.Cond{{{Attr: table.Key.Partition.Name, Is: store.Exists}}}
		for _, name := range []string{owntable.Version, owntable.Count, owntable.Position} {
			if v := row.Get(name); !v.IsMissing() {
				w.If = append(w.If, []store.Test{{Attr: name, Is: store.Eq, Value: v}})
			}
		}
		if out, err := s.Store.Write(t.Context(), []store.Write{w}); err == nil && out[0].Err == nil {
			n++
		}
	}
	own := owntable.Table()
	all(t, s.Store, own.Name, func(row value.Item) {
		if d.IntN(3) > 0 {
			return
		}
		for _, a := range row {
			switch {
			case a.Name == "a:mediaCount" || a.Name == "a:SharedCount":
				spoil(&own, row, row.With(value.Attr{Name: a.Name, Value: value.OfInt(int64(d.IntN(99)))}))
				return
			case a.Name == "m" && a.Value.Len() > 1: // a member too few in a leaf
				counts := a.Value.Item()
				spoil(&own, row, row.With(value.Attr{Name: "m", Value: value.OfMap(counts[1:])}))
				return
			case a.Name == "v" && !owntable.IsEntry(row.Get(owntable.Sort).Text()):
				spoil(&own, row, row.With(value.Attr{Name: a.Name, Value: value.OfString("spoilt")}))
				return
			}
		}
	})
	for _, mt := range m.Tables {
		all(t, s.Store, mt.Name, func(row value.Item) {
			if e := mt.Classify(row); e == nil || !e.Derived || e.SetOf() != nil || d.IntN(3) > 0 {
				return
			} else if e.Name == "UserItem" {
				spoil(&mt.Table, row, row.With(value.Attr{Name: "Category", Value: value.OfString("spoilt")}))
			}
		})
	}
	return n
}

func all(t *testing.T, db store.Store, table string, yield func(value.Item)) {
	t.Helper()
	q := store.Query{Table: table}
	for {
		page, err := db.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			yield(row)
		}
		if q.After = page.Next; q.After == nil {
			return
		}
	}
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
