package live

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/runner"
)

// finishTime is how long the batch that is being applied when all stops may take.
// A batch that is cut short is applied again by who comes next.
const finishTime = 20 * time.Second

// Follow reads and applies the streams of the runner's model until ctx ends; then
// it finishes the batch at hand, saves its places and gives its shards back. What
// fails is logged and tried again, from the places that were saved: after an outcome
// that nobody knows, nothing in memory is believed. The error is for a directory
// that cannot be used, and wraps store.ErrOwned where another process has it.
func Follow(ctx context.Context, run *runner.Runner, o Options) error {
	unlock, err := own(o.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	r := New(run, o)
	applies := *run
	applies.Retired = r.Retired
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { r.Run(reading) })
	applying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })()
	var moved atomic.Bool
	for wait := time.Second; ctx.Err() == nil; {
		f := runner.Follower{Runner: &applies, Source: r, Stop: ctx.Done(), Report: func(string, runner.Counts) { moved.Store(true) }}
		err := f.Run(applying)
		if moved.Swap(false) {
			wait = time.Second
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			r.opts.Log.Warn("applying", "model", run.Model.Name, "error", err, "again in", wait)
			pause(ctx, wait)
			wait = min(2*wait, time.Minute)
		}
	}
	stop()
	wg.Wait()
	return nil
}
