package build_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/replay"
	"weir/internal/store"
	"weir/internal/value"
)

// TestLeftIsNotTheApplications: what a retired derivation has left on a row is never taken for the application's: a replay
// of what was recorded finds no gap and leaves it as it is, a history has no entry of its removal, and entries
// of edits do not name it.
func TestLeftIsNotTheApplications(t *testing.T) {
	const (
		log    = "  Log: {row: Task, keep: [insert, modify], set: {task: task, what: =task, nr: $position, name: $old}}\n"
		status = "  Task.name: {steps: {done: {when: Vote}}}\n"
		votes  = "  Task.votes: {count: Vote}\n"
	)
	text := strings.NewReplacer("model: twice", "model: left", "attributes: {name: string}}\n  Vote", "attributes: {name: {type: string, enum: [new, open, done]}, text: string}}\n  Vote").Replace(twice)
	f := open(t, load(t, text+log+votes+status))
	f.write("PK", "TASK#1", "SK", "METADATA", "type", "Task", "name", "new", "text", "a")
	f.write("PK", "TASK#1", "SK", "VOTE#1", "type", "Vote", "up", "yes")
	f.catchUp()
	rows := func(begins string) map[string]value.Item {
		out := f.rows(f.table)
		maps.DeleteFunc(out, func(_ string, row value.Item) bool { return !strings.HasPrefix(row.Get("SK").Text(), begins) })
		return out
	}
	entries := func(want int, when string) (last value.Item) {
		t.Helper()
		all := rows("LOG#")
		if len(all) != want {
			t.Errorf("%s: %d entries, want %d: %v", when, len(all), want, all)
		}
		for _, row := range all {
			if row.Get("SK").Text() > last.Get("SK").Text() {
				last = row
			}
		}
		return last
	}
	var key store.Key
	task := func() (row value.Item) {
		for _, row = range rows("METADATA") {
			key, _ = f.model.Tables[0].KeyOf(row)
		}
		return row
	}
	shown := task()
	if shown.Get("votes").Text() != "1" || shown.Get("name").Text() != "done" {
		t.Fatalf("%v", shown)
	}
	entries(1, "before")
	f.retires(load(t, text+log))

	// The application edits the text twice, and a stream recorded both images as they were, with what was shown.
	edited := shown.With(value.Attr{Name: "text", Value: value.OfString("b")})
	gaps := 0
	r := replay.Replay{Runner: f.runner(), Model: f.model, Store: f.Store, Gap: func(g replay.Gap) { gaps++; t.Errorf("a gap: %+v", g) }}
	f.ok(f.runner().Start(t.Context()))
	record := func(n uint64, old, new value.Item) events.Entry {
		return events.Entry{Record: events.Record{Table: f.table, Keys: f.model.Tables[0].Item(key), Old: old, New: new, Position: events.PositionOf(n), Time: time.Unix(int64(n), 0).UTC()}}
	}
	f.ok(r.Batch(t.Context(), []events.Entry{record(101, shown, edited), record(102, edited, edited.With(value.Attr{Name: "text", Value: value.OfString("c")}))}, ""))
	f.catchUp()
	if now := task(); now.Get("votes").Text() != "1" || now.Get("name").Text() != "done" || now.Get("text").Text() != "c" || gaps > 0 {
		t.Errorf("the replay leaves %v", now)
	}
	if last := entries(3, "after the edits"); strings.Contains(value.Scalar(last.Get("name")), "done") || last.Get("name").Item().Has("votes") || last.Get("name").Item().Has("name") {
		t.Errorf("the entry of the edit names what weir has shown: %v", last)
	}

	f.clock.Add(2)
	x, by := f.removal(false)
	f.ok(x.Run(t.Context()))
	if by["Task.votes"].Rows != 1 || by["Task.name"].Rows != 1 {
		t.Errorf("%+v, %+v", by["Task.votes"], by["Task.name"])
	}
	f.catchUp()
	if now := task(); now.Has("votes") || now.Get("name").Text() != "new" || now.Has(owntable.Version) {
		t.Errorf("the removal leaves %v", now)
	}
	entries(3, "after the removal")
}
