package api

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir/internal/web"
)

// turns are so many of something that askers hold for a while: each asker half of them
// at the most, so that one leaves some to others. Those who wait are served in order,
// but for those who hold all that they may.
// It may be used by many goroutines.
type turns struct {
	wait time.Duration // how long one is waited for

	mu      sync.Mutex
	free    int
	share   int
	held    map[web.Asker]int
	waiting []*waiter
}

// waiter is one who waits for a turn, in the order of arrival.
type waiter struct {
	who   web.Asker
	n     int
	ready chan struct{} // closed with mu held when the turn was handed over
}

// newTurns returns n turns. The share of each asker is half of them, rounded up.
func newTurns(n int, wait time.Duration) *turns {
	return &turns{wait: wait, free: n, share: (n + 1) / 2, held: map[web.Asker]int{}}
}

// take reports whether the asker has n turns now, of no more than its share. An asker that has them gives them back.
// It returns false after t.wait, or when ctx is done. Free turns are given also if ctx is done already.
func (t *turns) take(ctx context.Context, who web.Asker, n int) bool {
	t.mu.Lock()
	w := &waiter{who: who, n: n, ready: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.hand()
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, t.wait)
	defer cancel()
	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	return !t.leave(w)
}

// give gives n turns back, and hands them to the next who may have them. It is called once for each take that was true.
func (t *turns) give(who web.Asker, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free += n
	if t.held[who] -= n; t.held[who] == 0 {
		delete(t.held, who)
	}
	t.hand()
}

// hand gives free turns to those who wait. mu is held.
func (t *turns) hand() {
	left := t.waiting[:0]
	for i, w := range t.waiting {
		if t.free < w.n { // the next may have it all
			left = append(left, t.waiting[i:]...)
			break
		}
		if t.held[w.who]+w.n > t.share {
			left = append(left, w)
			continue
		}
		t.free -= w.n
		t.held[w.who] += w.n
		close(w.ready)
	}
	clear(t.waiting[len(left):])
	t.waiting = left
}

// leave takes one who waits out of the line. It is false when the turn has come.
// The caller then has the turn, and has to give it back.
func (t *turns) leave(w *waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, w)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	return i >= 0
}
