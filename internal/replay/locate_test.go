package replay_test

import (
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

// TestLocate: a record goes to the table that it names, that its file is of, or that
// alone has such a key.
func TestLocate(t *testing.T) {
	m := parse(t, `
model: three
tables: {first: {key: [PK, SK]}, second: {key: [PK, SK]}, third: {key: [PK]}}
entities:
  One: {table: first, key: {PK: "{a}", SK: "{b}"}}
`)
	const both, one, none = `{"PK":"p","SK":"s"}`, `{"PK":"p"}`, `{"id":"x"}`
	for name, c := range map[string]struct{ names, file, keys, image, want string }{
		"it names its table":                 {"first", "", both, both, "first"},
		"it names another than its file's":   {"second", "first", both, both, "second"},
		"its file's":                         {"", "second", both, both, "second"},
		"the only one with such a key":       {"", "", one, one, "third"},
		"two have such a key":                {"", "", both, both, "first or of second"},
		"a row, and only its image to go by": {"first", "", "", both, "first"},
		"none has such a key":                {"", "", none, none, "no table of model three has a key like this"},
		"not its table's key":                {"third", "", none, none, "has not the key of table third: PK (string)"},
		"a key that is empty":                {"third", "", `{"PK":""}`, one, "key attribute PK is empty"},
		"a key that is too long":             {"first", "", `{"PK":"p","SK":"` + strings.Repeat("s", 1025) + `"}`, both, "SK has 1025 bytes, the limit is 1024"},
		"no such table":                      {"fourth", "", both, both, "model three has no table fourth, it has first, second, third; if one of them has that name where this was recorded, say --tables first=fourth"},
	} {
		w := worldOf(t, m)
		e := events.Entry{Record: events.Record{Table: c.names, New: item(c.image)}}
		if c.keys != "" {
			e.Record.Keys = item(c.keys)
		}
		var said string
		r := w.over(w.store)
		r.Bad = func(_ events.Entry, err error) { said = err.Error() }
		failtest.On(t, r.Batch(t.Context(), []events.Entry{e}, c.file))
		if m.Table(c.want) == nil {
			if !strings.Contains(said, c.want) {
				t.Errorf("%s: %q", name, said)
			}
			continue
		}
		key := store.Key{Partition: value.OfString("p"), Sort: value.OfString("s")}
		if c.want == "third" {
			key.Sort = value.Value{}
		}
		if said != "" || w.at(store.Ref{Table: c.want, Key: key}) == nil {
			t.Errorf("%s: it is not in %s; %s", name, c.want, said)
		}
	}

	w := newWorld(t)
	e := life()[0]
	e.Record.Table = "shop-production"
	if s := w.replay([]events.Entry{e}, 0); s.Applied != 0 || s.Dead != 1 {
		t.Errorf("a table that is not the model's only one: %+v", s)
	}

	w = worldOf(t, parse(t, `
model: two
tables: {long: {key: [PK, SK]}, short: {key: [PK]}}
entities:
  One: {table: long, key: {PK: "{a}", SK: "{b}"}}
`))
	if s := w.replay([]events.Entry{life()[0]}, 0); s.Applied != 1 {
		t.Errorf("the only table with a key of both: %+v", s)
	}
}
