package document

import (
	"context"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/search"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Begin notes which rows the indexes cannot use. Their documents are written after the rows.
func (Kind) Begin(_ *model.Model, g *projections.Gathered) runner.Part { return &part{all: g} }

// part is the work of a batch for searches.
type part struct {
	runner.BasePart
	all *projections.Gathered
}

// Fold notes why indexes cannot use the i-th change.
func (p *part) Fold(i int, c *projections.Change) {
	f := imageFaults(c)
	p.all.AddFaults(i, f.NewFaults())
}

// Documents returns the documents of a change.
func (Kind) Documents(m *model.Model, c *projections.Change) []search.Document { return Fold(m, c) }

// Letters returns the kind of a document that the index refused.
func (Kind) Letters() []deadletter.Kind { return []deadletter.Kind{deadletter.Document} }

// Retry makes the documents that a change asked for from their row as it is now, at the change's position.
func (Kind) Retry(ctx context.Context, r *runner.Runner, d *deadletter.Letter) (kept bool, err error) {
	c, err := d.Change(r.Model)
	if err != nil {
		return false, err
	}
	var pending []owntable.PendingRow
	for _, s := range r.Model.Searches {
		if s.Of == c.Is || s.Of == c.Was {
			pending = append(pending, owntable.PendingRow{Index: IndexName(r.Model, s), ID: search.ID(c.Row.Key), Member: owntable.Member{Position: d.Position}})
		}
	}
	_, refused, err := WritePending(ctx, r, d.ShardKey, pending)
	return refused > 0, err
}
