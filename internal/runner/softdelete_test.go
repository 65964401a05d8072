package runner_test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/sample"
	"weir/internal/store"
	"weir/internal/value"
)

// TestSoftDeletes: rows of each kind become rows of another kind before they go, as applications do that delete
// softly. A month later the own table has nothing of them, as when they go at once.
func TestSoftDeletes(t *testing.T) {
	for _, name := range []string{
		"../../models/gallery.yaml", "../../models/movienight.yaml", "../../models/viewing.yaml", "../../models/wardrobe.yaml", "../../models/watchlists.yaml",
		"../../examples/chat/model.yaml", "../../examples/github/model.yaml", "../../examples/shop/model.yaml",
		"../sim/testdata/rooms.yaml", "../sim/testdata/bounds.yaml", "../sim/testdata/press.yaml", "../sim/testdata/crowds.yaml", "../sim/testdata/shops.yaml",
	} {
		for _, soft := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, soft %v", name, soft), func(t *testing.T) {
				m, err := model.Load(name)
				failtest.On(t, err)
				c := &churner{harness: newHarness(t, m), at: map[string]events.Position{}}
				defer c.close()
				w := &ingest.Writer{Model: m, Store: c.store, Now: c.now}
				for round := range 3 {
					for _, r := range w.Do(t.Context(), sample.Apart(m, c.clock, fmt.Sprint("r", round, "-"))) {
						failtest.On(t, r.Err)
					}
					c.apply()
					if rows, _ := c.own(); round == 0 && len(rows) == 0 {
						t.Fatal("nothing was derived")
					}
					if soft {
						c.writeAll(func(row value.Item) value.Item {
							for _, attr := range []string{"type", "entity_type", "kind", "et"} {
								if row.Has(attr) {
									row = row.With(value.Attr{Name: attr, Value: value.OfString("Deleted")})
								}
							}
							return row
						})
					}
					for range 3 { // what was derived from these is written meanwhile
						c.writeAll(func(value.Item) value.Item { return nil })
					}
					c.passes(24 * time.Hour)
				}
				c.passes(30 * 24 * time.Hour)
				if rows, bytes := c.own(); bytes > 0 {
					t.Errorf("%d bytes of the own table are left: %v", bytes, rows)
				}
			})
		}
	}
}

// writeAll writes what to makes of each row of the model's tables; nil deletes it.
func (c *churner) writeAll(to func(row value.Item) value.Item) {
	for _, table := range c.model.Tables {
		var ws []store.Write
		for _, row := range c.scan(table.Name) {
			key, _ := table.KeyOf(row)
			next := to(row)
			ws = append(ws, store.Write{Ref: store.Ref{Table: table.Name, Key: key}, Put: next, Delete: next == nil})
		}
		c.write(ws)
	}
}

// TestClaimsGo: a unique value is free again when another program gives the row another value, makes it a row of
// another kind and deletes it, or edits it between; and stays while the row has it.
func TestClaimsGo(t *testing.T) {
	m, err := model.Parse("users.yaml", []byte(`model: users
tables:
  users: {key: [PK, SK], indexes: {by-email: [email]}}
entities:
  User: {where: {type: User}, key: {PK: "USER#{id}", SK: METADATA}, unique: [email], attributes: {email: string!, name: string}}
`))
	failtest.On(t, err)
	email := func(v string) value.Attr { return value.Attr{Name: "email", Value: value.OfString(v)} }
	kind := func(v string) value.Attr { return value.Attr{Name: "type", Value: value.OfString(v)} }
	for how, step := range map[string]struct {
		edits  []value.Attr
		delete bool
		stays  int
	}{
		"nothing":                      {nil, false, 1},
		"delete":                       {nil, true, 0},
		"edit":                         {[]value.Attr{email("other@x")}, false, 0},
		"edit and back":                {[]value.Attr{email("other@x"), email("one@x")}, false, 1},
		"another kind":                 {[]value.Attr{kind("Gone")}, false, 1},
		"another kind, delete":         {[]value.Attr{kind("Gone")}, true, 0},
		"another kind, edit":           {[]value.Attr{kind("Gone"), email("other@x")}, false, 0},
		"another kind, edit, delete":   {[]value.Attr{kind("Gone"), email("other@x")}, true, 0},
		"another kind and back":        {[]value.Attr{kind("Gone"), kind("User")}, false, 1},
		"another attribute of the row": {[]value.Attr{{Name: "name", Value: value.OfString("N")}}, false, 1},
	} {
		t.Run(how, func(t *testing.T) {
			c := &churner{harness: newHarness(t, m), at: map[string]events.Position{}}
			defer c.close()
			w := &ingest.Writer{Model: m, Store: c.store, Now: c.now}
			create := []ingest.Command{{Op: "create", Entity: "User", Item: value.NewItem(value.Attr{Name: "id", Value: value.OfString("1")}, email("one@x"))}}
			failtest.On(t, w.Do(t.Context(), create)[0].Err)
			c.apply()
			row := c.scan("users")[0]
			at, _ := m.Tables[0].KeyOf(row)
			ref := store.Ref{Table: "users", Key: at}
			var ws []store.Write
			for _, a := range step.edits {
				row = row.With(a)
				ws = append(ws, store.Write{Ref: ref, Put: row})
			}
			if step.delete {
				ws = append(ws, store.Write{Ref: ref, Delete: true})
			}
			for i := range ws { // all are written before the first is applied
				_, err := c.store.Write(t.Context(), ws[i:i+1])
				failtest.On(t, err)
			}
			c.apply()
			c.passes(60 * 24 * time.Hour)
			claims := 0
			for _, row := range c.scan(owntable.TableName) {
				if owntable.Kind(row.Get(owntable.Partition).Text()) == "claim" {
					claims++
				}
			}
			if claims != step.stays {
				t.Errorf("%d claims, want %d", claims, step.stays)
			}
		})
	}
}
