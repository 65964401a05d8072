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
// after the effects of the records that it has read. After a crash it reads again from its checkpoints.
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
	// the next begins: a target that many of them count for is then written once. The values of rows
	// are that much older at the most. 0 is no wait. It has no effect on the applied records.
	Window time.Duration
	// Report, if set, is called with the applied records of each shard once its checkpoint has moved, so each record is
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
	// Failed, if set, decides on the step after a failure: the Follower goes on from its
	// checkpoints after a pause. If again is false,
	// or Failed is nil, the error ends the run. moved says that something was applied
	// since it began or failed before.
	Failed func(moved bool, err error) (pause time.Duration, again bool)
}

// Applied is the records of one shard that were applied in one batch.
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

// asApplied describes the applied records of a page.
func (p *shardPage) asApplied() Applied {
	a := Applied{Table: p.shardName.table, Result: p.counts, Records: len(p.page.Records), Pending: p.pending, Trace: p.trace}
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
func (f *Follower) Run(ctx context.Context) error { return f.runUntilFailure(ctx, nil) }

// CatchUp follows the streams until it has applied every write that was acknowledged
// before done was closed, and everything that these writes led to.
func (f *Follower) CatchUp(ctx context.Context, done <-chan struct{}) error {
	return f.runUntilFailure(ctx, done)
}

// runUntilFailure reads until it fails in a way that Failed does not take or, with done, until it has caught up. Nothing in memory is
// trusted after a failure, as its outcome may be unknown, except the reports of shards and
// jobs that stand still.
func (f *Follower) runUntilFailure(ctx context.Context, done <-chan struct{}) error {
	c := f.newConsumer()
	for {
		err := c.runUntil(budget.For(ctx, budget.Rows), done)
		if err == nil || ctx.Err() != nil || f.Failed == nil {
			return err
		}
		wait, again := f.Failed(c.did, err)
		if !again {
			return err
		}
		c.refusedBy(err)
		if isClosed(c.Stop) || pauseFor(ctx, c.Stop, wait) != nil {
			return nil
		}
		next := f.newConsumer()
		next.still, next.jobs, next.said, next.refused, next.down, next.catching.owed = c.still, c.jobs, c.said, c.refused, c.down, true
		c = next
	}
}

// consumer is a Follower's knowledge of all shards.
type consumer struct {
	*Follower
	rows       *runner.Runner // applies the rows
	jobs       *runner.Jobs
	did        bool // something was applied
	catchingUp bool // it ends when it has caught up

	behind
	pages   pages
	at      map[shardName]events.Position
	still   map[shardName]string // why shards stand still
	said    map[string]string    // why jobs, or documents, do
	refused map[string]bool      // the tables that refused a call since a batch was applied
	ended   map[shardName]bool
	seen    map[shardName]owntable.CheckpointRow // as they were last read or moved
	floors  map[shardName]contribution.Fence     // as they were last read or taken, not before at
	held    map[shardName]int64                  // the fence of the lease under which a shard is read
}

// newConsumer returns the reader of the shards. It knows no position yet; each comes
// from its checkpoint when the shard is first read.
func (f *Follower) newConsumer() *consumer {
	return &consumer{
		Follower: f, rows: f.Runner.ForStreams(), jobs: &runner.Jobs{Runner: f.Runner},
		at: map[shardName]events.Position{}, ended: map[shardName]bool{}, seen: map[shardName]owntable.CheckpointRow{}, still: map[shardName]string{}, said: map[string]string{}, floors: map[shardName]contribution.Fence{}, refused: map[string]bool{},
		held: map[shardName]int64{},
	}
}

// Stepper follows the streams under the caller's control. Discard it after an error: it
// may then remember more than was saved.
type Stepper struct{ c *consumer }

// NewStepper returns a Stepper that begins at the saved checkpoints.
func (f *Follower) NewStepper() *Stepper { return &Stepper{f.newConsumer()} }

// GatherRecords makes it apply this many records to rows, over several steps, before it writes their documents, as CatchUp does.
// The first step that reads no more records writes the rest.
func (s *Stepper) GatherRecords(records int) { s.c.gathers = records }

// Step reads and applies a page of each shard, and does one step of jobs (runner.Jobs). It returns
// the number of records, and whether jobs, or documents that are pending, are left.
func (s *Stepper) Step(ctx context.Context) (n int, left bool, err error) {
	if n, left, err = s.c.stepOnce(ctx); err != nil {
		return n, false, err
	}
	if n == 0 || s.c.next.records >= s.c.gathers {
		left = left || s.c.hasUnsaved() // a shard that has ended may have children now
		err = s.c.flushAll(ctx)
	}
	return n, left || s.c.catching.owed && !s.c.standsBy(), err
}

// Page is records of a shard that were read a while ago.
type Page struct {
	Table   *model.Table
	Shard   string
	Records []events.Record
}

// ApplyAgain applies pages that were read a while ago, like a process that another one has overtaken since. The
// checkpoints stay where they are.
func (s *Stepper) ApplyAgain(ctx context.Context, read time.Time, pages []Page) error {
	c := s.c
	var pieces []shardPage
	for _, page := range pages {
		shards, err := c.sourceOf().Shards(ctx, page.Table.Name)
		if err != nil {
			return err
		}
		p := shardPage{shardName: shardName{page.Table.Name, page.Shard}, table: page.Table, read: read, page: store.Records{Records: page.Records}}
		p.above = lineageOf(shards, seq.Find(shards, func(is store.Shard) bool { return is.ID == page.Shard }).Parent)
		pieces = append(pieces, p)
	}
	view, indexed, err := c.admitPages(ctx, pieces)
	if err != nil {
		return err
	}
	if err = c.applyPages(ctx, pieces, view); err == nil && indexed {
		writing, cancel := context.WithTimeout(ctx, flushTime)
		defer cancel()
		_, _, err = document.WriteDocuments(ctx, c.Runner, batchesOf(pieces), writing)
	}
	return err
}

// stepOnce reads and applies a page of each shard, and does one step of jobs.
func (c *consumer) stepOnce(ctx context.Context) (n int, left bool, err error) {
	if n, err = c.readPass(ctx); err != nil {
		return n, false, err
	}
	if left, err = c.jobs.RunStep(ctx); err != nil {
		err = fmt.Errorf("long lists: %w", err)
	}
	if still := new(runner.StandingJobs); err != nil && !errors.As(err, &still) {
		return n, left, err
	}
	if c.Stopped != nil && err == nil && c.jobs.IsMidway() {
		return n, left, nil // in the middle of a round nothing is known
	}
	return n, left, c.reportStanding("jobs", err)
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

// reportStanding reports why jobs, or documents, stand still, and, without an error, that they do no longer. Without Stopped it returns
// the error.
func (c *consumer) reportStanding(what string, err error) error {
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

// runUntil follows the streams until Stop is closed, an error occurs or, with until, it
// has caught up with everything acknowledged before until was closed.
func (c *consumer) runUntil(ctx context.Context, until <-chan struct{}) error {
	c.beside, c.catchingUp = true, until != nil
	defer c.awaitWritten()
	lag, active := c.sourceOf().Tip().Lag, time.Now()
	arrived := arrivalCheck(c.sourceOf())
	patience := time.Second
	if lag > 0 {
		patience = min(patience, lag/3)
	}
	for !isClosed(c.Stop) {
		changed := c.changeSignals()
		closed := isClosed(until)
		last := closed && arrived()
		begun := time.Now()
		n, left, err := c.stepOnce(ctx)
		if err == nil && (n == 0 || c.isPrompt()) { // a catch-up writes large flushes
			err = c.flushDue(ctx)
		}
		if err != nil {
			return err
		}
		if n < 2*pageRecords && until != nil && !last && !c.Prompt {
			if err := pauseFor(ctx, until, fewWait); err != nil {
				return err
			}
		}
		if c.Window > 0 && n > 0 && n < pageRecords && !left && !last {
			// Nothing that was read is held meanwhile, so a process that dies here has lost no work.
			if err := waitForChange(ctx, []<-chan struct{}{c.Stop}, until, c.Window-time.Since(begun)); err != nil {
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
		if last && time.Since(active) >= c.sourceOf().Tip().Lag {
			if !c.hasUnsaved() {
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
		if err := waitForChange(ctx, changed, wake, min(patience, c.untilDue())); err != nil {
			return err
		}
	}
	if err := c.flushAll(ctx); err != nil || !c.catching.owed {
		return err
	}
	c.catching.at = time.Time{} // once more, now
	return c.flushAll(ctx)
}

// isPrompt reports whether a user waits for applied records, more than for its end.
func (c *consumer) isPrompt() bool { return c.Prompt || !c.catchingUp }

// pauseFor waits for a while, until the channel is closed, or until the context ends.
func pauseFor(ctx context.Context, until <-chan struct{}, while time.Duration) error {
	waitForMore(ctx, until, while)
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

// changeSignals returns channels that are ready when one of the model's streams has grown. A
// source without such notices gives channels that are never ready; its streams are polled
// each second.
func (f *Follower) changeSignals() []<-chan struct{} {
	var out []<-chan struct{}
	for _, t := range f.Runner.Model.AllTables() {
		if c, err := f.sourceOf().Changed(t.Name); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// arrivalCheck returns a function that reports whether the streams show everything that was
// acknowledged before its first call, apart from the source's lag.
func arrivalCheck(s store.Source) func() bool {
	given := sync.OnceValue(func() events.Position { return s.Tip().Given })
	return func() bool { return s.Tip().Seen.Compare(given()) >= 0 }
}

// waitForChange waits until a stream may have changed, the channel is closed, or the context ends.
// It returns only the context's error. It may return early; the caller looks for the change.
func waitForChange(ctx context.Context, changed []<-chan struct{}, until <-chan struct{}, atMost time.Duration) error {
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

// shardPage is a page of a shard that was read and must be applied, or several that follow each other.
type shardPage struct {
	shardName
	table   *model.Table
	above   []string        // the listed shards that the page's shard descends from
	from    events.Position // behind which the page was read
	page    store.Records
	read    time.Time
	counts  runner.Result // of the applied records
	pending int           // documents
	view    *runner.View  // by which it was applied
	trace   string        // of its batch, "" if none is kept
}

// checkpointAfter is where the checkpoint is behind the page.
func (p *shardPage) checkpointAfter() events.Position {
	return p.page.Records[len(p.page.Records)-1].Position
}

// shortKey is the short key of the page's shard.
func (p *shardPage) shortKey() string { return owntable.ShardKey(p.shardName.table, p.shard) }

// readPass reads a page of each shard and applies the pages. It reads a child shard only when
// its parent is finished. It returns the number of records. A checkpoint that cannot be
// read stops its shard and the shard's children; pass still applies the records that it read from the
// other shards before it reports the error (Follower.Stopped). Where the order of all shards
// is kept, all wait for it.
func (c *consumer) readPass(ctx context.Context) (n int, err error) {
	var pieces []shardPage
	ordered := c.keepsOrder()
	c.pages.beginPass(ordered)
	known := map[shardName]bool{}
	unread := map[shardName]error{}
	tables, err := c.Runner.FollowedTables(ctx)
	if err != nil {
		return 0, err
	}
	if err := c.resumeAll(ctx, tables); err != nil {
		return 0, err
	}
	for _, t := range tables {
		shards, err := c.sourceOf().Shards(ctx, t.Name)
		if err != nil {
			return 0, fmt.Errorf("stream of %s: %w", t.Name, err)
		}
		open, listed := map[string]bool{}, map[string]bool{}
		for _, s := range shards {
			at := shardName{t.Name, s.ID}
			known[at], known[shardName{t.Name, s.Parent}] = true, true
			waits, err := c.awaitsParent(ctx, t.Name, s.Parent, listed)
			if err != nil {
				err = fmt.Errorf("parent of shard %s of %s: %w", s.ID, t.Name, err)
			}
			listed[s.ID] = true
			if err == nil && (waits || open[s.Parent]) {
				open[s.ID] = true
				continue
			}
			var p shardPage
			if err == nil {
				if p, err = c.readPage(ctx, t, at, 1); err != nil {
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
			open[s.ID], p.above = !c.ended[at], lineageOf(shards, s.Parent)
			n += len(p.page.Records)
			if len(p.page.Records) > 0 || ordered {
				pieces = append(pieces, p)
			}
			if !ordered && (c.pages.isFull(4*pageRecords) || len(pieces) >= mostPieces) {
				if err := c.takePages(ctx, pieces); err != nil {
					return 0, err
				}
				clear(pieces)
				pieces = pieces[:0]
				c.pages.beginPass(ordered)
			}
		}
	}
	if ordered {
		if pieces, err = c.inOrder(ctx, pieces); err != nil {
			return 0, err
		}
	}
	if err := c.takePages(ctx, pieces); err != nil {
		return 0, err
	}
	c.forgetShards(known)
	return n, c.standShards(unread)
}

// standShards reports which shards stand still, and which do so no longer.
// Without Stopped, one that stands still is an error. With it, each is reported once,
// and once more with "" when it goes on.
func (c *consumer) standShards(still map[shardName]error) error {
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

// lineageOf returns a shard and those that it descends from. A shard without records has no
// fence, so those above it say what it would.
func lineageOf(shards []store.Shard, id string) (out []string) {
	for i := len(shards) - 1; i >= 0 && id != ""; i-- { // parents come before children
		if shards[i].ID == id {
			out, id = append(out, id), shards[i].Parent
		}
	}
	return out
}

// forgetShards drops the state of shards that are no longer listed and whose children are not
// listed either. A stream creates new shards for as long as it exists, so the state would
// grow without end.
func (c *consumer) forgetShards(known map[shardName]bool) {
	over := func(at shardName) bool { return !known[at] }
	maps.DeleteFunc(c.at, func(at shardName, _ events.Position) bool { return over(at) })
	maps.DeleteFunc(c.floors, func(at shardName, _ contribution.Fence) bool { return over(at) })
	maps.DeleteFunc(c.ended, func(at shardName, _ bool) bool { return over(at) })
	maps.DeleteFunc(c.seen, func(at shardName, _ owntable.CheckpointRow) bool { return over(at) })
	maps.DeleteFunc(c.held, func(at shardName, _ int64) bool { return over(at) })
}

// readPage reads the next page of a shard, of at least so many records if there are more.
// A shard that another process has, or that ended, gives an empty page and no error.
func (c *consumer) readPage(ctx context.Context, t *model.Table, at shardName, least int) (shardPage, error) {
	p := shardPage{shardName: at, table: t}
	if c.ended[at] {
		return p, nil
	}
	if !c.isOurs(at) {
		return p, nil
	}
	before := c.unsavedPage(at)
	if before != nil && before.page.End {
		return p, nil
	}
	if _, known := c.at[at]; !known {
		if err := c.loadCheckpoints(ctx, at); err != nil {
			return p, err
		}
	}
	var err error
	p.read = c.Runner.MonotonicNow()
	p.from = c.at[at]
	if before != nil {
		p.from = before.checkpointAfter()
	}
	p.page, err = c.sourceOf().Read(ctx, at.table, at.shard, p.from, c.pages.pageLimit(least, pageRecords))
	c.pages.addRecords(p.page.Records)
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
		err = c.finishShard(ctx, at)
	}
	return p, err
}

// mostPieces bounds how many pages are applied before their checkpoints move.
const mostPieces = 2000

// takePages applies pages to rows, and has their documents written and their checkpoints moved behind them.
// A page that is too old, or whose stream was switched, is dropped and read again; nothing of the pages
// is acknowledged.
func (c *consumer) takePages(ctx context.Context, pieces []shardPage) error {
	if len(pieces) == 0 {
		return nil
	}
	return c.tracePages(ctx, pieces, func(in context.Context) error {
		view, indexed, err := c.admitPages(in, pieces)
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
			if err == nil && c.next.isFull() {
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
func (c *consumer) takeSome(ctx context.Context, pieces []shardPage, view *admitted, indexed bool) error {
	err := c.applyPages(ctx, pieces, view)
	if errors.Is(err, runner.ErrOld) || errors.Is(err, runner.ErrSwitched) {
		for _, p := range pieces {
			delete(c.at, p.shardName)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("records of %s: %w", pieces[0].shardName.table, err)
	}
	for i := range pieces {
		pieces[i].trace = c.Runner.AppliedIn(ctx, pieces[i].counts)
		if c.Applied != nil {
			c.Applied(pieces[i].table, pieces[i].page.Records)
		}
	}
	c.takesAgain()
	return c.gatherPages(ctx, pieces, indexed)
}

// applyPages applies pages to rows by a view, and notes the counts of each. Each page is a batch of its shard; where the
// order of changes of all shards matters, it is several.
func (c *consumer) applyPages(ctx context.Context, pieces []shardPage, view *admitted) error {
	batches := batchesOf(pieces)
	for i := range pieces {
		pieces[i].counts, pieces[i].view = runner.Result{}, view.viewOf(pieces[i].shardName)
		batches[i].View = pieces[i].view
	}
	if c.keepsOrder() && len(pieces) > 1 {
		for _, run := range c.splitRuns(batches) {
			b := batches[run.piece]
			b.Changes = b.Changes[run.from:run.to]
			n, err := c.rows.ApplyRows(ctx, b)
			if err != nil {
				return err
			}
			pieces[run.piece].counts.Add(n)
		}
		return nil
	}
	return parallel.Do(len(batches), c.rows.AtOnce(shardsAtOnce), func(i int) (err error) {
		pieces[i].counts, err = c.rows.ApplyRows(ctx, batches[i])
		return err
	})
}

// shardsAtOnce is how many shards are applied side by side. Nothing that one of them writes depends on another.
const shardsAtOnce = 8

// batchesOf returns a batch for each page.
func batchesOf(pieces []shardPage) []runner.Batch {
	batches := make([]runner.Batch, len(pieces))
	for i, p := range pieces {
		batches[i] = runner.Batch{ShardKey: p.shortKey(), Read: p.read, Changes: p.decodeChanges(), DeadAt: p.counts.DeadAt}
	}
	return batches
}

// decodeChanges decodes the records of the page.
func (p *shardPage) decodeChanges() []projections.Change {
	out := make([]projections.Change, 0, len(p.page.Records))
	for i := range p.page.Records {
		if ch, ok := projections.NewChange(p.table, &p.page.Records[i]); ok {
			out = append(out, ch)
		}
	}
	return out
}

// moveCheckpoints saves the checkpoints together with the counts of the records before them, if they
// are still where the pages were read from. So each record is counted once, however often
// it was applied. If another process has moved a checkpoint, the shard is read again from
// there. One that is at its new position already was moved by this write, whose first answer was lost, or by another
// process that applied the same records: they count once in either case.
func (c *consumer) moveCheckpoints(ctx context.Context, pieces []shardPage) error {
	ws := make([]store.Write, len(pieces))
	for i, p := range pieces {
		ws[i] = underView(p.view, c.seen[p.shardName].Move(c.checkpointRef(p.shardName), p.from, p.checkpointAfter(), owntable.Counts(p.counts.Counts)))
		ws[i].Return = true
	}
	out, err := c.Runner.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i, p := range pieces {
		last := p.checkpointAfter()
		if out[i].Err != nil && !isAt(out[i].Row, last) {
			c.dropShard(p.shardName)
			continue
		}
		is := c.seen[p.shardName]
		is.At, is.To = last, last
		c.seen[p.shardName] = is
		c.at[p.shardName], c.ended[p.shardName], c.did = last, p.page.End, true
		if p.page.End {
			if err := c.finishShard(ctx, p.shardName); err != nil {
				return err
			}
		}
		if c.Report != nil {
			c.Report(p.asApplied())
		}
		if err := c.sourceOf().Trim(ctx, p.shardName.table, p.shard, last); err != nil {
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

// tracePages does work on pages as a batch.
func (c *consumer) tracePages(ctx context.Context, pieces []shardPage, work func(context.Context) error) error {
	if c.Runner.Tracer == nil {
		return work(ctx)
	}
	s := runner.Span{Name: runner.SpanBatch, Table: strings.Join(tablesOf(pieces), ",")}
	for i := range pieces {
		s.Items += len(pieces[i].page.Records)
	}
	return c.Runner.RunTraced(ctx, s, work)
}

// tablesOf returns the tables that pages were read from, each once.
func tablesOf(pieces []shardPage) (out []string) {
	seen := map[string]bool{}
	for i := range pieces {
		if t := pieces[i].shardName.table; !seen[t] && len(pieces[i].page.Records) > 0 {
			seen[t], out = true, append(out, t)
		}
	}
	return out
}
