package live

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"weir/internal/catalog"
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

// Following is the part that one process takes in a model's streams: it reads them, or stands by.
// Its methods are called in the order Open, Start, Apply, Close; Status and Stopped at any time between.
// Its methods may be called from many goroutines; Close once.
type Following struct {
	reader  *Reader
	run     *runner.Runner
	stop    context.CancelFunc
	reading sync.WaitGroup
}

// Open reads and writes nothing. The caller calls Close when it is done.
func Open(run *runner.Runner, o Options) *Following {
	return &Following{reader: New(run, o), run: run, stop: func() {}}
}

// Start begins to take part: the process takes the lease if it is free.
func (f *Following) Start() {
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	f.reading.Go(func() { f.reader.Run(ctx) })
}

// Apply applies the records read so far and those still to come until ctx ends; then it
// finishes the current batch, for at most finishTime. Failures are logged, and what failed
// is tried again from the saved positions.
//
// If this program may not apply its rows, Apply ends with an error that wraps
// catalog.ErrRefused. The caller calls Close, so that the right program gets the shards.
func (f *Following) Apply(ctx context.Context) error {
	applying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })()
	pauses := pauses{log: f.reader.opts.Log, model: f.run.Model.Name}
	follower := runner.Follower{Runner: f.run, Source: f.reader, Stop: ctx.Done(), Window: f.reader.opts.Window, Stopped: f.reader.stopped, Applied: f.reader.opts.Records, Report: func(a runner.Applied) {
		if f.reader.opts.Applied != nil {
			f.reader.opts.Applied(a)
		}
		a.Warn(f.reader.opts.Log, f.run.Model)
	}}
	follower.Failed = func(moved bool, err error) (time.Duration, bool) {
		f.reader.note(Applies)
		if errors.Is(err, catalog.ErrRefused) {
			return 0, false
		}
		return pauses.after(moved, err), true
	}
	if err := follower.Run(applying); errors.Is(err, catalog.ErrRefused) {
		return err
	}
	return nil // what else failed was tried again, and logged
}

// pauses says how long a Follower waits after failures, and logs these.
// The pause doubles after each, and a success begins again with the shortest.
type pauses struct {
	log   *slog.Logger
	model string
	next  time.Duration
}

// after returns how long to wait after a failure: longer each time, unless something was applied in between.
func (p *pauses) after(moved bool, err error) time.Duration {
	wait := p.next
	if moved || wait == 0 {
		wait = leastPause
	}
	p.next = min(2*wait, longestPause)
	p.log.Warn("applying", "model", p.model, "error", err, "again in", wait)
	return wait
}

// Close stops reading and releases the lease.
func (f *Following) Close() {
	f.stop()
	f.reading.Wait()
}

// Follow reads and applies until ctx ends, and then returns nil; its errors are those of
// Open and Apply. It is Open, Start, Apply and Close in one. After a kill, the next process goes on
// from the checkpoints.
func Follow(ctx context.Context, run *runner.Runner, o Options) error {
	f := Open(run, o)
	defer f.Close()
	f.Start()
	return f.Apply(ctx)
}
