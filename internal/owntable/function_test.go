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

func TestLaneRow(t *testing.T) {
	o, at := ownTable(t), owntable.FunctionShard("gallery", owntable.ShardKey("Pictures", "shard-1"))
	var was owntable.FunctionShardRow
	for i := range 3 {
		was, err := owntable.DecodeFunctionShard(o.row(at))
		want := owntable.FunctionShardRow{Marks: strings.Repeat("1234", i+2), Last: events.PositionOf(uint64(i + 1)), Done: i, Until: time.Unix(int64(i), 0), Frontier: events.PositionOf(uint64(i))}
		if i > 0 {
			want.Fence = contribution.Fence{View: int64(i), Floors: map[int64]events.Position{3: {}, 5: events.PositionOf(uint64(i))}}
		}
		if err != nil || !o.writes(was.Becomes(at, want, time.Unix(2e9, 0))) || o.writes(was.Becomes(at, want, time.Unix(2e9, 0))) {
			t.Error("a shard is written once for what was read", err)
		}
		is, err := owntable.DecodeFunctionShard(o.row(at))
		if err != nil || is.Marks != want.Marks || is.Last != want.Last || is.Done != want.Done || !is.Until.Equal(want.Until) || is.Frontier != want.Frontier || !is.Fence.Same(want.Fence) {
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
	for attr, v := range map[string]value.Value{"m": value.OfBinary("12345"), "d": value.OfInt(5), "f": value.OfInt(5), "b": value.OfString("x"), "f:x": value.OfNull(), "f:3": value.OfInt(5)} {
		_, err := owntable.DecodeFunctionShard(o.row(at).With(value.Attr{Name: attr, Value: v}))
		o.unread(err, attr)
	}
}
