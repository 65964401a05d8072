package embedded

import (
	"sync"
	"sync/atomic"
)

// sequencer hands out the stream's sequence numbers, one counter for the whole
// store, and knows up to which of them everything is visible. Batches commit side
// by side, so a later number can be in the store before an earlier one; readers
// stay below visible and so never see that.
type sequencer struct {
	visible atomic.Uint64 // every record up to here is committed, or will never be

	mu    sync.Mutex
	next  uint64
	queue []*ticket // given out and not yet passed by visible, ascending
}

// ticket is a run of sequence numbers of one batch. Not all need to be used.
type ticket struct {
	first, next uint64
	done        bool
	touched     []*table // those whose streams the batch wrote to
}

func (q *sequencer) start(after uint64) {
	q.next = after + 1
	q.visible.Store(after)
}

// reserve gives out n numbers. The caller holds the locks of the rows it will
// write, so that the numbers of one row's changes ascend, and calls publish in any
// case.
func (q *sequencer) reserve(n int) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{first: q.next, next: q.next}
	q.next += uint64(n)
	q.queue = append(q.queue, t)
	return t
}

// given is the last number that was given out: all that was acknowledged by now has
// this one or a lower.
func (q *sequencer) given() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next - 1
}

// take uses the ticket's next number for a record of the table.
func (t *ticket) take(tab *table) uint64 {
	if n := len(t.touched); n == 0 || t.touched[n-1] != tab {
		t.touched = append(t.touched, tab)
	}
	t.next++
	return t.next - 1
}

// publish says that the ticket's batch is committed or was given up, and wakes
// those who wait for what has become visible by it.
func (q *sequencer) publish(t *ticket) {
	q.mu.Lock()
	t.done = true
	n := 0
	for n < len(q.queue) && q.queue[n].done {
		n++
	}
	passed := q.queue[:n:n]
	q.queue = q.queue[n:]
	if n > 0 {
		q.visible.Store(q.next - 1)
		if len(q.queue) > 0 {
			q.visible.Store(q.queue[0].first - 1)
		}
	}
	q.mu.Unlock()
	for _, p := range passed {
		for _, tab := range p.touched {
			tab.changed.wake()
		}
	}
}

// reached notes that the shard has, or may have, a record of this number.
func (sh *shard) reached(seq uint64) {
	for have := sh.last.Load(); have < seq && !sh.last.CompareAndSwap(have, seq); {
		have = sh.last.Load()
	}
}

// notifier wakes the followers of a table's stream.
type notifier struct {
	waiting atomic.Bool
	mu      sync.Mutex
	ch      chan struct{}
}

// wait returns a channel that the next wake closes.
func (n *notifier) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	n.waiting.Store(true)
	return n.ch
}

func (n *notifier) wake() {
	if !n.waiting.Load() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
	n.waiting.Store(false)
}
