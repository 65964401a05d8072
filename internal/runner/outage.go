package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A table of an application may refuse every write for long, or every read: a policy denies them, the table is throttled
// for hours, or it was deleted. Its targets then wait, and all other tables of the model go on. For a short
// time nothing is different from any other failure: the batch is applied again. After outageAfter without
// one call of the kind that fails (callWrite, callRead, callTransact), it is out. From then on no batch shows anything in it. Ledgers
// and facts are kept in our own table, so they go on. A target whose row cannot show them is owed
// (owntable.OwedRow), once, however many records come. No effect waits, and no position stands.
// Rows that weir makes in the table are owed likewise, each by its kind (Kind.Settle): a copy, a list of followers and a part of
// a set once, and by what the source row or our own table says when the table works again; an entry of a history and a notification
// with what it is made from, since no row tells it. An old row that a migration would move into the table, or that stands in it, is
// owed by its key (moves.go). So is what needs a row that cannot be read or looked at: a copy that is to be restored from its
// source, the ledger of a row that was deleted, a claim on a unique value (claims.go).
//
// A job of our own table, one for each table that is out, tries one write after a pause that doubles. When
// the table takes it, the job does all that is owed. It ends when nothing is left. The pause, the outage and its end are known to
// one process; the others find out as it did, at once if there is the job.

// ErrOutage says that a table takes no writes at present. It comes with store.ErrRefused.
var ErrOutage = errors.New("its table takes no writes")

const (
	outageAfter  = time.Minute
	leastProbe   = 5 * time.Second
	longestProbe = 5 * time.Minute
)

// Outages is what a process knows of tables that take no writes. Its methods may be called from many
// goroutines. Runner.Outlasting makes one.
type Outages struct {
	model  string      // whose job does what is owed, also by the runner of a generation, which may go before
	beside store.Store // the store itself, which jobs try
	mu     sync.Mutex
	of     map[string]*outage
}

// outage is a table of which the last write failed.
type outage struct {
	since time.Time // by the runner's monotonic clock
	last  time.Time // when the last write failed
	at    time.Time
	why   string
	call  string // the kind of call that failed first; one that another call of the kind does is no outage
	out   bool
	probe time.Time // when the next write is tried
	pause time.Duration
}

// Outlasting returns a runner that outlasts outages of the application's tables: its batches go on
// without those. It must have the jobs done (Jobs).
func (r *Runner) Outlasting() *Runner {
	in := *r
	in.outages = &Outages{model: r.Model.Name, beside: r.Store, of: map[string]*outage{}}
	in.Store = &outlasting{Store: r.Store, r: &in}
	return &in
}

// Out returns the tables that take no writes, and why.
func (r *Runner) Out() map[string]string {
	out := map[string]string{}
	if r.outages == nil {
		return out
	}
	r.outages.mu.Lock()
	defer r.outages.mu.Unlock()
	for table, is := range r.outages.of {
		if is.out {
			out[table] = fmt.Sprintf("it %s since %s: %s", is.call, is.at.UTC().Format(time.RFC3339), is.why)
		}
	}
	return out
}

// IsOut returns the refusal of all writes to a table that is out, nil if it is not.
func (r *Runner) IsOut(table string) error {
	if r.outages == nil {
		return nil
	}
	r.outages.mu.Lock()
	defer r.outages.mu.Unlock()
	if is := r.outages.of[table]; is != nil && is.out {
		return fmt.Errorf("%w: %w: %s", store.ErrRefused, ErrOutage, is.why)
	}
	return nil
}

// outlasting is the store of batches.
type outlasting struct {
	store.Store
	r *Runner
}

// Kinds of calls, as what a table does that refuses them.
const (
	callWrite    = "takes no writes"
	callRead     = "cannot be read"
	callTransact = "takes part in no transaction"
	callMove     = "lets no old row be moved"
)

// Get reads rows, and notes which tables could not be read.
func (s *outlasting) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	rows, err := s.Store.Get(ctx, refs)
	failed := map[string]error{}
	if err != nil {
		var tables []store.Ref // one row of each
		for _, ref := range refs {
			if ref.Table != owntable.TableName && !slices.ContainsFunc(tables, func(r store.Ref) bool { return r.Table == ref.Table }) {
				tables = append(tables, ref)
			}
		}
		for i := range tables {
			one := err
			if len(tables) > 1 { // it is said of all
				_, one = s.Store.Get(ctx, tables[i:i+1])
			}
			if one != nil {
				failed[tables[i].Table] = one
			}
		}
	} else {
		s.r.outages.works(callRead, tables(refs, func(r *store.Ref) string { return r.Table }), failed)
	}
	return rows, s.fail(ctx, callRead, failed, err)
}

// Transact does a transaction, and notes whether it failed because of a table. It is not said which it was, so only of a
// table that is alone in it, with our own, it is known.
func (s *outlasting) Transact(ctx context.Context, ws []store.Write) error {
	err := s.Store.Transact(ctx, ws)
	failed := map[string]error{}
	if err == nil || errors.Is(err, store.ErrCondition) {
		s.r.outages.works(callTransact, tablesWritten(ws), failed)
	} else if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrRefused) {
		for table := range tablesWritten(ws) {
			failed[table] = err
		}
		if delete(failed, owntable.TableName); len(failed) > 1 {
			return err
		}
	}
	return s.fail(ctx, callTransact, failed, err)
}

// tables yields the tables of some rows, that of each.
func tables[T any](of []T, table func(*T) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range of {
			if !yield(table(&of[i])) {
				return
			}
		}
	}
}

// tablesWritten yields the tables of writes.
func tablesWritten(ws []store.Write) iter.Seq[string] {
	return tables(ws, func(w *store.Write) string { return w.Table })
}

// Write does writes, and notes which tables took one and which did not.
func (s *outlasting) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out, err := s.Store.Write(ctx, ws)
	return out, s.noted(ctx, ws, out, err)
}

// noted notes what became of writes, and returns their error.
func (s *outlasting) noted(ctx context.Context, ws []store.Write, out []store.Outcome, err error) error {
	failed := map[string]error{}
	for i := range out {
		if e := out[i].Err; e != nil && !errors.Is(e, store.ErrCondition) && !errors.Is(e, store.ErrRefused) {
			failed[ws[i].Table] = e
		}
	}
	if err != nil && len(failed) == 0 {
		for i := range ws { // it is said of none, so only of a table alone it is known
			failed[ws[i].Table] = err
		}
		if len(failed) > 1 {
			return err
		}
	}
	if err == nil {
		s.r.outages.works(callWrite, tablesWritten(ws[:len(out)]), failed)
	}
	return s.fail(ctx, callWrite, failed, err)
}

// fail notes that tables did not do calls of a kind, and returns their error.
func (s *outlasting) fail(ctx context.Context, call string, failed map[string]error, err error) error {
	delete(failed, owntable.TableName)
	if ctx.Err() != nil {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(failed)) {
		if e := s.r.fails(ctx, table, call, failed[table]); e != nil {
			return errors.Join(err, e)
		}
	}
	return err
}

// works notes that tables did a call of a kind, except those that failed.
func (o *Outages) works(call string, tables iter.Seq[string], failed map[string]error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.of) == 0 {
		return
	}
	for table := range tables {
		if is := o.of[table]; is != nil && !is.out && is.call == call && failed[table] == nil {
			delete(o.of, table)
		}
	}
}

// fails notes that a table did not do a call of a kind. It is out if it has done none for outageAfter, or if
// another process has found that. Our own table must take the job then: if it does not, it is not the
// table that is out.
func (r *Runner) fails(ctx context.Context, table, call string, why error) error {
	now := r.Moment()
	r.outages.mu.Lock()
	is := r.outages.of[table]
	if is == nil || !is.out && now.Sub(is.last) > outageAfter { // what failed long ago says nothing of the time between
		is = &outage{since: now, at: r.Now(), call: call}
		r.outages.of[table] = is
	}
	is.why, is.last = why.Error(), now
	late, at := now.Sub(is.since) >= outageAfter, is.at
	r.outages.mu.Unlock()
	ref := owntable.OutageJobAt(r.Model.Name, table)
	if !late {
		job, err := r.GetRow(ctx, ref)
		if j, is := owntable.OutageJobFrom(job); err != nil || !is {
			return err
		} else {
			at = j.Since
		}
	}
	if _, err := r.Write(ctx, []store.Write{owntable.BeginOutage(r.Model.Name, table, at)}); err != nil {
		return err
	}
	r.outages.mu.Lock()
	defer r.outages.mu.Unlock()
	is.out, is.at, is.pause, is.probe = true, at, leastProbe, now.Add(leastProbe)
	r.outages.of[table] = is
	return nil
}

// Owe notes that targets must be shown again once their table takes writes.
func (r *Runner) Owe(ctx context.Context, targets ...store.Ref) error {
	owed := make([]Owed, len(targets))
	for i := range targets {
		owed[i] = Owed{Row: targets[i]}
	}
	return r.OweSmall(ctx, owed...)
}

// OweSmall is OweAll of what our own table has room for.
func (r *Runner) OweSmall(ctx context.Context, owed ...Owed) error {
	refused, err := r.OweAll(ctx, owed)
	return errors.Join(err, errors.Join(refused...))
}

// Owed is what waits for a table, and for which row: Table and Key need not be set.
type Owed struct {
	Row store.Ref
	owntable.OwedRow
}

// note completes what waits, as our own table keeps it.
func (r *Runner) note(o *Owed) {
	o.Table, o.Key = o.Row.Table, r.Model.Table(o.Row.Table).Item(o.Row.Key)
}

// OweAll notes what must be done once its table takes writes. For each it returns why our own table cannot keep it,
// which has no room for more than 400 KB, or nil. A crash before leaves the batch to be applied
// again; afterwards the job exists.
func (r *Runner) OweAll(ctx context.Context, owed []Owed) (refused []error, err error) {
	refused = make([]error, len(owed))
	var pending []int
	jobs := map[string]store.Write{}
	for i := range owed {
		r.note(&owed[i])
		jobs[owed[i].Table] = r.beginOutage(owed[i].Table)
		pending = append(pending, i)
	}
	for round := 0; len(pending) > 0; round++ {
		if round == MaxRounds {
			return nil, fmt.Errorf("what waits for %s changes all the time", owed[pending[0]].Table)
		}
		if pending, err = r.oweOnce(ctx, owed, pending, refused); err != nil {
			return nil, err
		}
	}
	var ws []store.Write
	for _, table := range slices.Sorted(maps.Keys(jobs)) {
		ws = append(ws, jobs[table])
	}
	_, err = r.Write(ctx, ws)
	return refused, err
}

// oweOnce notes what waits, and returns what another worker changed meanwhile. What a later change has named
// is counted: its job may be about to settle it by what it has read before.
func (r *Runner) oweOnce(ctx context.Context, owed []Owed, pending []int, refused []error) (left []int, err error) {
	ws := make([]store.Write, len(pending))
	for j, i := range pending {
		ws[j] = owed[i].Owe(r.outages.model, owed[i].Row)
	}
	out, err := r.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	var again []store.Write
	var of []int
	for j, i := range pending {
		switch e := out[j].Err; {
		case errors.Is(e, store.ErrRefused):
			refused[i] = e
		case e != nil && out[j].Row == nil:
			left = append(left, i)
		case e != nil:
			again, of = append(again, owed[i].Again(r.outages.model, owed[i].Row, out[j].Row)), append(of, i)
		}
	}
	if out, err = r.Write(ctx, again); err != nil {
		return nil, err
	}
	for j, i := range of {
		if out[j].Err != nil {
			left = append(left, i)
		}
	}
	return left, nil
}

// OweWith returns the writes that note what waits for a table, for a transaction that makes it wait.
func (r *Runner) OweWith(table string, owed []Owed) (ws []store.Write) {
	for i := range owed {
		r.note(&owed[i])
		ws = append(ws, owed[i].Owe(r.outages.model, owed[i].Row))
	}
	return append(ws, r.beginOutage(table))
}

// beginOutage starts the job of a table.
func (r *Runner) beginOutage(table string) store.Write {
	return owntable.BeginOutage(r.outages.model, table, r.outages.began(table, r.Now()))
}

// began returns when an outage began; now, if it is over by now.
func (o *Outages) began(table string, now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if is := o.of[table]; is != nil {
		return is.at
	}
	return now
}

// due reports whether a write to a table may be tried.
func (o *Outages) due(table string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	is := o.of[table]
	return is == nil || !is.out || !now.Before(is.probe)
}

// opens lets batches write to a table again. It is out again at once if it refuses the first of them.
func (o *Outages) opens(table string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if is := o.of[table]; is != nil && is.out {
		is.out, is.since, is.last = false, now.Add(-outageAfter), now
	}
}

// stays notes that a table still takes no writes, and when that is tried next.
func (o *Outages) stays(table string, why error, since, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	is := o.of[table]
	if is == nil {
		is = &outage{at: since, call: callWrite}
		o.of[table] = is
	}
	is.pause = min(max(2*is.pause, leastProbe), longestProbe)
	is.out, is.why, is.probe = true, why.Error(), now.Add(is.pause)
}

// over lets batches write to the tables that are out and have no job any more: another process has
// found that they take writes.
func (r *Runner) over(jobs map[string]bool) {
	if r.outages == nil {
		return
	}
	for table := range r.Out() {
		if !jobs[table] {
			r.outages.opens(table, r.Moment())
		}
	}
}

// owedAtOnce is how many targets one step of an outage's job settles.
const owedAtOnce = 25

// outageOn does one step of the job of a table. While the table takes no writes, that is no failure of the job, and
// the next step comes after a pause.
func (r *Runner) outageOn(ctx context.Context, job owntable.OutageJob) (more bool, err error) {
	try := *r
	if r.outages != nil {
		if !r.outages.due(job.Table, r.Moment()) {
			return false, nil
		}
		try.Store, try.outages = r.outages.beside, nil
	}
	more, failed, err := try.settleOutage(ctx, job)
	switch {
	case r.outages == nil || ctx.Err() != nil:
		return more, errors.Join(failed, err)
	case err != nil:
		r.outages.stays(job.Table, err, job.Since, r.Moment())
		return false, nil
	}
	r.outages.opens(job.Table, r.Moment())
	return more, failed
}

// settleOutage does some of what waits for a table, and ends the job if nothing does.
// After a crash it does so again. failed is why something of it cannot be done although the table takes writes; it holds up
// nothing else.
func (r *Runner) settleOutage(ctx context.Context, job owntable.OutageJob) (more bool, failed, err error) {
	waits := false
	for rows, err := range store.Pages(ctx, r.Store, owntable.Owed(r.Model.Name, job.Table, owedAtOnce)) {
		if err != nil {
			return false, nil, err
		}
		for _, row := range rows {
			o := Owed{OwedRow: owntable.OwedFrom(row)}
			if row, ok := projections.RowOf(r.Model, owntable.KeyedRow{Table: o.Table, Key: o.Key}); ok {
				o.Row = row
			}
			if !waits {
				if err := r.probe(ctx, o); err != nil {
					return false, nil, err
				}
			}
			waits = true
			done, e := r.settleOwed(ctx, o)
			if e == nil && done {
				_, e = r.Did(ctx, o.Settle())
				more = more || e == nil
			}
			if e != nil {
				if err := r.probe(ctx, o); err != nil {
					return false, nil, err
				}
				failed = cmp.Or(failed, e)
			}
		}
		if more { // what is left may have come meanwhile, before what was read
			return true, failed, nil
		}
	}
	if waits {
		return false, failed, nil
	}
	done, err := r.Did(ctx, job.End(r.Model.Name))
	return !done, nil, err
}

// probe tries a write that changes nothing, and a read: what waits may need none, and would tell nothing of the table.
// What needs a row only as a source tries no write, which a program may not be allowed.
func (r *Runner) probe(ctx context.Context, o Owed) error {
	if o.Row.Table == "" { // the model no longer has it
		return nil
	}
	if o.Kind != owntable.OwedSource {
		w := store.Write{Ref: o.Row, Ops: []store.Op{store.Assign(owntable.Version, value.OfInt(0))}, If: store.Cond{r.Present(o.Row.Table), r.absent(o.Row)}}
		if _, err := r.Write(ctx, []store.Write{w}); err != nil {
			return err
		}
	}
	_, err := r.GetRow(ctx, o.Row)
	return err
}

// settleOwed does what waits, by what our own table and the source row say now. done is false if it must be done again.
func (r *Runner) settleOwed(ctx context.Context, o Owed) (done bool, err error) {
	if o.Row.Table == "" {
		return true, nil
	}
	switch o.Kind {
	case owntable.OwedTarget:
		return true, r.showOwed(ctx, o.Row)
	case owntable.OwedMove:
		return true, r.settleMove(ctx, &o)
	case owntable.OwedClaim:
		return true, r.settleClaim(ctx, &o)
	}
	for _, k := range r.Kinds {
		if mine, done, err := k.Settle(ctx, r, o); mine || err != nil {
			return done, err
		}
	}
	return false, fmt.Errorf("no kind of projection of this version knows what waits for %s: %q", o.Table, o.Kind)
}

// showOwed shows a target by the ledger that it shows by now. If it is gone, the ledger expires.
func (r *Runner) showOwed(ctx context.Context, target store.Ref) error {
	in, err := r.shown(ctx, target)
	if err != nil {
		return err
	}
	if err := in.ShowLedger(ctx, target); err != nil {
		return err
	}
	return in.expireAll(ctx, []*projections.Target{{Row: target}})
}
