package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// A body is read before its request is worked on, so that one that comes slowly keeps
// no request from being worked on. What it counts as it holds meanwhile: where others
// wait for that, the slowest give way.
const (
	slowAfter = 500 * time.Millisecond // for so long a body may come as it likes
	slowRate  = 128 << 10              // bytes a second below which a body is slow
	slowLook  = 50 * time.Millisecond  // between two that give way to one that waits
)

// arrival is a body that is being read.
type arrival struct {
	since time.Time
	end   func() // has the reading end

	mu    sync.Mutex
	bytes int64
	gave  bool
}

// arrivals are the bodies that are being read.
type arrivals struct {
	mu      sync.Mutex
	all     map[*arrival]struct{}
	pressed int    // requests that wait
	relieve func() // ends the giving way, when none waits any more
}

// rate is how many bytes a second have come.
func (a *arrival) rate(now time.Time) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return float64(a.bytes) / now.Sub(a.since).Seconds()
}

// slowest is the slowest of the bodies that are slow and have not given way, nil when
// none is.
func (s *arrivals) slowest(now time.Time) (slowest *arrival) {
	least := float64(slowRate)
	for a := range s.all {
		if rate := a.rate(now); now.Sub(a.since) >= slowAfter && rate < least && !a.gaveWay() {
			slowest, least = a, rate
		}
	}
	return slowest
}

// giveWay has the slowest body end, if one is slow.
func (s *arrivals) giveWay(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.slowest(now)
	if a == nil {
		return
	}
	a.mu.Lock()
	a.gave = true
	a.mu.Unlock()
	a.end()
}

// press has slow bodies give way, one after the other, until stop is called. However many
// requests wait, one body gives way at a time: the room that it leaves may be enough for
// all of them.
func (s *arrivals) press() (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pressed++; s.pressed == 1 {
		done := make(chan struct{})
		s.relieve = func() { close(done) }
		go s.giveWayUntil(done)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pressed--; s.pressed == 0 {
			s.relieve()
		}
	}
}

// giveWayUntil lets one body give way every slowLook.
func (s *arrivals) giveWayUntil(done <-chan struct{}) {
	tick := time.NewTicker(slowLook)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s.giveWay(now)
		case <-done:
			return
		}
	}
}

// add and remove are called once for each body.
func (s *arrivals) add(a *arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*arrival]struct{}{}
	}
	s.all[a] = struct{}{}
}

// remove forgets a connection that has ended.
func (s *arrivals) remove(a *arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, a)
}

// gaveWay reports whether the body was ended for others.
func (a *arrival) gaveWay() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gave
}

// Write counts what has come.
func (a *arrival) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes += int64(len(p))
	return len(p), nil
}

// errGaveWay is why a request is refused whose body gave way: nothing of it was done.
var errGaveWay = errors.New("the body came slowly, and gave way to others")

// read reads a request's body, as far as any handler does, and has the request's handler
// find it in memory, with the error that it ended with.
func (s *arrivals) read(w http.ResponseWriter, r *http.Request) error {
	if pieces(r) == 0 {
		return nil
	}
	a := &arrival{since: time.Now(), end: func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	}}
	s.add(a)
	parts, err := inPieces(io.TeeReader(io.LimitReader(r.Body, longestBody+1), a), r.ContentLength)
	s.remove(a)
	if a.gaveWay() {
		return errGaveWay
	}
	rest := io.Reader(r.Body)
	if err != nil {
		rest = failing{err}
	}
	readers := make([]io.Reader, 0, len(parts)+1)
	for _, p := range parts {
		readers = append(readers, bytes.NewReader(p))
	}
	r.Body = arrived{io.MultiReader(append(readers, rest)...), r.Body}
	return nil
}

// inPieces reads a body to its end. It takes one byte more of memory than the body counts
// as, or one piece if the length is unknown (-1): a buffer that grows would take twice as
// much.
func inPieces(r io.Reader, length int64) (parts [][]byte, err error) {
	var b []byte
	for {
		if len(b) == cap(b) {
			size := int64(piece)
			if length >= 0 { // one more, to read the end
				size = min(size, length+1)
				length = max(0, length-size)
			}
			b = make([]byte, 0, size)
			parts = append(parts, nil)
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		parts[len(parts)-1] = b
		switch {
		case err == io.EOF:
			return parts, nil
		case err != nil:
			return parts, err
		}
	}
}

// arrived is a body of which the beginning is in memory.
type arrived struct {
	io.Reader
	io.Closer
}

// failing is a reader that only returns an error: the one that a body ended with.
type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// gone is a context that is done: what is taken with it is had at once, or not.
var gone = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// takeBytes takes what a body counts as. While there is too little, slow bodies give way.
func (l *load) takeBytes(ctx context.Context, n int) bool {
	if l.bodies.take(gone, n) {
		return true
	}
	defer l.arriving.press()()
	return l.bodies.take(ctx, n)
}
