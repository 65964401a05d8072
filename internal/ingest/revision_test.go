package ingest_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"weir/internal/ingest"
	"weir/internal/value"
)

// TestRevisionsAreKeyed: a row has one revision for all writers of its store, and without the store's secret
// guessed values cannot be compared with it.
func TestRevisionsAreKeyed(t *testing.T) {
	revisions := map[string]int{}
	for range 2 {
		w := newWorld(t, "gallery")
		for range 3 {
			one := &ingest.Writer{Model: w.Model, Store: w.Store, Now: w.Now}
			cs := readAll(t, []string{`{"op":"put","entity":"Album","item":{"id":"a","title":"1","createdAt":"2025-01-01T00:00:00Z"}}`})
			done := one.Do(t.Context(), cs)[0]
			read := one.Read(t.Context(), "Album", value.NewItem(value.Attr{Name: "id", Value: value.OfString("a")}))
			if done.Err != nil || read.Err != nil || done.Revision != read.Revision || done.Revision == "" {
				t.Fatalf("%+v, read %+v", done, read)
			}
			revisions[done.Revision]++
		}
	}
	if len(revisions) != 2 {
		t.Errorf("one row, thrice in each of two stores: %v", revisions)
	}
}

// TestFewProblemsAreListed: of an item with many unknown fields the first problems are listed and the others
// counted, also where names are long.
func TestFewProblemsAreListed(t *testing.T) {
	w := newWorld(t, "gallery")
	for _, long := range []int{1, 10_000} {
		item := value.Item{}
		for i := range 5000 {
			item = append(item, value.Attr{Name: strings.Repeat("x", long) + strconv.Itoa(100_000+i), Value: value.OfInt(1)})
		}
		var r *ingest.Refusal
		err := w.Do(t.Context(), []ingest.Command{{Op: ingest.Update, Entity: "Album", Item: item}})[0].Err
		if !errors.As(err, &r) || len(r.Problems) == 0 || len(r.Problems) > 100 || len(r.Problems)+r.More != 5001 { // and no id
			t.Fatalf("%d problems and %d more: %.100v", len(r.Problems), r.More, err)
		}
		size := len(err.Error())
		for _, p := range r.Problems {
			size += len(p.String())
		}
		if size > 256<<10 || !strings.HasSuffix(err.Error(), " more") {
			t.Errorf("%d bytes, which end in %q", size, err.Error()[size/2:])
		}
	}
}
