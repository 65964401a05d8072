package projectorcli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/budget"
	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/parallel"
	"weir/internal/projections/document"
	"weir/internal/runner"
	"weir/internal/system"
)

// Of many processes that run beside each other, one builds. The others look now and then
// whether it does, and go on with its build if it has done nothing for a while.
const (
	buildRetry = time.Minute // after an error
	sayEvery   = 10 * time.Second
)

// start enters the models in their catalogs, announces builds of new and changed derivations, and retires those that the models no longer
// have. With --build=never it announces nothing and returns the refusal, which names the commands that help.
func (c *runCommand) start(p *program, s *system.System) error {
	if err := c.startValues(p, s); err != nil {
		return err
	}
	if s.OwnsIndexes() {
		return nil // they are named when this process reads
	}
	if c.Build != "never" {
		return s.NameIndexes(p.ctx)
	}
	for _, part := range s.Models {
		row, err := part.Runner.Catalog.Row(p.ctx)
		if err == nil {
			_, err = document.IsIndexed(part.Runner, row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// startValues is start for values that are derived on rows.
func (c *runCommand) startValues(p *program, s *system.System) error {
	err := s.Start(p.ctx)
	if err == nil { // the program before this one may have ended while it retired something
		for _, part := range s.Models {
			err = errors.Join(err, part.Builder().SettleRetired(p.ctx))
		}
		return err
	}
	if c.Build == "never" || !errors.Is(err, catalog.ErrUnbuilt) && !errors.Is(err, catalog.ErrDefinition) && !errors.Is(err, catalog.ErrUnknown) {
		return err
	}
	for _, part := range s.Models {
		b := part.Builder()
		if _, failed := p.noteRetired(b, false); failed != nil {
			return failed
		}
		lacks, failed := b.LackingBuilds(p.ctx)
		if failed != nil {
			return failed
		}
		begins, failed := b.BegunHistories(p.ctx)
		if failed != nil {
			return failed
		}
		if _, failed := b.Announce(p.ctx); failed != nil {
			if errors.Is(failed, catalog.ErrRefused) && !errors.Is(failed, catalog.ErrTable) {
				return err // the reason of the refusal, and the commands that help
			}
			return failed
		}
		if len(lacks) > 0 {
			until := "rows show what they showed"
			if slices.Contains(lacks, model.BuildInPlace) {
				until = "counts show what they showed, and copies change one by one"
			}
			fmt.Fprintf(p.stderr, "building %s of %s from the rows; until that is complete, %s (%s)\n",
				strings.Join(lacks, ", "), part.Model.Name, until, part.Model.Command("status"))
		}
		saysBegins(p, part.Model.Name, begins)
	}
	return s.Start(p.ctx)
}

// noteRetired notes that a model no longer has derivations of programs with an earlier one, and says so. It
// reports whether there was something.
func (p *program) noteRetired(b *build.Builder, building bool) (bool, error) {
	retired, err := b.Retire(p.ctx, building)
	if len(retired) > 0 {
		fmt.Fprintf(p.stderr, "retired, since the model no longer has it: %s; what it has shown stays in the rows until %s\n", strings.Join(retired, ", "), b.Runner.Model.Command("build", "--prune"))
	}
	return len(retired) > 0, err
}

// saysBegins says which history of a model begins now.
func saysBegins(p *program, model string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(p.stderr, "%s of %s: history, which no row tells; it is complete from now on\n", strings.Join(names, ", "), model)
	}
}

// building works at the builds of all models until ctx is done, and does something else
// beside, whose error ends it.
// It waits for the builders to release their builds before it returns.
func (c *runCommand) building(ctx context.Context, s *system.System, log *slog.Logger, beside func() error) error {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for _, part := range s.Models {
		all.Go(func() { c.builds(ctx, part, log) })
	}
	err := beside()
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// builds works at the builds of a model until ctx is done: it goes on with those that have
// no builder, and audits those that can be audited. At its end it releases the builds that it works at,
// so that the next process goes on at once. After a kill that takes build.Idle.
// Errors of a build are logged, and do not end the process: rows and queries go on without it.
func (c *runCommand) builds(ctx context.Context, part *system.Part, log *slog.Logger) {
	ctx = budget.For(ctx, budget.Build)
	b := part.Builder()
	if c.Build == "never" || len(b.Names) == 0 {
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
		defer cancel()
		if err := b.Release(ctx); err != nil {
			log.Warn("a build is not released, so the next process waits before it goes on", "model", part.Model.Name, "error", err, "at most", build.Idle)
		}
	}()
	was := map[string]build.State{}
	for ctx.Err() == nil {
		is, err := b.States(ctx)
		wait := build.Idle
		switch todo := is.Todo(part.Runner.Now()); {
		case err != nil:
			log.Error("the builds cannot be read", "model", part.Model.Name, "error", err)
		case todo == nil:
			if err := b.HandOver(ctx); err != nil && ctx.Err() == nil {
				log.Error("builds do not go over to positions", "model", part.Model.Name, "error", err)
			}
			wait = max(time.Second, is.NextIn(part.Runner.Now()))
		case !c.shared() || !todo.Held || was[todo.Entity] == *todo:
			wait = c.work(ctx, b, log)
		default:
			was[todo.Entity] = *todo
		}
		_ = parallel.Sleep(ctx, wait)
	}
}

// work builds, and returns how long to wait before it goes on.
// It runs until the build has nothing more to do now, fails, or loses its build to another process.
func (c *runCommand) work(ctx context.Context, b *build.Builder, log *slog.Logger) time.Duration {
	working, stop := context.WithCancel(ctx)
	var says sync.WaitGroup
	says.Go(func() { saysHowFar(working, b, sayEvery, log) })
	before := b.Done().Unfit
	done, err := b.Run(ctx)
	stop()
	says.Wait()
	for _, d := range done {
		log.Info("built", "model", b.Runner.Model.Name, "entity", d.Entity, "state", d.State)
	}
	if n := b.Done().Unfit - before; n > 0 {
		var said []string
		for _, is := range b.UnfitRows("") {
			said = append(said, is.String())
		}
		log.Warn("rows that some derivation cannot use are left out", "model", b.Runner.Model.Name, "see", b.Runner.Model.Command("verify"), "rows", n, "some", said)
	}
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, runner.ErrLost):
		log.Info("another builder goes on with a build", "model", b.Runner.Model.Name, "error", err, "looked at again in", build.Idle)
		return build.Idle
	case err != nil:
		log.Error("a build does not go on", "model", b.Runner.Model.Name, "error", err)
		return buildRetry
	}
	return time.Second
}

// saysHowFar logs how far builds are and how long they last yet, until ctx is done.
func saysHowFar(ctx context.Context, b *build.Builder, every time.Duration, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	first := map[string]int64{}
	for {
		all, _ := b.States(ctx) // an error is the builder's too
		for i := range all {
			if line := howFar(first, &all[i]); line != nil {
				log.Info("building", append([]any{"model", b.Runner.Model.Name}, line...)...)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// howFar returns the log's fields about a build that has read rows since it was seen first, nil of any other. first has the
// rows of each when it was seen first. The time left is that of the state, and is said where the store knows how many rows
// there are.
func howFar(first map[string]int64, s *build.State) []any {
	id := s.Entity + " " + string(s.State)
	rows, seen := first[id]
	if !seen {
		first[id] = s.Rows
	}
	if !seen || rows == s.Rows {
		return nil
	}
	line := []any{"entity", s.Entity, "state", s.State, "rows", s.Rows, "values", s.Puts}
	if left := s.TimeLeft(); left > 0 {
		line = append(line, "of about", s.Of, "left", left.Round(time.Second))
	}
	return line
}
