// Package mergedlog decides how a process reads many shards as one log, so that what
// counts records keeps one position for each process instead of one for each shard.
//
// The records of several shards come in no order that can be told again. So the order is
// written down before it is used: the row of a log (Log) has, for each of its shards, up to
// where all is applied, and up to where the pending batch goes. Whoever applies the batch
// reads these ranges, and gets the same records with the same offsets (Merge). An offset is
// the number of the batch, and within it the record's own position: it does not depend on
// which of the other records the stream still has.
//
//	Begin    names the ranges of the next batch
//	         each ledger takes what is behind its position in the log, in one write
//	Finish   all of the batch is applied; usually in one write with the next Begin
//
// Every change of the row is conditional on its Version. Leases are not part of this: two
// processes that take themselves for the owner of a log apply the same batch, and one of
// them writes the next. A lease only keeps them from doing the same work.
//
// A shard belongs to one log at a time (Claim). It changes between batches, in one
// transaction of both rows. The row of a log is never deleted, as its numbers must not
// begin again: ledgers remember them.
package mergedlog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/value"
)

// Log is the row of a merged log. The zero Log stands for one that was never used. The
// methods leave the Log that they are called on as it is.
type Log struct {
	Version int64   // rises with every change
	Batch   int64   // the number of the last batch that was begun
	Shards  []Share // by name of the shard
	View    int64   // the version of the catalog that a batch must have been applied under
}

// Share is what a log has of a shard.
type Share struct {
	Shard string
	At    events.Position // all records up to here are applied
	To    events.Position // the pending batch has the records behind At up to here
}

// Range is a part of a pending batch: the records of a shard behind From up to To.
type Range struct {
	Shard    string
	From, To events.Position
}

// Pending returns the ranges of the batch that may not be applied in full yet, none if
// there is no such batch.
func (l Log) Pending() (out []Range) {
	for _, s := range l.Shards {
		if s.To != s.At {
			out = append(out, Range{s.Shard, s.At, s.To})
		}
	}
	return out
}

// Errors of what may not be done now.
var (
	ErrPending = errors.New("a batch of the merged log is pending")
	ErrShard   = errors.New("the shard does not belong there")
	ErrView    = errors.New("the batch was applied under an older view")
)

// Begin names the next batch: up to where it has records of each of some shards. It is an
// error while another batch is pending.
func (l Log) Begin(to map[string]events.Position) (Log, error) {
	if len(l.Pending()) > 0 {
		return l, ErrPending
	}
	l = l.changed()
	l.Batch++
	for _, shard := range slices.Sorted(maps.Keys(to)) {
		i, ok := l.find(shard)
		if !ok || to[shard].Compare(l.Shards[i].At) <= 0 {
			return l, fmt.Errorf("%w: %s up to %v", ErrShard, shard, to[shard])
		}
		l.Shards[i].To = to[shard]
	}
	return l, nil
}

// Finish says that all of the pending batch is applied, under a view of this version. The
// error is ErrView if the batch must be applied again under a newer one.
func (l Log) Finish(view int64) (Log, error) {
	if view < l.View {
		return l, ErrView
	}
	l = l.changed()
	for i := range l.Shards {
		l.Shards[i].At = l.Shards[i].To
	}
	return l, nil
}

// Under raises the view of the log. A batch is applied under a view only while the row has
// it, so a build counts all batches from the one on that was pending then, and no earlier
// one that is delivered again: it needs no floor (package contribution). changed is false if
// the row has this view or a later one.
func (l Log) Under(view int64) (next Log, changed bool) {
	if view <= l.View {
		return l, false
	}
	next = l.changed()
	next.View = view
	return next, true
}

// changed returns a copy with the next version.
func (l Log) changed() Log {
	l.Version++
	l.Shards = slices.Clone(l.Shards)
	return l
}

func (l Log) find(shard string) (int, bool) {
	return slices.BinarySearchFunc(l.Shards, shard, func(s Share, name string) int { return strings.Compare(s.Shard, name) })
}

// Claim is the row of a shard: to which log it belongs. The zero Claim stands for a shard
// that was never read. It is written only together with a Log, on condition that it is as
// it was read.
type Claim struct {
	Log   int64           // 0 if it belongs to none
	At    events.Position // where the next log goes on, or where the shard ended
	Ended bool            // all records are applied, and no others will come
}

// Join gives a shard to a log with some number. Write log and claim in one transaction.
func Join(l Log, number int64, shard string, c Claim) (Log, Claim, error) {
	i, in := l.find(shard)
	if in || c.Log != 0 || c.Ended {
		return l, c, fmt.Errorf("%w: %s joins log %d, has log %d", ErrShard, shard, number, c.Log)
	}
	l = l.changed()
	l.Shards = slices.Insert(l.Shards, i, Share{shard, c.At, c.At})
	return l, Claim{Log: number, At: c.At}, nil
}

// Leave takes a shard out of its log: for another one or, with ended, for ever. It is an
// error while a batch is pending. Write log and claim in one transaction.
func Leave(l Log, number int64, shard string, c Claim, ended bool) (Log, Claim, error) {
	i, in := l.find(shard)
	switch {
	case len(l.Pending()) > 0:
		return l, c, ErrPending
	case !in || c.Log != number:
		return l, c, fmt.Errorf("%w: %s leaves log %d, has log %d", ErrShard, shard, number, c.Log)
	}
	l = l.changed()
	c = Claim{At: l.Shards[i].At, Ended: ended}
	l.Shards = slices.Delete(l.Shards, i, i+1)
	return l, c, nil
}

// Offset is the place of a record in a merged log. The zero Offset is before all others.
type Offset struct {
	Batch    int64
	Position events.Position // of the record in its shard
	Nth      int             // which range of the batch: positions of different shards may be equal
}

// Compare returns -1, 0 or 1, as o is before, at or after p.
func (o Offset) Compare(p Offset) int {
	return cmp.Or(cmp.Compare(o.Batch, p.Batch), o.Position.Compare(p.Position), cmp.Compare(o.Nth, p.Nth))
}

// offsetBytes is the length of an offset's value: 6 bytes for the batch, 17 for the
// position, 2 for the range.
const offsetBytes = 6 + len(events.Position{}) + 2

// Value returns the offset as a Binary. Such values compare like offsets.
func (o Offset) Value() value.Value {
	b := make([]byte, 0, offsetBytes)
	for shift := 40; shift >= 0; shift -= 8 {
		b = append(b, byte(o.Batch>>shift))
	}
	b = append(b, o.Position[:]...)
	return value.OfBinary(string(append(b, byte(o.Nth>>8), byte(o.Nth))))
}

// OffsetFrom decodes what Value returned. It returns the zero Offset for anything else.
func OffsetFrom(v value.Value) (o Offset) {
	s := v.Text()
	if v.Kind() != value.Binary || len(s) != offsetBytes {
		return Offset{}
	}
	for _, c := range []byte(s[:6]) {
		o.Batch = o.Batch<<8 | int64(c)
	}
	copy(o.Position[:], s[6:])
	o.Nth = int(s[offsetBytes-2])<<8 | int(s[offsetBytes-1])
	return o
}

// MostShards is how many shards a batch may have records of.
const MostShards = 1 << 16

// Entry is a record with its offset.
type Entry[R any] struct {
	Offset
	Record R
}

// Merge returns the records of a batch in the order of their offsets. records has those of
// each range, in the order of Log.Pending, as far as the stream still has them. Positions
// of a lineage of shards rise, so the changes of one row keep their order.
func Merge[R any](batch int64, records [][]R, position func(R) events.Position) (out []Entry[R]) {
	for nth, rs := range records {
		for _, r := range rs {
			out = append(out, Entry[R]{Offset{batch, position(r), nth}, r})
		}
	}
	slices.SortFunc(out, func(a, b Entry[R]) int { return a.Compare(b.Offset) })
	return out
}

// Unseen leaves out the entries that a row has seen whose position in the log is seen.
func Unseen[R any](entries []Entry[R], seen Offset) []Entry[R] {
	for len(entries) > 0 && entries[0].Compare(seen) <= 0 {
		entries = entries[1:]
	}
	return entries
}

// Balance returns how many shards a process gives away and takes, which has mine, while the
// others have as many as given and free belong to none. It takes what is free up to an even
// share, one more if others do not need it, and gives away what a process lacks that has at
// least two less.
func Balance(mine int, others []int, free int) (give, take int) {
	total, least := mine+free, mine
	for _, n := range others {
		total, least = total+n, min(least, n)
	}
	even := total / (len(others) + 1)
	needed := 0
	for _, n := range others {
		needed += max(0, even-n)
	}
	switch {
	case mine < even:
		return 0, min(free, even-mine)
	case mine == even && free > needed:
		return 0, 1
	case free == 0 && mine-least >= 2:
		return (mine - least) / 2, 0
	}
	return 0, 0
}
