package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"weir/internal/cli"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/reader"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/system"
)

// benchReplay measures how fast a gallery's recorded file is replayed into a new store, record by record.
//
// It does what projector replay --no-search does, with the same packages. It is timed from the
// first byte of the file until all derived data is up to date, without opening and closing the store.
func (b *bench) benchReplay() error {
	rec, err := b.openRecording(shortOrFull(b, 30_000, 100_000))
	if err != nil {
		return err
	}
	var costs []cost
	for i := range shortOrFull(b, 3, 5) {
		c, err := b.replayOnce(rec, i == 0)
		if err != nil {
			return err
		}
		costs = append(costs, c)
		b.printProgress("round %d: %.2f s (processors %.2f s)", i+1, c.wall.Seconds(), c.cpu.Seconds())
	}
	b.table.add(line{what: "replay by a follower", figure: fmt.Sprintf("%.0f records/s, %.1f cpu µs each", medianRate(rec.records, costs), cpuEach(rec.records, costs))})
	return nil
}

// replayOnce replays a recording into a new store.
func (b *bench) replayOnce(rec recording, profile bool) (c cost, err error) {
	r, err := b.openSystem(rec.model, system.Options{NoSearch: true})
	if err != nil {
		return c, err
	}
	defer r.removeSystem()
	run := func() error { return r.replayRecording(b.ctx, rec) }
	c, err = measureCost(func() error {
		if profile {
			return b.profiles.profileRun(run)
		}
		return run()
	})
	return c, err
}

// running is an open system of a model in a directory of its own.
type running struct {
	*system.System
	dir  string
	part *system.Part
}

func (b *bench) openSystem(name string, o system.Options) (*running, error) {
	b.limitMemory()
	m, err := model.Load(name)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return nil, err
	}
	s, err := system.Open(b.ctx, dir, []*model.Model{m}, o)
	if err == nil {
		err = s.Reach(b.ctx, nil)
	}
	if err != nil {
		return nil, err
	}
	return &running{s, dir, s.Models[0]}, nil
}

// limitMemory sets the memory limit for the next measurement to the program's own limit, in
// addition to the memory of the benchmark itself.
func (b *bench) limitMemory() {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // as in measureCost
	runtime.ReadMemStats(&m)
	b.limit.Stop()
	b.limit = cli.LimitMemory(b.size, int64(m.HeapAlloc))
}

// removeSystem closes the system and deletes its directory.
func (r *running) removeSystem() error { return errors.Join(r.Close(), os.RemoveAll(r.dir)) }

func (r *running) replayRecording(ctx context.Context, rec recording) error {
	return replayInto(ctx, r.part.Model, r.Store, r.part.Runner, rec)
}

// replayInto writes a recording's source rows while the runner derives from them. A recording
// with gaps or bad records is an error, because it would measure something else.
func replayInto(ctx context.Context, m *model.Model, st store.Store, run *runner.Runner, rec recording) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &replay.Replay{Model: m, Store: st, Runner: run}
	written := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		f := reader.Follower{Runner: run}
		if err := f.CatchUp(ctx, written); err != nil {
			cancel(err)
		}
	})
	if err := writeAll(ctx, r, rec.path); err != nil {
		cancel(err)
	}
	close(written)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := st.Sync(ctx); err != nil {
		return err
	}
	if s := r.Summary; s.Gaps+s.Dead > 0 || s.Records() != rec.records {
		return fmt.Errorf("the replay of %d records says %+v", rec.records, s)
	}
	return nil
}

func writeAll(ctx context.Context, r *replay.Replay, path string) error {
	files, err := events.Open(path)
	if err != nil {
		return err
	}
	for entries, err := range files.Batches(ctx) {
		if err != nil {
			return err
		}
		if err := r.Batch(ctx, entries, ""); err != nil {
			return err
		}
	}
	return nil
}

// documents is an index that measures its time and counts the changes. On request it also
// keeps the changes.
type documents struct {
	search.Index
	keep bool

	mu   sync.Mutex
	n    int
	busy time.Duration
	kept [][]search.Document
}

func (d *documents) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	start := time.Now()
	errs, err := d.Index.Apply(ctx, docs)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n += len(docs)
	d.busy += time.Since(start)
	if d.keep {
		d.kept = append(d.kept, docs)
	}
	return errs, err
}
