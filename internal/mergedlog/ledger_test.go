package mergedlog_test

import (
	"testing"

	"weir/internal/events"
	"weir/internal/mergedlog"
	"weir/internal/value"
)

// TestOffsets: values of offsets compare like offsets, and come back.
func TestOffsets(t *testing.T) {
	longest, _ := events.ParsePosition("9999999999999999999999999999999999999999")
	var all []mergedlog.Offset
	for _, batch := range []int64{0, 1, 255, 256, 1<<48 - 1} {
		for _, at := range []events.Position{{}, events.PositionOf(1), events.PositionOf(256), longest} {
			for _, nth := range []int{0, 1, 255, 256, mergedlog.MostShards - 1} {
				all = append(all, mergedlog.Offset{Batch: batch, Position: at, Nth: nth})
			}
		}
	}
	for i, o := range all {
		if got := mergedlog.OffsetFrom(o.Value()); got != o {
			t.Errorf("%v comes back as %v", o, got)
		}
		for j, p := range all {
			if less := o.Compare(p) < 0; less != (i < j) || less != (o.Value().Text() < p.Value().Text()) {
				t.Errorf("%v and %v compare otherwise", o, p)
			}
		}
	}
	for _, v := range []value.Value{{}, value.OfString("x"), value.OfBinary("short")} {
		if o := mergedlog.OffsetFrom(v); o != (mergedlog.Offset{}) {
			t.Errorf("%v is %v", v, o)
		}
	}
}
