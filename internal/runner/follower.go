package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/budget"
	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Follower reads the streams of a model's tables and has each batch applied. It runs one
// or two consumer groups: rows and, if there is an index, search. They are independent,
// so a slow index delays nothing else. Each group keeps its own checkpoint for every
// shard in our own table, and writes it after the effects of what it has read. After a
// crash the group reads again from its checkpoints.
type Follower struct {
	Runner *Runner
	// Source is the source of the streams; nil means the runner's store.
	Source store.Source
	// Stop, when closed, ends the run after the batch that is being applied.
	Stop <-chan struct{}
	// Prompt makes the rows group apply changes as soon as they arrive. Without it, a
	// group that has read only few records waits a moment for more, as search always
	// does, because one large batch costs less than many small ones.
	Prompt bool
	// Window is how long the rows group lets records gather, from when it began a batch of few to when
	// it begins the next: a target that many of them count for is then written once. What rows
	// show is that much older at the most. 0 is no wait. It has no effect on what is applied.
	Window time.Duration
	// Report, if set, is called with what was applied of each shard once its checkpoint has moved, so each record is
	// reported once. It must not block.
	Report func(a Applied)
	// Applied, if set, is called with the records of each batch of the rows group once they are
	// applied. It must not block, since the group waits for it, and must not change the records.
	Applied func(t *model.Table, records []events.Record)
	// Stopped, if set, is called with why a shard stands still, in words, and with "" when it
	// goes on. All other shards go on meanwhile. Without it, a shard that stands still ends
	// the run, after the other shards had their turn. Jobs that stand still are reported as
	// the shard "jobs" of our own table. A table that refused a call of a batch, which Failed has applied again, is
	// reported with the shard "", until a batch is applied: the whole group waits for it.
	Stopped func(group, table, shard, why string)
	// Only, if set, is the one group to run.
	Only string
	// Indexed, if set, is closed when the search indexes may be applied to. The group of
	// search waits for it.
	Indexed <-chan struct{}
	// Failed, if set, decides what a group does that has failed: it goes on from its
	// checkpoints after a pause, and the other group goes on meanwhile. If again is false,
	// or Failed is nil, the error ends the run. moved says that the group applied something
	// since it began or failed before.
	Failed func(group string, moved bool, err error) (pause time.Duration, again bool)

	mu     sync.Mutex
	places map[place]events.Position // the positions of each group in each shard, for trimming
}

// Applied is what a group has applied of one shard in one batch.
type Applied struct {
	Group, Table string
	Result
	Records        int
	Oldest, Newest time.Time // of the records, zero if they have none
	Trace          string    // the id of the batch's trace, "" if none is kept
}

// reported describes what a group has applied of a piece.
func (c *consumer) reported(p *piece, n Result) Applied {
	a := Applied{Group: c.group, Table: p.place.table, Result: n, Records: n.Applied + n.Skipped + n.Dead, Oldest: p.oldest}
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

// place names a shard and the group that reads it.
type place struct{ group, table, shard string }

// The consumer groups. The group of a search generation has a name that begins with
// GroupSearch: see Runner.Generation.
const (
	GroupRows   = owntable.GroupRows
	GroupSearch = "search"
)

// SearchGroup returns the name of the group that applies a search generation; "" stands for
// a runner without generations.
func SearchGroup(generation string) string {
	if generation == "" {
		return GroupSearch
	}
	return GroupSearch + "-" + generation
}

// KindOf returns GroupRows or GroupSearch, whichever kind of group this is.
func KindOf(group string) string {
	if strings.HasPrefix(group, GroupSearch) {
		return GroupSearch
	}
	return group
}

// pace says how much a group reads at a time.
type pace struct {
	records int           // the most records to read from a shard at a time
	wait    time.Duration // how long to wait for more records if there are few
}

// paces holds the pace of each group. Rows reads as many records as a page of DynamoDB
// Streams has. Search reads more, because each batch becomes a segment of its own in an
// index, and the index must merge segments later. Rows waits only if it is not Prompt.
var paces = map[string]pace{
	GroupRows:   {1000, 20 * time.Millisecond},
	GroupSearch: {2048, 100 * time.Millisecond},
}

// Run follows the streams until the context ends or an error occurs. When idle it waits
// for the store to report a change.
func (f *Follower) Run(ctx context.Context) error { return f.run(ctx, nil) }

// CatchUp follows the streams until it has applied every write that was acknowledged
// before done was closed, and everything that these writes led to.
func (f *Follower) CatchUp(ctx context.Context, done <-chan struct{}) error { return f.run(ctx, done) }

// run runs all groups until the first of them fails or, with done, until each has caught
// up.
func (f *Follower) run(ctx context.Context, done <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var consumers []*consumer
	groups := f.Runner.Groups()
	if f.Only != "" {
		groups = []string{f.Only}
	}
	for _, g := range groups {
		consumers = append(consumers, f.consumer(g))
	}
	errs := make(chan error, len(consumers))
	until := done
	for _, c := range consumers {
		go func(until <-chan struct{}) {
			var err error
			if c.awaitIndex(ctx, until) {
				err = f.persist(ctx, c, until)
			}
			close(c.done)
			if err != nil {
				cancel()
			}
			errs <- err
		}(until)
		if done != nil {
			until = c.done // the next group is finished when it has read what this group wrote
		}
	}
	var first error
	for range consumers {
		if err := <-errs; err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// persist advances a group, also after failures, as Failed says. Nothing in memory is
// trusted after a failure, as its outcome may be unknown, except what was said of shards and
// jobs that stand still.
func (f *Follower) persist(ctx context.Context, c *consumer, until <-chan struct{}) error {
	for {
		err := c.run(budget.For(ctx, budget.Purpose(KindOf(c.group))), until)
		if err == nil || ctx.Err() != nil || f.Failed == nil {
			return err
		}
		wait, again := f.Failed(c.group, c.did, err)
		if !again {
			return err
		}
		c.refusedBy(err)
		if isClosed(c.Stop) || pause(ctx, c.Stop, wait) != nil {
			return nil
		}
		next := f.consumer(c.group)
		next.done, next.still, next.jobs, next.noJob, next.refused = c.done, c.still, c.jobs, c.noJob, c.refused
		c = next
	}
}

// awaitIndex waits until the group may begin. It returns false if the Follower is to end
// before.
func (c *consumer) awaitIndex(ctx context.Context, until <-chan struct{}) bool {
	if c.Indexed == nil || KindOf(c.group) != GroupSearch {
		return true
	}
	select {
	case <-c.Indexed:
		return true
	case <-until:
	case <-c.Stop:
	case <-ctx.Done():
	}
	return isClosed(c.Indexed)
}

// consumer is the state of one group across all shards.
type consumer struct {
	*Follower
	group string
	rows  *Runner // applies the rows
	jobs  *Jobs   // nil if the group does none
	did   bool    // something was applied
	done  chan struct{}
	pace  pace

	// gathers is how many documents a consumer collects before it applies them. It is set
	// while the consumer catches up with search and no caller waits for single documents;
	// 0 means that it does not collect.
	gathers int
	beside  bool // apply one flush while collecting the next

	pages    pages
	next     flush // what it collects
	flushing *flushing
	at       map[place]events.Position
	still    map[place]string // why shards stand still
	noJob    string           // why a job does
	refused  map[string]bool  // the tables that refused a call since a batch was applied
	ended    map[place]bool
	seen     map[place]owntable.CheckpointRow // as they were last read or moved
	floors   map[place]contribution.Fence     // as they were last read or taken, not before at
	asides   map[place]*aside
	leases
}

// consumer returns what reads the shards for one group. It knows no position yet; each comes
// from its checkpoint when the shard is first read. Only the group of rows does jobs.
func (f *Follower) consumer(group string) *consumer {
	c := &consumer{
		Follower: f, group: group, done: make(chan struct{}), pace: paces[KindOf(group)],
		at: map[place]events.Position{}, ended: map[place]bool{}, seen: map[place]owntable.CheckpointRow{}, still: map[place]string{}, floors: map[place]contribution.Fence{}, asides: map[place]*aside{}, refused: map[string]bool{},
		leases: leases{map[place]int64{}, map[place]time.Time{}},
	}
	if KindOf(group) != GroupSearch {
		c.jobs = &Jobs{Runner: f.Runner}
		c.rows = f.Runner.Reads()
	}
	return c
}

// Stepper advances one group under the caller's control. Discard it after an error: it
// may then remember more than was saved.
type Stepper struct{ c *consumer }

// Stepper returns a Stepper that begins at the group's saved checkpoints.
func (f *Follower) Stepper(group string) *Stepper { return &Stepper{f.consumer(group)} }

// Gather makes a search group collect this many documents over several steps before it
// applies them, as CatchUp does. The first step that reads no more records applies what
// is left.
func (s *Stepper) Gather(documents int) {
	if KindOf(s.c.group) == GroupSearch {
		s.c.gathers = documents
	}
}

// Step reads and applies a page of each shard, and does one step of jobs (Jobs). It returns
// the number of records, and whether jobs are left.
func (s *Stepper) Step(ctx context.Context) (n int, left bool, err error) { return s.c.step(ctx, true) }

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
		p := piece{place: place{c.group, page.Table.Name, page.Shard}, table: page.Table, read: read, page: store.Records{Records: page.Records}}
		for _, is := range shards {
			if is.ID == page.Shard {
				p.above = above(shards, is.Parent)
			}
		}
		pieces = append(pieces, p)
	}
	view, err := c.admit(ctx, pieces)
	if err != nil {
		return err
	}
	_, err = c.apply(ctx, pieces, view)
	return err
}

// step does one step of the group. If over is set and there are no more records, it
// applies what the group has collected.
func (c *consumer) step(ctx context.Context, over bool) (n int, left bool, err error) {
	if n, err = c.pass(ctx); err == nil && n == 0 && over {
		n, err = c.flushAll(ctx)
	}
	if err != nil || c.jobs == nil {
		return n, false, err
	}
	if left, err = c.jobs.Step(ctx); err != nil {
		err = fmt.Errorf("long lists: %w", err)
	}
	return n, left, c.standsJob(err)
}

// refusedBy reports the tables that refused a call, so that the group can apply nothing.
func (c *consumer) refusedBy(err error) {
	for _, table := range store.FailedTables(err) {
		if c.Stopped != nil && !c.refused[table] {
			c.refused[table] = true
			c.Stopped(c.group, table, "", err.Error())
		}
	}
}

// takesAgain reports that no table refuses anything any more: a batch was applied.
func (c *consumer) takesAgain() {
	for table := range c.refused {
		c.Stopped(c.group, table, "", "")
	}
	clear(c.refused)
}

// standsJob reports jobs that stand still (StandingJobs), and that there is none any more.
// It returns every other error. In the middle of a round nothing is known.
func (c *consumer) standsJob(err error) error {
	if still := new(StandingJobs); c.Stopped == nil || err != nil && !errors.As(err, &still) {
		return err
	}
	if c.jobs.after != nil {
		return nil
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	if c.noJob != why {
		c.noJob = why
		c.Stopped(c.group, owntable.TableName, "jobs", why)
	}
	return nil
}

// run advances the group until Stop is closed, an error occurs or, with until, the group
// has caught up with everything acknowledged before until was closed.
func (c *consumer) run(ctx context.Context, until <-chan struct{}) error {
	if KindOf(c.group) == GroupSearch && until != nil && !c.Prompt {
		// A flush is applied as a whole later, so reading in small pages costs nothing,
		// and the consumer stays as close to the end of the stream as rows does, where
		// the records are still in memory.
		c.gathers, c.beside, c.pace = flushDocuments, true, paces[GroupRows]
		defer c.applied()
	}
	lag, active := c.source().Tip().Lag, time.Now()
	arrived := arrival(c.source())
	patience := time.Second
	if lag > 0 {
		patience = min(patience, lag/3)
	}
	came := time.Now() // the last time that there were records
	for !isClosed(c.Stop) {
		changed := c.changes()
		closed := isClosed(until)
		last := closed && arrived()
		begun := time.Now()
		n, left, err := c.step(ctx, last || time.Since(came) >= paces[KindOf(c.group)].wait)
		if err != nil {
			return err
		}
		if n < 2*c.pace.records && until != nil && !last && !(c.Prompt && c.group == GroupRows) {
			if err := pause(ctx, until, c.pace.wait); err != nil {
				return err
			}
		}
		if c.Window > 0 && n > 0 && n < c.pace.records && !left && !last && KindOf(c.group) == GroupRows {
			// Nothing that was read is held meanwhile, so a process that dies here has lost no work.
			if err := idle(ctx, []<-chan struct{}{c.Stop}, until, c.Window-time.Since(begun)); err != nil {
				return err
			}
		}
		read := n > 0
		if read {
			came = time.Now()
		}
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
		if last && time.Since(active) >= lag {
			break
		}
		if closed {
			wake = nil // it has no more use, and being closed it would always be ready
		}
		if err := idle(ctx, changed, wake, patience); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for a while, until the channel is closed, or until the context ends.
func pause(ctx context.Context, until <-chan struct{}, while time.Duration) error {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-until:
	case <-ctx.Done():
	}
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
		// nil if the group follows without end; then never ready.
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(until)},
	}
	for _, c := range changed {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	reflect.Select(cases)
	return ctx.Err()
}

// piece is a page of a shard that was read and must be applied.
type piece struct {
	place
	table       *model.Table
	above       []string        // the listed shards that the piece's shard descends from
	from, after events.Position // the saved checkpoint; the position behind which the page was read
	page        store.Records
	read        time.Time
	oldest      time.Time // the time of the first record of a flush
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
			at := place{c.group, t.Name, s.ID}
			known[at], known[place{c.group, t.Name, s.Parent}] = true, true
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
					err = fmt.Errorf("%s of %s, shard %s: %w", c.group, t.Name, s.ID, err)
				}
			}
			if (errors.Is(err, owntable.ErrRow) || errors.Is(err, ErrShard)) && !ordered {
				open[s.ID], unread[at] = true, err
				continue
			}
			if err != nil {
				return 0, err
			}
			open[s.ID], p.above = !c.ended[at], above(shards, s.Parent)
			n += len(p.page.Records)
			if c.gathers > 0 {
				if err := c.gather(ctx, p); err != nil {
					return 0, err
				}
				continue
			}
			if len(p.page.Records) > 0 || ordered {
				pieces = append(pieces, p)
			}
			if !ordered && (c.pages.full(4*c.pace.records) || len(pieces) >= mostPieces) {
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
	return n, c.stands(unread)
}

// stands reports which shards stand still, and which do so no longer.
// Without Stopped, one that stands still is an error of the group. With it, each is reported once,
// and once more with "" when it goes on.
func (c *consumer) stands(still map[place]error) error {
	if c.Stopped == nil {
		var errs []error
		for _, err := range still {
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
	for at, err := range still {
		if why := err.Error(); c.still[at] != why {
			c.still[at] = why
			c.Stopped(at.group, at.table, at.shard, why)
		}
	}
	for at := range c.still {
		if still[at] == nil {
			delete(c.still, at)
			c.Stopped(at.group, at.table, at.shard, "")
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
	maps.DeleteFunc(c.asides, func(at place, _ *aside) bool { return over(at) })
	maps.DeleteFunc(c.held, func(at place, _ int64) bool { return over(at) })
	maps.DeleteFunc(c.looked, func(at place, _ time.Time) bool { return over(at) })
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.places, func(at place, _ events.Position) bool { return at.group == c.group && over(at) })
}

// read reads the next page of a shard, of at least so many records if there are more.
// A shard that another process has, or that ended, gives an empty piece and no error.
func (c *consumer) read(ctx context.Context, t *model.Table, at place, least int) (piece, error) {
	p := piece{place: at, table: t}
	before := c.unsaved(at)
	if c.ended[at] || before != nil && before.page.End {
		return p, nil
	}
	if ours, err := c.hold(ctx, at); !ours || err != nil {
		return p, err
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
	p.after = p.from
	if a := c.asides[at]; a.reads() {
		p.page, err = c.readAside(ctx, a, at, p.after)
	} else {
		p.page, err = c.source().Read(ctx, at.table, at.shard, p.after, c.pages.records(least, c.pace.records))
		c.pages.takes(p.page.Records)
	}
	if errors.Is(err, ErrElsewhere) {
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

// take applies pages and then moves the group's checkpoints behind them.
// A page that is too old, or whose stream was switched, is dropped and read again; nothing of the pages
// is acknowledged.
func (c *consumer) take(ctx context.Context, pieces []piece) error {
	if len(pieces) == 0 {
		return nil
	}
	return c.traced(ctx, pieces, func(ctx context.Context) error {
		view, err := c.admit(ctx, pieces)
		if err != nil {
			return err
		}
		// Checkpoints move after a few shards: a ledger has a position of each shard whose checkpoint has not moved.
		atOnce := len(pieces)
		if c.group == GroupRows && !c.keepsOrder() {
			atOnce = shardsAtOnce
		}
		for some := range slices.Chunk(pieces, atOnce) {
			if err := c.takeSome(ctx, some, view); err != nil {
				return err
			}
		}
		return nil
	})
}

// takeSome is take for pages that are admitted.
func (c *consumer) takeSome(ctx context.Context, pieces []piece, view *View) error {
	counts, err := c.apply(ctx, pieces, view)
	if errors.Is(err, errOld) || errors.Is(err, ErrSwitched) {
		for _, p := range pieces {
			delete(c.at, p.place)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", c.group, pieces[0].place.table, err)
	}
	c.takesAgain()
	return c.move(ctx, pieces, counts, view)
}

// apply applies pages by a view, and returns the counts of each. Each page of rows is a batch of its shard; where the
// order of changes of all shards matters, it is several.
func (c *consumer) apply(ctx context.Context, pieces []piece, view *View) ([]Result, error) {
	if c.group != GroupRows {
		return c.Runner.Documents(ctx, batchesOf(pieces))
	}
	counts := make([]Result, len(pieces))
	batches := batchesOf(pieces)
	if c.keepsOrder() && len(pieces) > 1 {
		for _, run := range c.runs(batches) {
			b := batches[run.piece]
			b.View, b.Changes = view.of(pieces[run.piece].place), b.Changes[run.from:run.to]
			n, err := c.rows.Rows(ctx, b)
			if err != nil {
				return nil, err
			}
			counts[run.piece].Add(n)
		}
		return counts, nil
	}
	err := parallel.Do(len(batches), c.rows.AtOnce(shardsAtOnce), func(i int) (err error) {
		batches[i].View = view.of(pieces[i].place)
		counts[i], err = c.rows.Rows(ctx, batches[i])
		return err
	})
	return counts, err
}

// shardsAtOnce is how many shards are applied side by side. Nothing that one of them writes depends on another.
const shardsAtOnce = 8

// batchesOf returns a batch for each page.
func batchesOf(pieces []piece) []Batch {
	batches := make([]Batch, len(pieces))
	for i, p := range pieces {
		batches[i] = Batch{ShardKey: p.key(), Read: p.read, Changes: p.changes()}
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
func (c *consumer) move(ctx context.Context, pieces []piece, counts []Result, view *View) error {
	ws := make([]store.Write, len(pieces))
	for i, p := range pieces {
		ws[i] = under(view, c.seen[p.place].Move(c.checkpoint(p.place), p.from, p.last(), owntable.Counts(counts[i].Counts)))
		ws[i].Return = true
	}
	out, err := c.Runner.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i, p := range pieces {
		last := p.last()
		if out[i].Err != nil && !isAt(out[i].Row, last) {
			delete(c.at, p.place)
			delete(c.asides, p.place)
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
		trace := c.Runner.AppliedIn(ctx, counts[i])
		if c.Report != nil {
			is := c.reported(&p, counts[i])
			is.Trace = trace
			c.Report(is)
		}
		if c.Applied != nil && c.group == GroupRows {
			c.Applied(p.table, p.page.Records)
		}
		if err := c.trim(ctx, p.place, last); err != nil {
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

// trim lets the source drop records that every group has passed.
// A group that has said nothing of a shard yet stands at its beginning, so nothing is dropped.
func (f *Follower) trim(ctx context.Context, at place, p events.Position) error {
	f.mu.Lock()
	if f.places == nil {
		f.places = map[place]events.Position{}
	}
	f.places[at] = p
	least := p
	for _, g := range f.Runner.Groups() {
		q := f.places[place{g, at.table, at.shard}]
		if q.Compare(least) < 0 {
			least = q
		}
	}
	f.mu.Unlock()
	if least.IsZero() {
		return nil
	}
	return f.source().Trim(ctx, at.table, at.shard, least)
}
