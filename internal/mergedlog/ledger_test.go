package mergedlog_test

import (
	"slices"
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

// TestBalance: processes that give and take by turns, from what they saw last, end with
// shares that differ by one at most, and then rest.
func TestBalance(t *testing.T) {
	for _, shards := range []int{0, 1, 3, 10, 64, 1000} {
		for _, first := range []int{0, shards / 2, shards} {
			for processes := 1; processes <= 7; processes++ {
				has, free := make([]int, processes), shards-first
				has[0] = first
				for rounds, moved := 0, true; moved; rounds++ {
					if moved = false; rounds > 100 {
						t.Fatalf("%d shards, %d processes: no rest: %v, %d free", shards, processes, has, free)
					}
					for i := range has {
						others := slices.Delete(slices.Clone(has), i, i+1)
						give, take := mergedlog.Balance(has[i], others, free)
						has[i], free = has[i]+take-give, free+give-take
						moved = moved || give+take > 0
					}
				}
				if free != 0 || slices.Max(has)-slices.Min(has) > 1 {
					t.Errorf("%d shards: %v, %d free", shards, has, free)
				}
			}
		}
	}
}
