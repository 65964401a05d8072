// Package runner does what the projections ask for: it gathers a batch's effects
// by target, applies each target once, and says how far it got. With the drivers
// it is the only part that does I/O.
//
// All effects come first and the position last: a batch that was interrupted
// anywhere is applied again whole, and every step is safe to repeat. What makes it
// so is in each step's file: tallies.go (the book), steps.go (what is told, and
// looked at), rows.go (positions and tombstones), follows.go (memberships),
// documents.go (versions in the index), moves.go (migrations), park.go (what was
// refused).
package runner

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// Runner applies batches of one model. Its fields are set once, by who makes it.
type Runner struct {
	Model *model.Model
	Store store.Store
	Index search.Index // nil where the model has no search
	Now   func() time.Time
	Mover Mover // moves old rows; nil where the model has no migrations
	// Retired, when set, says that nothing will ever come from a lane again, other
	// than a batch that is older than batchLife.
	Retired func(ctx context.Context, lane string) (bool, error)
	// Mono is a clock that nobody sets, for ages; nil is time.Now.
	Mono func() time.Time
	// Alone says that nothing is done side by side, so that the same answers make the
	// same calls.
	Alone bool
}

// Moment is now, by the clock that nobody sets.
func (r *Runner) Moment() time.Time {
	if r.Mono != nil {
		return r.Mono()
	}
	return time.Now()
}

// Batch is a run of changes of one lane, in the order of its stream. A lane is one
// shard of one stream; two lanes never carry changes of one row at a time.
type Batch struct {
	Lane    string
	Changes []projections.Change
	Read    time.Time // when it was read, by the runner's Mono; zero where that is no matter
	// ByItem says that only the changes of one row are in order, and there are no
	// lanes: see marks.go. Lane is then the same for all batches of a stream.
	ByItem bool
}

// Counts says what became of records. Each is in exactly one: applied where it
// added to something, skipped where it asked for nothing, kept where some of it
// could not be applied and waits to be looked at.
type Counts struct {
	Applied, Skipped, Kept int
}

// Add sums counts.
func (c *Counts) Add(d Counts) {
	c.Applied += d.Applied
	c.Skipped += d.Skipped
	c.Kept += d.Kept
}

// Warn says what is kept, to who runs a follower of the model.
func (c *Counts) Warn(log *slog.Logger, model string) {
	if c.Kept > 0 {
		log.Warn("not everything could be derived; projector dead list shows it", "model", model, "changes kept", c.Kept)
	}
}

// allRows applies batches of several lanes to everything derived but search.
func (r *Runner) allRows(ctx context.Context, bs []Batch) ([]Counts, error) {
	counts := make([]Counts, len(bs))
	for _, part := range r.phases(bs) {
		n, err := r.gathered(ctx, part.Batch)
		if err != nil {
			return nil, err
		}
		counts[part.of].Add(n)
	}
	return counts, nil
}

// Rows applies a batch to everything derived but search. After an error the batch
// is to be applied again: some of it may have happened.
func (r *Runner) Rows(ctx context.Context, b Batch) (Counts, error) {
	counts, err := r.allRows(ctx, []Batch{b})
	if err != nil {
		return Counts{}, err
	}
	return counts[0], nil
}

// gathered applies changes of which each target is written once.
func (r *Runner) gathered(ctx context.Context, b Batch) (Counts, error) {
	g := projections.Gather(b.Changes)
	kept := make([]bool, len(b.Changes))
	w := work{Runner: r, Batch: b, Gathered: g, kept: kept}
	for _, step := range []func(context.Context) error{w.facts, w.tallies, w.sets, w.steps, w.rows, w.joins, w.tells, w.mends, w.moves, w.faults} {
		if err := step(ctx); err != nil {
			return Counts{}, err
		}
	}
	return count(g.Touched, kept), nil
}

// count counts each change once.
func count(touched, kept []bool) (n Counts) {
	for i := range touched {
		switch {
		case kept[i]:
			n.Kept++
		case touched[i]:
			n.Applied++
		default:
			n.Skipped++
		}
	}
	return n
}

// work is one batch being applied.
type work struct {
	*Runner
	Batch
	*projections.Gathered
	kept []bool // which changes had something parked
}

// write sends writes whose failing conditions are part of the plan. It returns the
// outcomes; any error but a condition's or a refusal's ends the batch.
func (r *Runner) write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if len(ws) == 0 {
		return nil, nil
	}
	out, err := r.Store.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if e := out[i].Err; e != nil && !errors.Is(e, store.ErrCondition) && !errors.Is(e, store.ErrRefused) {
			return nil, e
		}
	}
	return out, nil
}

// get reads rows strongly, nothing for no refs.
func (r *Runner) get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	return r.Store.Get(ctx, refs)
}

// present is the condition that a row is there.
func (r *Runner) present(table string) []store.Test {
	t := r.Model.Table(table)
	return []store.Test{{Attr: t.Key.Partition.Name, Is: store.Exists}}
}

func below(attr string, v value.Value) []store.Test {
	return []store.Test{{Attr: attr, Is: store.Absent}, {Attr: attr, Is: store.Lt, Value: v}}
}

func attr(name string, v value.Value) value.Attr { return value.Attr{Name: name, Value: v} }

func set(name string, v value.Value) store.Op {
	if v.IsMissing() {
		return store.Op{Kind: store.Remove, Attr: name}
	}
	return store.Op{Kind: store.Set, Attr: name, Value: v}
}

// tombstoneLife is how long the removal of a row of ours is remembered against
// changes that come late: twice what a stream keeps its records.
const tombstoneLife = 48 * time.Hour

func (r *Runner) expiry() value.Value {
	return value.OfInt(r.Now().Add(tombstoneLife).Unix())
}

// faults keeps the records whose images a derivation cannot use.
func (w *work) faults(ctx context.Context) error {
	var ds []Dead
	for i, f := range w.Faults {
		c := &w.Changes[w.FaultOf[i]]
		w.kept[w.FaultOf[i]] = true
		ds = append(ds, Dead{
			Kind: DeadImage, Target: f.Derivation, Reason: f.Reason,
			Lane: w.Lane, Position: c.Position, Record: recordJSON(c), Time: c.Time,
		})
	}
	return w.keep(ctx, ds)
}
