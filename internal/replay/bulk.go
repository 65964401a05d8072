// A replay in bulk writes recorded streams into an embedded store that nothing follows yet.
//
// The same code decides as in a replay into a followed store: the outcome of each record, and the values that the
// runner derives from each change. Both work on a
// store.Load instead of the store. So rows, marks, ledgers and shown values change in
// memory, in the same order and by the same conditions, and no change is written to a
// stream to be read back. A window of rows lands when it has become large: in one step, so
// that a kill leaves whole windows. Each row carries the mark of the newest record that
// was written into it, so the same command goes on after a kill, and skips windows that landed.
//
// Where nothing reads a derived value, the records of a window are sorted by their rows on disk,
// the changes of each row are reduced to one (Reduction), and the ledger of a target is
// written once. Such a window is as large as its files may be. Else it is as large as its memory.
//
// A change that a window cannot hold exactly ends the bulk (ErrLive): the window is given up, and
// the caller replays its records, and those that follow, into the store itself.

package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// ErrLive says that the records from Landed on must be replayed into the store itself.
var ErrLive = errors.New("the rest is replayed record by record")

// Bulk is one replay in windows. It belongs to one goroutine, and has the store to itself.
type Bulk struct {
	to     *Replay // as the caller made it; its Summary counts the records that have landed
	size   Size
	load   store.Load
	replay *Replay        // into the load
	run    *runner.Runner // over the load
	jobs   *runner.Jobs   // of it

	reduced *Reduction     // nil if each change is applied
	next    chan *Prepared // of the batch given last, nil for none
	odd     bool           // the window is written record by record

	shardKey string
	admitted map[string]bool // tables that the catalog knows as read

	deriving bool                 // the runner writes
	cascades bool                 // something may be derived from derived values
	changes  []projections.Change // that are not applied yet
	most     int                  // of records that are gathered
	burst    int                  // and of bytes that they may lead to, if they are like those before
	waiting  int                  // records from which nothing is derived yet
	before   int                  // how many bytes the window had before them, less those that landed since
	derived  int                  // how many records there were the last time
	grown    int                  // and by how many bytes each of them made the window grow
	said     []func()             // the caller's reports when the window lands
	saying   int                  // about how many bytes that takes
	entries  int                  // of the window
	landed   int
}

// Size is how large a window may become, about, in bytes.
type Size struct {
	Memory int
	Disk   int64 // of files beside the store that are gone when the window has landed
	Roomy  int64 // the same where that is more, as long as four times as much is free when the replay begins
	// Scratch says that the store is thrown away: dead letters stand in it as other rows do, and rows of an older form stay.
	Scratch bool
	// Each says that entries come one by one, to Step.
	Each bool
}

// windowOnDisk is how large a window may become on disk, where so many bytes are free: its records, the rows that they make, and its
// tables are there at a time.
func (s Size) windowOnDisk(free int64) int64 { return max(s.Disk, min(s.Roomy, free/4)) }

// atOnce is how many records the runner gathers into one write for each target, and atOnceOfLists where
// one of them may lead to many rows, none of which can land before the others.
const (
	atOnce        = 4096
	atOnceOfLists = 1024
)

// New returns a Bulk for a replay that has not begun, or the reason why there can be none.
// The runner must have been started. Close the Bulk when it has ended.
func New(ctx context.Context, r *Replay, size Size) (b *Bulk, why string, err error) {
	tables := seq.Map(r.Model.Tables, func(t *model.Table) string { return t.Name })
	b = &Bulk{to: r, size: size, cascades: derivesFromDerived(r.Model), admitted: map[string]bool{}}
	if b.most, b.burst = atOnce, size.Memory/2; leadsToLists(r.Model) { // which may suddenly lead to much more
		b.most, b.burst = atOnceOfLists, size.Memory/8
	}
	// A change is applied once, in the window of its row's mark, so ledgers keep no position.
	var forget func(value.Item) value.Item
	b.shardKey, forget = owntable.Unlogged()
	b.load, err = r.Store.Load(ctx, store.LoadOptions{Tables: tables, Refuse: b.refuseLetter, Silent: b.leadsToNothing, Drop: forget, Memory: size.Memory / 4})
	if err != nil || b.load == nil {
		return nil, "rows of the tables were written one by one", err
	}
	b.size.Disk = size.windowOnDisk(b.load.Free())
	if c := r.Runner.Catalog; c != nil {
		row, err := c.Row(ctx)
		if err != nil {
			return nil, "", err
		}
		if len(row.Builds) > 0 {
			return nil, "values are or were built from the rows", nil
		}
	}
	if len(r.Model.Migrations) > 0 && !size.Scratch {
		on, err := r.Runner.Mover.Started(ctx)
		if err != nil {
			return nil, "", err
		}
		for _, started := range on {
			if started {
				return nil, "a migration is on", nil
			}
		}
	}
	b.beginWindow()
	if isReducible(r.Model) && !size.Each {
		b.reduced = NewReduction(b.replay, b.load, size.Memory)
		b.reduced.Telling = func(on bool) { b.deriving = !on }
		if r.Runner.Index != nil {
			b.reduced.Odd = func(ref store.Ref) bool { return !isIndexable(ref) }
		}
	}
	return b, "", nil
}

// isReducible reports whether the changes of a row may be reduced to one: the model has nothing but
// tallies and search indexes, and nothing reads a value that is derived.
func isReducible(m *model.Model) bool {
	if derivesFromDerived(m) {
		return false
	}
	for _, e := range m.Entities {
		for i := range e.Where {
			if derived(e, e.Where[i].Field) {
				return false
			}
		}
		for _, k := range e.Table.Indexes {
			if derivedKey(e, k.Key.Partition.Name) || derivedKey(e, k.Key.Sort.Name) {
				return false
			}
		}
	}
	return true
}

// derivesFromDerived reports whether something is derived from derived values, or may be.
func derivesFromDerived(m *model.Model) bool {
	if len(m.Statuses)+len(m.Latest)+len(m.Groups)+len(m.Rows)+len(m.Follows) > 0 {
		return true
	}
	for _, t := range m.Tallies {
		if t.IsSet() {
			return true
		}
		for _, src := range t.Sources {
			if slices.ContainsFunc(src.Reads(), func(f *model.Field) bool { return derived(src.Entity, f) }) {
				return true
			}
		}
	}
	return false
}

func derived(e *model.Entity, f *model.Field) bool {
	return f != nil && slices.ContainsFunc(f.Attrs(), func(attr string) bool { return derivedKey(e, attr) })
}

func derivedKey(e *model.Entity, attr string) bool { return projections.IsDerived(e, attr) }

// beginWindow makes the runner that works on the load.
func (b *Bulk) beginWindow() {
	run := *b.to.Runner
	run.Store, run.Index, run.Alone, run.Mover = b.load, nil, true, unmoved{b.size.Scratch}
	b.run, b.jobs = &run, &runner.Jobs{Runner: &run}
	again := *b.to
	again.Store, again.Runner, again.Summary, again.InOrder = b.load, b.run, Summary{}, true
	again.Gap = func(g Gap) {
		if b.to.Gap != nil {
			g.Row = g.Row.Clone()
			b.tellWhenLanded(len(g.Reason)+len(g.Row.Key.Partition.Text())+len(g.Row.Key.Sort.Text()), func() { b.to.Gap(g) })
		}
	}
	again.Bad = func(e events.Entry, err error) { // of which only place and reason are kept
		if b.to.Bad != nil {
			at, why := events.Entry{Location: e.Location}, errors.New(strings.Clone(err.Error()))
			b.tellWhenLanded(len(why.Error()), func() { b.to.Bad(at, why) })
		}
	}
	b.replay = &again
}

// tellWhenLanded keeps the caller's report about the present record, with so many bytes of text, until the window has landed: a
// window that is given up says nothing, because its records come again.
func (b *Bulk) tellWhenLanded(size int, what func()) {
	b.said, b.saying = append(b.said, what), b.saying+size+sayingBytes
}

// sayingBytes is the size of the report of one record besides its text.
const sayingBytes = 256

// Close gives up the window that has not landed. After an error of the Bulk, too, nothing of it is left.
func (b *Bulk) Close() error {
	err := b.load.Close()
	if b.reduced != nil {
		err = errors.Join(err, b.reduced.Close())
	}
	return err
}

// unmoved is the Mover of a model none of whose migrations is on.
type unmoved struct{ scratch bool }

func (unmoved) Started(context.Context) (map[*model.Migration]bool, error) { return nil, nil }

// Follow moves nothing. A row of an older form ends the load (store.ErrLoading), and the replay
// goes on live.
func (u unmoved) Follow(_ context.Context, rows []projections.OldRow) ([]string, error) {
	if len(rows) > 0 && !u.scratch {
		return nil, store.ErrLoading
	}
	return nil, nil
}

// Reduces reports whether the changes of a row in a window are reduced to one.
func (b *Bulk) Reduces() bool { return b.reduced != nil }

// Landed is how many entries are in the store for good.
func (b *Bulk) Landed() int { return b.landed }

// Batch takes entries as replay.Replay.Batch does. After an error that wraps ErrLive the
// entries from Landed on are as if they had never come, and the Bulk has ended.
func (b *Bulk) Batch(ctx context.Context, entries []events.Entry, table string) error {
	if b.reduced == nil {
		for len(entries) > 0 {
			n := min(len(entries), b.recordsAhead()-b.waiting)
			b.entries, b.waiting = b.entries+n, b.waiting+n
			err := b.replay.Batch(ctx, entries[:n], table)
			if err == nil && b.waiting >= b.recordsAhead() {
				err = b.deriveAll(ctx)
			}
			if err := b.landIfFull(ctx, err); err != nil {
				return err
			}
			entries = entries[n:]
		}
		return nil
	}
	before := b.next
	b.next = make(chan *Prepared, 1)
	prepare := func(to chan *Prepared) { to <- b.reduced.Prepare(entries, table) }
	if b.to.Apart {
		prepare(b.next)
	} else {
		go prepare(b.next)
	}
	return b.landIfFull(ctx, b.reduceBatch(ctx, before))
}

// Step takes entries as Batch does, and derives their values before it returns. Row shows it.
func (b *Bulk) Step(ctx context.Context, entries []events.Entry, table string) error {
	b.entries += len(entries)
	return b.landIfFull(ctx, b.oneByOne(ctx, entries, table))
}

// Row returns a row as it is after all that was derived, nil if there is none.
func (b *Bulk) Row(ctx context.Context, ref store.Ref) (value.Item, error) {
	return store.GetRow(ctx, b.load, ref)
}

// landIfFull lands the window if it is full. err is the error of the batch.
func (b *Bulk) landIfFull(ctx context.Context, err error) error {
	switch {
	case err != nil:
		return asLiveError(err)
	case !b.isFull():
		return nil
	}
	return b.landWindow(ctx)
}

// isFull reports whether the window takes the memory that it may have, or its records the disk.
func (b *Bulk) isFull() bool {
	return b.load.Bytes()+b.saying >= b.size.Memory || b.reduced != nil && b.reduced.Len() >= b.size.Disk
}

// reduceBatch takes a batch that is being prepared, nil for none. A batch that is written record by
// record lands before the next one that is not, which is decided by the rows that the store has then.
func (b *Bulk) reduceBatch(ctx context.Context, next chan *Prepared) error {
	if next == nil {
		return nil
	}
	p := <-next
	if p.Odd != b.odd {
		if b.entries > 0 {
			if err := b.landWindow(ctx); err != nil {
				return err
			}
		}
		b.odd = p.Odd
	}
	b.entries += p.Len()
	if !p.Odd {
		return b.reduced.Add(ctx, p)
	}
	entries, table := p.Entries()
	return b.oneByOne(ctx, entries, table)
}

// recordsAhead is how many records may wait for the values that are derived from them: fewer where each of them leads to
// much, as that cannot land before all of it is done, and at most twice as many as the last time.
func (b *Bulk) recordsAhead() int {
	return max(fewest, min(b.most, 2*b.derived, b.burst/max(1, b.grown)))
}

// fewest is how many records are gathered however much each of them leads to.
const fewest = 16

// oneByOne has each record written into the load, and derives from its change.
func (b *Bulk) oneByOne(ctx context.Context, entries []events.Entry, table string) error {
	err := b.replay.Batch(ctx, entries, table)
	if err == nil {
		err = b.deriveRest(ctx)
	}
	return err
}

// deriveAll derives from the records that wait, and notes how much that was.
func (b *Bulk) deriveAll(ctx context.Context) error {
	err := b.deriveRest(ctx)
	if b.waiting > 0 {
		b.derived, b.grown = b.waiting, (b.load.Bytes()-b.before)/b.waiting
	}
	b.waiting, b.before = 0, b.load.Bytes()
	return err
}

// settleReduced writes the reduced rows into the load, and the values that are derived from them.
func (b *Bulk) settleReduced(ctx context.Context) error {
	if b.reduced == nil || b.odd {
		return nil
	}
	b.deriving = true
	defer func() { b.deriving = false }()
	return b.reduced.Settle(ctx, func(tables []string) error { return b.admitTables(ctx, tables) }, func(s Settled) error {
		defer b.load.Take() // of derived values, nothing is derived
		if len(s.Changes) == 0 && len(s.Sums) == 0 {
			return nil
		}
		if len(s.Changes) == 0 { // a batch of the runner has a change: this one asks for nothing
			s.Changes = []projections.Change{{Table: s.Sums[0].Entity.Table, New: value.Item{}}}
		}
		return b.run.ApplySums(ctx, runner.Batch{ShardKey: b.shardKey, Changes: s.Changes}, s.Sums)
	})
}

// asLiveError makes an error that is a window's own one that wraps ErrLive.
func asLiveError(err error) error {
	if errors.Is(err, store.ErrLoading) {
		return fmt.Errorf("%w: %w", ErrLive, err)
	}
	return err
}

// Land puts the window into the store. Call it after the last Batch, too.
func (b *Bulk) Land(ctx context.Context) error {
	next := b.next
	b.next = nil
	if err := b.reduceBatch(ctx, next); err != nil {
		return asLiveError(err)
	}
	return b.landWindow(ctx)
}

// landWindow derives the rest, settles the reduced rows, and makes the window part of the store.
// Then the window's records count in the caller's summary, and its messages are said. After an
// error before load.Land nothing of the window is in the store. A crash leaves the store as it was
// before load.Land, or with the whole window and its positions.
func (b *Bulk) landWindow(ctx context.Context) error {
	err := b.deriveAll(ctx)
	if err == nil {
		err = b.settleReduced(ctx)
	}
	if err != nil {
		return asLiveError(err)
	}
	return b.commitWindow(ctx)
}

// commitWindow makes the window part of the store, and counts and reports its records.
func (b *Bulk) commitWindow(ctx context.Context) error {
	b.before -= b.load.Bytes()
	if err := b.load.Land(ctx); err != nil {
		return err
	}
	n, sum := b.replay.Summary, &b.to.Summary
	sum.Applied, sum.Skipped, sum.Dead, sum.Gaps = sum.Applied+n.Applied, sum.Skipped+n.Skipped, sum.Dead+n.Dead, sum.Gaps+n.Gaps
	sum.Lacking += n.Lacking
	for _, say := range b.said {
		say()
	}
	if b.reduced != nil {
		if err := b.reduced.Close(); err != nil {
			return err
		}
	}
	b.landed += b.entries
	b.replay.Summary, b.said, b.saying, b.entries = Summary{}, nil, 0, 0
	return nil
}

// deriveRest applies changes, those that this leads to, and so on, until none is left. It does the work that long
// lists leave to jobs.
func (b *Bulk) deriveRest(ctx context.Context) error {
	jobs := b.cascades // a replay that was killed may have left some
	for {
		records := b.load.Take()
		for i := range records {
			if c, ok := projections.NewChange(b.to.Model.Table(records[i].Table), &records[i]); ok {
				if err := b.checkDocuments(&c); err != nil {
					return err
				}
				b.changes = append(b.changes, c)
			}
		}
		var err error
		switch {
		case len(b.changes) > 0:
			err = b.applyChanges(ctx)
			jobs = b.cascades
		case jobs:
			jobs, err = b.stepJobs(ctx)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// stepJobs does one step of jobs. Nothing else is left to derive then, so a window that is full lands first:
// the work of long lists may be more than any window. A crash between two steps leaves jobs in
// our own table, which any process goes on with.
func (b *Bulk) stepJobs(ctx context.Context) (left bool, err error) {
	if b.load.Bytes() >= b.size.Memory {
		if err := b.commitWindow(ctx); err != nil {
			return true, err
		}
	}
	b.deriving = true
	defer func() { b.deriving = false }()
	return b.jobs.RunStep(ctx)
}

// leadsToLists reports whether one change may lead to as many rows as a list has: of subscribers, of followers,
// of those whose status depends on others.
func leadsToLists(m *model.Model) bool {
	return len(m.Follows) > 0 || slices.ContainsFunc(m.Entities, func(e *model.Entity) bool { return len(e.Subscribes)+len(e.Others) > 0 })
}

// leadsToNothing reports whether a change leads to nothing: weir made it, and nothing reads it. Only whether a
// search index can hold its document would be asked.
func (b *Bulk) leadsToNothing(ref store.Ref, old, new value.Item) bool {
	if !b.deriving || b.to.Runner.Index != nil && !isIndexable(ref) {
		return false
	}
	t := b.to.Model.Table(ref.Table)
	return t != nil && leadsNowhere(t.Classify(new)) && leadsNowhere(t.Classify(old))
}

// leadsNowhere reports whether weir's own writes to rows of an entity lead to nothing: it makes them, and
// nothing is derived from them or shown on them. Writes of another program to them would be mended.
func leadsNowhere(e *model.Entity) bool {
	return e == nil || len(e.MadeBy) > 0 && e.Group == nil &&
		len(e.Values)+len(e.Sources)+len(e.Rules)+len(e.Follow)+len(e.Follows)+len(e.Statuses)+len(e.Stages)+len(e.Latest)+len(e.LatestOf) == 0 &&
		len(e.Others)+len(e.Subscribes)+len(e.Unique)+len(e.Migrations)+len(e.Replaces) == 0
}

// refuseLetter keeps derivations from leaving a dead letter: a change that would is left to the store's own
// stream, by whose positions letters are kept and retried.
func (b *Bulk) refuseLetter(ref store.Ref) error {
	if b.deriving && !b.size.Scratch && ref.Table == owntable.TableName && owntable.IsLetter(ref.Key.Partition.Text()) {
		return store.ErrLoading
	}
	return nil
}

// checkDocuments refuses a change that makes a document which no index can hold: the store's own
// stream leaves a dead letter about it.
func (b *Bulk) checkDocuments(c *projections.Change) error {
	if b.to.Runner.Index == nil || isIndexable(c.Row) {
		return nil // without folding the row: a document can be refused for its id
	}
	for _, k := range b.to.Runner.Kinds {
		for _, d := range k.Documents(b.to.Model, c) {
			if err := d.Check(); err != nil {
				return fmt.Errorf("%w: %w", store.ErrLoading, err)
			}
		}
	}
	return nil
}

// isIndexable reports whether a document about the row may be in an index.
func isIndexable(row store.Ref) bool {
	d := search.Document{ID: search.ID(row.Key)}
	return d.Check() == nil
}

// admitTables has the catalog know that the tables of changes are read, before anything of them
// lands: a derivation that is new later is built from the rows, which no stream tells.
func (b *Bulk) admitTables(ctx context.Context, of []string) error {
	var tables []string
	for _, t := range of {
		if !b.admitted[t] {
			b.admitted[t] = true
			tables = append(tables, t)
		}
	}
	if len(tables) == 0 {
		return nil
	}
	_, err := b.to.Runner.Admit(ctx, tables)
	return err
}

// applyChanges has the runner apply the changes.
func (b *Bulk) applyChanges(ctx context.Context) error {
	tables := make([]string, len(b.changes))
	for i := range b.changes {
		tables[i] = b.changes[i].Row.Table
	}
	if err := b.admitTables(ctx, tables); err != nil {
		return err
	}
	b.deriving = true
	defer func() { b.deriving = false }()
	_, err := b.run.ApplyRows(ctx, runner.Batch{ShardKey: b.shardKey, Changes: b.changes})
	if !b.cascades {
		b.load.Take() // of derived values, nothing is derived
	}
	clear(b.changes)
	b.changes = b.changes[:0]
	return err
}
