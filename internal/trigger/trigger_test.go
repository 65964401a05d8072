package trigger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/system"
	"weir/internal/trigger"
	"weir/internal/value"
)

func maker(t *testing.T, name string) *trigger.Maker {
	t.Helper()
	m, err := model.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := system.Open(t.Context(), t.TempDir(), []*model.Model{m}, system.Options{NoSearch: true, Writes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &trigger.Maker{Model: m, Store: s.Store, Now: time.Now, Real: func(table string) string { return table + "-real" }}
}

// record reads what a function would.
func record(t *testing.T, payload []byte) events.Record {
	t.Helper()
	got, err := events.DecodeLambda(payload)
	if err != nil || len(got.Entries) != 1 || got.Entries[0].Bad != nil || got.Source != "aws:dynamodb" {
		t.Fatalf("%v: %s", err, payload)
	}
	return got.Entries[0].Record
}

// TestEveryEntity: there is an event of every change of every entity that an application writes
// by itself, and a function reads it as that change of such a row.
func TestEveryEntity(t *testing.T) {
	made := 0
	for _, name := range model.Builtin() {
		entities := maker(t, name).Model.Entities
		for _, e := range entities {
			if e.Derived {
				continue
			}
			for change, images := range map[trigger.Change][2]bool{trigger.Insert: {false, true}, trigger.Modify: {true, true}, trigger.Remove: {true, false}} {
				payload, err := maker(t, name).Event(t.Context(), e.Name, change, nil)
				if errors.Is(err, trigger.ErrCannot) && (strings.Contains(err.Error(), "name that one") || strings.Contains(err.Error(), "say which")) {
					t.Log(name, e.Name, change, err) // its rows come with others, or have nothing that may change
					continue
				}
				if err != nil {
					t.Errorf("%s %s %s: %v", name, e.Name, change, err)
					continue
				}
				made++
				rec := record(t, payload)
				if (rec.Old != nil) != images[0] || (rec.New != nil) != images[1] || rec.Old != nil && !e.Match(rec.Old) || rec.New != nil && !e.Match(rec.New) {
					t.Errorf("%s %s %s: %s", name, e.Name, change, payload)
				}
				if !strings.Contains(string(payload), ":table/"+e.Table.Name+"-real/stream/") {
					t.Errorf("%s %s %s: another table: %s", name, e.Name, change, payload)
				}
			}
		}
	}
	if made < 80 {
		t.Errorf("only %d events", made)
	}
}

// TestFields: fields that are given are those of the row, before and after.
func TestFields(t *testing.T) {
	item := func(text string) value.Item {
		it, err := ingest.ReadItem([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	payload, err := maker(t, "gallery").Event(t.Context(), "Album", trigger.Modify, item(`{"id": "sea", "title": "The sea"}`))
	if err != nil {
		t.Fatal(err)
	}
	rec := record(t, payload)
	if got := value.Scalar(rec.New.Get("title")); got != "The sea" || value.Scalar(rec.Old.Get("title")) == got || value.Scalar(rec.Keys.Get("PK")) != "ALBUM#sea" {
		t.Errorf("%s", payload)
	}
	for entity, text := range map[string]string{"Albun": "{}", "Album": `{"mediaCount": 7}`} {
		if _, err := maker(t, "gallery").Event(t.Context(), entity, trigger.Insert, item(text)); !errors.Is(err, trigger.ErrCannot) {
			t.Errorf("%s %s: %v", entity, text, err)
		}
	}
}
