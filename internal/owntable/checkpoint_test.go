package owntable_test

import (
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/value"
)

func TestCheckpointRow(t *testing.T) {
	o, at := ownTable(t), owntable.Checkpoint("gallery", "Pictures", "shard-1")
	is := func(want owntable.CheckpointRow) owntable.CheckpointRow {
		t.Helper()
		c, err := owntable.DecodeCheckpoint(o.row(at.Ref))
		if err != nil || c != want {
			t.Errorf("%+v, %v, not %+v", c, err, want)
		}
		return c
	}
	p := events.PositionOf
	move := func(from, to events.Position) bool {
		t.Helper()
		return o.writes(owntable.CheckpointRow{}.Move(at, from, to, owntable.Counts{Applied: 3, Skipped: 2, Dead: 1}))
	}
	if is(owntable.CheckpointRow{}); !o.writes(owntable.BeginCheckpoint(at)) || o.writes(owntable.BeginCheckpoint(at)) {
		t.Error("a checkpoint is made once")
	}
	want := owntable.CheckpointRow{Table: "Pictures", Shard: "shard-1"}
	if is(want); !move(events.Position{}, p(7)) || move(events.Position{}, p(8)) {
		t.Error("a checkpoint is moved once from where it was read")
	}
	want.At, want.To, want.Counts = p(7), p(7), owntable.Counts{Applied: 3, Skipped: 2, Dead: 1}
	if is(want); o.writes(owntable.OvertakeCheckpoint(at, p(7))) || !o.writes(owntable.OvertakeCheckpoint(at, p(9))) {
		t.Error("a checkpoint is overtaken by what is beyond it alone")
	}
	want.At = p(9)
	since := time.Unix(1_700_000_000, 0).UTC()
	if open := is(want); o.writes(open.Drop(at.Ref)) || o.writes(owntable.MissCheckpoint(at, since)) || o.writes(owntable.EndCheckpoint(at, p(7))) || !o.writes(owntable.EndCheckpoint(at, p(9))) {
		t.Error("what is not done is not dropped, not missed, and ended only where it was seen to end")
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
	for _, attr := range []string{"t", "i", "p", "r", "e", "l", "d", "g", "applied", "skipped", "dead"} {
		for i, wrong := range []value.Value{{}, value.OfNull(), value.OfBinary("x")} {
			is, err := owntable.DecodeCheckpoint(o.row(at.Ref).With(value.Attr{Name: attr, Value: wrong}))
			switch {
			case i == 0 && err != nil:
				t.Errorf("without %s: %v", attr, err)
			case i > 0 && (attr != "r" || !value.Equal(wrong, value.OfNull())):
				if o.unread(err, attr); attr != "t" && attr != "i" && is.Shard != "shard-1" {
					t.Errorf("what cannot be read names shard %q", is.Shard)
				}
			}
		}
	}
	late := read
	late.At = p(7)
	if o.writes(late.Drop(at.Ref)) || !o.writes(read.Drop(at.Ref)) || o.row(at.Ref) != nil {
		t.Error("a checkpoint is dropped where it was read, and done")
	}
}
