package owntable_test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/value"
)

func TestFunctionShardRow(t *testing.T) {
	o, at := ownTable(t), owntable.Checkpoint("gallery", "Pictures", "shard-1")
	var was owntable.FunctionShardRow
	for i := range 3 {
		was, err := owntable.DecodeFunctionShard(o.row(at.Ref))
		want := owntable.FunctionShardRow{CheckpointRow: owntable.CheckpointRow{Last: events.PositionOf(uint64(i + 1))}, Marks: strings.Repeat("1234", i+2), AppliedMarks: i, Until: time.Unix(int64(i), 0)}
		if want.At = events.PositionOf(uint64(i)); i > 0 {
			want.Fence = contribution.Fence{View: int64(i), Floors: map[int64]events.Position{3: {}, 5: events.PositionOf(uint64(i))}}
		}
		if err != nil || !o.writes(was.Becomes(at, want, time.Unix(2e9, 0))) || o.writes(was.Becomes(at, want, time.Unix(2e9, 0))) {
			t.Error("a shard is written once for what was read", err)
		}
		is, err := owntable.DecodeFunctionShard(o.row(at.Ref))
		if err != nil || is.Marks != want.Marks || is.Last != want.Last || is.AppliedMarks != want.AppliedMarks || !is.Until.Equal(want.Until) || is.At != want.At || !is.Fence.Same(want.Fence) {
			t.Errorf("%+v, %v", is, err)
		}
	}
	if o.writes(was.Becomes(at, was, time.Unix(2e9, 0))) || o.row(at.Ref).Get(owntable.Expiry).Text() != "2000000000" {
		t.Error("a shard that is there is written as one that is not; or it does not expire")
	}
	for _, attr := range []string{"m", "a", "u", "n"} {
		for _, row := range spoilt(o.row(at.Ref), attr) {
			_, err := owntable.DecodeFunctionShard(row)
			o.unread(err, attr)
		}
	}
	for attr, v := range map[string]value.Value{"m": value.OfBinary("12345"), "a": value.OfInt(5), "p": value.OfInt(5), "b": value.OfString("x"), "f:x": value.OfNull(), "f:3": value.OfInt(5)} {
		_, err := owntable.DecodeFunctionShard(o.row(at.Ref).With(value.Attr{Name: attr, Value: v}))
		o.unread(err, attr)
	}
}
