package scratch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/memory"
	"weir/internal/model"
	"weir/internal/scratch"
	"weir/internal/store"
	"weir/internal/system/systemtest"
	"weir/internal/value"
)

// derivedRows are the rows of a recording's expected answers that show something derived,
// as a message prints them, by entity and attribute.
func derivedRows(m *model.Model, checks []systemtest.Check) map[string]map[string]string {
	out := map[string]map[string]string{} // attribute → row → value
	for _, c := range checks {
		q := slices.IndexFunc(m.Queries, func(q *model.Query) bool { return q.Name == c.Query })
		if q < 0 || len(m.Queries[q].Steps) != 1 || len(m.Queries[q].Return) > 0 {
			continue
		}
		e := m.Queries[q].Steps[0].Entity
		for _, t := range e.Values {
			if !t.Shows() {
				continue
			}
			for _, row := range c.Items {
				name := e.Table.Name + " " + text(row[e.Table.Key.Partition.Name])
				if sort := e.Table.Key.Sort.Name; sort != "" {
					name += ", " + text(row[sort])
				}
				if v, ok := row[t.Attr]; ok {
					if out[t.Attr] == nil {
						out[t.Attr] = map[string]string{}
					}
					out[t.Attr][name] = text(v)
				}
			}
		}
	}
	return out
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// TestAddsUp: what the records added comes to the value that the recording's own
// bookkeeping has, for rows of every tally of every model.
func TestAddsUp(t *testing.T) {
	for _, dir := range systemtest.Recordings(t) {
		name := systemtest.Name(dir)
		if testing.Short() && name != "wardrobe" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m, err := model.Load(systemtest.Model(dir))
			if err != nil {
				t.Fatal(err)
			}
			entries := read(t, systemtest.Files(t, dir))
			for attr, rows := range derivedRows(m, systemtest.Read(t, dir).Checks) {
				for i, row := range slices.Sorted(keys(rows)) {
					if i%max(1, len(rows)/4) != 0 {
						continue
					}
					lines := explain(t, m, entries, row, attr)
					got := "0"
					if n := len(lines); n > 0 {
						got = lines[n-1].Value
					}
					if got != rows[row] {
						t.Errorf("%s of %s: the records come to %s, not %s\n%v", attr, row, got, rows[row], lines)
					}
				}
			}
		})
	}
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func read(t *testing.T, paths []string) []events.Entry {
	t.Helper()
	files, err := events.Open(paths...)
	if err != nil {
		t.Fatal(err)
	}
	var out []events.Entry
	for batch, err := range files.Batches(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, batch...)
	}
	return out
}

var inMemory = scratch.Options{Memory: memory.Default, Now: time.Now, InMemory: true}

func explain(t *testing.T, m *model.Model, entries []events.Entry, target, attr string) (lines []scratch.Line) {
	t.Helper()
	w, err := scratch.NewWhy(m, target, attr)
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		w.Find(&entries[i], "")
	}
	if err := w.Choose(inMemory); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range entries {
		l, ok, err := w.Explain(t.Context(), &entries[i], "")
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			lines = append(lines, l)
		}
	}
	return lines
}

// TestSaysHowToNameARow: what is wrong with a target is said, and how it is written.
func TestSaysHowToNameARow(t *testing.T) {
	gallery, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"Album:id=a1", "mediaCount", ""},
		{"Album:a1", "mediaCount", ""},
		{"Album:a%2C1", "mediaCount", ""},
		{`gallery "ALBUM#a1", "METADATA"`, "mediaCount", ""},
		{"AlbumMedia:a1,m1", "addedBy", ""},
		{"Album", "mediaCount", "write Album:id=…"},
		{"Album:id", "mediaCount", ""},
		{"Album:name=x", "mediaCount", `"name=x" is no part of the key; write Album:id=…`},
		{"Album:a,b", "mediaCount", `"b" is no part of the key; write Album:id=…`},
		{"Album:id=", "mediaCount", "names no row; write Album:id=…"},
		{"Albums:id=a1", "mediaCount", `there is no entity "Albums" in model gallery, which has Album, `},
		{`gallery "NOTHING#a1", "METADATA"`, "mediaCount", "there is no entity"},
		{"Album:id=a1", "mediacount", `Album has no attribute "mediacount"; derived on it: mediaCount`},
	} {
		_, err := scratch.NewWhy(gallery, c[0], c[1])
		if c[2] == "" && err != nil || c[2] != "" && (err == nil || !strings.Contains(err.Error(), c[2])) {
			t.Errorf("%s of %s: %v", c[1], c[0], err)
		}
	}
}

const talk = "../model/testdata/good/latest.yaml"

// TestParts: what each record has a part in, for every kind of derived value, also of what is derived from derived values.
func TestParts(t *testing.T) {
	for _, c := range []struct{ model, target, attr, want string }{
		{"gallery", "Album:a", "mediaCount", "+1 → 1; -1 → 0"},
		{"watchlists", "Movie:m", "rating", "+1 rows, +4 → 4; -2 → 2; -1 rows, -2 → nothing"},
		{"viewing", "Summary:p,COMPLETED", "assetIds", "+1 x → 1 member; -1 x → 0 members"},
		{"wardrobe", "UserItem:u,i", "Name", `Name = "Coat"; Name = "Cape"; the row goes`},
		{"wardrobe", "Activity:u,2025-01-01T00:00:00Z,ItemCreated,i", "ItemName", `ItemName = "Coat"; ItemName = "Cape"`},
		{"watchlists", "Notification:u,2025-01-02T00:00:00Z,w,MOVIE,m," + strings.Repeat("0", 37) + "105", "contentId", `contentId = "m"`},
		{"watchlists", "Audit:w,2025-01-01T00:00:00.000000Z," + strings.Repeat("0", 37) + "106", "event", `event = "INSERT"`},
		{talk, "Room:r", "last", `last = "hi" → "hi"; last is gone → nothing`},
		{talk, "Room:r", "best", `best = 3 → 3; best = 5 → 5; best = 3 → 3; best is gone → nothing`},
		{talk, "House:h", "votes", `+3 → 3; +2 → 5; -2 → 3; -3 → 0`},
		{talk, "Mine:u,r", "last", `is followed; last = "hi"; last is gone`},
		{talk, "Board:r", "best", `best = 3; best = 5; best = 3; the row goes`},
		{"movienight", "Round:r", "status", `status = "voting"; status = "selected"`},
	} {
		t.Run(c.model, func(t *testing.T) {
			m, err := model.Load(c.model)
			if err != nil {
				t.Fatal(err)
			}
			entries := read(t, []string{"testdata/" + filepath.Base(c.model) + ".jsonl"})
			var got []string
			for _, l := range explain(t, m, entries, c.target, c.attr) {
				s := l.Added
				if len(m.Entity(strings.SplitN(c.target, ":", 2)[0]).Values) > 0 {
					s += " → " + l.Value
				}
				got = append(got, s)
			}
			if s := strings.Join(got, "; "); s != c.want {
				t.Errorf("%s of %s:\n got %s\nwant %s", c.attr, c.target, s, c.want)
			}
		})
	}
}

// TestPress: a value that an attribute follows goes with its row, and history may be of
// modifications alone.
func TestPress(t *testing.T) {
	m, err := model.Parse("press.yaml", []byte(`
model: press
tables: {press: {key: [PK, SK]}}
entities:
  Author: {where: {type: Author}, key: {PK: "AUTHOR#{id}", SK: METADATA}, attributes: {name: string}}
  Post: {where: {type: Post}, key: {PK: "POST#{id}", SK: METADATA}, attributes: {author: string}}
  Card: {where: {type: Card}, key: {PK: CARDS, SK: "{id}"}, attributes: {name: string, last: string}}
  Edit: {where: {type: Edit}, key: {PK: "EDITS#{of}", SK: "{at}#{position}"}, attributes: {was: map, name: string}}
derive:
  Edit:
    row: Author
    keep: [modify]
    set: {of: id, at: $time, position: $position, was: $old, name: name}
  Card:
    row: Post
    set: {id: id, name: {follow: Author.name, by: {id: author}}, last: {follow: Author.name, by: {id: author}, keep: true}}
`))
	if err != nil {
		t.Fatal(err)
	}
	entries := read(t, []string{"testdata/press.jsonl"})
	for _, c := range [][3]string{
		{"Card:1", "name", `is followed; name = "Ada"; name is gone`},
		{"Card:1", "last", `is followed; last = "Ada"`},
		{"Edit:b,2025-01-01T00:00:00.000000Z," + strings.Repeat("0", 37) + "105", "name", `name = "Bea"`},
	} {
		var got []string
		for _, l := range explain(t, m, entries, c[0], c[1]) {
			got = append(got, l.Added)
		}
		if s := strings.Join(got, "; "); s != c[2] {
			t.Errorf("%s of %s:\n got %s\nwant %s", c[1], c[0], s, c[2])
		}
	}
}

func ExampleNew() {
	m, _ := model.Load("gallery")
	w, err := scratch.NewWhy(m, "Album:id=a1", "mediaCount")
	fmt.Println(w.Target, err)
	// Output: gallery "ALBUM#a1", "METADATA" <nil>
}

// TestBinaryKeys: keys that are no strings are named in base64, as they are printed.
func TestBinaryKeys(t *testing.T) {
	m, err := model.Parse("blobs.yaml", []byte(`
model: blobs
tables: {Parts: {key: [{blob: binary}, {n: number}]}}
entities: {Part: {table: Parts, attributes: {blob: binary!, n: number!}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := store.Ref{Table: "Parts", Key: store.Key{Partition: value.OfBinary("\x00\xff"), Sort: value.OfInt(7)}}
	for _, name := range []string{"Part:AP8=,7", "Part:blob=AP8=,n=7", "Part:blob=AP8%3D,n=7", `Parts {"blob":"AP8=","n":7}`, want.String()} {
		if all, err := scratch.Parse(m, name); err != nil || len(all) != 1 || !value.Equal(all[0].Row.Key.Partition, want.Key.Partition) || !value.Equal(all[0].Row.Key.Sort, want.Key.Sort) {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	if _, err := scratch.Parse(m, "Part:x!,7"); err == nil || !strings.Contains(err.Error(), "blob is a binary, which is written in base64") {
		t.Error(err)
	}
}
