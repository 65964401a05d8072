package system

import (
	"context"
	"errors"
	"time"

	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections/document"
	"weir/internal/search"
)

// ErrNotBuilt is wrapped by the error for search indexes that a query cannot
// use until a command has built them.
var ErrNotBuilt = errors.New("the search index of this definition is not built")

// Built returns an error that wraps ErrNotBuilt unless readers keep the model's indexes, and they have all rows. From then on
// the system answers searches.
func (s *System) Built(ctx context.Context, p *Part) error {
	g := s.generationOf(p.Model)
	if g == nil {
		return nil
	}
	row, kept, err := s.readKept(ctx, g)
	if err != nil {
		return err
	}
	if g.reached.Store(0); !kept || !row.Filled || !row.Reached { // it may be filled again
		return ErrNotBuilt
	}
	if err := s.late.reachIndex(ctx); err != nil { // not before: opening makes the indexes that are missing
		return err
	}
	if f := (filler{System: s, generation: g, row: row}); !f.hasSame() {
		go s.late.leaveIndex()() // another program has made it again
		return ErrNotBuilt
	}
	g.reached.Store(g.term.Load())
	return nil
}

// Reach makes the indexes of all models ready for searches: it fills them, and writes pending documents. From then on the system answers
// searches. Changes may be applied meanwhile. Indexes of this process's own wait until it reads.
func (s *System) Reach(ctx context.Context, progress func(Filling)) error {
	terms := map[*generation]int64{}
	for _, g := range s.generations {
		for g.holds != nil && !g.holds() {
			if err := parallel.Sleep(ctx, lookForLease); err != nil {
				return err
			}
		}
		terms[g] = g.term.Load()
	}
	if err := s.Fill(ctx, progress); err != nil {
		return err
	}
	for _, g := range s.generations {
		row, kept, err := s.readKept(ctx, g)
		if err == nil && !kept {
			err = s.NameIndexes(ctx)
		}
		if err == nil && !row.Reached {
			if _, err = document.CatchUp(ctx, g.part.Runner); err == nil {
				err = s.changeGeneration(ctx, g, func(row *owntable.GenerationRow) bool { row.Reached = row.Filled; return row.Filled })
			}
		}
		if err != nil {
			return err
		}
		g.reached.Store(terms[g])
	}
	return s.Show(ctx)
}

// lookForLease is how often Reach looks whether this process reads.
const lookForLease = 100 * time.Millisecond

// lookEvery is how often AwaitGone looks whether the indexes are those that are filled.
const lookEvery = 5 * time.Second

// AwaitGone returns once an index is no longer there, or another program has made it again: searches are refused from then on, and
// Reach makes the indexes ready again. It returns the error of ctx when that ends before.
func (s *System) AwaitGone(ctx context.Context) error {
	if s.late == nil { // there is none
		<-ctx.Done()
		return ctx.Err()
	}
	for gone := false; !gone; {
		select {
		case <-s.late.gone:
			gone = true
		case <-time.After(lookEvery):
			gone = errors.Is(s.late.Look(ctx), search.ErrGone)
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, g := range s.generations {
			row, kept, err := s.readKept(ctx, g)
			f := filler{System: s, generation: g, row: row}
			gone = gone || err == nil && !(kept && f.isWhole())
		}
	}
	for _, g := range s.generations {
		g.reached.Store(0)
	}
	go s.late.leaveIndex()()
	return nil
}

// IndexAgain makes the indexes of a model again, empty, and fills them as Reach does. Searches are refused until then.
func (s *System) IndexAgain(ctx context.Context, p *Part, progress func(Filling)) error {
	g := s.generationOf(p.Model)
	if g == nil {
		return nil
	}
	if err := s.emptyIndexes(ctx, g); err != nil {
		return err
	}
	return s.Reach(ctx, progress)
}
