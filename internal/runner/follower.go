package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Follower reads the streams of a model's tables and has each batch applied. Two
// groups follow apart from each other, rows and search, so that a slow index holds
// up nothing else; each keeps its own place in every shard, in our table, written
// after the effects of what it read.
type Follower struct {
	Runner *Runner
	// Source is where streams are read; nil is the runner's store.
	Source store.Source
	// Stop, when closed, ends following behind the batch that is being applied.
	Stop <-chan struct{}
	// Prompt has changes of rows applied as soon as they are there. Without it, who
	// catches up lets more come when there are few, as search always does: what is
	// applied together costs less.
	Prompt bool
	// Report, when set, is called after each batch with what became of it.
	Report func(group string, n Counts)

	mu     sync.Mutex
	places map[place]events.Position // of each group in each shard, for trimming
}

type place struct{ group, table, shard string }

// The groups of consumers.
const (
	GroupRows   = "rows"
	GroupSearch = "search"
)

// pace is how a group follows.
type pace struct {
	records int           // of a shard that it reads at a time, at the most
	wait    time.Duration // for more to come, where there are few
}

// paces are those of the groups: of rows as many records as a page of DynamoDB Streams;
// of search more, because each batch is a segment of its own in an index, and segments
// have to be merged. Rows wait only where they are not Prompt.
var paces = map[string]pace{
	GroupRows:   {1000, 20 * time.Millisecond},
	GroupSearch: {2048, 100 * time.Millisecond},
}

// Run follows until the context ends or something fails. When idle it waits for
// the store to say that something changed.
func (f *Follower) Run(ctx context.Context) error { return f.run(ctx, nil) }

// CatchUp follows until everything that was acknowledged when done was closed is
// applied, and everything that came of that.
func (f *Follower) CatchUp(ctx context.Context, done <-chan struct{}) error { return f.run(ctx, done) }

func (f *Follower) run(ctx context.Context, done <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var consumers []*consumer
	for _, g := range f.Runner.Groups() {
		consumers = append(consumers, f.consumer(g))
	}
	errs := make(chan error, len(consumers))
	until := done
	for _, c := range consumers {
		go func(until <-chan struct{}) {
			err := c.run(ctx, until)
			close(c.done)
			if err != nil {
				cancel()
			}
			errs <- err
		}(until)
		if done != nil {
			until = c.done // the next group is finished when it has read what this one wrote
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

// consumer is one group's way through all shards.
type consumer struct {
	*Follower
	group string
	apply func(context.Context, []Batch) ([]Counts, error)
	jobs  bool
	done  chan struct{}
	pace  pace

	// gathers is how many documents it gathers before it applies them, where it catches
	// up with search and nobody waits for single ones; 0 for none.
	gathers int
	beside  bool // they are applied beside the gathering

	harvest harvest
	reaping *reaping
	at      map[place]events.Position
	ended   map[place]bool
	tenures
}

func (f *Follower) consumer(group string) *consumer {
	c := &consumer{
		Follower: f, group: group, apply: f.Runner.allRows, jobs: true, done: make(chan struct{}), pace: paces[group],
		at: map[place]events.Position{}, ended: map[place]bool{}, tenures: tenures{map[place]int64{}, map[place]time.Time{}},
	}
	if group == GroupSearch {
		c.apply, c.jobs = f.Runner.Documents, false
	}
	return c
}

// Stepper is one group's way through all shards for who decides himself when it
// goes on. After an error it knows too much: take a new one.
type Stepper struct{ c *consumer }

// Stepper begins where the group's places are saved.
func (f *Follower) Stepper(group string) *Stepper { return &Stepper{f.consumer(group)} }

// Gather has a group that follows search gather so many documents over many steps, as
// CatchUp does. What is left is applied by the first step that reads nothing more.
func (s *Stepper) Gather(documents int) {
	if s.c.group == GroupSearch {
		s.c.gathers = documents
	}
}

// Step reads a page of each shard and applies them, and does a step of each long
// list. It says how many records there were, and whether long lists are left.
func (s *Stepper) Step(ctx context.Context) (n int, left bool, err error) { return s.c.step(ctx, true) }

// step is one of the group's; over says that what it has gathered is to be applied if
// there is nothing more.
func (c *consumer) step(ctx context.Context, over bool) (n int, left bool, err error) {
	if n, err = c.pass(ctx); err == nil && n == 0 && over {
		n, err = c.reapAll(ctx)
	}
	if err != nil || !c.jobs {
		return n, false, err
	}
	if left, err = c.Runner.Jobs(ctx); err != nil {
		return n, left, fmt.Errorf("long lists: %w", err)
	}
	return n, left, nil
}

func (c *consumer) run(ctx context.Context, until <-chan struct{}) error {
	if c.group == GroupSearch && until != nil && !c.Prompt {
		// What it reads is put together later, so it stays as close behind as rows do,
		// where the stream is still in memory.
		c.gathers, c.beside, c.pace = harvestDocuments, true, paces[GroupRows]
		defer c.applied()
	}
	lag, active := c.source().Tip().Lag, time.Now()
	arrived := arrival(c.source())
	patience := time.Second
	if lag > 0 {
		patience = min(patience, lag/3)
	}
	came := time.Now() // when there was something last
	for !isClosed(c.Stop) {
		changed := c.changes()
		closed := isClosed(until)
		last := closed && arrived()
		n, left, err := c.step(ctx, last || time.Since(came) >= paces[c.group].wait)
		if err != nil {
			return err
		}
		if n < 2*c.pace.records && until != nil && !last && !(c.Prompt && c.group == GroupRows) {
			if err := pause(ctx, until, c.pace.wait); err != nil {
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
			return nil
		}
		if closed {
			wake = nil // it would wake for nothing
		}
		if err := idle(ctx, changed, wake, patience); err != nil {
			return err
		}
	}
	return nil
}

// pause waits a while, or until closes, or the context ends.
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

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return c != nil
	default:
		return false
	}
}

// changes are the source's notices that one of the model's streams has grown. Those of a
// source that gives none are never ready: its streams are looked at each second.
func (f *Follower) changes() []<-chan struct{} {
	var out []<-chan struct{}
	for _, t := range f.Runner.Model.AllTables() {
		if c, err := f.source().Changed(t.Name); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// arrival returns what reports whether everything that was acknowledged when it was
// first asked is in the streams, but for the source's lag.
func arrival(s store.Source) func() bool {
	given := sync.OnceValue(func() events.Position { return s.Tip().Given })
	return func() bool { return s.Tip().Seen.Compare(given()) >= 0 }
}

// idle waits until something may have changed, until closes, or the context ends.
func idle(ctx context.Context, changed []<-chan struct{}, until <-chan struct{}, atMost time.Duration) error {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(timer.C)},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(until)}, // nil, and so never, when following for good
	}
	for _, c := range changed {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	reflect.Select(cases)
	return ctx.Err()
}

// piece is what was read of a shard and is to be applied.
type piece struct {
	place
	table       *model.Table
	from, after events.Position // where the saved place was; behind what it was read
	page        store.Records
	read        time.Time
}

func (p *piece) last() events.Position { return p.page.Records[len(p.page.Records)-1].Position }

// pass reads a page of each shard and applies them. A child is read when its
// parent is finished. It answers with how many records there were. A checkpoint that
// cannot be read stops its shard, with the children; what is read of all others is
// applied before the error is returned, unless shards wait for each other.
func (c *consumer) pass(ctx context.Context) (n int, err error) {
	var pieces []piece
	together, ordered := 0, c.jobs && tellsEach(c.Runner.Model)
	known := map[place]bool{}
	var unread []error
	tables, err := c.Runner.Tables(ctx)
	if err != nil {
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
				if p, err = c.read(ctx, t, at); err != nil {
					err = fmt.Errorf("%s of %s, shard %s: %w", c.group, t.Name, s.ID, err)
				}
			}
			if errors.Is(err, book.ErrRow) && !ordered {
				open[s.ID], unread = true, append(unread, err)
				continue
			}
			if err != nil {
				return 0, err
			}
			open[s.ID] = !c.ended[at]
			n += len(p.page.Records)
			if c.gathers > 0 {
				if err := c.gather(ctx, p); err != nil {
					return 0, err
				}
				continue
			}
			if len(p.page.Records) > 0 || ordered {
				pieces = append(pieces, p)
				together += len(p.page.Records)
			}
			if !ordered && together >= 4*c.pace.records {
				if err := c.take(ctx, pieces); err != nil {
					return 0, err
				}
				pieces, together = pieces[:0], 0
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
	return n, errors.Join(unread...)
}

// forget drops what is known of shards that are listed no more, and whose children
// are not: there are new ones for ever.
func (c *consumer) forget(known map[place]bool) {
	over := func(at place) bool { return !known[at] }
	maps.DeleteFunc(c.at, func(at place, _ events.Position) bool { return over(at) })
	maps.DeleteFunc(c.ended, func(at place, _ bool) bool { return over(at) })
	maps.DeleteFunc(c.held, func(at place, _ int64) bool { return over(at) })
	maps.DeleteFunc(c.looked, func(at place, _ time.Time) bool { return over(at) })
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.places, func(at place, _ events.Position) bool { return at.group == c.group && over(at) })
}

// read reads the next page of a shard.
func (c *consumer) read(ctx context.Context, t *model.Table, at place) (piece, error) {
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
	p.page, err = c.source().Read(ctx, at.table, at.shard, p.after, c.pace.records)
	if errors.Is(err, ErrElsewhere) {
		return p, nil // the next pass sees it
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

// take applies what was read and moves the group's places behind it.
func (c *consumer) take(ctx context.Context, pieces []piece) error {
	if len(pieces) == 0 {
		return nil
	}
	batches := make([]Batch, len(pieces))
	for i, p := range pieces {
		b := Batch{Lane: Lane(p.place.table, p.shard), Read: p.read, Changes: make([]projections.Change, 0, len(p.page.Records))}
		for j := range p.page.Records {
			if ch, ok := projections.NewChange(p.table, &p.page.Records[j]); ok {
				b.Changes = append(b.Changes, ch)
			}
		}
		batches[i] = b
	}
	counts, err := c.apply(ctx, batches)
	if errors.Is(err, errOld) {
		for _, p := range pieces {
			delete(c.at, p.place)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", c.group, pieces[0].place.table, err)
	}
	return c.move(ctx, pieces, counts)
}

// Lane is the short name of a shard in books.
func Lane(table, shard string) string { return book.Hash(table + "|" + shard)[:12] }

func (c *consumer) resume(ctx context.Context, at place) error {
	is, _, err := c.Runner.saved(ctx, c.checkpoint(at))
	if err == nil {
		c.at[at] = is.At
	}
	return err
}

// move saves the places with the counts of what came before them, if they are
// still where the pages were read from: so each record is counted once, however
// often it was applied. Where somebody else has moved one, it is read again.
func (c *consumer) move(ctx context.Context, pieces []piece, counts []Counts) error {
	ws := make([]store.Write, len(pieces))
	for i, p := range pieces {
		ws[i] = book.MoveCheckpoint(c.checkpoint(p.place), c.held[p.place], p.from, p.last(), book.Counts(counts[i]))
	}
	out, err := c.Runner.write(ctx, ws)
	if err != nil {
		return err
	}
	for i, p := range pieces {
		if out[i].Err != nil {
			delete(c.at, p.place)
			continue
		}
		last := p.last()
		c.at[p.place], c.ended[p.place] = last, p.page.End
		if p.page.End {
			if err := c.finish(ctx, p.place); err != nil {
				return err
			}
		}
		if c.Report != nil {
			c.Report(c.group, counts[i])
		}
		if err := c.trim(ctx, p.place, last); err != nil {
			return err
		}
	}
	return nil
}

// unmoved is the test that a row of ours has come as far as it had; zero is nowhere.
func unmoved(from events.Position) store.Test {
	var v value.Value
	if !from.IsZero() {
		v = from.Value()
	}
	return store.AsRead(book.Position, v)
}

// trim gives up records that every group has passed.
func (f *Follower) trim(ctx context.Context, at place, p events.Position) error {
	f.mu.Lock()
	if f.places == nil {
		f.places = map[place]events.Position{}
	}
	f.places[at] = p
	groups := []string{GroupRows}
	if f.Runner.Index != nil {
		groups = append(groups, GroupSearch)
	}
	least := p
	for _, g := range groups {
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
