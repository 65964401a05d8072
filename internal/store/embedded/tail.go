package embedded

import (
	"slices"
	"sync"

	"weir/internal/events"
)

// tail keeps the stream's last records, of all tables, so that who follows closely
// gets them without a look into the store. What it cannot answer is read from there.
type tail struct {
	room int // bytes

	mu      sync.Mutex
	records []tailRecord // by number, ascending
	bytes   int
	from    uint64 // every visible record above this is here
}

// tailOverhead is about what a record costs apart from its rows.
const tailOverhead = 400

type tailRecord struct {
	seq    uint64
	shard  *shard
	record events.Record
	bytes  int
}

// add takes in the records of a committed batch, before they become visible.
func (t *tail) add(rs []tailRecord) {
	if len(rs) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.after(rs[0].seq)
	if at == len(t.records) {
		t.records = append(t.records, rs...)
	} else { // another batch with later numbers was faster
		t.records = slices.Insert(t.records, at, rs...)
	}
	for i := range rs {
		t.bytes += rs[i].bytes
	}
	n := 0
	for n < len(t.records) && t.bytes > t.room {
		t.bytes -= t.records[n].bytes
		t.from = max(t.from, t.records[n].seq)
		n++
	}
	t.records = slices.Delete(t.records, 0, n)
}

// lose says that records up to a number may be in the store without being here.
func (t *tail) lose(upTo uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.records); n > 0 {
		upTo = max(upTo, t.records[n-1].seq)
	}
	t.records, t.bytes, t.from = nil, 0, max(t.from, upTo)
}

// read returns up to limit records of a shard from low to high, and whether there
// are more of them; known is false where the store must be asked.
func (t *tail) read(sh *shard, low, high uint64, limit int) (page []events.Record, more, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if low <= t.from {
		return nil, false, false
	}
	size := 0
	for _, r := range t.records[t.after(low-1):] {
		if r.seq > high {
			break
		}
		if r.shard != sh {
			continue
		}
		if len(page) >= limit || size > readBytes {
			return page, true, true
		}
		page = append(page, r.record)
		size += r.bytes
	}
	return page, false, true
}

// after is the index of the first record above a number.
func (t *tail) after(seq uint64) int {
	n := len(t.records)
	if n == 0 || t.records[n-1].seq <= seq {
		return n
	}
	at, _ := slices.BinarySearchFunc(t.records, seq+1, func(r tailRecord, seq uint64) int {
		if r.seq < seq {
			return -1
		}
		return 1
	})
	return at
}
