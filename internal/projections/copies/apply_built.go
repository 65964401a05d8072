package copies

import (
	"context"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
)

// WillMake returns the copies of some rules that a source row has when they are built, without the values that they
// follow. Their images are the rows as they are written. A copy that TTL may have deleted stays deleted.
func WillMake(ctx context.Context, r *runner.Runner, rules []*model.RowRule, c *projections.Change) (out []projections.Put, err error) {
	for _, p := range PutsOf(c) {
		if !slices.Contains(rules, p.Rule) {
			continue
		}
		if r.Model.Table(p.Row.Table).Expired(p.Image, r.MonotonicNow()) {
			if row, err := r.GetRow(ctx, p.Row); err != nil {
				return nil, err
			} else if row == nil {
				continue
			}
		}
		p.Position = runner.FixedAt(p.Position, events.Position{})
		wr := correctionWork(r).rowWrite(&p, nil, false)
		if p.Image, err = r.Model.Table(p.Row.Table).Apply(&wr, nil); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// IsReplacing reports whether a row is a copy that a build of some rules makes or deletes: weir wrote it, or its source row
// makes it.
func IsReplacing(ctx context.Context, r *runner.Runner, rules []*model.RowRule, c *projections.Change) (bool, error) {
	if c.Is == nil {
		return false, nil
	}
	for rule, source := range Makers(c.Is, c.New) {
		switch {
		case !slices.Contains(rules, rule):
			continue
		case !events.PositionFrom(c.New.Get(owntable.Version)).IsZero():
			return true, nil
		}
		is, err := r.GetRow(ctx, source)
		if err != nil {
			return false, err
		}
		if _, made := makesAt(rule, is, c.Row); made {
			return true, nil
		}
	}
	return false, nil
}
