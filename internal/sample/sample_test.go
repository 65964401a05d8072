package sample

import (
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// TestCommands: every entity that the application writes gets rows, all of them are
// taken, and each tally counts something.
func TestCommands(t *testing.T) {
	for _, name := range model.Builtin() {
		m, err := model.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		tables := []store.Table{owntable.Table()}
		for _, tab := range m.Tables {
			tab.Stream = true
			tables = append(tables, tab.Table)
		}
		s, err := embedded.Open("data", tables, embedded.Options{FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w := &ingest.Writer{Model: m, Store: s, Now: func() time.Time { return now }}
		cs := Commands(m, now)
		made := map[string]int{}
		for i, res := range w.Do(t.Context(), cs) {
			if res.Err != nil {
				t.Errorf("%s: %s %s: %v", name, cs[i].Entity, value.AppendPlainItem(nil, cs[i].Item), res.Err)
				continue
			}
			made[cs[i].Entity]++
		}
		keys := map[string]bool{}
		for _, e := range m.Entities {
			key := e.Table.Name
			for _, k := range e.PrimaryKey() {
				key += " " + k.Template.String()
			}
			shares := keys[key] // its rows stand where those of another entity do
			keys[key] = true
			if !e.Derived && made[e.Name] == 0 && !keepsKeys(m, e) && !shares {
				t.Errorf("%s: no rows of %s", name, e.Name)
			}
		}
		for _, tally := range m.Tallies {
			if !tally.Target.Derived && !counts(t, s, m, tally) {
				t.Errorf("%s: %s counts nothing", name, tally.Name)
			}
		}
		for i, again := range Commands(m, now) {
			if again.Entity != cs[i].Entity || !value.EqualItems(again.Item, cs[i].Item) {
				t.Errorf("%s: another row of %s the second time", name, again.Entity)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// counts reports whether a row counts towards a row of the tally's target that is
// there.
func counts(t *testing.T, s store.Store, m *model.Model, tally *model.Tally) bool {
	for _, src := range tally.Sources {
		page, err := s.Query(t.Context(), store.Query{Table: src.Entity.Table.Name})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			if src.Entity.Table.Classify(row) != src.Entity || !model.Holds(src.Where, row) {
				continue
			}
			key, ok := tally.Target.Key(func(name string) value.Value {
				for _, a := range src.To {
					if a.Name == name && a.Expr.Field != nil {
						return a.Expr.Field.Get(row)
					}
				}
				return value.Value{}
			})
			if !ok {
				continue
			}
			got, err := s.Get(t.Context(), []store.Ref{{Table: tally.Target.Table.Name, Key: key}})
			if err != nil {
				t.Fatal(err)
			}
			if got[0] != nil {
				return true
			}
		}
	}
	return false
}
