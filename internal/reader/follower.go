package reader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/budget"
	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/measures"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/projections/document"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Follower reads the streams of a model's tables and has each batch applied: to the rows, and behind them to the search
// indexes, beside the rows of later batches (flush.go). It keeps a checkpoint for every shard in our own table, and moves it
// after the effects of what it has read. After a crash it reads again from its checkpoints.
type Follower struct {
	Runner *runner.Runner
	// Source is the source of the streams; nil means the runner's store.
	Source store.Source
	// Stop, when closed, ends the run after the batch that is being applied.
	Stop <-chan struct{}
	// Prompt applies changes as soon as they arrive. Without it, one that has read only few records waits a moment for
	// more, because one large batch costs less than many small ones.
	Prompt bool
	// Window is how long records may gather, from when a batch of few began to when
	// the next begins: a target that many of them count for is then written once. What rows
	// show is that much older at the most. 0 is no wait. It has no effect on what is applied.
	Window time.Duration
	// Report, if set, is called with what was applied of each shard once its checkpoint has moved, so each record is
	// reported once. It must not block.
	Report func(a Applied)
	// Applied, if set, is called with the records of each page once they are applied to rows. It must not block, and must
	// not change the records.
	Applied func(t *model.Table, records []events.Record)
	// Stopped, if set, is called with why a shard stands still, in words, and with "" when it
	// goes on. All other shards go on meanwhile. Without it, a shard that stands still ends
	// the run, after the other shards had their turn. Jobs that stand still are reported as
	// the shard "jobs" of our own table, and documents that are pending as its shard "documents". A table that refused a
	// call of a batch, which Failed has applied again, is
	// reported with the shard "", until a batch is applied: all shards wait for it.
	Stopped func(table, shard, why string)
	// Failed, if set, decides what happens after a failure: the Follower goes on from its
	// checkpoints after a pause. If again is false,
	// or Failed is nil, the error ends the run. moved says that something was applied
	// since it began or failed before.
	Failed func(moved bool, err error) (pause time.Duration, again bool)
}

// Applied is what was applied of one shard in one batch.
type Applied struct {
	Table string
	runner.Result
	Records        int
	Oldest, Newest time.Time // of the records, zero if they have none
	Pending        int       // documents of the model that an index did not take in time
	Trace          string    // the id of the batch's trace, "" if none is kept
}

// Warn logs how many records are dead letters, for the operator of the model's
// follower.
func (a *Applied) Warn(log *slog.Logger, m *model.Model) {
	if a.Pending > 0 {
		log.Warn("an index does not take documents; they are pending", "model", m.Name, "documents", a.Pending)
	}
	if a.Dead == 0 {
		return
	}
	said := []any{"model", m.Name, "changes", a.Dead, "see", m.Command("dead list")}
	if a.Trace != "" {
		said = append(said, measures.TraceID, a.Trace)
	}
	log.Warn("not everything could be derived", said...)
}

// reported describes what was applied of a piece.
func (p *piece) reported() Applied {
	a := Applied{Table: p.place.table, Result: p.counts, Records: len(p.page.Records), Pending: p.pending, Trace: p.trace}
	for i := range p.page.Records {
		at := p.page.Records[i].Time
		if at.IsZero() {
			continue
		}
		if a.Oldest.IsZero() || at.Before(a.Oldest) {
			a.Oldest = at
		}
		if at.After(a.Newest) {
			a.Newest = at
		}
	}
	return a
}

const (
	// pageRecords is the most records that are read from a shard at a time, as many as a page of DynamoDB Streams has.
	pageRecords = 1000
	// fewWait is how long a Follower that is not Prompt waits for more records if there are few.
	fewWait = 20 * time.Millisecond
)

// Run follows the streams until the context ends or an error occurs. When idle it waits
// for the store to report a change.
func (f *Follower) Run(ctx context.Context) error { return f.run(ctx, nil) }

// CatchUp follows the streams until it has applied every write that was acknowledged
// before done was closed, and everything that these writes led to.
func (f *Follower) CatchUp(ctx context.Context, done <-chan struct{}) error { return f.run(ctx, done) }

// run reads until it fails in a way that Failed does not take or, with done, until it has caught up. Nothing in memory is
// trusted after a failure, as its outcome may be unknown, except what was said of shards and
// jobs that stand still.
func (f *Follower) run(ctx context.Context, done <-chan struct{}) error {
	c := f.consumer()
	for {
		err := c.run(budget.For(ctx, budget.Rows), done)
		if err == nil || ctx.Err() != nil || f.Failed == nil {
			return err
		}
		wait, again := f.Failed(c.did, err)
		if !again {
			return err
		}
		c.refusedBy(err)
		if isClosed(c.Stop) || pause(ctx, c.Stop, wait) != nil {
			return nil
		}
		next := f.consumer()
		next.still, next.jobs, next.said, next.refused, next.down, next.catching.owed = c.still, c.jobs, c.said, c.refused, c.down, true
		c = next
	}
}

// consumer is what a Follower knows of all shards.
type consumer struct {
	*Follower
	rows       *runner.Runner // applies the rows
	jobs       *runner.Jobs
	did        bool // something was applied
	catchingUp bool // it ends when it has caught up

	behind
	pages   pages
	at      map[place]events.Position
	still   map[place]string  // why shards stand still
	said    map[string]string // why jobs, or documents, do
	refused map[string]bool   // the tables that refused a call since a batch was applied
	ended   map[place]bool
	seen    map[place]owntable.CheckpointRow // as they were last read or moved
	floors  map[place]contribution.Fence     // as they were last read or taken, not before at
	leases
}

// consumer returns what reads the shards. It knows no position yet; each comes
// from its checkpoint when the shard is first read.
func (f *Follower) consumer() *consumer {
	return &consumer{
		Follower: f, rows: f.Runner.Reads(), jobs: &runner.Jobs{Runner: f.Runner},
		at: map[place]events.Position{}, ended: map[place]bool{}, seen: map[place]owntable.CheckpointRow{}, still: map[place]string{}, said: map[string]string{}, floors: map[place]contribution.Fence{}, refused: map[string]bool{},
		leases: leases{map[place]int64{}, map[place]time.Time{}},
	}
}

// Stepper follows the streams under the caller's control. Discard it after an error: it
// may then remember more than was saved.
type Stepper struct{ c *consumer }

// Stepper returns a Stepper that begins at the saved checkpoints.
func (f *Follower) Stepper() *Stepper { return &Stepper{f.consumer()} }

// Gather makes it apply this many records to rows, over several steps, before it writes their documents, as CatchUp does.
// The first step that reads no more records writes what is left.
func (s *Stepper) Gather(records int) { s.c.gathers = records }

// Step reads and applies a page of each shard, and does one step of jobs (runner.Jobs). It returns
// the number of records, and whether jobs, or documents that are pending, are left.
func (s *Stepper) Step(ctx context.Context) (n int, left bool, err error) {
	if n, left, err = s.c.step(ctx); err != nil {
		return n, false, err
	}
	if n == 0 || s.c.next.records >= s.c.gathers {
		left = left || s.c.holds() // a shard that has ended may have children now
		err = s.c.flushAll(ctx)
	}
	return n, left || s.c.catching.owed, err
}

// Page is records of a shard that were read a while ago.
type Page struct {
	Table   *model.Table
	Shard   string
	Records []events.Record
}

// Again applies pages that were read a while ago, like a process that another one has overtaken since. The
// checkpoints stay where they are.
func (s *Stepper) Again(ctx context.Context, read time.Time, pages []Page) error {
	c := s.c
	var pieces []piece
	for _, page := range pages {
		shards, err := c.source().Shards(ctx, page.Table.Name)
		if err != nil {
			return err
		}
		p := piece{place: place{page.Table.Name, page.Shard}, table: page.Table, read: read, page: store.Records{Records: page.Records}}
		p.above = above(shards, seq.Find(shards, func(is store.Shard) bool { return is.ID == page.Shard }).Parent)
		pieces = append(pieces, p)
	}
	view, indexed, err := c.admit(ctx, pieces)
	if err != nil {
		return err
	}
	if err = c.apply(ctx, pieces, view); err == nil && indexed {
		writing, cancel := context.WithTimeout(ctx, flushTime)
		defer cancel()
		_, _, err = document.Write(ctx, c.Runner, batchesOf(pieces), writing)
	}
	return err
}

// step reads and applies a page of each shard, and does one step of jobs.
func (c *consumer) step(ctx context.Context) (n int, left bool, err error) {
	if n, err = c.pass(ctx); err != nil {
		return n, false, err
	}
	if left, err = c.jobs.Step(ctx); err != nil {
		err = fmt.Errorf("long lists: %w", err)
	}
	if still := new(runner.StandingJobs); err != nil && !errors.As(err, &still) {
		return n, left, err
	}
	if c.Stopped != nil && err == nil && c.jobs.Midway() {
		return n, left, nil // in the middle of a round nothing is known
	}
	return n, left, c.stands("jobs", err)
}

// refusedBy reports the tables that refused a call, so that nothing of the shard can be applied.
func (c *consumer) refusedBy(err error) {
	for _, table := range store.FailedTables(err) {
		if c.Stopped != nil && !c.refused[table] {
			c.refused[table] = true
			c.Stopped(table, "", err.Error())
		}
	}
}

// takesAgain reports that no table refuses anything any more: a batch was applied.
func (c *consumer) takesAgain() {
	for table := range c.refused {
		c.Stopped(table, "", "")
	}
	clear(c.refused)
}

// stands reports why jobs, or documents, stand still, and, without an error, that they do no longer. Without Stopped it returns the error.
func (c *consumer) stands(what string, err error) error {
	if c.Stopped == nil {
		return err
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	if c.said[what] != why {
		c.said[what] = why
		c.Stopped(owntable.TableName, what, why)
	}
	return nil
}

// run follows the streams until Stop is closed, an error occurs or, with until, it
// has caught up with everything acknowledged before until was closed.
func (c *consumer) run(ctx context.Context, until <-chan struct{}) error {
	c.beside, c.catchingUp = true, until != nil
	defer c.written()
	lag, active := c.source().Tip().Lag, time.Now()
	arrived := arrival(c.source())
	patience := time.Second
	if lag > 0 {
		patience = min(patience, lag/3)
	}
	for !isClosed(c.Stop) {
		changed := c.changes()
		closed := isClosed(until)
		last := closed && arrived()
		begun := time.Now()
		n, left, err := c.step(ctx)
		if err == nil && (n == 0 || c.prompt()) { // a catch-up writes large flushes
			err = c.flushDue(ctx)
		}
		if err != nil {
			return err
		}
		if n < 2*pageRecords && until != nil && !last && !c.Prompt {
			if err := pause(ctx, until, fewWait); err != nil {
				return err
			}
		}
		if c.Window > 0 && n > 0 && n < pageRecords && !left && !last {
			// Nothing that was read is held meanwhile, so a process that dies here has lost no work.
			if err := idle(ctx, []<-chan struct{}{c.Stop}, until, c.Window-time.Since(begun)); err != nil {
				return err
			}
		}
		read := n > 0
		if read || left || !last {
			active = time.Now()
		}
		if read || left {
			continue
		}
		wake := until
		if wake == nil {
			wake = c.Stop
		}
		if last && time.Since(active) >= c.source().Tip().Lag {
			if !c.holds() {
				break
			}
			if err := c.flushAll(ctx); err != nil { // a shard that has ended may have children now
				return err
			}
			continue
		}
		if closed {
			wake = nil // it has no more use, and being closed it would always be ready
		}
		if c.flushing != nil {
			changed = append(changed, c.flushing.done)
		}
		if err := idle(ctx, changed, wake, min(patience, c.untilDue())); err != nil {
			return err
		}
	}
	if err := c.flushAll(ctx); err != nil || !c.catching.owed {
		return err
	}
	c.catching.at = time.Time{} // once more, now
	return c.flushAll(ctx)
}

// prompt reports whether a user waits for what is applied, more than for its end.
func (c *consumer) prompt() bool { return c.Prompt || !c.catchingUp }

// pause waits for a while, until the channel is closed, or until the context ends.
func pause(ctx context.Context, until <-chan struct{}, while time.Duration) error {
	wait(ctx, until, while)
	return ctx.Err()
}

// isClosed reports whether a channel that only ever closes is closed. A nil channel is not.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return c != nil
	default:
		return false
	}
}

// changes returns channels that are ready when one of the model's streams has grown. A
// source without such notices gives channels that are never ready; its streams are polled
// each second.
func (f *Follower) changes() []<-chan struct{} {
	var out []<-chan struct{}
	for _, t := range f.Runner.Model.AllTables() {
		if c, err := f.source().Changed(t.Name); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// arrival returns a function that reports whether the streams show everything that was
// acknowledged before its first call, apart from the source's lag.
func arrival(s store.Source) func() bool {
	given := sync.OnceValue(func() events.Position { return s.Tip().Given })
	return func() bool { return s.Tip().Seen.Compare(given()) >= 0 }
}

// idle waits until a stream may have changed, the channel is closed, or the context ends.
// It returns only the context's error. It may return early; the caller looks what has changed.
func idle(ctx context.Context, changed []<-chan struct{}, until <-chan struct{}, atMost time.Duration) error {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(timer.C)},
		// nil if the follower has no end; then never ready.
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(until)},
	}
	for _, c := range changed {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	reflect.Select(cases)
	return ctx.Err()
}

// piece is a page of a shard that was read and must be applied, or several that follow each other.
type piece struct {
	place
	table   *model.Table
	above   []string        // the listed shards that the piece's shard descends from
	from    events.Position // behind which the page was read
	page    store.Records
	read    time.Time
	counts  runner.Result // of what is applied
	pending int           // documents
	view    *runner.View  // by which it was applied
	trace   string        // of its batch, "" if none is kept
}

// last is where the checkpoint is behind the page.
func (p *piece) last() events.Position {
	return p.page.Records[len(p.page.Records)-1].Position
}

// key is the short key of the piece's shard.
func (p *piece) key() string { return owntable.ShardKey(p.place.table, p.shard) }

// pass reads a page of each shard and applies the pages. It reads a child shard only when
// its parent is finished. It returns the number of records. A checkpoint that cannot be
// read stops its shard and the shard's children; pass still applies what it read from the
// other shards before it reports the error (Follower.Stopped). Where the order of all shards
// is kept, all wait for it.
func (c *consumer) pass(ctx context.Context) (n int, err error) {
	var pieces []piece
	ordered := c.keepsOrder()
	c.pages.begin(ordered)
	known := map[place]bool{}
	unread := map[place]error{}
	tables, err := c.Runner.Tables(ctx)
	if err != nil {
		return 0, err
	}
	if err := c.resumeAll(ctx, tables); err != nil {
		return 0, err
	}
	for _, t := range tables {
		shards, err := c.source().Shards(ctx, t.Name)
		if err != nil {
			return 0, fmt.Errorf("stream of %s: %w", t.Name, err)
		}
		open, listed := map[string]bool{}, map[string]bool{}
		for _, s := range shards {
			at := place{t.Name, s.ID}
			known[at], known[place{t.Name, s.Parent}] = true, true
			waits, err := c.awaits(ctx, t.Name, s.Parent, listed)
			if err != nil {
				err = fmt.Errorf("parent of shard %s of %s: %w", s.ID, t.Name, err)
			}
			listed[s.ID] = true
			if err == nil && (waits || open[s.Parent]) {
				open[s.ID] = true
				continue
			}
			var p piece
			if err == nil {
				if p, err = c.read(ctx, t, at, 1); err != nil {
					err = fmt.Errorf("shard %s of %s: %w", s.ID, t.Name, err)
				}
			}
			if (errors.Is(err, owntable.ErrRow) || errors.Is(err, errShard)) && !ordered {
				open[s.ID], unread[at] = true, err
				continue
			}
			if err != nil {
				return 0, err
			}
			open[s.ID], p.above = !c.ended[at], above(shards, s.Parent)
			n += len(p.page.Records)
			if len(p.page.Records) > 0 || ordered {
				pieces = append(pieces, p)
			}
			if !ordered && (c.pages.full(4*pageRecords) || len(pieces) >= mostPieces) {
				if err := c.take(ctx, pieces); err != nil {
					return 0, err
				}
				clear(pieces)
				pieces = pieces[:0]
				c.pages.begin(ordered)
			}
		}
	}
	if ordered {
		if pieces, err = c.inOrder(ctx, pieces); err != nil {
			return 0, err
		}
	}
	if err := c.take(ctx, pieces); err != nil {
		return 0, err
	}
	c.forget(known)
	return n, c.standShards(unread)
}

// standShards reports which shards stand still, and which do so no longer.
// Without Stopped, one that stands still is an error. With it, each is reported once,
// and once more with "" when it goes on.
func (c *consumer) standShards(still map[place]error) error {
	if c.Stopped == nil {
		return errors.Join(slices.Collect(maps.Values(still))...)
	}
	for at, err := range still {
		if why := err.Error(); c.still[at] != why {
			c.still[at] = why
			c.Stopped(at.table, at.shard, why)
		}
	}
	for at := range c.still {
		if still[at] == nil {
			delete(c.still, at)
			c.Stopped(at.table, at.shard, "")
		}
	}
	return nil
}

// above returns a shard and those that it descends from. A shard without records has no
// fence, so those above it say what it would.
func above(shards []store.Shard, id string) (out []string) {
	for i := len(shards) - 1; i >= 0 && id != ""; i-- { // parents come before children
		if shards[i].ID == id {
			out, id = append(out, id), shards[i].Parent
		}
	}
	return out
}

// forget drops the state of shards that are no longer listed and whose children are not
// listed either. A stream creates new shards for as long as it exists, so the state would
// grow without end.
func (c *consumer) forget(known map[place]bool) {
	over := func(at place) bool { return !known[at] }
	maps.DeleteFunc(c.at, func(at place, _ events.Position) bool { return over(at) })
	maps.DeleteFunc(c.floors, func(at place, _ contribution.Fence) bool { return over(at) })
	maps.DeleteFunc(c.ended, func(at place, _ bool) bool { return over(at) })
	maps.DeleteFunc(c.seen, func(at place, _ owntable.CheckpointRow) bool { return over(at) })
	maps.DeleteFunc(c.held, func(at place, _ int64) bool { return over(at) })
	maps.DeleteFunc(c.looked, func(at place, _ time.Time) bool { return over(at) })
}

// read reads the next page of a shard, of at least so many records if there are more.
// A shard that another process has, or that ended, gives an empty piece and no error.
func (c *consumer) read(ctx context.Context, t *model.Table, at place, least int) (piece, error) {
	p := piece{place: at, table: t}
	if c.ended[at] {
		return p, nil
	}
	if ours, err := c.hold(ctx, at); !ours || err != nil {
		return p, err
	}
	before := c.unsaved(at)
	if before != nil && before.page.End {
		return p, nil
	}
	if _, known := c.at[at]; !known {
		if err := c.resume(ctx, at); err != nil {
			return p, err
		}
	}
	var err error
	p.read = c.Runner.Moment()
	p.from = c.at[at]
	if before != nil {
		p.from = before.last()
	}
	p.page, err = c.source().Read(ctx, at.table, at.shard, p.from, c.pages.records(least, pageRecords))
	c.pages.takes(p.page.Records)
	if errors.Is(err, errElsewhere) {
		delete(c.at, at)
		return p, nil // the next pass sees the change
	}
	if err != nil {
		return p, err
	}
	switch {
	case len(p.page.Records) > 0 || !p.page.End:
	case before != nil:
		before.page.End = true
	default:
		c.ended[at] = true
		err = c.finish(ctx, at)
	}
	return p, err
}

// mostPieces bounds how many pages are applied before their checkpoints move.
const mostPieces = 2000

// take applies pages to rows, and has their documents written and their checkpoints moved behind them.
// A page that is too old, or whose stream was switched, is dropped and read again; nothing of the pages
// is acknowledged.
func (c *consumer) take(ctx context.Context, pieces []piece) error {
	if len(pieces) == 0 {
		return nil
	}
	return c.traced(ctx, pieces, func(in context.Context) error {
		view, indexed, err := c.admit(in, pieces)
		if err != nil {
			return err
		}
		// Checkpoints move after a few shards: a ledger has a position of each shard whose checkpoint has not moved.
		atOnce := len(pieces)
		if !c.keepsOrder() {
			atOnce = shardsAtOnce
		}
		for some := range slices.Chunk(pieces, atOnce) {
			err := c.takeSome(in, some, view, indexed)
			if err == nil && c.next.full() {
				err = c.startFlush(ctx) // which lasts longer than the batch
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// takeSome is take for pages that are admitted.
func (c *consumer) takeSome(ctx context.Context, pieces []piece, view *admitted, indexed bool) error {
	err := c.apply(ctx, pieces, view)
	if errors.Is(err, runner.ErrOld) || errors.Is(err, runner.ErrSwitched) {
		for _, p := range pieces {
			delete(c.at, p.place)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("records of %s: %w", pieces[0].place.table, err)
	}
	for i := range pieces {
		pieces[i].trace = c.Runner.AppliedIn(ctx, pieces[i].counts)
		if c.Applied != nil {
			c.Applied(pieces[i].table, pieces[i].page.Records)
		}
	}
	c.takesAgain()
	return c.gather(ctx, pieces, indexed)
}

// apply applies pages to rows by a view, and notes the counts of each. Each page is a batch of its shard; where the
// order of changes of all shards matters, it is several.
func (c *consumer) apply(ctx context.Context, pieces []piece, view *admitted) error {
	batches := batchesOf(pieces)
	for i := range pieces {
		pieces[i].counts, pieces[i].view = runner.Result{}, view.of(pieces[i].place)
		batches[i].View = pieces[i].view
	}
	if c.keepsOrder() && len(pieces) > 1 {
		for _, run := range c.runs(batches) {
			b := batches[run.piece]
			b.Changes = b.Changes[run.from:run.to]
			n, err := c.rows.Rows(ctx, b)
			if err != nil {
				return err
			}
			pieces[run.piece].counts.Add(n)
		}
		return nil
	}
	return parallel.Do(len(batches), c.rows.AtOnce(shardsAtOnce), func(i int) (err error) {
		pieces[i].counts, err = c.rows.Rows(ctx, batches[i])
		return err
	})
}

// shardsAtOnce is how many shards are applied side by side. Nothing that one of them writes depends on another.
const shardsAtOnce = 8

// batchesOf returns a batch for each page.
func batchesOf(pieces []piece) []runner.Batch {
	batches := make([]runner.Batch, len(pieces))
	for i, p := range pieces {
		batches[i] = runner.Batch{ShardKey: p.key(), Read: p.read, Changes: p.changes(), DeadAt: p.counts.DeadAt}
	}
	return batches
}

// changes decodes the records of the page.
func (p *piece) changes() []projections.Change {
	out := make([]projections.Change, 0, len(p.page.Records))
	for i := range p.page.Records {
		if ch, ok := projections.NewChange(p.table, &p.page.Records[i]); ok {
			out = append(out, ch)
		}
	}
	return out
}

// move saves the checkpoints together with the counts of the records before them, if they
// are still where the pages were read from. So each record is counted once, however often
// it was applied. If another process has moved a checkpoint, the shard is read again from
// there. One that is at its new position already was moved by this write, whose first answer was lost, or by another
// process that applied the same records: they count once in either case.
func (c *consumer) move(ctx context.Context, pieces []piece) error {
	ws := make([]store.Write, len(pieces))
	for i, p := range pieces {
		ws[i] = under(p.view, c.seen[p.place].Move(c.checkpoint(p.place), p.from, p.last(), owntable.Counts(p.counts.Counts)))
		ws[i].Return = true
	}
	out, err := c.Runner.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i, p := range pieces {
		last := p.last()
		if out[i].Err != nil && !isAt(out[i].Row, last) {
			c.drop(p.place)
			continue
		}
		is := c.seen[p.place]
		is.At, is.To = last, last
		c.seen[p.place] = is
		c.at[p.place], c.ended[p.place], c.did = last, p.page.End, true
		if p.page.End {
			if err := c.finish(ctx, p.place); err != nil {
				return err
			}
		}
		if c.Report != nil {
			c.Report(p.reported())
		}
		if err := c.source().Trim(ctx, p.place.table, p.shard, last); err != nil {
			return err
		}
	}
	return nil
}

// isAt reports whether a checkpoint is at a position.
func isAt(row value.Item, p events.Position) bool {
	is, err := owntable.DecodeCheckpoint(row)
	return err == nil && is.At == p
}

// traced does work on pages as a batch.
func (c *consumer) traced(ctx context.Context, pieces []piece, work func(context.Context) error) error {
	if c.Runner.Tracer == nil {
		return work(ctx)
	}
	s := runner.Span{Name: runner.SpanBatch, Table: strings.Join(tablesOf(pieces), ",")}
	for i := range pieces {
		s.Items += len(pieces[i].page.Records)
	}
	return c.Runner.Traced(ctx, s, work)
}

// tablesOf returns the tables that pages were read from, each once.
func tablesOf(pieces []piece) (out []string) {
	seen := map[string]bool{}
	for i := range pieces {
		if t := pieces[i].place.table; !seen[t] && len(pieces[i].page.Records) > 0 {
			seen[t], out = true, append(out, t)
		}
	}
	return out
}
