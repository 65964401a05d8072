// Package lambda is the projector as a Lambda function behind a DynamoDB stream.
//
// Every record that is not certainly applied is delivered again: an invocation that
// fails answers with an error, or with the first record from which on everything is to
// be sent again. All effects are safe to repeat. A record that cannot be used is stored
// whole as a dead letter and does not hold up other records.
//
// The event source mapping needs FunctionResponseTypes ReportBatchItemFailures. A function that
// derives rows needs a tumbling window, whose events name their shard, and a parallelization
// factor of 1, since positions by shard rely on the order of a shard.
//
// An event is applied in four steps: decide.go turns the payload into a batch, or refuses it,
// without any I/O; the runner's catalog admits it; progress.go checks that it continues the records that the
// function applied of its shard; and the runner applies it, as one batch unless such events take too long. An event that
// was applied before, in part or as a whole, changes nothing. Lambda runs several processes of a
// function side by side, for different shards, and for one shard while it gives up on the first.
//
// A crash or a timeout at any step leaves the event unanswered, so Lambda sends it again.
package lambda

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"weir/internal/budget"
	"weir/internal/catalog"
	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/runner"
	"weir/internal/stage"
	"weir/internal/store"
)

// Handler applies the events of a model's streams.
type Handler struct {
	Runner *runner.Runner
	// Names are the names of the tables in events.
	Names stage.Names
	// Admit runs before each event. After an error nothing of the event is applied or
	// acknowledged.
	Admit func(context.Context) error
	// Portion is the most records that are applied as one batch; 0 is the whole event, so that each target is written once, and a
	// part of it after an event of the shard that took longer than the invocation had.
	Portion int
	// Report, when set, is called with the outcome of each event that has records, and Ticked with the findings of a scheduled invocation.
	Report func(Report)
	Ticked func(Tick)
	// Log is told of gaps.
	Log *slog.Logger

	watched map[string]watched // each table
	slow    map[string]int     // of shards whose events take long: the most records that are applied as one batch
	down    time.Time          // when an index last did not take documents
}

// New makes a handler. It works on a copy of the runner, so the caller's may go on to be used. New
// reads nothing: a function's needs of the store are read by the first event.
func New(r *runner.Runner, admit func(context.Context) error) *Handler {
	h := &Handler{Runner: r.ForStreams(), Admit: admit, Log: slog.Default(), watched: map[string]watched{}, slow: map[string]int{}}
	h.Runner.Reader = catalog.Shard
	return h
}

// Report is the outcome of an event. Records that were not applied are delivered again,
// except those kept as dead letters.
type Report struct {
	Table                           string
	Records, Applied, Skipped, Dead int
	By                              map[string]runner.Counts // by derivation
	Again                           int                      // records to be sent again; all of a failed event
	Old                             int                      // records close to the stream's retention limit
	Age                             time.Duration            // of the oldest record
	OutOfOrder                      bool                     // the event was refused: see ErrOrder
	Why                             error                    // why a part is delivered again, or nil
	Waits                           error                    // the error that waits for a newer version of the program, or nil
	Pending                         int                      // documents that an index did not take
	Refused                         []string                 // the tables that refused a call, so that records come again
	Trace                           string                   // the id of the event's trace, "" if none is kept
}

// oldAge is the age from which a record is close to its stream's retention limit.
const oldAge = 20 * time.Hour

// stopMargin is how much of an invocation's time is left when the handler stops: enough to
// answer with certainty.
func stopMargin(left time.Duration) time.Duration { return min(3*time.Second, left/5) }

// Invoke handles one event, or a scheduled invocation, and returns the reply to Lambda. After an error, nothing is
// acknowledged: Lambda delivers the whole event again. The same holds after a crash.
// Invoke must not be called by two goroutines at a time; Lambda never does.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	read := h.Runner.MonotonicNow()
	ctx = budget.For(ctx, budget.Rows)
	if s, is := isTick(payload); is {
		return h.runTick(ctx, s)
	}
	ev, err := events.DecodeLambda(payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	if err := h.Names.Entries(ev.Entries); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	most := cmp.Or(h.Portion, h.slow[ev.Shard], len(ev.Entries))
	w, err := splitEvent(h.Runner.Model, &ev, most)
	if err == nil && len(w.portions) > 0 {
		err = w.checkShard()
	}
	if err != nil {
		return nil, err
	}
	w.read = read
	a := answer{Failures: []failure{}}
	if ev.Shard != "" {
		a.State = json.RawMessage(`{}`)
	}
	if len(w.portions) == 0 {
		return json.Marshal(a)
	}
	from, err := h.applyEvent(ctx, &ev, &w)
	var out []byte
	if err == nil {
		if from < len(ev.Entries) {
			a.Failures = append(a.Failures, failure{identifierOf(payload, ev.Entries[from:])})
		}
		out, err = json.Marshal(a)
	}
	h.setPace(ev.Shard, most, errors.Is(errors.Join(err, w.why), context.DeadlineExceeded))
	h.reportInvocation(&ev, &w, err)
	return out, err
}

// setPace makes the batches of a shard smaller after one that was not done in time, so that a part of its event is, and then larger again.
func (h *Handler) setPace(shard string, most int, late bool) {
	switch slow := h.slow[shard]; {
	case late:
		h.slow[shard] = max(1, most/4)
	case slow > 0 && slow < mostSlow:
		h.slow[shard] = 2 * slow
	default:
		delete(h.slow, shard)
	}
}

// mostSlow is from how many records on a batch counts as large again.
const mostSlow = 1000

// inTime ends a margin before the invocation does.
func inTime(whole context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := whole.Deadline(); ok {
		return context.WithDeadline(whole, deadline.Add(-stopMargin(time.Until(deadline))))
	}
	return context.WithCancel(whole)
}

// applyEvent applies an event within the time of the invocation. It returns the first entry that is to be delivered again.
func (h *Handler) applyEvent(whole context.Context, ev *events.Lambda, w *work) (from int, err error) {
	is := runner.Span{Name: runner.SpanBatch, Table: w.table, Items: len(ev.Entries)}
	err = h.Runner.RunTraced(whole, is, func(whole context.Context) (err error) {
		ctx, cancel := inTime(whole)
		defer cancel()
		if err = h.checkProgram(ctx, w); err == nil && w.known {
			w.done, from = len(w.entries), len(w.entries)
		} else if err == nil {
			from, err = h.applyPortions(ctx, whole, w)
		}
		w.trace = h.Runner.AppliedIn(whole, w.counts)
		return err
	})
	return from, err
}

// reportInvocation reports an invocation: how many records were applied, skipped and dead, how many will
// come again and why, and the age of the oldest.
func (h *Handler) reportInvocation(ev *events.Lambda, w *work, err error) {
	if h.Report == nil {
		return
	}
	r := Report{Table: w.table, Records: len(ev.Entries), Applied: w.counts.Applied, Skipped: w.counts.Skipped, Dead: w.counts.Dead, By: w.counts.By}
	r.Trace, r.Pending, r.Refused = w.trace, w.pending, store.FailedTables(errors.Join(err, w.why))
	r.Again, r.OutOfOrder, r.Why, r.Waits = r.Records-w.done, errors.Is(err, ErrOrder), w.why, w.waits
	if err != nil {
		r.Again = r.Records
	}
	for i := range ev.Entries {
		if at := ev.Entries[i].Record.Time; !at.IsZero() {
			age := h.Runner.Now().Sub(at)
			r.Age = max(r.Age, age)
			if age > oldAge {
				r.Old++
			}
		}
	}
	h.Report(r)
}

// applyPortions applies portion after portion until one fails or the time is over. It returns
// the first of the event's entries that is to be delivered again. It notes the records that it has
// applied within the context whole, which ends later than ctx.
func (h *Handler) applyPortions(ctx, whole context.Context, w *work) (from int, err error) {
	applied := 0
	for i := range w.portions {
		p := &w.portions[i]
		from = p.from
		err = ctx.Err()
		if err == nil {
			err = h.applyPortion(ctx, w, p)
		}
		if err == nil && i == len(w.portions)-1 {
			err = h.workOnJobs(ctx, w)
		}
		if err != nil {
			break
		}
		applied += p.records
		w.done += len(p.changes) + len(p.bad)
		from += len(p.changes) + len(p.bad)
	}
	if err != nil && from == 0 {
		return 0, errors.Join(err, h.noteApplied(whole, w, applied))
	}
	w.why = err
	if err := h.noteApplied(whole, w, applied); err != nil {
		return 0, err
	}
	return from, h.Runner.Store.Sync(whole) // Lambda lets go of records that are answered for
}

// noteApplied notes how much of an event is applied.
func (h *Handler) noteApplied(ctx context.Context, w *work, applied int) error {
	if len(w.records) == 0 {
		return nil
	}
	return h.changeRow(ctx, w, func(l *progress) (progress, error) { return l.afterApplied(w.records, applied) })
}

// applyPortion applies records, and stores those that cannot be applied as dead letters.
// After an error a part of it may be applied: the same records, delivered again, add nothing twice.
func (h *Handler) applyPortion(ctx context.Context, w *work, p *portion) error {
	for i := range p.bad {
		if err := h.keepDeadLetter(ctx, w.table, &p.bad[i]); err != nil {
			return err
		}
	}
	b := runner.Batch{ShardKey: owntable.ShardKey(w.table, w.shard), Changes: p.changes, Read: w.read, View: w.view, Looked: w.looked}
	w.looked = runner.Looked{}
	n, err := h.Runner.ApplyRows(ctx, b)
	if err != nil {
		return err
	}
	w.counts.Add(n)
	w.counts.Dead += len(p.bad)
	b.DeadAt = n.DeadAt
	return h.writeDocuments(ctx, w, b)
}

// writeDocuments writes the documents of records whose rows are applied, or notes them as pending: at once for a while after an index did
// not take some.
func (h *Handler) writeDocuments(ctx context.Context, w *work, b runner.Batch) error {
	if !w.indexed {
		return nil
	}
	writing, cancel := context.WithTimeout(ctx, indexTime)
	defer cancel()
	if now := h.Runner.MonotonicNow(); !h.down.IsZero() && now.Sub(h.down) <= downTime {
		writing = nil
	}
	of, n, err := document.WriteDocuments(ctx, h.Runner, []runner.Batch{b}, writing)
	if err != nil {
		return err
	}
	w.counts.Add(of[0])
	w.pending += n
	switch {
	case writing == nil:
	case n > 0:
		h.down = h.Runner.MonotonicNow()
	default:
		h.down = time.Time{}
	}
	return nil
}

const (
	// indexTime is how long an event waits for an index.
	indexTime = 3 * time.Second
	// downTime is how long documents are not offered to an index that did not take some.
	downTime = 5 * time.Second
)

// workOnJobs works through long lists. If the time ends first, the same records are delivered
// again and continue the rest. A job that fails is tried again with them, after all others are
// done. A job of a newer version waits for that version.
func (h *Handler) workOnJobs(ctx context.Context, w *work) error {
	jobs := runner.Jobs{Runner: h.Runner}
	for {
		left, err := jobs.RunStep(ctx)
		if errors.Is(err, runner.ErrNoJob) {
			w.waits, err = err, nil
		}
		if still := new(runner.StandingJobs); err != nil && !errors.As(err, &still) || !left {
			return err
		}
		if ended := ctx.Err(); ended != nil {
			return errors.Join(err, fmt.Errorf("long lists are not done: %w", ended))
		}
	}
}

// keepDeadLetter stores an entry that cannot be used as a dead letter. Repeating it changes
// nothing.
func (h *Handler) keepDeadLetter(ctx context.Context, table string, e *events.Entry) error {
	rec := e.Record
	rec.Table = table
	d := deadletter.Letter{
		Kind: deadletter.Record, Target: "a record of " + table, Reason: e.Bad.Error(), Source: sourceOf(e),
		Time: rec.Time, Position: rec.Position, Raw: string(e.Bad.Raw), Record: owntable.RecordItem(&rec),
	}
	_, err := h.Runner.Letters().Keep(ctx, d)
	return err
}

// sourceOf identifies a record, so that a repeated record is recognized wherever in an
// event it is.
func sourceOf(e *events.Entry) string {
	switch {
	case !e.Record.Position.IsZero():
		return "sequence number " + e.Record.Position.String()
	case e.Record.ID != "":
		return "event " + e.Record.ID
	}
	return "a record " + owntable.Hash(string(e.Bad.Raw))
}

// checkProgram makes sure that this program and reader are the right ones for the stream, and that
// the event continues the records before it.
func (h *Handler) checkProgram(ctx context.Context, w *work) error {
	if err := h.Admit(ctx); err != nil {
		return err
	}
	row, err := h.Runner.AdmitEvent(ctx, w.table, w.label)
	if err != nil {
		return err
	}
	if w.indexed, err = document.IsIndexed(h.Runner, row); err != nil {
		return err
	}
	w.view = &runner.View{CatalogRow: row, Cuts: true}
	if len(w.records) == 0 {
		return nil
	}
	if err := h.lookIfOverdue(ctx, w.table); err != nil {
		return err
	}
	if w.looked, err = h.Runner.ReadPrunedLedgers(ctx, w.portions[0].changes); err != nil {
		return err
	}
	err = h.claimEvent(ctx, w)
	w.looked.Frontier = w.progress.At
	return err
}
