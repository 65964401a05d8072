package embedded

import (
	"slices"
	"sync"

	"weir/internal/events"
)

// tail keeps the newest records of all streams in memory, so that a reader that is
// nearly up to date need not read the store. Records that are not here are read from the store.
type tail struct {
	room int // bytes

	mu    sync.Mutex
	runs  [][]tailRecord // each is of one commit; ascending, and they do not overlap
	bytes int
	from  uint64 // every visible record above this is here
}

// tailOverhead is the approximate memory for a record apart from its rows. attrOverhead
// is that for an attribute of a decoded row.
const (
	tailOverhead = 400
	attrOverhead = 32
)

// tailRecord is a record that is kept decoded, with its size by which the tail is bounded.
type tailRecord struct {
	seq    uint64
	shard  *shard
	record events.Record
	bytes  int
}

// addRecords adds the records of a committed batch, before they become visible. It owns the
// slice from then on.
func (t *tail) addRecords(run []tailRecord) {
	if len(run) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := len(t.runs)
	for at > 0 && t.runs[at-1][0].seq > run[0].seq { // a batch with later numbers was faster
		at--
	}
	t.runs = slices.Insert(t.runs, at, run)
	t.bytes += sizeOf(run)
	for len(t.runs) > 1 && t.bytes > t.room {
		t.drop()
	}
}

// drop forgets the first run.
func (t *tail) drop() {
	run := t.runs[0]
	t.bytes -= sizeOf(run)
	t.from = max(t.from, run[len(run)-1].seq)
	t.runs[0] = nil
	t.runs = t.runs[1:]
}

// sizeOf adds up the sizes of records.
func sizeOf(run []tailRecord) (n int) {
	for i := range run {
		n += run[i].bytes
	}
	return n
}

// noteLost says that some records up to a number may be in the store but not here.
func (t *tail) noteLost(upTo uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.runs) > 0 {
		t.drop()
	}
	t.from = max(t.from, upTo)
}

// readRecords returns up to limit records of a shard, from low to high, and whether there are
// more; known is false if the store must be asked.
func (t *tail) readRecords(sh *shard, low, high uint64, limit int) (page []events.Record, more, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if low <= t.from {
		return nil, false, false
	}
	first := len(t.runs)
	for first > 0 && t.runs[first-1][0].seq >= low {
		first--
	}
	runs := t.runs[max(first-1, 0):]
	size := 0
	for _, run := range runs {
		for i := range run {
			switch r := &run[i]; {
			case r.seq > high:
				return page, false, true
			case r.seq < low || r.shard != sh:
			case len(page) >= limit || size > readBytes:
				return page, true, true
			default:
				page = append(page, r.record)
				size += r.bytes
			}
		}
	}
	return page, false, true
}
