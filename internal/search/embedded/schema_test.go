package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/search"
	"weir/internal/value"
)

func wantFresh(t *testing.T, ix *Index, want ...string) {
	t.Helper()
	if got := ix.Fresh(); !slices.Equal(got, want) {
		t.Errorf("fresh: %v, want %v", got, want)
	}
}

// TestFresh: an index is fresh from when it is made until it is reported filled,
// also over restarts. Another schema has another index.
func TestFresh(t *testing.T) {
	dir := t.TempDir()
	a := search.Schema{Name: "a", Filters: []string{"f", "g"}, Sorts: []string{"s"}, Version: "1"}
	b := search.Schema{Name: "b"}
	reopen := func(old *Index, schemas ...search.Schema) *Index {
		t.Helper()
		if old != nil {
			failtest.On(t, old.Close())
		}
		return openTest(t, dir, Options{}, schemas...)
	}
	ix := reopen(nil, a, b)
	wantFresh(t, ix, "a", "b")
	mustApply(t, ix, search.Document{Index: "a", ID: "1"}, search.Document{Index: "b", ID: "1"})
	failtest.On(t, ix.Filled("a"))
	wantFresh(t, ix, "b")
	if err := ix.Filled("no such"); err == nil {
		t.Error("an unknown index is filled")
	}
	ix = reopen(ix, a, b)
	wantFresh(t, ix, "b")
	failtest.On(t, ix.Filled("b"))

	a.Filters = []string{"g", "f"} // the order says nothing
	ix = reopen(ix, a)
	wantFresh(t, ix)
	for _, change := range []func(){
		func() { a.Filters = append(a.Filters, "new") },
		func() { a.Sorts = nil },
		func() { a.Version = "2" },
	} {
		change()
		ix = reopen(ix, a, a)
		wantFresh(t, ix, "a")
		if n := count(t, ix, search.Query{Index: "a"}); n != 0 {
			t.Errorf("%d documents of the old schema", n)
		}
		mustApply(t, ix, search.Document{Index: "a", ID: "1"})
		failtest.On(t, ix.Filled("a"))
	}
	ix = reopen(ix, a, b)
	wantFresh(t, ix) // b was left alone all the time
	if n := count(t, ix, search.Query{Index: "b"}); n != 1 {
		t.Errorf("%d documents in b", n)
	}
}

// TestDiscarded: a crash while an index is being deleted leaves nothing behind that
// matters.
func TestDiscarded(t *testing.T) {
	dir := t.TempDir()
	rest := filepath.Join(dir, placeOf(search.Schema{Name: "a"})+discarded)
	failtest.On(t, os.MkdirAll(rest, 0o700))
	failtest.On(t, os.WriteFile(filepath.Join(rest, "000000000001.zap"), []byte("x"), 0o600))
	openTest(t, dir, Options{}, search.Schema{Name: "a"})
	if _, err := os.Stat(rest); !os.IsNotExist(err) {
		t.Errorf("%s is still there", rest)
	}
}

func TestDirNames(t *testing.T) {
	names := []string{"gallery-albums", "a_1", "A", "..", ".", "a/b", "a.discarded", "ü", "", "a b", "CON", "%41"}
	seen := map[string]string{}
	for _, n := range names {
		d := dirName(n)
		if other, ok := seen[d]; ok {
			t.Errorf("%q and %q are both %q", n, other, d)
		}
		if seen[d] = n; d != "" && filepath.Base(d) != d {
			t.Errorf("%q is %q", n, d)
		}
	}
	if dirName("gallery-albums") != "gallery-albums" {
		t.Error("a plain name is changed")
	}
}

// TestTombstones: tombstones stay for 48 hours, and are deleted afterwards.
func TestTombstones(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ix := openTest(t, t.TempDir(), Options{Now: func() time.Time { return now }}, plain)
	doc := func(id string, at uint64, deleted bool) search.Document {
		return search.Document{Index: "plain", ID: id, Position: events.PositionOf(at), Deleted: deleted, Text: []string{"text"}}
	}
	entries := func() int {
		snap, err := ix.corpora["plain"].snapshot()
		failtest.On(t, err)
		defer snap.Close()
		n, _ := snap.DocCount()
		return int(n)
	}
	mustApply(t, ix, doc("a", 2, true), doc("b", 2, true), doc("c", 2, false))
	for _, wait := range []time.Duration{0, 30 * time.Hour, 18 * time.Hour} {
		now = now.Add(wait)
		mustApply(t, ix, doc("c", 2, false))
		mustApply(t, ix, doc("a", 1, false), doc("b", 1, false))
		if n := count(t, ix, search.Query{Index: "plain", Text: "text"}); n != 1 {
			t.Errorf("%d documents", n)
		}
		if n := entries(); n != 3 {
			t.Errorf("%d entries", n)
		}
	}
	now = now.Add(2 * time.Hour)
	mustApply(t, ix, doc("b", 3, true), doc("d", 1, false)) // b is deleted again, so it stays
	if n := entries(); n != 3 {                             // b, c, d
		t.Errorf("%d entries after 50 hours", n)
	}
	if n := count(t, ix, search.Query{Index: "plain"}); n != 2 {
		t.Errorf("%d documents", n)
	}
	mustApply(t, ix, doc("b", 2, false))
	if n := count(t, ix, search.Query{Index: "plain"}); n != 2 {
		t.Errorf("%d documents", n)
	}
}

// TestManyTombstones: tombstones are deleted in commits of a limited size.
func TestManyTombstones(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ix := openTest(t, "", Options{Now: func() time.Time { return now }}, plain)
	var docs []search.Document
	for n := range maxPrune + 1000 {
		docs = append(docs, search.Document{Index: "plain", ID: fmt.Sprint(n), Deleted: true})
	}
	mustApply(t, ix, docs...)
	now = now.Add(72 * time.Hour)
	for n := range 3 {
		mustApply(t, ix, search.Document{Index: "plain", ID: fmt.Sprint("live ", n)})
	}
	snap, err := ix.corpora["plain"].snapshot()
	failtest.On(t, err)
	defer snap.Close()
	if n, _ := snap.DocCount(); n != 3 {
		t.Errorf("%d entries are left", n)
	}
}

// TestRedelivered: a repeated change costs no write; another document at the same
// position is applied.
func TestRedelivered(t *testing.T) {
	ix := openTest(t, t.TempDir(), Options{}, plain)
	c := ix.corpora["plain"]
	doc := version(1, 1)
	mustApply(t, ix, doc)
	before := c.scorch.StatsMap()["TotBatches"]
	mustApply(t, ix, doc, doc)
	if after := c.scorch.StatsMap()["TotBatches"]; before != after {
		t.Errorf("batches: %v, then %v", before, after)
	}
	doc.Text = []string{"rebuilt"}
	mustApply(t, ix, doc)
	if n := count(t, ix, search.Query{Index: "plain", Text: "rebuilt"}); n != 1 {
		t.Errorf("%d documents", n)
	}
}

func TestStampsDiffer(t *testing.T) {
	s := search.Schema{Filters: []string{"f", "g"}, Sorts: []string{"s"}}
	str, num := value.OfString, value.OfInt
	seen := map[stamp]int{}
	for i, d := range []search.Document{
		{},
		{Deleted: true},
		{Text: []string{"ab"}},
		{Text: []string{"a", "b"}},
		{Text: []string{"ab", ""}},
		{Values: map[string]value.Value{"f": str("1")}},
		{Values: map[string]value.Value{"f": num(1)}},
		{Values: map[string]value.Value{"g": str("1")}},
		{Values: map[string]value.Value{"s": str("1")}},
		{Values: map[string]value.Value{"f": value.OfBool(true)}},
		{Values: map[string]value.Value{"f": value.OfBool(false)}},
		{Values: map[string]value.Value{"f": value.OfStrings([]string{"a", "b"})}},
		{Values: map[string]value.Value{"f": value.OfList(str("a"), str("b"))}},
		{Values: map[string]value.Value{"f": value.OfStrings([]string{"ab"})}},
		{Position: events.PositionOf(1)},
	} {
		st := stampOf(&s, &d)
		if other, ok := seen[st]; ok {
			t.Errorf("documents %d and %d have one stamp", other, i)
		}
		seen[st] = i
		if back, ok := parseStamp(st.bytes()); !ok || back != st {
			t.Errorf("%v is read as %v", st, back)
		}
	}
}
