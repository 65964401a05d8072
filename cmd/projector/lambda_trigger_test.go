package main

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/trigger"
	"weir/internal/value"
)

// TestLambdaOnTriggers: a function applies the records of the events that ingest trigger makes. A picture that
// comes counts on its album.
func TestLambdaOnTriggers(t *testing.T) {
	dir := t.TempDir()
	album := triggered(t, "Album", trigger.Insert, `{"id": "sea"}`)
	s := openGallery(t, dir)
	got, err := events.DecodeLambda(album)
	if err != nil {
		t.Fatal(err)
	}
	put := got.Entries[0].Record
	ref := store.Ref{Table: "gallery", Key: store.Key{Partition: put.New.Get("PK"), Sort: put.New.Get("SK")}}
	if _, err := s.Store.Write(t.Context(), []store.Write{{Ref: ref, Put: put.New}}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Fill(t.Context(), nil), s.Close()); err != nil {
		t.Fatal(err)
	}
	f := startFunction(t, "WEIR_DATA="+dir)
	event := triggered(t, "AlbumMedia", trigger.Insert, `{"albumId": "sea", "mediaId": "m1"}`)
	if a := answerTo(t, f, inWindow(t, event)); len(*a.Failures) > 0 {
		t.Fatalf("the function refuses %s", event)
	}
	f.Kill()
	s = openGallery(t, dir)
	defer s.Close()
	rows, err := s.Store.Get(t.Context(), []store.Ref{ref})
	if err != nil {
		t.Fatal(err)
	}
	if n := value.Scalar(rows[0].Get("mediaCount")); n != "1" {
		t.Errorf("the album has %q pictures after\n%s", n, event)
	}
}

// triggered is an event of the gallery.
func triggered(t *testing.T, entity string, change trigger.Change, fields string) []byte {
	t.Helper()
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	s, err := system.Open(t.Context(), t.TempDir(), []*model.Model{m}, system.Options{NoSearch: true, Writes: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	item, err := ingest.ReadItem([]byte(fields))
	if err != nil {
		t.Fatal(err)
	}
	maker := trigger.Maker{Model: m, Store: s.Store, Now: time.Now, Real: func(table string) string { return table }}
	payload, err := maker.Event(t.Context(), entity, change, item)
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// inWindow returns an event with its records in a tumbling window of one shard.
func inWindow(t *testing.T, event []byte) []byte {
	t.Helper()
	var of struct{ Records []json.RawMessage }
	if err := json.Unmarshal(event, &of); err != nil {
		t.Fatal(err)
	}
	return payload(t, windowed("shardId-1", of.Records, nil))
}
