package main

import (
	"encoding/json"
	"testing"
	"time"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/system"
	"weir/internal/trigger"
)

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
