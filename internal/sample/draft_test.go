package sample

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

var show = flag.Bool("show", false, "print the drafts")

// TestDraftsAreGood: a draft of each table of each recording is a model without problems, and tells most rows apart: each row is of
// an entity of the draft.
func TestDraftsAreGood(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*/model.yaml")
	failtest.On(t, err)
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.Contains(p, "typescript") })
	for _, name := range append(paths, model.Builtin()...) {
		m, err := model.Load(name)
		failtest.On(t, err)
		for i := range m.Tables {
			rows := recorded(t, m, m.Tables[i])
			if len(rows) == 0 {
				continue
			}
			text := Model("draft", &m.Tables[i].Table, rows)
			if *show {
				t.Log(text)
			}
			d, err := model.Parse("draft.yaml", []byte(text))
			if err != nil {
				t.Errorf("%s: %s: %v\n%s", name, m.Tables[i].Name, err, text)
				continue
			}
			for _, row := range rows {
				if d.Tables[0].Classify(row) == nil && !strings.Contains(text, "rows more") && m.Tables[i].Classify(row) != nil && (kindOf(rows) == "" || !row.Get(kindOf(rows)).IsMissing()) {
					t.Errorf("%s: %s: no entity of the draft has the row %s\n%s", name, m.Tables[i].Name, value.AppendPlainItem(nil, row), text)
					break
				}
			}
		}
	}
}

// recorded are the rows of a table at the end of the recording of a model.
func recorded(t *testing.T, m *model.Model, of *model.Table) (out []value.Item) {
	dir := filepath.Join("../../testdata/streams", m.Name)
	if strings.HasSuffix(m.File, "model.yaml") {
		dir = filepath.Join(filepath.Dir(m.File), "recording")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	failtest.On(t, err)
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.HasPrefix(filepath.Base(p), "expected") })
	rows := map[string]value.Item{}
	var order []string
	for _, path := range paths {
		files, err := events.Open(path)
		failtest.On(t, err)
		for entries, err := range files.Batches(t.Context()) {
			failtest.On(t, err)
			for _, e := range entries {
				table := e.Record.Table
				if table == "" {
					table, _, _ = strings.Cut(filepath.Base(path), ".")
				}
				if len(m.Tables) > 1 && table != of.Name {
					continue
				}
				key := string(value.AppendPlainItem(nil, e.Record.Keys))
				if rows[key] == nil {
					order = append(order, key)
				}
				rows[key] = e.Record.New
			}
		}
	}
	for _, key := range order {
		if rows[key] != nil {
			out = append(out, rows[key])
		}
	}
	return out
}

// TestDraft: what a draft takes from rows.
func TestDraft(t *testing.T) {
	text := func(s string) value.Value { return value.OfString(s) }
	row := func(attrs ...any) value.Item {
		var out []value.Attr
		for i := 0; i < len(attrs); i += 2 {
			v, is := attrs[i+1].(value.Value)
			if !is {
				v = text(attrs[i+1].(string))
			}
			out = append(out, value.Attr{Name: attrs[i].(string), Value: v})
		}
		return value.NewItem(out...)
	}
	table := &store.Table{Name: "my.table", TTL: "ttl", Key: store.KeySchema{Partition: store.KeyAttr{Name: "PK", Type: value.String}, Sort: store.KeyAttr{Name: "SK", Type: value.String}},
		Indexes: []store.Index{{Name: "GSI1", Key: store.KeySchema{Partition: store.KeyAttr{Name: "owner", Type: value.String}, Sort: store.KeyAttr{Name: "size", Type: value.Number}}, KeysOnly: true}}}
	rows := []value.Item{
		row("PK", "ALBUM#a", "SK", "METADATA", "EntityType", "ALBUM", "owner", "u1", "at", "2026-01-01T00:00:00Z", "weir", value.OfInt(7)),
		row("PK", "ALBUM#b", "SK", "METADATA", "EntityType", "ALBUM", "owner", "u1", "at", "yesterday", "tags", value.OfList(text("x"))),
		row("PK", "ALBUM#b", "SK", "PICTURE#1", "EntityType", "Picture", "pictureId", "1", "size", value.OfInt(3)),
		row("PK", "ALBUM#b", "SK", "PICTURE#2", "EntityType", "Picture", "pictureId", "2", "size", value.OfInt(3), "ttl", value.OfInt(1790000000)),
	}
	const want = `# A draft by rows of the table. Look at names and types, and choose what to derive.
model: mine

tables:
  "my.table":
    key: ["PK", "SK"]
    ttl: "ttl"
    indexes:
      "GSI1": {key: ["owner", {"size": number}], projection: keys}

entities:
  Album:
    where: {"EntityType": "ALBUM"}
    key: {"PK": "ALBUM#{albumId}", "SK": "METADATA"}
    attributes:
      "at": string!
      "owner": string!
      "tags": list
  Picture:
    where: {"EntityType": "Picture"}
    key: {"PK": "ALBUM#{albumId}", "SK": "PICTURE#{pictureId}"}
    attributes:
      "pictureId": string!
      "size": number!
      "ttl": number

# derive:   # such as these
#   Album.pictureCount: {count: Picture}

queries:
  album: {get: Album, with: [albumId]}
  picture: {get: Picture, with: [albumId, pictureId]}
`
	if got := Model("mine", table, rows); got != want {
		t.Errorf("%s", got)
	}
	if _, err := model.Parse("draft.yaml", []byte(want)); err != nil {
		t.Error(err)
	}
}

// TestHostileNames: a draft is a model, whatever attributes and kinds are named.
func TestHostileNames(t *testing.T) {
	text := func(name, is string) value.Attr { return value.Attr{Name: name, Value: value.OfString(is)} }
	for _, keys := range [][2]string{{"PK", "SK"}, {"null", "true"}, {"no", "y"}} {
		for _, kind := range []string{"null", "No", "A\u0085b: c", "x\ny", "é", "1", "{a}", "#", "\""} {
			var rows []value.Item
			for _, id := range []string{"1", "2", "3", "a\u0085b: {c}\n"} {
				rows = append(rows, value.NewItem(text(keys[0], "USER#"+id), text(keys[1], "x{"+id+"}"), text("type", kind),
					text("we ird: [", id), text("a.b", id), text("yes", id), text("\u0085x", id)))
			}
			for range 2 { // that are only in a comment
				rows = append(rows, value.NewItem(text(keys[0], "\u0085b: c"), text(keys[1], "x\u2028y: z"), text("type", "other")))
			}
			of := &store.Table{Name: "tab.le", Key: store.KeySchema{Partition: store.KeyAttr{Name: keys[0], Type: value.String}, Sort: store.KeyAttr{Name: keys[1], Type: value.String}}}
			draft := Model("draft", of, rows)
			if _, err := model.Parse("draft.yaml", []byte(draft)); err != nil || !strings.Contains(draft, "rows more") {
				t.Errorf("%q %q: %v\n%s", keys, kind, err, draft)
			}
		}
	}
}
