package embedded

import (
	"fmt"
	"testing"

	"weir/internal/events"
)

// TestTailPages: a page has a shard's records between two numbers, up to its limit of
// records or of bytes, and says whether there are more.
func TestTailPages(t *testing.T) {
	a, b := &shard{ID: 1}, &shard{ID: 2}
	tail := &tail{room: 1 << 30, from: 9}
	record := func(seq uint64, sh *shard, size int) tailRecord {
		return tailRecord{seq: seq, shard: sh, record: events.Record{Position: events.PositionOf(seq)}, bytes: size}
	}
	tail.addRecords([]tailRecord{record(10, a, 1), record(11, b, 1), record(13, a, 1)})
	tail.addRecords([]tailRecord{record(20, b, 1), record(21, b, 1)})
	tail.addRecords([]tailRecord{record(30, a, readBytes+1), record(31, a, 1)})
	for _, c := range []struct {
		sh        *shard
		low, high uint64
		limit     int
		want      string
	}{
		{a, 10, 31, 9, "[10 13 30] more true known true"},
		{a, 10, 31, 2, "[10 13] more true known true"},
		{a, 10, 13, 2, "[10 13] more false known true"},
		{a, 14, 30, 1, "[30] more false known true"},
		{a, 31, 31, 9, "[31] more false known true"},
		{a, 32, 99, 9, "[] more false known true"},
		{b, 10, 31, 9, "[11 20 21] more false known true"},
		{b, 12, 20, 9, "[20] more false known true"},
		{b, 22, 31, 9, "[] more false known true"},
		{b, 9, 31, 9, "[] more false known false"},
	} {
		page, more, known := tail.readRecords(c.sh, c.low, c.high, c.limit)
		at := []uint64{}
		for i := range page {
			at = append(at, page[i].Position.Uint64())
		}
		if got := fmt.Sprintf("%d more %v known %v", at, more, known); got != c.want {
			t.Errorf("shard %d from %d to %d, at most %d: %s, not %s", c.sh.ID, c.low, c.high, c.limit, got, c.want)
		}
	}
}
