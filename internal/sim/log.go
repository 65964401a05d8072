package sim

import (
	"slices"

	"weir/internal/events"
	"weir/internal/mergedlog"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// ranged is a range of a batch that a process began: the records of a shard, and their place
// in the log.
type ranged struct {
	shard    string // as owntable.ShardName names it
	from, to events.Position
	batch    *begun
	nth      int
}

// begun is a batch of a merged log that a process has begun.
type begun struct {
	log, number int64
	ranges      []ranged
}

// begins notes the batches of merged logs. A batch may begin only when the one before is
// applied in all of its shards.
func (w *world) begins(who string, key store.Key, old, now value.Item) {
	was, err := owntable.DecodeLog(old)
	is, bad := owntable.DecodeLog(now)
	switch {
	case err != nil || bad != nil || now == nil:
		w.fail(Lost, "log: %s: %v, %v", who, err, bad)
		return
	case is.Batch == was.Batch:
		return
	case is.Batch != was.Batch+1:
		w.fail(Reordered, "log: %s made batch %d follow %d", who, is.Batch, was.Batch)
	}
	at := func(name string) events.Position {
		table, id := owntable.ShardOf(name)
		in := w.base.tables[table]
		return w.place(runner.GroupRows, in, in.shard(id))
	}
	if left := was.Pending(at); len(left) > 0 {
		w.fail(Reordered, "log: %s began batch %d while %s was pending", who, is.Batch, was.Ranges[left[0]].Shard)
	}
	b := &begun{number: is.Batch}
	for n := int64(1); b.log == 0; n++ {
		if owntable.Log(w.model.Name, n).Key.Partition.Text() == key.Partition.Text() {
			b.log = n
		}
	}
	for i, r := range is.Ranges {
		b.ranges = append(b.ranges, ranged{r.Shard, at(r.Shard), r.To, b, i})
	}
	kept := len(w.batches)
	w.batches = append(w.batches, b)
	w.base.undone(func() { w.batches = w.batches[:kept] })
	if len(b.ranges) > 1 {
		w.reach("a batch of several shards begins")
	}
	if b.log > 1 {
		w.reach("a second log is used")
	}
}

// offset is the place of a record of a shard in a log. ok is false if it is in none.
func (w *world) offset(table string, s *shard, p events.Position) (log int64, o mergedlog.Offset, ok bool) {
	name := owntable.ShardName(table, s.ID)
	for _, b := range slices.Backward(w.batches) {
		for _, r := range b.ranges {
			if r.shard == name && p.Compare(r.from) > 0 && p.Compare(r.to) <= 0 {
				return b.log, mergedlog.Offset{Batch: b.number, Position: p, Nth: r.nth}, true
			}
		}
	}
	return 0, mergedlog.Offset{}, false
}
