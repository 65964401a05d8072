package copies

import (
	"context"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/follow"
	"weir/internal/runner"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Begin returns the kind's part of a batch.
func (Kind) Begin(m *model.Model, g *projections.Gathered) runner.Part { return newPart(m, g) }

// newPart returns a part that has folded nothing yet.
func newPart(m *model.Model, g *projections.Gathered) *part {
	return &part{gathered: gathered{all: g, follow: follow.NewGathered(m), at: map[string]int{}}}
}

// Letters returns the kind of a row that its table refused.
func (Kind) Letters() []deadletter.Kind { return []deadletter.Kind{deadletter.Row} }

// Retry makes the rows that one change asked for from their source as it is now: the changes after
// the change may be missing in the stream for good. Entries of a history are made from the change.
// Retry gives no followed value to other rows.
func (Kind) Retry(ctx context.Context, r *runner.Runner, d *deadletter.Letter) (kept bool, err error) {
	c, err := d.Change(r.Model)
	if err != nil {
		return false, err
	}
	b := runner.Batch{ShardKey: d.ShardKey, Changes: []projections.Change{c}}
	g := projections.NewGathered(1)
	p := newPart(r.Model, g)
	p.foldChange(0, &c)
	p.gathered.follow.Values = nil
	history, state := p.splitHistory()
	p.puts = history
	w := runner.NewWork(r, b, g)
	if err := p.Apply(ctx, w); err != nil {
		return false, err
	}
	if err := p.Mend(ctx, w); err != nil {
		return false, err
	}
	kept = w.IsKept(0)
	for i := range state {
		refused, err := r.RetryFix(ctx, d, &RowFix{Row: state[i].Row, Source: c.Row, Rule: state[i].Rule})
		if err != nil {
			return false, err
		}
		kept = kept || refused
	}
	return kept, nil
}

// splitHistory splits the rules into those of histories and those of copies. Deletions of copies are
// in neither.
func (p *part) splitHistory() (history, state []projections.Put) {
	for _, put := range p.puts {
		switch {
		case len(put.Rule.Keep) > 0:
			history = append(history, put)
		case put.Image != nil:
			state = append(state, put)
		}
	}
	return history, state
}

// part is the work of one batch for this kind.
// It lives as long as the batch, and belongs to one goroutine.
type part struct {
	runner.BasePart
	gathered
}

// Fold takes in the work of the i-th change.
func (p *part) Fold(i int, c *projections.Change) { p.foldChange(i, c) }

// Apply writes the batch's rows, and gives followed values to the rows that follow them.
func (p *part) Apply(ctx context.Context, w *runner.Work) error { return p.batchWork(w).writeRows(ctx) }

// Mend restores copies that another writer touched.
func (p *part) Mend(ctx context.Context, w *runner.Work) error { return p.batchWork(w).mendRows(ctx) }

// work is the state of one batch that is being applied.
type work struct {
	*follow.Work
	*gathered
}

// batchWork leaves out the rows and the values that settled records ask for, except history, which no build makes, and returns the state
// of the part that is applied: the stream may have nothing left of the changes after such a record, and the build may have corrected a
// value under a lower position. Mends compare rows with their sources as they are now.
func (p *part) batchWork(w *runner.Work) *work {
	p.puts = slices.DeleteFunc(p.puts, func(put projections.Put) bool { return len(put.Rule.Keep) == 0 && w.IsSettled(put.Position) })
	values := p.gathered.follow
	values.Values = slices.DeleteFunc(values.Values, func(v follow.Value) bool { return w.IsSettled(v.Position) })
	return &work{&follow.Work{Work: w, Gathered: values}, &p.gathered}
}

// correctionWork is the state of a correction, which belongs to no batch.
func correctionWork(r *runner.Runner) *work {
	return &work{&follow.Work{Work: runner.NewWork(r, runner.Batch{}, projections.NewGathered(0)), Gathered: follow.NewGathered(r.Model)}, &gathered{}}
}
