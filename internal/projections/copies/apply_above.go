package copies

import (
	"context"
	"errors"

	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Positions of two streams say nothing about each other. A table that was restored, or filled from another one, has copies with
// positions of a stream that it never had; a rule may take its rows from another table than before; and a stream that was
// switched off and on may count from a lower number. Such a position may be above all that come, so the row would never
// change again. The row does not tell, but its source does: if the change that the row refused is the newest of its source,
// nothing newer has made the row.

// applyNewest does the writes of changes that rows refused because they carry positions above, if their sources say
// now. A batch that comes again finds rows that are as they are to be, or sources with newer changes, and writes nothing.
func (w *work) applyNewest(ctx context.Context, refused []*projections.Put) error {
	refs := make([]store.Ref, len(refused))
	for i, p := range refused {
		refs[i] = p.Source
	}
	sources, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i, p := range refused {
		now, made := makesAt(p.Rule, sources[i], p.Row)
		if made != (p.Image != nil) || made && !value.EqualItems(now.Image, p.Image) {
			continue // a newer change of the source decides
		}
		err := w.ApplyFix(ctx, &RowFix{Row: p.Row, Source: p.Source, Rule: p.Rule, Above: true}, w.DescribeRow(p.Row), nil)
		if errors.Is(err, store.ErrRefused) {
			err = w.parkRow(ctx, p, p.Position, err.Error())
		}
		if err != nil && !errors.Is(err, runner.ErrNotOurs) { // a row of another program stays
			return err
		}
	}
	return nil
}

// refusedPuts returns the rows of which a write was refused because of their position, except history, and rows that are as the
// write would make them.
func (w *work) refusedPuts(puts []*projections.Put, out []store.Outcome) (refused []*projections.Put) {
	for i, p := range puts {
		if errors.Is(out[i].Err, store.ErrCondition) && out[i].Row != nil && len(p.Rule.Keep) == 0 && !w.isMade(p, out[i].Row) {
			refused = append(refused, p)
		}
	}
	return refused
}

// isMade reports whether a row is as a change asks for it, apart from the values that it follows.
func (w *work) isMade(p *projections.Put, row value.Item) bool {
	if p.Image == nil {
		return false
	}
	wr := w.rowWrite(p, nil, false)
	return asMade(p, &wr, row) && len(removeLeftovers(p, &wr, row)) == 0
}
