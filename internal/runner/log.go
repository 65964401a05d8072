package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/mergedlog"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// The consumer of rows reads its shards as one merged log (package mergedlog), so that ledgers
// keep one position for each process. Before it applies pages, it writes into the row of its
// log up to where they go. Checkpoints move after all of the batch is applied. So what a
// process that ended left is a batch whose ranges are known: the process that takes one of its
// shards over first applies what is left of that batch, in the other's log, and then moves the shard
// to its own.

// mergedLog is what a consumer knows of its log.
type mergedLog struct {
	number  int64
	row     mergedlog.Log
	known   bool // no range is pending, and row is as it was read or written last, without them
	stored  bool // the stored row has ranges
	pending bool // something is, and cannot be applied yet
	// unjoined is set when a shard that is ours did not come into the log.
	unjoined bool
	// waits is since when a range of another log could not be read, by the log.
	waits map[int64]time.Time
}

// waiting reports whether something could not be read because of another process, which the
// next pass may read.
func (l *mergedLog) waiting() bool { return l.unjoined || l.pending }

// joinPause is how long a consumer waits then.
const joinPause = 100 * time.Millisecond

// OneLog is the number of the log of a follower whose source is not shared.
const OneLog = 1

// mostRanges bounds the row of a log, where the order of changes of all shards does not matter.
const mostRanges = 2000

// readLog makes sure that nothing is pending in the log of this process. ready is false if
// something is, or if the process has no log; n is the number of records that were applied.
func (c *consumer) readLog(ctx context.Context) (n int, ready bool, err error) {
	number := int64(OneLog)
	if shared, ok := c.source().(Shared); ok {
		number = shared.Log()
	}
	if number != c.log.number {
		c.log = mergedLog{number: number}
		c.forgetPlaces()
	}
	if c.log.pending = number == 0; number == 0 || c.log.known {
		return 0, c.log.known, nil
	}
	c.forgetPlaces()
	row, n, done, err := c.settleLog(ctx, number)
	if c.log.pending = !done; done {
		c.log.row, c.log.known, c.log.stored = row, true, row.Version > 0
	}
	return n, done, err
}

// forgetPlaces makes the consumer read all checkpoints again: shards may have left its log.
func (c *consumer) forgetPlaces() {
	clear(c.at)
	clear(c.held)
	clear(c.floors)
}

// settleLog applies what is pending in a log. done is false if that is not possible now. The
// row that it returns has nothing pending.
func (c *consumer) settleLog(ctx context.Context, number int64) (row mergedlog.Log, n int, done bool, err error) {
	for range MaxRounds {
		stored, err := c.Runner.GetRow(ctx, owntable.Log(c.Runner.Model.Name, number))
		if err != nil {
			return row, n, false, err
		}
		if row, err = owntable.DecodeLog(stored); err != nil {
			return row, n, false, err
		}
		pieces, err := c.pending(ctx, row)
		if err != nil || len(pieces) == 0 {
			return row.Finish(), n, err == nil, err
		}
		for i := range pieces {
			read, err := c.readRange(ctx, &pieces[i], number)
			if !read || err != nil {
				return row, n, false, err
			}
		}
		delete(c.log.waits, number)
		if err := c.nameGaps(ctx, pieces); err != nil {
			return row, n, false, err
		}
		own := c.log
		c.log = mergedLog{number: number, row: row, known: true}
		err = c.traced(ctx, pieces, func(ctx context.Context) error {
			view, err := c.admit(ctx, pieces)
			if err != nil {
				return err
			}
			return c.takeAll(ctx, pieces, view)
		})
		c.log = own
		if err != nil {
			return row, n, false, err
		}
		for _, p := range pieces {
			n += len(p.page.Records)
			delete(c.at, p.place)
			delete(c.floors, p.place)
		}
	}
	return row, n, false, fmt.Errorf("log %d changes all the time", number)
}

// pending returns the ranges of a log's batch whose checkpoints have not moved, without their
// records. A shard without a checkpoint is over. If a checkpoint cannot be read, those of the
// other ranges tell whether the batch is applied.
func (c *consumer) pending(ctx context.Context, row mergedlog.Log) (out []piece, err error) {
	refs := make([]store.Ref, len(row.Ranges))
	for i, r := range row.Ranges {
		table, shard := owntable.ShardOf(r.Shard)
		refs[i] = c.checkpoint(place{c.group, table, shard})
	}
	rows, err := c.Runner.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	var unreadable []error
	moved, listed := false, map[string][]store.Shard{}
	for i, r := range row.Ranges {
		is, err := owntable.DecodeCheckpoint(rows[i])
		switch {
		case err != nil:
			unreadable = append(unreadable, err)
			continue
		case rows[i] == nil || is.At.Compare(r.To) >= 0:
			moved = true
			continue
		}
		table, shard := owntable.ShardOf(r.Shard)
		t := c.Runner.Model.Table(table)
		if t == nil {
			return nil, fmt.Errorf("%s of %s: the batch that is to be applied has records of this table, which the model does not have; run the program that it had before", c.group, table)
		}
		if _, known := listed[table]; !known {
			if listed[table], err = c.source().Shards(ctx, table); err != nil && !errors.Is(err, store.ErrNoTable) {
				return nil, fmt.Errorf("stream of %s: %w", table, err)
			}
		}
		p := piece{place: place{c.group, table, shard}, table: t, from: is.At, after: is.At, to: r.To, records: r.Records}
		for _, s := range listed[table] {
			if s.ID == shard {
				p.above = above(listed[table], s.Parent)
			}
		}
		out = append(out, p)
	}
	if !moved && len(unreadable) > 0 {
		return nil, errors.Join(unreadable...)
	}
	return out, nil
}

// settlePatience is how long a consumer waits for another process that may have, on its disk,
// records of a pending batch that the stream has forgotten.
const settlePatience = 5 * time.Minute

// readRange reads the records of a pending range: from the stream or, of what that has
// forgotten, from the disk of this process. read is false if they cannot be read yet.
func (c *consumer) readRange(ctx context.Context, p *piece, log int64) (read bool, err error) {
	p.read = c.Runner.Moment()
	records, all, err := readTo(ctx, c.Runner.Store, p, p.from)
	whole := all && len(records) == p.records
	if whole || err == nil && !all && !p.from.IsZero() || err != nil && !errors.Is(err, store.ErrTrimmed) && !errors.Is(err, store.ErrNoTable) {
		p.page.Records = records
		return whole, err
	}
	if shared, ok := c.source().(Shared); ok {
		// Behind a gap, the disk has only what came after it was named.
		if records, all, err = shared.Spooled(p.place.table, p.shard, p.from, p.to); err != nil {
			return false, err
		}
		if all || len(records) == p.records {
			p.page.Records = records
			return true, nil
		}
	}
	if c.log.waits == nil {
		c.log.waits = map[int64]time.Time{}
	}
	if c.log.waits[log].IsZero() {
		c.log.waits[log] = p.read
	}
	if p.read.Sub(c.log.waits[log]) < settlePatience {
		return false, nil
	}
	// What the stream still has comes behind what the disk has.
	from := p.from
	if len(records) > 0 {
		from = records[len(records)-1].Position
	}
	oldest, err := c.Runner.Store.Horizon(ctx, p.place.table, p.shard)
	if err != nil && !errors.Is(err, store.ErrNoTable) {
		return false, err
	}
	rest, _, err := readTo(ctx, c.Runner.Store, p, oldest)
	if err != nil && !errors.Is(err, store.ErrNoTable) {
		return false, err
	}
	for _, r := range rest {
		if r.Position.Compare(from) > 0 {
			records = append(records, r)
		}
	}
	p.page.Records, p.gap, p.missing = records, true, from
	return true, nil
}

// readTo reads the records of a piece behind a position. all is false if there may be more
// of them later.
func readTo(ctx context.Context, from interface {
	Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error)
}, p *piece, after events.Position) (out []events.Record, all bool, err error) {
	for empty := 0; ; {
		page, err := from.Read(ctx, p.place.table, p.shard, after, paces[GroupRows].records)
		if err != nil {
			return out, false, err
		}
		for _, r := range page.Records {
			if r.Position.Compare(p.to) <= 0 {
				out = append(out, r)
			}
			if after = r.Position; r.Position.Compare(p.to) >= 0 {
				return out, true, nil
			}
		}
		if len(page.Records) == 0 {
			empty++ // DynamoDB returns empty pages also where records follow
		}
		if page.End || empty == mostEmpty {
			return out, page.End, nil
		}
	}
}

// mostEmpty is how many empty pages of a shard are read before records are looked for later.
const mostEmpty = 3

// nameGaps keeps dead letters for records of a pending batch that are nowhere any more.
func (c *consumer) nameGaps(ctx context.Context, pieces []piece) error {
	for _, p := range pieces {
		if !p.gap {
			continue
		}
		_, err := c.Runner.KeepDead(ctx, Dead{
			Kind: DeadGap, Target: fmt.Sprintf("shard %s of %s", p.shard, p.place.table), Position: p.missing, Time: c.Runner.Now().UTC(),
			Source: fmt.Sprintf("after %v, up to %v", p.missing, p.to),
			Reason: fmt.Sprintf("records are missing after %v: the stream had forgotten some, up to %v, of a batch that a process left half applied; what is derived from them may be wrong. Run projector verify, which says what is wrong (docs/guide/operations.md, After a gap)", p.missing, p.to),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// join makes sure that a shard belongs to the log of this process, given its checkpoint as it
// was read. It reports false if it does not.
func (c *consumer) join(ctx context.Context, at place, is owntable.CheckpointRow) (ours bool, err error) {
	defer func() { c.log.unjoined = c.log.unjoined || !ours }()
	if c.group != GroupRows || is.Log == c.log.number || is.Done {
		return true, nil
	}
	w := is.JoinCheckpoint(c.checkpoint(at), c.log.number)
	if is.Log == 0 {
		out, err := c.Runner.Write(ctx, []store.Write{w})
		return err == nil && out[0].Err == nil, err
	}
	row, _, done, err := c.settleLog(ctx, is.Log)
	if !done || err != nil {
		return false, err
	}
	// Its checkpoint is as it was read only if it had nothing pending there.
	leaves := owntable.SaveLog(owntable.Log(c.Runner.Model.Name, is.Log), row, row.Touch())
	return Transacted(c.Runner.Store.Transact(ctx, []store.Write{leaves, w}))
}

// begin names pages as the next batch of the log. If another process has changed the log, it
// reports false, and the pages are read again.
func (c *consumer) begin(ctx context.Context, pieces []piece) (bool, error) {
	ranges := make([]mergedlog.Range, len(pieces))
	for i, p := range pieces {
		ranges[i] = mergedlog.Range{Shard: owntable.ShardName(p.place.table, p.shard), To: p.last(), Records: len(p.page.Records)}
	}
	next, err := c.log.row.Begin(ranges)
	if err != nil {
		return false, err
	}
	out, err := c.Runner.Write(ctx, []store.Write{owntable.SaveLog(owntable.Log(c.Runner.Model.Name, c.log.number), c.log.row, next)})
	if err != nil {
		return false, err
	}
	if out[0].Err != nil && !errors.Is(out[0].Err, store.ErrCondition) {
		return false, fmt.Errorf("log %d: %w", c.log.number, out[0].Err)
	}
	if is, bad := owntable.DecodeLog(out[0].Row); out[0].Err != nil && (bad != nil || !is.Same(next)) {
		c.log.known = false
		return false, nil
	}
	c.log.row, c.log.stored = next, true
	return true, nil
}

// leaveLog says in the row of the log that nothing is pending, if this consumer knows that. So
// the next one needs no checkpoint to find it out.
func (c *consumer) leaveLog(ctx context.Context) error {
	if c.group != GroupRows || !c.log.known || !c.log.stored {
		return nil
	}
	_, err := c.Runner.Write(ctx, []store.Write{owntable.SaveLog(owntable.Log(c.Runner.Model.Name, c.log.number), c.log.row, c.log.row.Touch())})
	c.log.known = false
	return err
}

// batch returns the records of pages as one batch of the log, in the order of their offsets.
// nth of an offset is the index of the shard's range.
func (c *consumer) batch(pieces []piece, view *View) Batch {
	b := Batch{ShardKey: owntable.LogKey(c.log.number), View: view}
	pages := make([][]projections.Change, len(pieces))
	for i, p := range pieces {
		if b.Read.IsZero() || p.read.Before(b.Read) {
			b.Read = p.read
		}
		nth, _ := c.log.row.Find(owntable.ShardName(p.place.table, p.shard))
		pages[i] = p.changes()
		for j := range pages[i] {
			ch := &pages[i][j]
			ch.Offset, ch.ShardKey, ch.Piece = mergedlog.Offset{Batch: c.log.row.Batch, Position: ch.Position, Nth: nth}, p.key(), i
		}
	}
	b.Changes = merged(pages)
	return b
}

// merged merges lists of changes, each in the order of its offsets, into one.
// Lists must be in order each; records with equal offsets keep the order of the lists.
func merged(lists [][]projections.Change) []projections.Change {
	switch len(lists) {
	case 0:
		return nil
	case 1:
		return lists[0]
	}
	a, b := merged(lists[:len(lists)/2]), merged(lists[len(lists)/2:])
	if len(a) == 0 {
		return b
	}
	out := make([]projections.Change, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if b[0].Offset.Compare(a[0].Offset) < 0 {
			out, b = append(out, b[0]), b[1:]
		} else {
			out, a = append(out, a[0]), a[1:]
		}
	}
	return append(append(out, a...), b...)
}

// logRows applies a batch of a log to everything derived except search. It returns the counts
// of each of its pieces.
func (r *Runner) logRows(ctx context.Context, b Batch, pieces int) ([]Result, error) {
	counts := make([]Result, pieces)
	err := r.rows(ctx, b, func(w *Work) {
		w.results(func(i int) *Result { return &counts[w.Changes[i].Piece] })
	})
	return counts, err
}

// Counted returns how far all logs are applied: nothing behind it is counted in any ledger that
// has not changed since it was read, and all before it is.
func (r *Runner) Counted(ctx context.Context) (out []owntable.Applied, err error) {
	numbers := map[int64]bool{OneLog: true}
	places, err := r.Places(ctx, GroupRows)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if p.Log != 0 {
			numbers[p.Log] = true
		}
	}
	return r.counted(ctx, numbers)
}

// counted returns what logs with the given numbers have counted but not yet checkpointed, so
// that a reader that takes their shards over knows which records of a pending batch each ledger
// has.
func (r *Runner) counted(ctx context.Context, numbers map[int64]bool) (out []owntable.Applied, err error) {
	c := (&Follower{Runner: r}).consumer(GroupRows)
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		stored, err := r.GetRow(ctx, owntable.Log(r.Model.Name, n))
		if err != nil {
			return nil, err
		}
		row, err := owntable.DecodeLog(stored)
		if err != nil {
			return nil, err
		}
		left, err := c.pending(ctx, row)
		if err != nil {
			return nil, err
		}
		if row.Version > 0 {
			out = append(out, owntable.Applied{Key: owntable.LogKey(n), At: row.After(len(left) > 0)})
		}
	}
	slices.SortFunc(out, func(a, b owntable.Applied) int { return value.Compare(value.OfString(a.Key), value.OfString(b.Key)) })
	return out, nil
}
