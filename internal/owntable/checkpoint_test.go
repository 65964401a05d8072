package owntable_test

import (
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

func TestCheckpointRow(t *testing.T) {
	o, at := ownTable(t), owntable.Checkpoint("gallery", "rows", "Pictures", "shard-1")
	is := func(want owntable.CheckpointRow) owntable.CheckpointRow {
		t.Helper()
		c, err := owntable.DecodeCheckpoint(o.row(at))
		if err != nil || c != want {
			t.Errorf("%+v, %v, not %+v", c, err, want)
		}
		return c
	}
	p := events.PositionOf
	move := func(fence int64, from, to events.Position) bool {
		t.Helper()
		return o.writes(owntable.MoveCheckpoint(at, fence, from, to, owntable.Counts{Applied: 3, Skipped: 2, Dead: 1}))
	}
	if is(owntable.CheckpointRow{}); !o.writes(owntable.BeginCheckpoint(at, 2)) || o.writes(owntable.BeginCheckpoint(at, 1)) {
		t.Error("a fence takes over from earlier ones alone")
	}
	if is(owntable.CheckpointRow{Fence: 2}); !move(2, events.Position{}, p(7)) || move(2, events.Position{}, p(8)) || move(1, p(7), p(8)) {
		t.Error("a checkpoint is moved once from where it was read, and by no earlier fence")
	}
	want := owntable.CheckpointRow{Fence: 2, At: p(7), Counts: owntable.Counts{Applied: 3, Skipped: 2, Dead: 1}}
	if is(want); o.writes(owntable.OvertakeCheckpoint(at, p(7), false)) || !o.writes(owntable.OvertakeCheckpoint(at, p(9), false)) {
		t.Error("a checkpoint is overtaken by what is beyond it alone")
	}
	want.At = p(9)
	since := time.Unix(1_700_000_000, 0)
	if open := is(want); o.writes(open.Drop(at)) || o.writes(owntable.MissCheckpoint(at, since)) || o.writes(owntable.EndCheckpoint(at, 1)) || !o.writes(owntable.EndCheckpoint(at, 2)) {
		t.Error("what is not done is not dropped, not missed, and ended by no earlier fence")
	}
	want.Done = true
	if is(want); !o.writes(owntable.MissCheckpoint(at, since)) || o.writes(owntable.MissCheckpoint(at, since.Add(1))) {
		t.Error("a shard is missed once")
	}
	want.Missing = since
	if is(want); !o.writes(owntable.FindCheckpoint(at)) || !o.writes(owntable.MissCheckpoint(at, since)) {
		t.Error("a shard is found, and missed again")
	}
	read := is(want)
	for _, attr := range []string{"p", "e", "d", "g", "applied", "skipped", "dead"} {
		for i, wrong := range []value.Value{{}, value.OfString("x"), value.OfBinary("x")} {
			_, err := owntable.DecodeCheckpoint(o.row(at).With(value.Attr{Name: attr, Value: wrong}))
			if i > 0 {
				o.unread(err, attr)
			} else if err != nil {
				t.Errorf("without %s: %v", attr, err)
			}
		}
	}
	if !o.writes(owntable.BeginCheckpoint(at, 3)) || o.writes(read.Drop(at)) {
		t.Error("a checkpoint that was taken over meanwhile is dropped")
	}
	read.Fence = 3
	if !o.writes(read.Drop(at)) || o.row(at) != nil {
		t.Error("a checkpoint that is done is not dropped")
	}
	if !move(0, events.Position{}, p(1)) || !o.writes(store.Write{Ref: at, Delete: true}) {
		t.Error("a shard that is not shared has no fence")
	}
}

func TestPastRow(t *testing.T) {
	o, at := ownTable(t), owntable.Past("gallery", "rows")
	for i := range 2 {
		if !o.writes(owntable.AddPast(at, owntable.Counts{Applied: 5, Dead: 1})) {
			t.Fatal("counts are not added")
		}
		if n, err := owntable.DecodePast(o.row(at)); err != nil || n != (owntable.Counts{Applied: 5 * (i + 1), Dead: i + 1}) {
			t.Errorf("%+v, %v", n, err)
		}
	}
	_, err := owntable.DecodePast(o.row(at).With(value.Attr{Name: "dead", Value: value.OfBool(true)}))
	o.unread(err, "dead")
	if n, err := owntable.DecodePast(nil); err != nil || n != (owntable.Counts{}) {
		t.Errorf("%+v, %v", n, err)
	}
}
