package embedded

import (
	"sync"
	"sync/atomic"
)

// sequencer assigns the stream's sequence numbers, from one counter for the whole
// store, and knows the number up to which everything is visible. Batches commit in
// parallel, so a record may be in the store before one with a lower number. Readers
// read only up to visible and so never notice.
// It is not stored: when a store is opened, numbers go on behind the greatest that is found in it,
// so numbers of records that a power cut took are given again. Those of a Load are in the catalog.
type sequencer struct {
	visible atomic.Uint64 // every record up to here is committed, or was given up

	mu    sync.Mutex
	next  uint64
	queue []*ticket // assigned and not yet below visible, ascending
}

// ticket is a run of sequence numbers for one batch. The batch need not use all of
// them.
type ticket struct {
	first, next uint64
	done        bool
	touched     []*table // the tables to whose streams the batch wrote
}

// startAfter sets the number after which numbers are assigned. Call it before any other
// method.
func (q *sequencer) startAfter(after uint64) {
	q.next = after + 1
	q.visible.Store(after)
}

// reserve assigns n numbers. The caller holds the locks of the rows that it will write,
// so that the numbers of one row's changes ascend. The caller must call publish in any
// case.
func (q *sequencer) reserve(n int) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &ticket{first: q.next, next: q.next}
	q.next += uint64(n)
	q.queue = append(q.queue, t)
	return t
}

// skip has all numbers up to n taken for given. No ticket may be out.
func (q *sequencer) skip(n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n >= q.next {
		q.next = n + 1
		if len(q.queue) == 0 {
			q.visible.Store(n)
		}
	}
}

// given is the last number that was assigned. No change acknowledged by now has a
// greater one.
func (q *sequencer) given() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next - 1
}

// take returns the ticket's next number, for a record of the table.
func (t *ticket) take(tab *table) uint64 {
	if n := len(t.touched); n == 0 || t.touched[n-1] != tab {
		t.touched = append(t.touched, tab)
	}
	t.next++
	return t.next - 1
}

// publishTicket says that the ticket's batch is committed or was given up. It wakes readers
// that wait for records to become visible.
// visible never goes down, and passes a ticket only when all before it are done: a batch that is
// slow to commit holds back readers, not writers.
func (q *sequencer) publishTicket(t *ticket) {
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

// noteNumber notes that the shard has, or may have, a record with this number.
func (sh *shard) noteNumber(seq uint64) {
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
// A change that happens after the call closes the channel, also if it happens before the caller
// waits.
func (n *notifier) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	n.waiting.Store(true)
	return n.ch
}

// wake tells all who wait that something has changed, by closing their channel. Without a waiter it
// costs one atomic read, so every commit calls it.
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
