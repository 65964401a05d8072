package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/runner"
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
		if err := wait(ctx, keepEvery); err != nil {
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
	if err := s.late.reach(ctx); err != nil {
		return err
	}
	row, by, err := s.read(ctx, g)
	f := filler{System: s, generation: g, row: row}
	switch {
	case err != nil:
		return err
	case !f.isWhole() || !row.Reached:
		return ErrNotBuilt
	case by.Hash != g.hash && s.now().Sub(row.Kept) >= 2*keepEvery:
		return fmt.Errorf("%w up to now: no program has applied the streams to it since %s", ErrNotBuilt, row.Kept.UTC().Format(time.RFC3339))
	}
	g.reached.Store(true)
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

// A function cannot fill an index, and it has no checkpoints of its own: what it acknowledges
// is gone. So a function may apply a generation only if every record that was acknowledged
// before by another one is in the indexes too:
//
//   - No function has read the model's streams yet. Its first event is from the oldest record
//     that a stream has; the indexes must be filled, or being filled, within keptFor.
//   - Functions apply this generation already.
//   - Functions apply another generation, or none, and a build follows the streams for this
//     one (Follow). The function takes over: it writes its generation into the row of
//     functions. The build goes on until no invocation of the earlier function can be left,
//     and then says that the function has settled.
//
// A function whose generation is not that of the row any more refuses its events from the
// next check on. So an earlier version that Lambda still calls acknowledges nothing, longer
// than gateEvery and one invocation after the other took over.

// gateEvery is how often a function that is warm reads the rows again.
const gateEvery = time.Minute

// Gate decides whether a function may apply events.
type Gate struct {
	system *System
	part   *Part
	apart  bool
	passed time.Time
}

// Gate returns the gate of a model's function. apart says that the function has the
// documents alone: that another one read the streams for rows says nothing about them.
func (s *System) Gate(p *Part, apart bool) *Gate { return &Gate{system: s, part: p, apart: apart} }

// Pass returns an error that wraps ErrNotBuilt if the function must not apply events now. It
// reads at most once a minute. It never fills.
func (g *Gate) Pass(ctx context.Context) error {
	s := g.system
	gen := s.generationOf(g.part.Model)
	if gen == nil || !g.passed.IsZero() && s.now().Sub(g.passed) < gateEvery {
		return nil
	}
	for range maxTries {
		row, by, err := s.read(ctx, gen)
		if err != nil {
			return err
		}
		f := filler{System: s, generation: gen, row: row}
		ever := by.Hash != ""
		if !ever && !g.apart {
			if ever, err = g.part.Runner.ByFunction(ctx); err != nil {
				return err
			}
		}
		next, why := gen.admit(row, by, f.same(), ever, s.now())
		if why != nil {
			g.passed = time.Time{}
			return why
		}
		if next != nil {
			out, err := s.Store.Write(ctx, []store.Write{by.Becomes(owntable.FunctionSearch(gen.model.Name), *next)})
			if err == nil {
				err = out[0].Err
			}
			if errors.Is(err, store.ErrCondition) {
				continue
			}
			if err != nil {
				return err
			}
		}
		g.passed = s.now()
		return nil
	}
	return errBusy
}

// admit decides whether a function may apply the generation. same reports whether it has the
// instances of the row open, ever whether functions have read the streams before. next, if
// not nil, is what the row of functions must become first.
func (g *generation) admit(row owntable.GenerationRow, by owntable.FunctionSearchRow, same, ever bool, now time.Time) (next *owntable.FunctionSearchRow, err error) {
	build := "run " + g.model.Command("build")
	follows := now.Before(row.Follow)
	switch {
	case !row.Exists() || !row.Begun:
		return nil, fmt.Errorf("%w (generation %s of model %s): %s; until then nothing of the stream is acknowledged", ErrNotBuilt, g.hash, g.model.Name, build)
	case !same:
		return nil, fmt.Errorf("%w (generation %s of model %s): it was made again meanwhile, and this process has the earlier one open", ErrNotBuilt, g.hash, g.model.Name)
	case by.Hash == g.hash && (by.Settled || follows):
		return nil, nil
	case by.Hash != g.hash && !ever:
		if now.Sub(row.Kept) < keptFor {
			return &owntable.FunctionSearchRow{Hash: g.hash, Since: now, Settled: true}, nil
		}
		return nil, fmt.Errorf("%w (generation %s of model %s): it was filled on %s, and the stream may have forgotten what came since: %s again", ErrNotBuilt, g.hash, g.model.Name, row.Kept.UTC().Format(time.RFC3339), build)
	case by.Hash != g.hash && follows:
		return &owntable.FunctionSearchRow{Hash: g.hash, Since: now}, nil
	}
	return nil, fmt.Errorf("%w (generation %s of model %s): a function with another definition has read the stream, and what it acknowledged is missing from this index: %s and --hand-over, which follows the stream until this function has taken over", ErrNotBuilt, g.hash, g.model.Name, build)
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

// followLife is how long a function believes that a build follows, after the build's last
// sign. A build gives one every followEvery.
const (
	followLife  = time.Minute
	followEvery = 5 * time.Second
)

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
			row.Follow, row.Kept = s.now().Add(followLife), s.now()
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
