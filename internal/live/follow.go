package live

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"weir/internal/runner"
)

// finishTime is how long the batch that is being applied when all stops may take.
// A batch that is cut short is applied again by who comes next.
const finishTime = 20 * time.Second

// Following is a process's part in the streams of a model. From Start on it reads
// its shards into files, whatever else takes its time.
type Following struct {
	reader *Reader
	run    *runner.Runner
	unlock func()
	stop   context.CancelFunc
	done   chan struct{}
}

// Start begins to read the streams of the runner's model. Whoever is to prepare
// something that may take longer than the streams keep their records does so between
// Start and Apply. The error is for a directory that cannot be used, and wraps
// store.ErrOwned where another process has it. Close ends it.
func Start(run *runner.Runner, o Options) (*Following, error) {
	unlock, err := own(o.Dir)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &Following{reader: New(run, o), unlock: unlock, stop: stop, done: make(chan struct{})}
	applies := *run
	applies.Retired = f.reader.Retired
	f.run = &applies
	go func() {
		defer close(f.done)
		f.reader.Run(ctx)
	}()
	return f, nil
}

// Apply applies what is read until ctx ends, and finishes the batch at hand. What
// fails is logged and tried again, from the places that were saved: after an outcome
// that nobody knows, nothing in memory is believed.
func (f *Following) Apply(ctx context.Context) {
	applying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })()
	var moved atomic.Bool
	for wait := time.Second; ctx.Err() == nil; {
		follower := runner.Follower{Runner: f.run, Source: f.reader, Stop: ctx.Done(), Report: func(group string, n runner.Counts) {
			moved.Store(true)
			if f.reader.opts.Applied != nil {
				f.reader.opts.Applied(group, n)
			}
			n.Warn(f.reader.opts.Log, f.run.Model.Name)
		}}
		err := follower.Run(applying)
		if moved.Swap(false) {
			wait = time.Second
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			f.reader.opts.Log.Warn("applying", "model", f.run.Model.Name, "error", err, "again in", wait)
			f.reader.note(Applies)
			f.reader.opts.Wait(ctx, nil, wait)
			wait = min(2*wait, time.Minute)
		}
	}
}

// Close stops reading, saves the places, gives the shards back and the directory
// free.
func (f *Following) Close() {
	f.stop()
	<-f.done
	f.unlock()
}

// Follow reads and applies until ctx ends.
func Follow(ctx context.Context, run *runner.Runner, o Options) error {
	f, err := Start(run, o)
	if err != nil {
		return err
	}
	defer f.Close()
	f.Apply(ctx)
	return nil
}
