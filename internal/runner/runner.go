// Package runner is the engine: it has the projection kinds fold each
// batch (Kind), and writes each target once. It knows no kind, and no stream: package reader hands it
// batches, and records how far it has got. It, the kinds' apply files and the drivers are all that does I/O.
//
// A batch writes all its effects first and its position last. If a batch is interrupted
// at any point, the whole batch is applied again, and repeating any step is safe. The
// file of each kind of step explains why: here tallies.go (ledgers), moves.go
// (migrations) and park.go (changes that the store refused), and the apply files of each kind.
//
// The way of a batch, in the order to read it:
//
//   - admit.go, views.go: the batch is admitted by the model's catalog, which says which derivations are being
//     built and which are live.
//   - runner.go, kind.go, order.go: Fold asks each kind for its work on the changes (pure), and gathers it by
//     target; then each kind applies its part.
//   - tallies.go, distinct.go, summary.go, unshown.go: a target's ledger is written, on condition that
//     it did not count these records before, and then the values that the row shows of it.
//   - park.go: amounts that a ledger refuses are kept, and retried.
//   - letters.go: a change that could not be used is kept whole, as a dead letter (package deadletter).
//
// When all that is done, the caller has the documents written (package document), and saves its position.
//
// Beside the way of a batch:
//
//   - contribute.go, built.go: the needs of package build while ledgers are built.
//   - fix.go: the needs of a build of rows in place.
//   - text.go: how rows and values are named for people.
//   - jobs.go, held.go, moves.go: lists longer than a batch, rows of our table for a source row, migrations.
//   - prune.go, gone.go, claims.go: the removal of rows that nothing needs any more.
//
// A Runner may be used by several goroutines.
package runner

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"weir/internal/catalog"
	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Runner applies batches for one model. Its creator sets the fields once; they must not
// change while the Runner is in use.
type Runner struct {
	Kinds []Kind // in the order in which they apply a batch
	Model *model.Model
	Store store.Store
	Index search.Index // nil if the model has no search
	// Generation names the definitions of the indexes. A program is refused while those of another one are kept (document.IsIndexed).
	Generation string
	Named      *atomic.Bool // this program had the catalog name the generation; nil for none
	Now        func() time.Time
	LetterTTL  time.Duration // see deadletter.Box
	Mover      Mover         // moves old rows; nil if the model has no migrations
	// Catalog decides before each batch whether this program may apply it. nil admits
	// every batch: for programs that have a store to themselves, such as measurements.
	Catalog *catalog.Catalog
	// Reader is who reads the streams, "" for processes. See catalog.Batch.
	Reader catalog.Reader
	// Frontiers, if set, reads how far shards are done for good, given their short keys. A
	// reader sets it.
	Frontiers func(ctx context.Context, shardKeys []string) ([]Frontier, error)
	// Pruned remembers which ledgers were pruned; nil remembers nothing. It goes with Frontiers.
	Pruned *prunedLedgers
	// MostPositions is how many positions of shards a row may keep before redundant ones are
	// removed; 0 is 16.
	MostPositions int
	// Mono is a monotonic clock, for measuring ages; nil means time.Now.
	Mono func() time.Time
	// Tracer, if set, is told of each batch.
	Tracer Tracer
	// Alone makes the runner do nothing concurrently, so that the same answers of the
	// store lead to the same calls.
	Alone bool

	// catalog is the view of the model for a batch or an operator's command, nil if nothing is
	// pending: see views.go.
	catalog *owntable.CatalogRow
	// In the runner of a generation: when marks of nothing expire, the version before the
	// first of each ledger, which is above all that older generations reach, and whether
	// rows do not show the generation.
	markExpiry time.Duration
	base       int64
	hidden     bool
}

// AtOnce returns how many things the runner does concurrently of those that it may.
func (r *Runner) AtOnce(most int) int {
	if r.Alone {
		return 1
	}
	return most
}

// MonotonicNow returns the present time by the monotonic clock.
func (r *Runner) MonotonicNow() time.Time {
	if r.Mono != nil {
		return r.Mono()
	}
	return time.Now()
}

// Batch is a run of changes of one shard of one stream, in the order of
// their positions. At no time do two shards carry changes of the same row.
type Batch struct {
	ShardKey string // under which ledgers keep how far they have counted
	Changes  []projections.Change
	Read     time.Time // when it was read, by the runner's Mono; zero if its age does not matter
	// View is by which builds the batch is applied; nil if the batch was not admitted.
	View *View
	// Looked is the known state of its ledgers.
	Looked Looked
	// DeadAt has the changes that are dead letters already, when documents are written: see Result.
	DeadAt []events.Position
}

// Counts counts the outcome of records. Each record is in exactly one count: Applied if it
// changed something derived, Skipped if it asked for nothing, Dead if some of it could
// not be applied and is stored as a dead letter.
type Counts struct {
	Applied, Skipped, Dead int
}

// Add adds other counts to these.
func (c *Counts) Add(d Counts) {
	c.Applied += d.Applied
	c.Skipped += d.Skipped
	c.Dead += d.Dead
}

// Result is the outcome of records, in all and by derivation.
type Result struct {
	Counts
	// By has the records that asked something of a derivation, by its name: Applied, or Dead if that is kept as a
	// dead letter.
	By map[string]Counts
	// DeadAt has the positions of the records that are Dead.
	DeadAt []events.Position
}

// Count adds to the counts of a derivation.
func (r *Result) Count(derivation string, c Counts) {
	if r.By == nil {
		r.By = map[string]Counts{}
	}
	is := r.By[derivation]
	is.Add(c)
	r.By[derivation] = is
}

// Add adds another result to this one.
func (r *Result) Add(d Result) {
	r.Counts.Add(d.Counts)
	r.DeadAt = append(r.DeadAt, d.DeadAt...)
	for name, c := range d.By {
		r.Count(name, c)
	}
}

// applyParts applies a batch to everything derived except search, and hands the work of each part
// of it to done.
func (r *Runner) applyParts(ctx context.Context, b Batch, done func(*Work)) error {
	if len(r.Kinds) == 0 {
		return errNoKinds
	}
	b, err := r.withView(ctx, b)
	if err != nil {
		return err
	}
	for _, part := range r.splitPhases(b) {
		w, err := r.applyGathered(ctx, part)
		if err != nil {
			return err
		}
		done(w)
	}
	return nil
}

// ApplyRows applies a batch to everything derived except search. After an error, apply the
// same batch again: some of its effects may have been written.
func (r *Runner) ApplyRows(ctx context.Context, b Batch) (n Result, err error) {
	err = r.applyParts(ctx, b, func(w *Work) { w.addResults(func(int) *Result { return &n }) })
	if err != nil {
		return Result{}, err
	}
	return n, nil
}

// applyGathered applies changes that can be gathered into one write for each target.
// Record comes before Apply for all kinds, and Mend after it, so a kind may rely on rows that others
// have stored. After an error the batch is applied again as a whole.
func (r *Runner) applyGathered(ctx context.Context, b Batch) (*Work, error) {
	g, parts := Fold(r.Kinds, r.Model, b.Changes)
	w := NewWork(r, b, g)
	for _, step := range []func(Part) error{
		func(p Part) error { return p.Record(ctx, w) },
		func(p Part) error { return p.Apply(ctx, w) },
		func(p Part) error { return p.Mend(ctx, w) },
	} {
		for _, p := range parts {
			if err := step(p); err != nil {
				return nil, err
			}
		}
	}
	if err := w.expireRemoved(ctx); err != nil {
		return nil, err
	}
	if err := w.freeClaims(ctx); err != nil {
		return nil, err
	}
	if err := w.moveOldRows(ctx); err != nil {
		return nil, err
	}
	return w, w.keepFaults(ctx)
}

// Fold folds changes of one shard, which must be in stream order: it returns the work that they
// ask for, and each kind's part of it. It does no I/O.
func Fold(kinds []Kind, m *model.Model, changes []projections.Change) (*projections.Gathered, []Part) {
	g := projections.NewGathered(len(changes))
	parts := make([]Part, len(kinds))
	for i, k := range kinds {
		parts[i] = k.Begin(m, g)
	}
	for i := range changes {
		for _, p := range parts {
			p.Fold(i, &changes[i])
		}
		g.CheckRow(i, &changes[i])
	}
	return g, parts
}

// asksNothing reports whether changes, as they were folded, ask for nothing, as most of weir's own do that come back by the stream: to
// apply them does nothing. It is pure.
func (r *Runner) asksNothing(changes []projections.Change, g *projections.Gathered) bool {
	if slices.Contains(g.Touched, true) {
		return false
	}
	for i := range changes {
		c := &changes[i]
		if c.Is == nil || c.Is != c.Was || len(projections.OldRows(c)) > 0 || r.Index != nil && len(r.DocumentsOf(c)) > 0 {
			return false
		}
		for range lostValues(c) {
			return false
		}
	}
	return true
}

// DocumentsOf returns the documents of a change.
func (r *Runner) DocumentsOf(c *projections.Change) (docs []search.Document) {
	return seq.Flat(r.Kinds, func(k Kind) []search.Document { return k.Documents(r.Model, c) })
}

// countChange counts a change once.
func countChange(touched, kept bool) Counts {
	switch {
	case kept:
		return Counts{Dead: 1}
	case touched:
		return Counts{Applied: 1}
	}
	return Counts{Skipped: 1}
}

// Work is the state of one batch that is being applied. Kinds get it in Record, Apply and
// Mend, one after the other in one goroutine, and keep nothing of it. After an error it is
// thrown away: its knowledge may differ from the stored rows.
type Work struct {
	*Runner
	Batch
	*projections.Gathered
	kept []bool                   // whether some effect of each change was kept as a dead letter
	lost map[projections.Ask]bool // of which derivations

	// By shard: the epochs of ledgers that this batch has met, by partition key; the frontier of
	// its shard, as last read; and whether an epoch was met since (prune.go).
	epochs   map[string]value.Value
	frontier events.Position
	looked   bool
}

// NewWork returns the state of a batch that asks for g. An empty Batch with an empty g is
// right for a correction, which belongs to no batch.
func NewWork(r *Runner, b Batch, g *projections.Gathered) *Work {
	if b.View == nil {
		b.View = &View{} // of a store that has no catalog
	}
	return &Work{Runner: r.hidingPending(&b.View.CatalogRow), Batch: b, Gathered: g, kept: make([]bool, len(b.Changes))}
}

// IsKept reports whether something of the i-th change is kept as a dead letter.
func (w *Work) IsKept(i int) bool { return w.kept[i] }

// CountKept counts the i-th change as one of which a part is kept as a dead letter: its work for the derivations, or
// all that it asks if none is named.
func (w *Work) CountKept(i int, derivations ...string) {
	w.kept[i] = true
	if w.lost == nil {
		w.lost = map[projections.Ask]bool{}
	}
	if len(derivations) == 0 {
		derivations = []string{""}
	}
	for _, name := range derivations {
		w.lost[projections.Ask{Change: i, Derivation: name}] = true
	}
}

// addResults adds each change to the result that to returns for it.
// A change counts once, however many derivations ask for it; a change that a derivation lost counts as dead for it alone.
func (w *Work) addResults(to func(i int) *Result) {
	for i, touched := range w.Touched {
		r := to(i)
		r.Counts.Add(countChange(touched || w.Index != nil && len(w.DocumentsOf(&w.Changes[i])) > 0, w.kept[i]))
		if w.kept[i] {
			r.DeadAt = append(r.DeadAt, w.Changes[i].Position)
		}
	}
	// Most changes ask the same derivations in the same order, so the next one is guessed.
	type asked struct {
		of   *Result
		name string
	}
	var all []asked
	var counts []Counts
	at, next := map[asked]int{}, 0
	for _, a := range w.Asks {
		is := asked{to(a.Change), a.Derivation}
		if next == len(all) || all[next] != is {
			known := false
			if next, known = at[is]; !known {
				next = len(all)
				at[is], all, counts = next, append(all, is), append(counts, Counts{})
			}
		}
		if len(w.lost) > 0 && (w.lost[a] || w.lost[projections.Ask{Change: a.Change}]) {
			counts[next].Dead++
		} else {
			counts[next].Applied++
		}
		if next++; next == len(all) {
			next = 0
		}
	}
	for i, a := range all {
		a.of.Count(a.name, counts[i])
	}
}

// Write is store.WriteAgain in the runner's store: any other error than a failed condition or a refusal ends the batch.
func (r *Runner) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	return store.WriteAgain(ctx, r.Store, ws)
}

// Get reads rows with strong consistency. Without refs it returns nothing and does no
// read.
func (r *Runner) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	return r.Store.Get(ctx, refs)
}

// GetRow reads one row with strong consistency, nil if there is none.
func (r *Runner) GetRow(ctx context.Context, ref store.Ref) (value.Item, error) {
	return store.GetRow(ctx, r.Store, ref)
}

// TransactionOutcome turns the error of a transaction into an outcome: false without an error if
// a condition failed or another transaction was in the way.
func TransactionOutcome(err error) (bool, error) {
	if errors.Is(err, store.ErrCondition) || errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// ExistsCondition returns the condition that a row exists.
func (r *Runner) ExistsCondition(table string) []store.Test {
	t := r.Model.Table(table)
	return []store.Test{{Attr: t.Key.Partition.Name, Is: store.Exists}}
}

// Attr returns an attribute.
func Attr(name string, v value.Value) value.Attr { return value.Attr{Name: name, Value: v} }

// tombstoneLife is how long weir remembers the deletion of one of its rows, in case older
// changes arrive late: twice as long as a stream keeps its records.
const tombstoneLife = 48 * time.Hour

// OwnRowExpiry returns when a row of our own table expires that is of no use once every older
// change has arrived.
// In a generation that is not verified, a builder may still hold rows that it read before.
func (r *Runner) OwnRowExpiry() value.Value {
	return value.OfInt(r.Now().Add(max(tombstoneLife, r.markExpiry)).Unix())
}

// keepFaults keeps dead letters for records with images that a derivation cannot use.
func (w *Work) keepFaults(ctx context.Context) error {
	var ds []deadletter.Letter
	for i, f := range w.Faults {
		c := &w.Changes[w.FaultOf[i]]
		w.CountKept(w.FaultOf[i], f.Derivation)
		ds = append(ds, deadletter.Unusable(c, w.ShardKey, f.Derivation, f.Reason))
	}
	return w.Letters().KeepAll(ctx, ds)
}
