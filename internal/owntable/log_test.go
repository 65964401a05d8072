package owntable_test

import (
	"errors"
	"slices"
	"testing"

	"weir/internal/events"
	"weir/internal/mergedlog"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestLogs: a log comes back as it was written, is written only over what was read, and what
// no weir wrote is refused.
func TestLogs(t *testing.T) {
	o, ref := ownTable(t), owntable.Log("m", 3)
	read := func() mergedlog.Log {
		t.Helper()
		l, err := owntable.DecodeLog(o.row(ref))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	longest, _ := events.ParsePosition("9999999999999999999999999999999999999999")
	next, err := read().Begin([]mergedlog.Range{
		{Shard: "Pictures|shardId-2", To: longest, Records: 1 << 20}, {Shard: "Albums|shardId-1", To: at(256), Records: 1}, {Shard: "Pictures|shardId-10", To: at(1)},
	})
	if err != nil || !o.writes(owntable.SaveLog(ref, mergedlog.Log{}, next)) || !read().Same(next) {
		t.Fatalf("%v became %v, %v", next, read(), err)
	}
	if o.writes(owntable.SaveLog(ref, mergedlog.Log{}, next)) || o.writes(owntable.SaveLog(ref, next.Touch(), next)) {
		t.Error("a log is written over what was not read")
	}
	row := o.row(ref)
	whole := row.Get("r").Text()
	for i := range len(whole) {
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff, whole[i] + 1} {
			text := whole[:i] + string([]byte{b}) + whole[i+1:]
			l, err := owntable.DecodeLog(row.With(value.Attr{Name: "r", Value: value.OfBinary(text)}))
			if err == nil && text != whole && l.Same(next) || err != nil && !errors.Is(err, owntable.ErrRow) {
				t.Errorf("byte %d as %d: %v, %v", i, b, l, err)
			}
		}
		if _, err := owntable.DecodeLog(row.With(value.Attr{Name: "r", Value: value.OfBinary(whole[:i])})); err == nil && i > 0 && !slices.Contains(ends(t, row, next), i) {
			t.Errorf("%d bytes are read", i)
		}
	}
	for attr, wrong := range map[string]value.Value{"n": value.OfString("1"), "b": value.OfInt(-1), "r": value.OfString("")} {
		if _, err := owntable.DecodeLog(row.With(value.Attr{Name: attr, Value: wrong})); !errors.Is(err, owntable.ErrRow) {
			t.Errorf("%s as %v: %v", attr, wrong, err)
		}
	}
	if n, err := owntable.LogOf(owntable.RefItem(owntable.LogLease("m", 12))); n != 12 || err != nil {
		t.Errorf("the lease of log 12 is of %d, %v", n, err)
	}
	for _, sort := range []string{"", "1", "00000x", "000000", "-00001"} {
		if _, err := owntable.LogOf(owntable.RefItem(owntable.Ref(owntable.LogLeases("m"), sort))); !errors.Is(err, owntable.ErrRow) {
			t.Errorf("%q is the number of a log: %v", sort, err)
		}
	}
	if !owntable.IsLogKey(owntable.LogKey(99999999999)) || owntable.IsLogKey(owntable.ShardKey("t", "s")) {
		t.Error("keys of logs and shards are mixed up")
	}
}

// ends are the lengths of the first ranges as they are written.
func ends(t *testing.T, row value.Item, l mergedlog.Log) (out []int) {
	t.Helper()
	for n := range l.Ranges {
		w := owntable.SaveLog(owntable.Log("m", 3), mergedlog.Log{}, mergedlog.Log{Version: 1, Ranges: l.Ranges[:n]})
		out = append(out, len(w.Put.Get("r").Text()))
	}
	return out
}

// TestJoin: a shard joins a log only as its checkpoint was read.
func TestJoin(t *testing.T) {
	o, at := ownTable(t), owntable.Checkpoint("m", "rows", "Pictures", "s")
	read := func() owntable.CheckpointRow {
		c, err := owntable.DecodeCheckpoint(o.row(at))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	none := read()
	if !o.writes(none.JoinCheckpoint(at, 2)) || read().Log != 2 || o.writes(none.JoinCheckpoint(at, 3)) {
		t.Fatalf("the checkpoint is %+v", read())
	}
	for _, w := range []func() store.Write{
		func() store.Write { return owntable.BeginCheckpoint(at, 4) },
		func() store.Write {
			return owntable.MoveCheckpoint(at, 4, events.Position{}, events.PositionOf(7), owntable.Counts{})
		},
		func() store.Write { return read().JoinCheckpoint(at, 3) },
	} {
		was := read()
		if !o.writes(w()) || o.writes(was.JoinCheckpoint(at, 5)) {
			t.Errorf("it joins though it changed from %+v to %+v", was, read())
		}
	}
	if is := read(); is.Log != 3 || is.At != events.PositionOf(7) || is.Fence != 4 {
		t.Errorf("the checkpoint is %+v", is)
	}
}
