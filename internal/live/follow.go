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
// is tried again from the saved positions: search by itself, so that rows do not wait for a
// cluster that is down.
//
// If this program may not apply its rows, Apply ends with an error that wraps
// catalog.ErrRefused. The caller calls Close, so that the right program gets the shards.
func (f *Following) Apply(ctx context.Context) error {
	applying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })()
	pauses := Pauses{Log: f.reader.opts.Log, Model: f.run.Model.Name}
	follower := runner.Follower{Runner: f.run, Source: f.reader, Stop: ctx.Done(), Window: f.reader.opts.Window, Indexed: f.reader.opts.Indexed, Stopped: f.reader.stopped, Applied: f.reader.opts.Records, Report: func(a runner.Applied) {
		if f.reader.opts.Applied != nil {
			f.reader.opts.Applied(a)
		}
		a.Warn(f.reader.opts.Log, f.run.Model)
	}}
	follower.Failed = func(group string, moved bool, err error) (time.Duration, bool) {
		f.reader.note(Applies)
		if errors.Is(err, catalog.ErrRefused) && runner.KindOf(group) == runner.GroupRows {
			return 0, false
		}
		return pauses.After(group, moved, err), true
	}
	if err := follower.Run(applying); errors.Is(err, catalog.ErrRefused) {
		return err
	}
	return nil // what else failed was tried again, and logged
}

// Pauses says how long the groups of a Follower wait after failures, and logs these. Its
// methods may be called from several goroutines.
// The zero Pauses, with a Log, is ready. The pause after an error doubles, and a success begins
// again with the shortest.
type Pauses struct {
	Log   *slog.Logger
	Model string

	mu   sync.Mutex
	next map[string]time.Duration
}

// After returns how long a group waits after a failure: longer each time, unless it applied
// something in between.
func (p *Pauses) After(group string, moved bool, err error) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = map[string]time.Duration{}
	}
	wait := p.next[group]
	if moved || wait == 0 {
		wait = leastPause
	}
	p.next[group] = min(2*wait, longestPause)
	p.Log.Warn("applying", "model", p.Model, "group", group, "error", err, "again in", wait)
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
