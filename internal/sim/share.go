package sim

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/reader"
	"weir/internal/store"
)

// Options for processes of which one reads: the times are short, so that the lease expires often.
const (
	leaseTime = 30 * time.Second
	pollTime  = time.Second
)

// listTimes are how often shards are listed; a run uses one of them.
var listTimes = []time.Duration{5 * time.Second, 30 * time.Second, 4 * time.Minute}

// joinReaders lets the process take part in following the streams.
func (n *node) joinReaders() {
	n.lost = map[*shard]bool{}
	run := n.newRunner(nil)
	d := newDice(n.seed, "share", 0)
	n.reader = reader.NewLeased(run, reader.Options{
		Lease: leaseTime, List: pick(d, listTimes), Poll: pollTime, Log: slog.New(slog.DiscardHandler), Owner: n.name, Wait: n.waitRecords, Go: n.startPart,
	})
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.startFiber("read", func(*fiber) error {
		n.reader.Run(ctx)
		return nil
	})
	n.startFollower(&reader.Follower{Runner: run, Source: noting{n.reader, n}})
	n.slowDown()
}

// slowDown makes a process slow in some runs, as if its sink were slow.
func (n *node) slowDown() {
	d := newDice(n.seed, "drag", 0)
	if !d.chance(0.5) {
		return
	}
	n.fibers[len(n.fibers)-1].drag = 10 + d.n(150)
}

// noting is the source of a process, which notes when it reads.
type noting struct {
	*reader.Leased
	n *node
}

func (s noting) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	s.n.running.began = s.n.base.writes
	return s.Leased.Read(ctx, table, shard, after, limit)
}

// waitRecords is reader.Options.Wait, by the simulated clock.
func (n *node) waitRecords(ctx context.Context, more <-chan struct{}, while time.Duration) (came bool) {
	f, until := n.running, n.clock.Add(while)
	f.pauseUntil(func() bool { return ctx.Err() != nil || len(more) > 0 || !n.clock.Before(until) })
	select {
	case <-more:
		return true
	default:
		return false
	}
}

// awaitRecords pauses a fiber that found nothing until its process has read more, or for a second.
// So turns go to fibers that have something to do.
func (n *node) awaitRecords(f *fiber) {
	more, _ := n.reader.Changed("")
	until := n.clock.Add(pollTime)
	f.pauseUntil(func() bool { return isClosed(more) || !n.clock.Before(until) })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// startPart is reader.Options.Go.
func (n *node) startPart(do func()) (join func()) {
	n.startFiber("read", func(*fiber) error {
		do()
		return nil
	})
	f := n.fibers[len(n.fibers)-1]
	f.part = true
	return func() { n.running.pauseUntil(func() bool { return f.over }) }
}

// pauseUntil pauses until ready reports true.
func (f *fiber) pauseUntil(ready func() bool) {
	f.ready = ready
	defer func() { f.ready = nil }()
	for {
		f.idle = true
		if f.pause(); ready() {
			return
		}
	}
}

// stallReader pauses one of the processes that may read for longer than its lease.
func (w *world) stallReader() {
	var of []*node
	for _, n := range w.nodes {
		if n.reader != nil {
			of = append(of, n)
		}
	}
	if len(of) == 0 {
		return
	}
	pick(w.faults.dice, of).stallFibers()
}

// stallFibers pauses all fibers of the process.
func (n *node) stallFibers() {
	turns := 300 + n.faults.dice.n(700)
	for _, f := range n.fibers {
		f.asleep = turns
	}
}

// stirPaused changes how long the processes of a former lease holder stay paused when another
// process has taken over a shard: they go on at about that time, or long after, when they
// do the most harm.
func (w *world) stirPaused(owner string) {
	for _, n := range w.nodes {
		if n.reader == nil || n.name != owner {
			continue
		}
		soon, turns := w.sched.chance(0.4), w.sched.n(120)
		for _, f := range n.fibers {
			if soon {
				f.asleep = min(f.asleep, 5+turns)
			} else if f.asleep > 0 {
				f.asleep += 10 * turns
			}
		}
	}
}

// wakePaused may let a paused worker go on when another one has written the row that it is about
// to read or write: there it does the most harm.
func (w *world) wakePaused(who, name string) {
	for _, n := range w.nodes {
		for _, f := range n.fibers {
			if f.asleep > 0 && f.name != who && slices.Contains(f.pausing, name) && w.sched.chance(0.3) {
				w.countReached("a sleeper wakes where another has written")
				f.asleep = 1 + w.sched.n(5)
			}
		}
	}
}
