package live

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"weir/internal/runner"
)

// finishTime is how long the current batch may take after the process was told to stop. A
// batch that is cut short is applied again by the next process.
const finishTime = 20 * time.Second

// After a failure that the store could not settle by itself, the next try comes after a
// pause. It is short, since a try costs little beside what waits meanwhile, and a pause must
// not go on when its cause is over.
const (
	leastPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
)

// Following is the part that one process takes in a model's streams. From Start on it reads
// its shards into files, however long applying them takes.
type Following struct {
	reader *Reader
	run    *runner.Runner
	unlock func()
	stop   context.CancelFunc
	done   chan struct{}
}

// Start begins to read the streams of the runner's model. Between Start and Apply the
// caller may do work that takes longer than the streams keep their records. Start fails if
// the directory cannot be used; the error wraps store.ErrOwned if another process uses it.
// The caller calls Close when it is done.
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

// Apply applies the records read so far and those still to come until ctx ends; then it
// finishes the current batch, for at most finishTime. Failures are logged and retried from
// the saved positions. Nothing in memory is trusted after a failure, as its outcome may be
// unknown.
func (f *Following) Apply(ctx context.Context) {
	applying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })()
	var moved atomic.Bool
	for wait := leastPause; ctx.Err() == nil; {
		follower := runner.Follower{Runner: f.run, Source: f.reader, Stop: ctx.Done(), Indexed: f.reader.opts.Indexed, Stopped: f.reader.stopped, Report: func(group string, n runner.Counts) {
			moved.Store(true)
			if f.reader.opts.Applied != nil {
				f.reader.opts.Applied(group, n)
			}
			n.Warn(f.reader.opts.Log, f.run.Model.Name)
		}}
		f.reader.begins()
		err := follower.Run(applying)
		if moved.Swap(false) {
			wait = leastPause
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			f.reader.opts.Log.Warn("applying", "model", f.run.Model.Name, "error", err, "again in", wait)
			f.reader.note(Applies)
			f.reader.opts.Wait(ctx, nil, wait)
			wait = min(2*wait, longestPause)
		}
	}
}

// Close stops reading, saves the positions, releases the leases and unlocks the directory.
func (f *Following) Close() {
	f.stop()
	<-f.done
	f.unlock()
}

// Follow reads and applies until ctx ends, and then returns nil; its errors are those of
// Start. It is Start, Apply and Close in one. After a kill, the next process with the same
// directory goes on from its spools, and any other one from the checkpoints.
func Follow(ctx context.Context, run *runner.Runner, o Options) error {
	f, err := Start(run, o)
	if err != nil {
		return err
	}
	defer f.Close()
	f.Apply(ctx)
	return nil
}
