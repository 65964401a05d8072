package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections/document"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
)

// keepEvery is how often a program that applies a search generation says so.
const keepEvery = 10 * time.Minute

// Keep says, until ctx ends, that this program applies its search generations. A generation
// of which that was not said for a day is filled again, because the streams have forgotten
// what came meanwhile. Run it beside a Follower.
// It returns nil when ctx ends. A sign that cannot be written is logged, and tried again the next time.
func (s *System) Keep(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := parallel.Sleep(ctx, keepEvery); err != nil {
			return nil
		}
		for _, g := range s.generations {
			err := s.change(ctx, g, func(row *owntable.GenerationRow) bool { row.Kept = s.now(); return row.Filled })
			if err != nil && ctx.Err() == nil {
				s.log.Warn("saying that the search indexes are kept", "model", g.model.Name, "error", err)
			}
		}
	}
	return nil
}

// ErrNotBuilt is wrapped by the error for search indexes that a function, or a query, cannot
// use until a command has built them.
var ErrNotBuilt = errors.New("the search index of this definition is not built")

// Built returns an error that wraps ErrNotBuilt unless the model's indexes have all rows, and
// some program applies the streams to them, or did so until a short while ago. From then on
// the system answers searches.
func (s *System) Built(ctx context.Context, p *Part) error {
	g := s.generationOf(p.Model)
	if g == nil {
		return nil
	}
	row, by, err := s.read(ctx, g)
	switch {
	case err != nil:
		return err
	case !row.Filled || !row.Reached:
		g.reached.Store(false) // it may be filled again
		return ErrNotBuilt
	case by.Hash != g.hash && s.now().Sub(row.Kept) >= 2*keepEvery:
		return fmt.Errorf("%w up to now: no program has applied the streams to it since %s", ErrNotBuilt, row.Kept.UTC().Format(time.RFC3339))
	case by.Hash == g.hash && !settled(row, by):
		return fmt.Errorf("%w up to now: a function with another definition read the streams until %s, and may have gone on for some minutes; run %s after %s",
			ErrNotBuilt, by.Since.UTC().Format(time.RFC3339), g.model.Command("build"), by.Since.Add(takesOver).UTC().Format(time.RFC3339))
	}
	if err := s.late.reach(ctx); err != nil { // not before: opening makes the indexes that are missing
		return err
	}
	f := filler{System: s, generation: g, row: row}
	if g.reached.Store(f.same()); !f.same() {
		s.late.leave() // another program has made it again
		return ErrNotBuilt
	}
	return nil
}

// Reach makes the indexes of all models ready for searches: it fills them, and if they were
// new, or no program has applied the streams to them of late, it applies the streams up to
// their end. From then on the system answers searches. Call it before changes are applied to
// the indexes; changes may be applied to rows meanwhile.
func (s *System) Reach(ctx context.Context, progress func(Filling)) error {
	if err := s.Fill(ctx, progress); err != nil {
		return err
	}
	for _, p := range s.Models {
		g := s.generationOf(p.Model)
		if g == nil {
			continue
		}
		row, _, err := s.read(ctx, g)
		if err != nil {
			return err
		}
		if !row.Reached {
			done := make(chan struct{})
			close(done)
			if err := s.catchUp(ctx, p, g, done); err != nil {
				return err
			}
		}
		g.reached.Store(true)
	}
	return s.Show(ctx)
}

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
			row, _, err := s.read(ctx, g)
			f := filler{System: s, generation: g, row: row}
			gone = gone || err == nil && !f.isWhole()
		}
	}
	for _, g := range s.generations {
		g.reached.Store(false)
	}
	s.late.leave()
	return nil
}

// A function cannot fill an index, and it has no checkpoints of its own: what it acknowledges is gone. So from when an index of its
// generation is begun, it writes the documents of each event to it, or notes them as pending. The row of functions says whose
// documents these are: a function of another generation takes over with its first event, and invocations of the earlier function
// may go on for 15 minutes. What these acknowledge is missing from the index, unless it is not begun yet, in which case the scan
// sees it, or a build applies the streams later than that (owntable.FunctionSearchRow).

const (
	// gateEvery is how often a function that is warm reads the rows again.
	gateEvery = time.Minute
	// reachEvery is how often it tries to open indexes whose cluster did not answer, for reachTime.
	reachEvery = 10 * time.Second
	reachTime  = 2 * time.Second
	// takesOver is how long invocations of an earlier function may go on.
	takesOver = 16 * time.Minute
)

// Gate says what a function does with documents.
type Gate struct {
	system *System
	part   *Part
	passed time.Time // since when documents are written
	tried  time.Time // when the indexes were last opened
}

// Gate returns the gate of a model's function.
func (s *System) Gate(p *Part) *Gate { return &Gate{system: s, part: p} }

// Pass says what becomes of the documents of an event. Call it before the event is admitted: that a function reads the tables says who
// was first. While documents are written, it reads at most once a minute. It never fills.
func (g *Gate) Pass(ctx context.Context) (runner.Indexing, error) {
	s := g.system
	gen := s.generationOf(g.part.Model)
	if gen == nil {
		return runner.Unindexed, nil
	}
	if !g.passed.IsZero() && s.now().Sub(g.passed) < gateEvery {
		return runner.Indexed, nil
	}
	g.reach(ctx, gen)
	for range maxTries {
		row, by, err := s.read(ctx, gen)
		if err != nil {
			return 0, err
		}
		if by.Hash != gen.hash {
			ever := by.Hash != ""
			if !ever {
				if ever, err = g.part.Runner.ByFunction(ctx); err != nil {
					return 0, err
				}
			}
			next := owntable.FunctionSearchRow{Hash: gen.hash, Since: s.now(), Settled: !ever && (!row.Begun || s.now().Sub(row.Kept) < keptFor)}
			out, err := s.Store.Write(ctx, []store.Write{by.Becomes(owntable.FunctionSearch(gen.model.Name), next)})
			if err == nil {
				err = out[0].Err
			}
			if errors.Is(err, store.ErrCondition) {
				continue
			}
			if err != nil {
				return 0, err
			}
		}
		f := filler{System: s, generation: gen, row: row}
		switch {
		case !row.Begun:
			return runner.Unindexed, nil
		case !f.same():
			return runner.Pending, nil
		}
		g.passed = s.now()
		return runner.Indexed, nil
	}
	return 0, errBusy
}

// reach opens the indexes if they are not open, or were made again since.
func (g *Gate) reach(ctx context.Context, gen *generation) {
	s := g.system
	if s.late == nil || !g.tried.IsZero() && s.now().Sub(g.tried) < reachEvery {
		return
	}
	g.tried = s.now()
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	row, _, err := s.read(ctx, gen)
	if f := (filler{System: s, generation: gen, row: row}); err == nil && row.Begun && !f.same() {
		s.late.leave()
	}
	_ = s.late.reach(ctx) // while it is not open, its documents become pending
}

// settled reports whether all that functions acknowledged since the index was begun is in it, or pending.
func settled(row owntable.GenerationRow, by owntable.FunctionSearchRow) bool {
	return by.Settled || row.Kept.Sub(by.Since) >= takesOver
}

// Building is how far a build is, after the indexes are filled.
type Building int

// The steps of Build.
const (
	Follows   Building = iota + 1 // changes are applied; it waits for a function to take over
	TakesOver                     // a function has begun; an earlier one may still be running
	Settled                       // the function applies everything alone
)

// Build brings the search indexes of a model up to date: it fills them, and applies what is
// in the streams. With handOver, it goes on to apply everything until a function has taken
// over and no invocation of an earlier one can be left, which is so after handOver. Other
// programs may apply the same generation, or other ones, at the same time.
func (s *System) Build(ctx context.Context, p *Part, handOver time.Duration, filling func(Filling), step func(Building)) error {
	g := s.generationOf(p.Model)
	if g == nil {
		return nil
	}
	if err := s.Fill(ctx, filling); err != nil {
		return err
	}
	done := make(chan struct{})
	close(done)
	if err := s.catchUp(ctx, p, g, done); err != nil || handOver == 0 {
		g.reached.Store(err == nil)
		return errors.Join(err, s.Show(ctx))
	}
	return s.handOver(ctx, p, g, handOver, step)
}

// IndexAgain makes the documents of filled indexes agree with the rows again, where something else has changed or removed them.
func (s *System) IndexAgain(ctx context.Context, p *Part, progress func(rows int)) error {
	read := 0
	for _, of := range p.Model.Searches {
		last := 0
		err := document.Again(ctx, p.Runner, of, func(rows int) {
			last = rows
			progress(read + rows)
		})
		if err != nil {
			return fmt.Errorf("index %s: %w", document.Index(p.Model, of), err)
		}
		read += last
	}
	return s.Show(ctx)
}

// catchUp applies the streams to the generation, until done is closed and everything before
// is applied. Documents may be applied by any number of programs: the newest wins.
func (s *System) catchUp(ctx context.Context, p *Part, g *generation, done <-chan struct{}) error {
	f := runner.Follower{Runner: p.Runner, Only: runner.SearchGroup(g.hash)}
	if err := f.CatchUp(ctx, done); err != nil {
		return fmt.Errorf("applying the streams to the search indexes of model %s: %w", p.Model.Name, err)
	}
	if err := s.forgetShards(ctx, p, g); err != nil {
		return err
	}
	return s.change(ctx, g, func(row *owntable.GenerationRow) bool {
		row.Kept, row.Reached = s.now(), true
		return row.Filled
	})
}

// forgetShards deletes checkpoints of shards that are over and that no process has read by
// lease. Where functions read the streams, nothing else does.
func (s *System) forgetShards(ctx context.Context, p *Part, g *generation) error {
	kept := map[[2]string]bool{}
	for _, t := range p.Model.AllTables() {
		shards, err := s.Store.Shards(ctx, t.Name)
		if errors.Is(err, store.ErrNoTable) && slices.Contains(p.Model.Old, t) {
			continue // rows were never migrated, or all were and the table is gone
		}
		if err != nil {
			return err
		}
		for _, sh := range shards {
			kept[[2]string{t.Name, sh.ID}] = true
		}
	}
	read, err := p.Runner.Places(ctx, runner.GroupRows)
	if err != nil && !errors.Is(err, owntable.ErrRow) {
		return err
	}
	for _, at := range read {
		kept[[2]string{at.Table, at.Shard}] = true
	}
	ours, err := p.Runner.Places(ctx, runner.SearchGroup(g.hash))
	if err != nil && !errors.Is(err, owntable.ErrRow) {
		return err
	}
	var ws []store.Write
	for _, at := range ours {
		if at.Done && !kept[[2]string{at.Table, at.Shard}] {
			is := owntable.CheckpointRow{At: at.At}
			ws = append(ws, is.Drop(owntable.Checkpoint(p.Model.Name, runner.SearchGroup(g.hash), at.Table, at.Shard).Ref))
		}
	}
	_, err = p.Runner.Write(ctx, ws) // one that has changed meanwhile stays
	return err
}

// followEvery is how often a build that follows the streams says so.
const followEvery = 5 * time.Second

// handOver gives a filled generation to its function: it follows the streams until a function
// with this definition has taken the stream, and for handOver after that, since invocations of
// the old definition may still apply what they have. It calls step with each new state. Only then it notes that
// the generation is settled, on condition that no other definition took the stream over, and shows
// it. After an error or a crash before that the old generation is shown, and the next call goes on;
// what was followed twice changes nothing.
func (s *System) handOver(ctx context.Context, p *Part, g *generation, handOver time.Duration, step func(Building)) error {
	// The streams are followed from before the first sign until after the last.
	done := make(chan struct{})
	following := make(chan error, 1)
	applying, stop := context.WithCancel(ctx)
	defer stop()
	go func() { following <- s.catchUp(applying, p, g, done) }()
	said := Building(0)
	say := func(b Building) {
		if b != said {
			said = b
			step(b)
		}
	}
	for settled := false; !settled; {
		err := s.change(ctx, g, func(row *owntable.GenerationRow) bool {
			row.Kept = s.now()
			return row.Filled
		})
		if err != nil {
			return err
		}
		_, by, err := s.read(ctx, g)
		if err != nil {
			return err
		}
		switch {
		case by.Hash != g.hash:
			say(Follows)
		case !by.Settled && s.now().Sub(by.Since) < handOver:
			say(TakesOver)
		default:
			settled = true
			continue
		}
		select {
		case err := <-following:
			return errors.Join(err, ctx.Err())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(followEvery):
		}
	}
	close(done)
	if err := <-following; err != nil {
		return err
	}
	_, by, err := s.read(ctx, g)
	if err != nil {
		return err
	}
	if by.Hash != g.hash {
		return fmt.Errorf("a function with another definition took the stream over meanwhile: %w", ErrNotBuilt)
	}
	next := by
	next.Settled = true
	out, err := s.Store.Write(ctx, []store.Write{by.Becomes(owntable.FunctionSearch(p.Model.Name), next)})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		return err
	}
	say(Settled)
	return s.Show(ctx)
}
