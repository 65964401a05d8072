// Package lambda is the projector as a Lambda function behind a DynamoDB stream.
//
// Every record that is not certainly applied is delivered again: an invocation that
// fails answers with an error, or with the first record from which on everything is to
// be sent again. All effects are safe to repeat. A record that cannot be used is stored
// whole as a dead letter and does not hold up other records.
//
// The event source mapping needs FunctionResponseTypes ReportBatchItemFailures.
package lambda

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/stage"
	"weir/internal/store"
)

// Handler applies the events of a model's streams.
type Handler struct {
	Runner *runner.Runner
	// Names are the names of the tables in events.
	Names stage.Names
	// Order is the order of events that the function relies on. Drained is the order in
	// which the streams were read before; set it once no record read in that order can
	// be delivered again. It is "" if the order never changed. If both are ByShard,
	// events that are out of order are taken for a repetition of records that were
	// applied before.
	Order, Drained Order
	// Admit runs before each event. After an error nothing of the event is applied or
	// acknowledged.
	Admit func(context.Context) error
	// Portion is how many records are applied before the deadline is checked again; 0
	// is 250.
	Portion int
	// Report, when set, is called with the outcome of each event that has records.
	Report func(Report)

	checked map[string]bool // tables whose order is known to be ours
	open    openShards
}

// New makes a handler. It works on a copy of the runner.
func New(r *runner.Runner, o, drained Order, admit func(context.Context) error) *Handler {
	h := &Handler{Order: o, Drained: drained, Admit: admit, checked: map[string]bool{}}
	run := *r
	run.Reader, run.Drained = catalog.Reader(o), []catalog.Reader{catalog.Reader(drained)}
	if o == ByShard {
		run.Retired = h.retired
	}
	h.Runner = &run
	return h
}

// Report is the outcome of an event. Records that were not applied are delivered again,
// except those kept as dead letters.
type Report struct {
	Table                           string
	Records, Applied, Skipped, Dead int
	Again                           int           // records to be sent again; all of a failed event
	Old                             int           // records close to the stream's retention limit
	Age                             time.Duration // of the oldest record
	OutOfOrder                      bool          // the event was refused: see ErrOrder
	Why                             error         // why a part is delivered again, or nil
}

// oldAge is the age from which a record is close to its stream's retention limit.
const oldAge = 20 * time.Hour

// margin is how much of an invocation's time is left when the handler stops: enough to
// answer with certainty.
func margin(left time.Duration) time.Duration { return min(3*time.Second, left/5) }

// Invoke handles one event and returns the reply to Lambda. After an error, nothing is
// acknowledged: Lambda delivers the whole event again. The same holds after a crash.
// Invoke must not be called by two goroutines at a time; Lambda never does.
func (h *Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	read := h.Runner.Moment()
	ev, err := events.DecodeLambda(payload)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	if err := h.Names.Entries(ev.Entries); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	w, err := decide(h.Runner.Model, &ev, h.Order, cmp.Or(h.Portion, portionRecords))
	if err != nil {
		return nil, err
	}
	w.read = read
	whole := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-margin(time.Until(deadline))))
		defer cancel()
	}
	a := answer{Failures: []failure{}}
	if ev.Shard != "" {
		a.State = json.RawMessage(`{}`)
	}
	if len(w.portions) == 0 {
		return json.Marshal(a)
	}
	from := 0
	if err = h.check(ctx, &w); err == nil {
		from, err = h.apply(ctx, whole, &w)
	}
	var out []byte
	if err == nil {
		if from < len(ev.Entries) {
			a.Failures = append(a.Failures, failure{identifier(payload, ev.Entries[from:])})
		}
		out, err = json.Marshal(a)
	}
	h.tell(&ev, &w, err)
	return out, err
}

func (h *Handler) tell(ev *events.Lambda, w *work, err error) {
	if h.Report == nil {
		return
	}
	r := Report{Table: w.table, Records: len(ev.Entries), Applied: w.counts.Applied, Skipped: w.counts.Skipped, Dead: w.counts.Dead}
	r.Again, r.OutOfOrder, r.Why = r.Records-w.done, errors.Is(err, ErrOrder), w.why
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

// apply applies portion after portion until one fails or the time is over. It returns
// the first of the event's entries that is to be delivered again. It notes what it has
// applied within the context whole, which ends later than ctx.
func (h *Handler) apply(ctx, whole context.Context, w *work) (from int, err error) {
	applied := 0
	for i := range w.portions {
		p := &w.portions[i]
		from = p.from
		err = ctx.Err()
		if err == nil {
			err = h.portion(ctx, w, p)
		}
		if err == nil && i == len(w.portions)-1 {
			err = h.jobs(ctx)
		}
		if err != nil {
			break
		}
		applied += p.records
		w.done += len(p.changes) + len(p.bad)
		from += len(p.changes) + len(p.bad)
	}
	if err != nil && from == 0 {
		return 0, errors.Join(err, h.over(whole, w, applied))
	}
	w.why = err
	if err := h.over(whole, w, applied); err != nil {
		return 0, err
	}
	return from, h.Runner.Store.Sync(whole) // Lambda lets go of what is answered for
}

// over notes how much of an event is applied.
func (h *Handler) over(ctx context.Context, w *work, applied int) error {
	if h.Order != ByShard || len(w.records) == 0 {
		return nil
	}
	return h.end(ctx, w, applied)
}

// portion applies records, and stores those that cannot be applied as dead letters.
func (h *Handler) portion(ctx context.Context, w *work, p *portion) error {
	for i := range p.bad {
		if err := h.keep(ctx, w.table, &p.bad[i]); err != nil {
			return err
		}
	}
	b := runner.Batch{ShardKey: runner.ShardKey(w.table, w.shard), Changes: p.changes, Read: w.read, ByItem: h.Order == ByItem, View: w.view}
	n, err := h.Runner.Rows(ctx, b)
	if err != nil {
		return err
	}
	if h.Runner.Index != nil {
		if _, err := h.Runner.Documents(ctx, []runner.Batch{b}); err != nil {
			return err
		}
	}
	w.counts.Add(n)
	w.counts.Dead += len(p.bad)
	return nil
}

// jobs works through long lists. If the time ends first, the same records are delivered
// again and continue the rest.
func (h *Handler) jobs(ctx context.Context) error {
	for {
		left, err := h.Runner.Jobs(ctx)
		if err != nil || !left {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("long lists are not done: %w", err)
		}
	}
}

// keep stores an entry that cannot be used as a dead letter. Repeating it changes
// nothing.
func (h *Handler) keep(ctx context.Context, table string, e *events.Entry) error {
	rec := e.Record
	rec.Table = table
	d := runner.Dead{
		Kind: runner.DeadRecord, Target: "a record of " + table, Reason: e.Bad.Error(), Source: sourceOf(e),
		Time: rec.Time, Position: rec.Position, Raw: string(e.Bad.Raw), Record: owntable.RecordItem(&rec),
	}
	_, err := h.Runner.KeepDead(ctx, d)
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

// check makes sure that the stream is read in our order, and that the event continues
// what came before it.
func (h *Handler) check(ctx context.Context, w *work) error {
	if err := h.Admit(ctx); err != nil {
		return err
	}
	if !h.checked[w.table] {
		if err := h.order(ctx, w.table); err != nil {
			return err
		}
		h.checked[w.table] = true
	}
	row, err := h.Runner.Admit(ctx, []string{w.table}, h.Runner.Groups()...)
	if err != nil {
		return err
	}
	w.view = &runner.View{CatalogRow: row}
	if h.Order != ByShard || len(w.records) == 0 {
		return nil
	}
	if err := h.enter(ctx, runner.ShardKey(w.table, w.shard)); err != nil {
		return err
	}
	return h.begin(ctx, w)
}

// order notes the order of a stream, or returns ErrOrder if another one is noted.
func (h *Handler) order(ctx context.Context, table string) error {
	var others []string
	if h.Drained != "" {
		others = append(others, string(h.Drained))
	}
	ref := owntable.FunctionOrder(h.Runner.Model.Name, table)
	out, err := h.Runner.Store.Write(ctx, []store.Write{owntable.SetOrder(ref, string(h.Order), others...)})
	if err == nil {
		err = out[0].Err
	}
	if errors.Is(err, store.ErrCondition) {
		had, err := owntable.DecodeOrder(out[0].Row)
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: the stream of %s was read by %s until now, and this function goes by %s. Go back to %s; or let the stream run empty first (an iterator age of 0 and no failures), and then say so: WEIR_DRAINED=%s",
			ErrOrder, table, had, h.Order, had, had)
	}
	return err
}
