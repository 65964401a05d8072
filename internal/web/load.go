package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// pool is so many of something, taken and given back. Requests that wait are served in turn.
type pool struct {
	turn chan struct{} // held by the one who takes
	free chan struct{}
}

// newPool returns a pool with n free.
func newPool(n int) *pool {
	p := &pool{turn: make(chan struct{}, 1), free: make(chan struct{}, n)}
	for range n {
		p.free <- struct{}{}
	}
	return p
}

// take takes n, and reports whether they came before ctx was done. What is free is taken
// even then, and none need no turn.
func (p *pool) take(ctx context.Context, n int) bool {
	if n == 0 {
		return true
	}
	if !sent(ctx, p.turn) {
		return false
	}
	defer func() { <-p.turn }()
	for i := range n {
		if !received(ctx, p.free) {
			p.give(i)
			return false
		}
	}
	return true
}

// sent and received report whether it was done before ctx was. What is possible at once is done even after that.
func sent(ctx context.Context, c chan<- struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	default:
	}
	select {
	case c <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// received waits for a token or the end of the context. A token that is there already wins, so a
// request that could begin is never refused.
func received(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
	}
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

// give gives back n that were taken. It never waits.
func (p *pool) give(n int) {
	for range n {
		p.free <- struct{}{}
	}
}

// Bodies are counted in pieces. One whose length is not told counts as the longest
// that a server takes.
const (
	piece       = 64 << 10
	longestBody = 1 << 20
)

// load is what a server works on at once: requests, and bytes of their bodies.
type load struct {
	bounds           Bounds
	requests, bodies *pool
	arriving         arrivals
	health           probe
}

// newLoad returns a load within the bounds, with defaults for what they leave open.
func newLoad(b Bounds) *load {
	b = b.withDefaults()
	return &load{bounds: b, requests: newPool(b.Requests), bodies: newPool(max(b.Bodies, longestBody) / piece)}
}

// pieces is what a request's body counts as.
func pieces(r *http.Request) int {
	n := r.ContentLength
	if n < 0 || n > longestBody {
		n = longestBody
	}
	return int((n + piece - 1) / piece)
}

// wrap stands between the access and a handler: what comes here was let in. It waits
// for others to end where there are too many, and refuses when that takes too long.
func (l *load) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connOf(r)
		if r.URL.Path == Health {
			if c != nil && c.isSpare() {
				w.Header().Set("Connection", "close")
			}
			l.health.serve(w, r, next)
			return
		}
		if c != nil {
			switch c.begin() {
			case errGone:
				panic(http.ErrAbortHandler)
			case errFull:
				tooMany(w, r, fmt.Sprintf("all connections that are taken are being worked for, %d from your address at the most", l.bounds.of(c.from)))
				return
			}
		}
		leave, full := l.enter(w, r)
		if full != "" {
			tooMany(w, r, full)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}

// enter reads a request's body and waits until the request may be worked on. When that
// takes too long, full says of what there is too much. The bytes come first, then the
// body: one that waits, or comes slowly, keeps no other request from being worked on.
func (l *load) enter(w http.ResponseWriter, r *http.Request) (leave func(), full string) {
	n := pieces(r)
	if !l.within(r, func(ctx context.Context) bool { return l.takeBytes(ctx, n) }) {
		return nil, "the requests that are being worked on have as many bytes as are taken at once"
	}
	if err := l.arriving.read(w, r); err != nil {
		l.bodies.give(n)
		return nil, err.Error()
	}
	if !l.within(r, func(ctx context.Context) bool { return l.requests.take(ctx, 1) }) {
		l.bodies.give(n)
		return nil, fmt.Sprintf("%d requests are being worked on, and no more are taken at once", l.bounds.Requests)
	}
	return func() {
		l.requests.give(1)
		l.bodies.give(n)
	}, ""
}

// within has take wait as long as a request waits for others.
func (l *load) within(r *http.Request, take func(context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(r.Context(), l.bounds.Wait)
	defer cancel()
	return take(ctx)
}

// tooMany answers 503 and asks to come again in a second.
func tooMany(w http.ResponseWriter, r *http.Request, detail string) {
	w.Header().Set("Retry-After", "1")
	ProblemOf(http.StatusServiceUnavailable, "busy", detail+"; try again").refuse(w, r)
}

// refuse answers with the problem before a request's body was read. What a server of
// ours would still read of the body, to use the connection again, it leaves: the
// connection ends.
func (p *Problem) refuse(w http.ResponseWriter, r *http.Request) {
	if connOf(r) == nil {
		p.Write(w)
		return
	}
	w.Header().Set("Connection", "close")
	p.Write(w)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
}

// probe answers health checks. They need no key, so all that come within a second get
// one answer, and cost the store one question.
type probe struct {
	mu     sync.Mutex
	at     time.Time
	answer *recorded
}

const probeEvery = time.Second

// serve answers a health check with an answer that is at most probeEvery old, so that any number of
// them asks the store once a second.
func (p *probe) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		next.ServeHTTP(w, r)
		return
	}
	answer := p.ask(r, next)
	for name, values := range answer.header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.status)
	w.Write(answer.body.Bytes())
}

// ask asks next with a request of its own, without anything that the client sent: the answer is for
// everyone.
func (p *probe) ask(r *http.Request, next http.Handler) *recorded {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer == nil || time.Since(p.at) >= probeEvery {
		own := r.Clone(context.WithoutCancel(r.Context()))
		own.Method, own.Body, own.ContentLength, own.URL.RawQuery = http.MethodGet, http.NoBody, 0, ""
		own.Header = http.Header{}
		answer := &recorded{header: http.Header{}, status: http.StatusOK}
		next.ServeHTTP(answer, own)
		p.answer, p.at = answer, time.Now()
	}
	return p.answer
}

// recorded is an answer that is kept. It is not changed once it is one.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *recorded) Header() http.Header         { return a.header }
func (a *recorded) WriteHeader(status int)      { a.status = status }
func (a *recorded) Write(b []byte) (int, error) { return a.body.Write(b) }
