package owntable_test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/value"
)

func TestLaneRow(t *testing.T) {
	o, at := ownTable(t), owntable.FunctionShard("gallery", "Pictures", "shard-1")
	var was owntable.FunctionShardRow
	for i := range 3 {
		was, err := owntable.DecodeFunctionShard(o.row(at))
		want := owntable.FunctionShardRow{Marks: strings.Repeat("1234", i+2), Last: events.PositionOf(uint64(i + 1)), Done: i, Until: time.Unix(int64(i), 0)}
		if err != nil || !o.writes(was.Becomes(at, want, time.Unix(2e9, 0))) || o.writes(was.Becomes(at, want, time.Unix(2e9, 0))) {
			t.Error("a shard is written once for what was read", err)
		}
		is, err := owntable.DecodeFunctionShard(o.row(at))
		if err != nil || is.Marks != want.Marks || is.Last != want.Last || is.Done != want.Done || !is.Until.Equal(want.Until) {
			t.Errorf("%+v, %v", is, err)
		}
	}
	if o.writes(was.Becomes(at, was, time.Unix(2e9, 0))) || o.row(at).Get(owntable.Expiry).Text() != "2000000000" {
		t.Error("a shard that is there is written as one that is not; or it does not expire")
	}
	for _, attr := range []string{"m", "p", "d", "u", "n"} {
		for _, row := range spoilt(o.row(at), attr) {
			_, err := owntable.DecodeFunctionShard(row)
			o.unread(err, attr)
		}
	}
	for attr, v := range map[string]value.Value{"m": value.OfBinary("12345"), "d": value.OfInt(5)} {
		_, err := owntable.DecodeFunctionShard(o.row(at).With(value.Attr{Name: attr, Value: v}))
		o.unread(err, attr)
	}
}

func TestLanesRow(t *testing.T) {
	o, at := ownTable(t), owntable.OpenShards("gallery")
	decode := func() owntable.OpenShardsRow {
		t.Helper()
		l, err := owntable.DecodeOpenShards(o.row(at))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	none := decode()
	next := owntable.OpenShardsRow{Missing: map[string]int64{"a": 0, "b": 7}, Listed: 9, Lists: 2}
	if !o.writes(none.Becomes(at, next)) || o.writes(none.Becomes(at, next)) {
		t.Error("the row is written once for what was read")
	}
	if l := decode(); len(l.Missing) != 2 || l.Missing["b"] != 7 || l.Listed != 9 || l.Lists != 2 {
		t.Errorf("%+v", l)
	}
	was := decode()
	if !o.writes(owntable.EnterShard(at, "b")) || o.writes(was.Becomes(at, next)) || decode().Missing["b"] != 0 {
		t.Error("a shard that was entered meanwhile is lost")
	}
	for _, attr := range []string{"l:a", "t", "c", "n"} {
		l, err := owntable.DecodeOpenShards(o.row(at).With(value.Attr{Name: attr, Value: value.OfString("x")}))
		if o.unread(err, attr); l.Lists != 0 || len(l.Missing) != 2 {
			t.Errorf("by a row whose %s cannot be read, shards are over: %+v", attr, l)
		}
	}
	if was = decode(); !o.writes(owntable.DoubtOpenShards(at)) || o.writes(was.Becomes(at, next)) || decode().Lists != 0 || len(decode().Missing) != 2 {
		t.Error("lists count when a shard could not be entered")
	}
}
