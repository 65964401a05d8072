package ingest_test

import (
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
