package embedded

import (
	"github.com/cockroachdb/pebble/v2"
)

// walker goes through the records of one shard, which are in one run in each segment.
type walker struct {
	it    *pebble.Iterator
	tab   *table
	shard uint32
	seq   uint64 // of the current record
	err   error
}

// newWalker returns a walker before the shard's records with numbers from low to high. The
// caller must close it.
func (s *Store) newWalker(tab *table, shard uint32, low, high uint64) (*walker, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: appendRecordKey(nil, tab, shard, min(low, maxNumber)),
		UpperBound: append(appendRecordKey(nil, tab, shard, min(high, maxNumber)), 0),
	})
	return &walker{it: it, tab: tab, shard: shard}, err
}

// endWalk ends the walk; the record of next is no longer valid.
func (w *walker) endWalk() { _ = w.it.Close() }

// first goes to the shard's first record, next to the following one.
func (w *walker) first() bool { return w.forward(w.it.First()) }

// nextRecord moves to the shard's next record. It returns false at the end and after an error, which err
// has.
func (w *walker) nextRecord() bool { return w.forward(w.it.Next()) }

// forward passes over records of other shards: records of one segment of numbers are sorted by
// shard, so it jumps to the shard's place in the segment, or in the next one.
func (w *walker) forward(ok bool) bool {
	var buf [recordKeyLen]byte
	for ok {
		shard, seq, good := splitRecordKey(w.it.Key())
		switch {
		case !good:
			w.err = errRecordForm
			return false
		case shard == w.shard:
			w.seq = seq
			return true
		}
		segment := seq >> segmentBits
		if shard > w.shard {
			segment++
		}
		ok = w.it.SeekGE(appendRecordKey(buf[:0], w.tab, w.shard, segment<<segmentBits))
	}
	w.err = w.it.Error()
	return false
}

// last goes to the shard's last record.
func (w *walker) last() bool {
	var buf [recordKeyLen]byte
	ok := w.it.Last()
	for ok {
		shard, seq, good := splitRecordKey(w.it.Key())
		switch {
		case !good:
			w.err = errRecordForm
			return false
		case shard == w.shard:
			w.seq = seq
			return true
		}
		segment := seq >> segmentBits
		if shard < w.shard { // the shard has nothing in this segment
			if segment == 0 {
				return false
			}
			segment--
		}
		ok = w.it.SeekLT(appendRecordKey(buf[:0], w.tab, w.shard+1, segment<<segmentBits))
	}
	w.err = w.it.Error()
	return false
}
