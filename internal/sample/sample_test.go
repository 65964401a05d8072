package sample

import (
	"log/slog"
	"path/filepath"
	"slices"
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
	paths, err := filepath.Glob("../../examples/*/model.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, name := range slices.Concat(model.Builtin(), paths, []string{"picky"}) {
		var m *model.Model
		var err error
		if name == "picky" {
			m, err = model.Parse("picky.yaml", []byte(picky))
		} else {
			m, err = model.Load(name)
		}
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
			ofMade := func(src *model.Source) bool { return src.Entity.Derived } // which the engine makes
			if !tally.Target.Derived && !slices.ContainsFunc(tally.Sources, ofMade) && !counts(t, s, m, tally) {
				t.Errorf("%s: %s counts nothing", name, tally.Name)
			}
		}
		for _, e := range m.Entities {
			for _, where := range (&sample{model: m}).wheres(e) {
				if !e.Derived && made[e.Name] > 0 && !passed(t, s, e, where) {
					t.Errorf("%s: no row of %s passes %+v", name, e.Name, where)
				}
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

// picky has conditions that rows made up at random do not pass.
const picky = `model: picky
tables: {picky: {key: [PK, SK]}}
entities:
  Whole: {where: {kind: whole}, key: {PK: "W#{whole}", SK: W}, attributes: {}}
  Part:
    where: {kind: part}
    key: {PK: "W#{whole}", SK: "P#{part}"}
    attributes: {state: {type: string, enum: [open, done]}, points: {type: number, min: 0, max: 9}, at: time, name: string, gone: string}
  Log: {where: {kind: log}, key: {PK: "LOG#{whole}", SK: "{part}"}, attributes: {points: number}}
derive:
  Whole.large: {count: Part, where: {state: done, points: {above: 8}}}
  Whole.small: {count: Part, where: {state: open, points: {below: 1}}}
  Whole.old: {count: Part, where: {at: {below: 2001-01-01T00:00:00Z}}}
  Whole.late: {count: Part, where: {at: {atLeast: 2040-01-01T00:00:00Z}, gone: absent}}
  Whole.named: {count: Part, where: {name: {begins: EU-}}}
  Whole.gone: {count: Part, where: {gone: present, state: {not: open}}}
  Log: {row: Part, set: {whole: whole, part: part, points: points}, where: {points: {atLeast: 7}, state: open}}
`

// passed reports whether a row of the entity passes the tests.
func passed(t *testing.T, s store.Store, e *model.Entity, where []model.Test) bool {
	page, err := s.Query(t.Context(), store.Query{Table: e.Table.Name})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(page.Rows, func(row value.Item) bool { return e.Table.Classify(row) == e && model.Holds(where, row) })
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

// TestComputed: rows of the sample have what computed attributes can be read from.
func TestComputed(t *testing.T) {
	m, err := model.Parse("m.yaml", []byte(`
model: m
tables: {some: {key: [PK, SK], indexes: {GSI1: [GSI1PK, GSI1SK]}}}
entities:
  A: {where: {t: A}, key: {PK: "A#{owner}", SK: A}, attributes: {}}
  B:
    where: {t: B}
    key: {PK: "B#{b}", SK: B, GSI1PK: "A#{owner}", GSI1SK: "{placed}#{n}"}
    attributes:
      l: list!
      x: any
      at: {type: time, is: placed}
      nr: {type: number, is: n}
      paid: {type: number, is: "sum(l[].amount)"}
      more: {type: number, is: x.more * 2}
derive:
  A.paid: {sum: B.paid, where: {at: present}}
  A.nr: {sum: B.nr}
  A.more: {sum: B.more}
`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := embedded.Open("data", []store.Table{owntable.Table(), m.Tables[0].Table}, embedded.Options{FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w := &ingest.Writer{Model: m, Store: s, Now: func() time.Time { return now }}
	cs := Commands(m, now)
	for i, res := range w.Do(t.Context(), cs) {
		if res.Err != nil {
			t.Errorf("%s %s: %v", cs[i].Entity, value.AppendPlainItem(nil, cs[i].Item), res.Err)
		}
	}
	if len(cs) < 4 {
		t.Errorf("only %d rows", len(cs))
	}
}
