package reader

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir/internal/catalog"
	"weir/internal/runner"
)

// finishTime is how long the current batch may take after the process was told to stop. A
// batch that is cut short is applied again by the next process.
const finishTime = 20 * time.Second

// After a failure that the store could not settle by itself, the next try comes after a
// pause. It is short, since a try costs little beside the records that wait meanwhile, and a pause must
// not go on when its cause is over.
const (
	leastPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
)

// Start begins to take part: the process takes the lease if it is free.
func (r *Leased) Start() {
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	r.reading.Go(func() { r.Run(ctx) })
}

// Apply applies the records read so far and those still to come until ctx ends; then it
// finishes the current batch, for at most finishTime. Failures are logged, and the work that failed
// is tried again from the saved positions.
//
// If this program may not apply its rows, Apply ends with an error that wraps
// catalog.ErrRefused. The caller calls Close, so that the right program gets the shards.
func (r *Leased) Apply(ctx context.Context) error {
	applying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })()
	pauses := pauses{log: r.opts.Log, model: r.run.Model.Name}
	follower := Follower{Runner: r.run, Source: r, Stop: ctx.Done(), Window: r.opts.Window, Stopped: r.followerStopped, Applied: r.opts.Records, Report: func(a Applied) {
		if r.opts.Applied != nil {
			r.opts.Applied(a)
		}
		a.Warn(r.opts.Log, r.run.Model)
	}}
	follower.Failed = func(moved bool, err error) (time.Duration, bool) {
		r.report(Applies)
		if errors.Is(err, catalog.ErrRefused) && (r.opts.Taken == nil || r.currentFence() != 0) {
			return 0, false
		}
		return pauses.nextPause(moved, err), true
	}
	if err := follower.Run(applying); errors.Is(err, catalog.ErrRefused) {
		return err
	}
	return nil // any other failure was tried again, and logged
}

// pauses says how long a Follower waits after failures, and logs these.
// The pause doubles after each, and a success begins again with the shortest.
type pauses struct {
	log   *slog.Logger
	model string
	next  time.Duration
}

// nextPause returns how long to wait after a failure: longer each time, unless something was applied in between.
func (p *pauses) nextPause(moved bool, err error) time.Duration {
	wait := p.next
	if moved || wait == 0 {
		wait = leastPause
	}
	p.next = min(2*wait, longestPause)
	p.log.Warn("applying", "model", p.model, "error", err, "again in", wait)
	return wait
}

// Close stops reading and releases the lease.
func (r *Leased) Close() {
	r.stop()
	r.reading.Wait()
}

// Follow reads and applies until ctx ends, and then returns nil; its errors are those of
// Apply. It is NewLeased, Start, Apply and Close in one. After a kill, the next process goes on
// from the checkpoints.
func Follow(ctx context.Context, run *runner.Runner, o Options) error {
	r := NewLeased(run, o)
	defer r.Close()
	r.Start()
	return r.Apply(ctx)
}
