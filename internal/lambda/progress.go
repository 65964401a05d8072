package lambda

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/contribution"
	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/summed"
	"weir/internal/value"
)

// Positions by shard are correct only while all records of a shard are applied one
// after the other, and an event does not tell whether they are: with a parallelization
// factor above 1, several batches of the same shard are processed in parallel. So our
// table has a row for each shard (owntable.FunctionShardRow), its checkpoint. It holds a mark for each of the last
// records that came, the position of the last one, how many of these records are
// applied, and the time until which an invocation may still be applying the rest.
// Marks for which it has no room are in rows of their own (owntable.TailRow), which only an event reads that begins before the
// others. Nothing of an event is applied before the event is found to continue the row.
//
// The event's records up to the last position must be a run of records that came. If
// the event has newer records too, the run must end with the last record. So an event
// that is delivered again, whole or in part, continues the row; a record that was
// passed over does not. Everything before the run must be applied. Records before it
// that are not applied, and that no invocation can be applying any more, were given up
// by the event source mapping. From then on no event is accepted that begins before the run,
// so these records are not if they come after all.
//
// A process moves the same row. Its pages, one after another, are a stretch, which the row has: records in it
// are applied, and an event that begins in it goes on behind it. A process that takes over from a function reads on from the
// frontier.
//
// Lambda does not say which records it leaves out: those that expired while the mapping stood still, and those before a mapping that was
// made again at LATEST. So where something can have been left out, the stream is asked for the record right before the event: if a
// process was last, if nothing of the shard has come before or for a minute, or if the records are about to expire. An event
// goes on only if the stream has no record in between; if it has forgotten some, that is a gap, which has a dead letter first.
// Only the first reader of a table may begin anywhere: earlier rows are derived by a build.
//
// The row also has the shard's frontier: all records up to it are applied, or were given up, so
// an invocation that has one of them counts it no more. Rows that keep a position of the shard
// may do without it from then on (runner.Frontier).
//
// The row is also the fence of builds (contribution.Fence), as a checkpoint is for a process: an
// invocation that knows of a new build notes the frontier as the build's floor before it applies
// anything. Records up to the floor were applied before the build was announced, so the build reads
// their effects; should they come again without those that followed, they do not count in it. And
// an invocation that began before the announcement can no longer note the records that it has applied, so that
// comes again.
//
// An answer is given only after the row says that the event is applied. So of two
// batches in parallel one is refused: before anything of it is applied, or at the
// latest before it is answered for. A record that was applied out of order is never
// acknowledged.
type progress struct {
	owntable.FunctionShardRow
	earlier string            // the marks right before those of the row, as far as they were read
	tail    *owntable.TailRow // marks that leave the row: they are stored before it is
}

// markBytes is the size of a mark. Two consecutive records always have different marks.
// Any other two records have the same mark with a probability of 1 in 2³².
const markBytes = owntable.FunctionMark

// rowMarks is how many marks the row has at the most, so that it fits in one write capacity unit.
const rowMarks = 200

// marksOf packs the checksums of an event's records, markBytes bytes each, in order.
func marksOf(records []events.Position) string {
	b := make([]byte, 0, markBytes*len(records))
	for _, p := range records {
		b = binary.BigEndian.AppendUint32(b, summed.Sum(p[:]))
	}
	return string(b)
}

// countMarks is how many records have a mark.
func (l *progress) countMarks() int { return len(l.Marks) / markBytes }

// findMarks returns the place of the event's records that came before among those that the row has marks of, below 0 for earlier ones, and
// their number; ok is false if they are not known to be a run of the records that came.
func (l *progress) findMarks(records []events.Position) (at, n int, ok bool) {
	for n < len(records) && records[n].Compare(l.Last) <= 0 {
		n++
	}
	if len(records) > 0 && records[0].Compare(l.Void) < 0 {
		return 0, n, false
	}
	run, all := marksOf(records[:n]), l.earlier+l.Marks
	if n < len(records) {
		return l.countMarks() - n, n, strings.HasSuffix(all, run)
	}
	at = lastRun(all, run)
	return at - len(l.earlier)/markBytes, n, at >= 0
}

// lastRun returns the place of the last run of marks among all, -1 if there is none.
func lastRun(all, run string) int {
	for {
		switch i := strings.LastIndex(all, run); {
		case i < 0:
			return -1
		case i%markBytes == 0:
			return i / markBytes
		default:
			all = all[:i+len(run)-1]
		}
	}
}

// recallMarks finds the marks of an event that begins before those of the row. rows returns the rows of marks from the one on which has a
// record, below another one. done says that all of the event is applied, and was so long ago that nothing more is known of its place.
func (l *progress) recallMarks(records []events.Position, rows func(from, below events.Position) ([]owntable.TailRow, error)) (done bool, err error) {
	if _, _, ok := l.findMarks(records); ok || records[0].Compare(l.Void) < 0 || records[0].Compare(l.Behind) > 0 {
		return false, nil
	}
	last := records[len(records)-1]
	below, whole := l.Behind, last.Compare(l.At) <= 0 && last.Compare(l.Behind) < 0
	if whole {
		below = last
	}
	tail, err := rows(records[0], below)
	if err != nil {
		return false, err
	}
	marks := ""
	for i, is := range tail {
		if i > 0 && tail[i-1].To != is.From || is.To.Compare(l.Behind) > 0 { // the records in between have expired, or it is not of this row
			return false, nil
		}
		marks += is.Marks
	}
	switch {
	case len(tail) == 0:
	case whole && last.Compare(tail[len(tail)-1].To) <= 0:
		return lastRun(marks, marksOf(records)) >= 0, nil
	case !whole && tail[len(tail)-1].To == l.Behind:
		l.earlier = marks
	}
	return false, nil
}

// Reasons why an event does not continue the row.
var (
	errPassed = errors.New("some of its records came out of their order")
	errBusy   = errors.New("what comes before it is being applied by another invocation")
)

// errBehind says that the stream has records right before the event that did not come.
var errBehind = errors.New("the stream has records before it that did not come")

// errView says that another invocation has applied events of the shard by a newer catalog.
var errView = errors.New("what is built changed while the event was applied; it comes again")

// isRead reports whether a process has read a record.
func (l *progress) isRead(p events.Position) bool {
	return p.Compare(l.From) > 0 && p.Compare(l.To) <= 0
}

// withoutRead leaves out the first of an event's records if the row has no marks of them, and a process has read them.
func (l *progress) withoutRead(records []events.Position) []events.Position {
	if _, _, ok := l.findMarks(records); ok {
		return records
	}
	for len(records) > 0 && l.isRead(records[0]) {
		records = records[1:]
	}
	return records
}

// ask is the question of an event's row to the stream. next reports whether a record is the first that the stream has behind
// another one, or the first of all behind none; sure says that it need not be asked for records that came from Lambda before. gaveUp is
// called before records are let go of that came and are not applied. room is how many marks the row may have.
type ask struct {
	next   func(behind, p events.Position) (bool, error)
	sure   bool
	room   int
	gaveUp func(behind events.Position, n int) error
}

// afterClaim is the row after an invocation has started to apply an event, which it may do
// until the time given. The error is errPassed, errBusy, errBehind or one of ask.
func (l *progress) afterClaim(records []events.Position, now, until time.Time, of ask) (progress, error) {
	if records = l.withoutRead(records); len(records) == 0 {
		return *l, nil
	}
	at, n, ok := l.findMarks(records)
	if !ok {
		return progress{}, errPassed
	}
	out := *l
	if l.At.Compare(l.Last) >= 0 { // a process applied the rest
		out.AppliedMarks = l.countMarks()
	}
	read := 0 // by a process since the last event
	for n+read < len(records) && l.isRead(records[n+read]) {
		read++
	}
	if fresh := records[n+read:]; len(fresh) > 0 {
		process := l.To == l.At && l.To.Compare(l.Last) > 0
		switch {
		case process && (read > 0 && records[n+read-1] != l.To || fresh[0].Compare(l.To) < 0):
			return progress{}, errPassed
		case read == 0 && (process || n == 0 && !of.sure):
			behind := l.Last
			if l.At.Compare(behind) > 0 { // a process was last
				behind = l.At
			}
			if follows, err := of.next(behind, fresh[0]); err != nil || !follows {
				return progress{}, cmp.Or(err, errBehind)
			}
		}
	}
	if out.AppliedMarks < at {
		if now.Before(l.Until) {
			return progress{}, errBusy
		}
		if err := of.gaveUp(l.At, at-out.AppliedMarks); err != nil {
			return progress{}, err
		}
		out.Void, out.AppliedMarks = records[0], at
	}
	if n < len(records) {
		out.Marks += marksOf(records[n:])
		out.Last = records[len(records)-1]
	}
	if read > 0 {
		out.AppliedMarks = at + n + read
	}
	if out.AppliedMarks < at+len(records) && until.After(out.Until) {
		out.Until = until
	}
	if out.countMarks() > of.room {
		out.shortenMarks(records[n:], l.Last, of.room)
	}
	return out, nil
}

// shortenMarks moves marks to the tail, all but those of the fresh records, which came behind last, as far as there is room.
func (l *progress) shortenMarks(fresh []events.Position, last events.Position, room int) {
	if n := len(fresh) - room; n > 0 {
		last, fresh = fresh[n-1], fresh[n:]
	}
	at := l.countMarks() - len(fresh)
	l.tail = &owntable.TailRow{From: l.Behind, To: last, Marks: l.Marks[:at*markBytes]}
	l.earlier += l.tail.Marks
	l.Marks, l.Behind, l.AppliedMarks = l.Marks[at*markBytes:], last, l.AppliedMarks-at
}

// afterApplied is the row after the first n of an event's records are applied and the
// invocation is about to end.
func (l *progress) afterApplied(records []events.Position, n int) (progress, error) {
	whole := len(records)
	if records = l.withoutRead(records); len(records) == 0 {
		return *l, nil
	}
	n = max(0, n-(whole-len(records)))
	at, came, ok := l.findMarks(records)
	if !ok || came < len(records) {
		return progress{}, errPassed
	}
	out := *l
	if n > 0 && at <= l.AppliedMarks && at+n > l.AppliedMarks && records[n-1].Compare(l.At) > 0 {
		out.At = records[n-1]
	}
	out.AppliedMarks = max(out.AppliedMarks, at+n)
	if n < len(records) {
		out.Until = time.Unix(0, 0)
	}
	return out, nil
}

// isSame reports whether two are the same row, so that a write would change nothing. Times are
// compared to the second, as they are stored.
func (l *progress) isSame(o *progress) bool {
	return l.Marks == o.Marks && l.Last == o.Last && l.Behind == o.Behind && l.Void == o.Void && l.AppliedMarks == o.AppliedMarks && l.Until.Unix() == o.Until.Unix() && l.At == o.At && l.Fence.Same(o.Fence)
}

// progressRef is the row of the event's shard in the own table.
func (h *Handler) progressRef(w *work) owntable.ShardRef {
	return owntable.Checkpoint(h.Runner.Model.Name, w.table, w.shard)
}

// isNextRecord reports whether the stream has nothing of the shard between a position and the event. Records that it has forgotten in
// between is a gap, of which it keeps the dead letter. A shard of which nothing came begins where the stream does.
func (h *Handler) isNextRecord(ctx context.Context, w *work, behind, p events.Position) (bool, error) {
	for range emptyPages {
		read, err := h.Runner.Store.Read(ctx, w.table, w.shard, behind, 1)
		switch {
		case errors.Is(err, store.ErrTrimmed) && behind.IsZero():
			behind, err = h.Runner.Store.Horizon(ctx, w.table, w.shard)
		case errors.Is(err, store.ErrTrimmed):
			err = h.keepGap(ctx, w, behind, "the stream had forgotten what came after it, at least up to "+p.String())
			return err == nil, err
		case err == nil && len(read.Records) > 0:
			return read.Records[0].Position.Compare(p) >= 0, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("the stream does not show yet what comes before %s in shard %s of %s", p, w.shard, w.table)
}

// emptyPages is how many pages of DynamoDB without a record are read before one that there must be. They prove nothing: after as
// many the event fails, and when it comes again, the same process reads on where it was.
const emptyPages = 20

// keepGap keeps the dead letter of records that are missing behind a position.
func (h *Handler) keepGap(ctx context.Context, w *work, behind events.Position, what string) error {
	_, err := h.Runner.Letters().Keep(ctx, deadletter.ShardGap(w.table, w.shard, behind, what, h.Runner.Now()))
	return err
}

// claimEvent claims an event for this invocation. Its error says why the event must not be
// applied. After a crash the claim ends with the invocation's time.
func (h *Handler) claimEvent(ctx context.Context, w *work) error {
	row, err := h.Runner.GetRow(ctx, h.progressRef(w).Ref)
	if err != nil {
		return err
	}
	if w.progress.FunctionShardRow, err = owntable.DecodeFunctionShard(row); err != nil {
		return fmt.Errorf("shard %s of %s: %w", w.shard, w.table, err)
	}
	now, until := h.Runner.Now(), invocationLife
	if deadline, ok := ctx.Deadline(); ok {
		until = time.Until(deadline) + clockSlack
	}
	of := ask{
		room: rowMarks,
		next: func(behind, p events.Position) (bool, error) { return h.isNextRecord(ctx, w, behind, p) },
		gaveUp: func(behind events.Position, n int) error {
			return h.keepGap(ctx, w, behind, fmt.Sprintf("Lambda gave up %d records that came and could not be applied", n))
		},
	}
	err = h.changeRow(ctx, w, func(l *progress) (progress, error) {
		isNew := l.At.IsZero() && l.Last.IsZero()
		of.sure = l.isRecent(now) && !w.mayHaveExpired(now) || w.hasNoChange() || isNew && !h.watched[w.table].is
		next, err := l.afterClaim(w.records, now, now.Add(until), of)
		if err != nil {
			return next, err
		}
		if builds := w.view.Builds.Generations(); len(builds) > 0 {
			next.Fence, _ = l.Fence.Take(w.view.Count, builds, l.At)
			next.Fence = w.cutFence(next.Fence, l.At, isNew)
		}
		byMarks := func(b owntable.Build) bool { return b.HandOver.Over.IsZero() }
		if len(w.portions) == 1 && len(w.portions[0].bad) == 0 && !slices.ContainsFunc(w.view.Builds.Counting(), byMarks) && w.looked.Idle {
			return next.afterApplied(w.records, len(w.records)) // there is nothing to do in between
		}
		return next, nil
	})
	w.view.Fence = w.progress.Fence
	return err
}

// cutFence cuts the shard for builds that hand over: before the first record of the event that was written after the announcement, and
// at its beginning if that is near and the shard is new: nothing of it has come, and it may descend from one that was cut.
func (w *work) cutFence(f contribution.Fence, at events.Position, isNew bool) contribution.Fence {
	return reader.CutFence(w.view.CatalogRow, f, at, isNew, func(yield func(*events.Record) bool) {
		for i := range w.entries {
			if r := &w.entries[i].Record; !r.Position.IsZero() && !yield(r) {
				return
			}
		}
	})
}

// isRecent reports whether the row was written so lately that the mapping cannot have been made again since.
func (l *progress) isRecent(now time.Time) bool {
	return now.Sub(l.Expiry.Add(-progressLife)) < remade
}

// mayHaveExpired reports whether the event's first record is so old that those before it may have expired. One that is older than a stream
// keeps records comes from a test or a recording.
func (w *work) mayHaveExpired(now time.Time) bool {
	age := now.Sub(w.entries[0].Record.Time)
	return age > oldAge && age < 48*time.Hour
}

// hasNoChange reports whether no record of the event changes its row: reads of a stream leave such records out, so they cannot be
// asked for.
func (w *work) hasNoChange() bool {
	return !slices.ContainsFunc(w.entries, func(e events.Entry) bool {
		return e.Record.Old == nil || !value.EqualItems(e.Record.Old, e.Record.New)
	})
}

const (
	remade         = time.Minute      // the least time in which a mapping is deleted and another one reads
	invocationLife = 15 * time.Minute // Lambda's maximum
	clockSlack     = 10 * time.Second // an invocation stops before its deadline, by its own clock
	progressTries  = 10               // how often other invocations may change the row while we do
)

// changeRow writes the row that f returns. The row in w may be out of date. The write is
// conditional on its version, and after a failed condition f is called with the current
// row.
func (h *Handler) changeRow(ctx context.Context, w *work, f func(*progress) (progress, error)) error {
	for range progressTries {
		if !w.progress.Fence.Admits(w.view.Count) {
			return fmt.Errorf("shard %s of %s: %w", w.shard, w.table, errView)
		}
		if len(w.records) > 0 {
			done, err := w.progress.recallMarks(w.records, func(from, below events.Position) ([]owntable.TailRow, error) { return h.readTail(ctx, w, from, below) })
			if err != nil {
				return err
			}
			if done {
				w.known, w.records = true, nil
			}
		}
		next, err := f(&w.progress)
		if err != nil {
			return h.reportDisorder(w, err)
		}
		if w.progress.isSame(&next) {
			return nil
		}
		row, wrote, err := h.moveRow(ctx, w, &next)
		if err != nil {
			return err
		}
		w.progress = progress{}
		if w.progress.FunctionShardRow, err = owntable.DecodeFunctionShard(row); err != nil || wrote {
			if wrote && w.progress.Behind == next.Behind {
				w.progress.earlier = next.earlier
			}
			return err
		}
	}
	return fmt.Errorf("shard %s of %s is moved by others as often as it is tried", w.shard, w.table)
}

// moveRow writes the row, behind the marks that leave it, and returns it. wrote is false if another invocation was there before.
func (h *Handler) moveRow(ctx context.Context, w *work, next *progress) (row value.Item, wrote bool, err error) {
	expires := h.Runner.Now().Add(progressLife)
	wr := w.progress.Becomes(h.progressRef(w), next.FunctionShardRow, expires)
	wr.Repeatable = true // the caller asks nothing of a row that has the records of this invocation
	if next.tail != nil {
		// There is one row of marks behind each position. One that has others was left by an invocation that has died, or comes to move
		// the row: only one of them does, in a transaction with its marks.
		put := next.tail.Put(h.Runner.Model.Name, owntable.ShardKey(w.table, w.shard), expires)
		put.Repeatable = true
		out, err := h.Runner.Store.Write(ctx, []store.Write{put})
		if err != nil {
			return nil, false, err
		}
		if is, err := owntable.DecodeTail(out[0].Row); errors.Is(out[0].Err, store.ErrCondition) && (err != nil || is != *next.tail) {
			put.If, put.Return, wr.Return = nil, false, false
			done, err := runner.TransactionOutcome(h.Runner.Store.Transact(ctx, []store.Write{wr, put}))
			if err == nil {
				row, err = h.Runner.GetRow(ctx, h.progressRef(w).Ref)
			}
			return row, done, err
		} else if out[0].Err != nil && !errors.Is(out[0].Err, store.ErrCondition) {
			return nil, false, out[0].Err
		}
	}
	out, err := h.Runner.Store.Write(ctx, []store.Write{wr})
	if err == nil && !errors.Is(out[0].Err, store.ErrCondition) {
		err = out[0].Err
	}
	if err != nil {
		return nil, false, err
	}
	return out[0].Row, out[0].Err == nil, nil
}

// readTail reads the rows of marks from the one on that has a record, those that begin below another one.
func (h *Handler) readTail(ctx context.Context, w *work, from, below events.Position) (rows []owntable.TailRow, err error) {
	q := store.Query{
		Table: owntable.TableName, Partition: value.OfString(owntable.Tail(h.Runner.Model.Name, owntable.ShardKey(w.table, w.shard))),
		Sort: store.Range{Below: value.OfString(owntable.TailAt(from))}, Reverse: true, Limit: 1,
	}
	first, err := h.Runner.Store.Query(ctx, q)
	if err != nil || len(first.Rows) == 0 {
		return nil, err
	}
	q.Sort = store.Range{From: first.Rows[0].Get(owntable.Sort), Below: value.OfString(owntable.TailAt(below))}
	q.Reverse, q.Limit = false, 0
	marks := 0
	for some, err := range store.Pages(ctx, h.Runner.Store, q) {
		if err != nil {
			return nil, err
		}
		for _, row := range some {
			is, err := owntable.DecodeTail(row)
			if marks += len(is.Marks); err != nil || marks > mostRecalled*markBytes {
				return nil, err
			}
			rows = append(rows, is)
		}
	}
	return rows, nil
}

// mostRecalled is more marks than the rows have that an event of Lambda, of at most 10,000 records, is in.
const mostRecalled = 50_000

// reportDisorder says that records came out of order, which positions by shard cannot survive.
// Nothing of the event is acknowledged; the text says which setting of the event source mapping
// to look at.
func (h *Handler) reportDisorder(w *work, err error) error {
	if errors.Is(err, errBusy) {
		return fmt.Errorf("%w: shard %s of %s: %w; nothing of this event is applied, and it comes again. If that does not end, the parallelization factor is above 1: set it to 1", ErrOrder, w.shard, w.table, err)
	}
	if errors.Is(err, errBehind) {
		return fmt.Errorf("%w: shard %s of %s: the event begins at %s, and %w; nothing of the event is let go of. A mapping that is made again at LATEST, or that filters records, passes over some. projector run MODEL reads them, and then the function goes on",
			ErrOrder, w.shard, w.table, w.records[0], err)
	}
	return fmt.Errorf("%w: shard %s of %s: the event has records %s to %s, the shard has come to %s, and %w; nothing of the event is let go of. Is the parallelization factor above 1? What to do then, and if it was not, is in docs/guide/operations.md, \"Out of order\"",
		ErrOrder, w.shard, w.table, w.records[0], w.records[len(w.records)-1], w.progress.Last, err)
}

// progressLife is how long a row is kept after its last event. The stream's
// retention is shorter.
const progressLife = 48 * time.Hour
