package build

import (
	"context"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// A dry run builds nothing, so a build that comes behind that of copies would read the copies as they are
// now. What is here gives it the copies as they will be: each source row tells those that are made from it.

// asBuilt is what a pass of a dry run takes for the rows of some rules.
type asBuilt struct {
	rules  []*model.RowRule // whose copies it reads
	plain  *runner.Runner   // reads what a build does not, uncounted
	makers []*store.Table   // with source rows of the rules, where the pass reads none of the table
}

// asBuilt returns what a pass takes in place of copies, nil if it reads none. Copies of copies are not known:
// what reads these is counted by the rows as they are now.
func (p *pass) asBuilt(plain *runner.Runner) *asBuilt {
	a := &asBuilt{plain: plain}
	for _, rule := range plain.Model.Rows {
		if !reads(p.build.Entity, rule.Into) || rule.Subscribers != nil || len(rule.Keep) > 0 {
			continue
		}
		a.rules = append(a.rules, rule)
		if t := &rule.Source.Table.Table; !slices.Contains(p.tables, t) && !slices.Contains(a.makers, t) {
			a.makers = append(a.makers, t)
		}
	}
	if len(a.rules) == 0 {
		return nil
	}
	return a
}

// takePage takes in a page of a table.
func (s *segment) takePage(ctx context.Context, t *store.Table, rows []value.Item) error {
	if s.made != nil && t.Name != owntable.TableName {
		var err error
		if rows, err = s.takeMade(ctx, t, rows); err != nil {
			return err
		}
	}
	for _, row := range rows {
		if err := s.take(ctx, s, t, row); err != nil {
			return err
		}
	}
	return nil
}

// takeMade takes in the copies that the rows of a page will have, and returns the rows that are not copies. The scan of
// the build reads the copies that it takes in, and none that goes.
func (s *segment) takeMade(ctx context.Context, t *store.Table, rows []value.Item) (rest []value.Item, err error) {
	bytes := 0
	for _, row := range rows {
		c, err := s.inserted(t, row)
		if err != nil {
			return nil, err
		}
		if replaced, err := kinds.Replaces(ctx, s.made.plain, s.made.rules, &c); err != nil {
			return nil, err
		} else if replaced {
			bytes -= row.Size()
		} else {
			rest = append(rest, row)
		}
		puts, err := kinds.WillMake(ctx, s.made.plain, s.made.rules, &c)
		if err != nil {
			return nil, err
		}
		for i := range puts {
			bytes += puts[i].Image.Size()
			if err := s.take(ctx, s, &puts[i].Rule.Into.Table.Table, puts[i].Image); err != nil {
				return nil, err
			}
		}
	}
	s.add(Progress{Bytes: int64(bytes)})
	return rest, nil
}

// scanMakers takes in the copies of rows in tables that the pass does not read.
func (s *segment) scanMakers(ctx context.Context) error {
	if s.made == nil {
		return nil
	}
	for _, t := range s.made.makers {
		q := store.Query{Table: t.Name, Segment: s.number, Segments: s.of}
		for {
			page, err := s.made.plain.Store.Query(ctx, q)
			if err != nil {
				return err
			}
			if _, err := s.takeMade(ctx, t, page.Rows); err != nil {
				return err
			}
			if s.held >= holdRows {
				if err := s.estimate(ctx); err != nil {
					return err
				}
			}
			if q.After = page.Next; q.After == nil {
				break
			}
		}
	}
	return nil
}
