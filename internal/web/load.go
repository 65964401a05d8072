package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Bodies are counted in pieces, and none is longer than longestBody: the rest is left to the handler, which
// refuses it.
const (
	piece       = 64 << 10
	longestBody = 1 << 20
)

// load is the work of a server at once: requests, and pieces of their bodies. A channel has an element for each.
type load struct {
	bounds           Bounds
	requests, pieces chan struct{}
}

// newLoad returns a load within the bounds, with defaults for those that they leave open.
func newLoad(b Bounds) *load {
	b = b.withDefaults()
	return &load{b, make(chan struct{}, b.Requests), make(chan struct{}, max(b.Bodies, longestBody+piece)/piece)}
}

// take takes one of something, and reports whether it came in time: a request waits for others to end, but not for long.
func (l *load) take(r *http.Request, of chan struct{}) bool {
	select {
	case of <- struct{}{}:
		return true
	default:
	}
	ctx, cancel := context.WithTimeout(r.Context(), l.bounds.Wait)
	defer cancel()
	select {
	case of <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// wrap stands between the access and a handler: the access has let its requests in. A request's body is read before the request
// is worked on, so that one that comes slowly keeps no other from being so.
func (l *load) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Health {
			next.ServeHTTP(w, r)
			return
		}
		c := connOf(r)
		if c != nil {
			c.letIn()
		}
		held, whole := l.read(r)
		defer func() {
			for range held {
				<-l.pieces
			}
		}()
		if !whole {
			tooMany(w, r, "the requests that are being worked on have as many bytes as are taken at once")
			return
		}
		if !l.take(r, l.requests) {
			tooMany(w, r, fmt.Sprintf("%d requests are being worked on, and no more are taken at once", l.bounds.Requests))
			return
		}
		defer func() { <-l.requests }()
		if c != nil && !c.beginRequest() {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
}

// read reads a request's body, as far as any handler does, and has the handler find it in memory, with the error that it
// ended with. It takes a piece for each part that has come, and reports false if there is none for the next. The caller
// gives back the pieces that are held.
func (l *load) read(r *http.Request) (held int, whole bool) {
	if r.ContentLength == 0 {
		return 0, true
	}
	var parts []io.Reader
	for in := io.LimitReader(r.Body, longestBody+1); ; {
		if !l.take(r, l.pieces) {
			return held, false
		}
		held++
		part, err := io.ReadAll(io.LimitReader(in, piece))
		if parts = append(parts, bytes.NewReader(part)); err != nil {
			parts = append(parts, failing{err})
		}
		if err != nil || len(part) < piece {
			r.Body = arrived{io.MultiReader(append(parts, r.Body)...), r.Body}
			return held, true
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

// tooMany answers 503 and asks to come again in a second.
func tooMany(w http.ResponseWriter, r *http.Request, detail string) {
	w.Header().Set("Retry-After", "1")
	ProblemOf(http.StatusServiceUnavailable, "busy", detail+"; try again").refuseUnread(w, r)
}

// refuseUnread answers with the problem before a request's body was read. A server of
// ours would still read of the body, to use the connection again, it leaves: the
// connection ends.
func (p *Problem) refuseUnread(w http.ResponseWriter, r *http.Request) {
	if connOf(r) == nil {
		p.Write(w)
		return
	}
	w.Header().Set("Connection", "close")
	p.Write(w)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
}

// Health checks need no key, so all that come within probeEvery have one answer, which may take probeTime.
const (
	probeEvery = time.Second
	probeTime  = 2 * time.Second
)

// Healthy answers health checks by whether check returns an error; nil is no check.
func (t Talk) Healthy(check func(context.Context) error) http.Handler {
	var mu sync.Mutex
	var asked time.Time
	var failed error
	ask := func(r *http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if check != nil && time.Since(asked) >= probeEvery {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), probeTime)
			defer cancel()
			if failed = check(ctx); failed != nil {
				t.Log.WarnContext(r.Context(), "a request cannot be answered now", "path", r.URL.Path, "error", failed)
			}
			asked = time.Now()
		}
		return failed
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ask(r) == nil {
			WriteJSON(w, map[string]string{"status": "ok"})
			return
		}
		w.Header().Set("Retry-After", "5")
		ProblemOf(http.StatusServiceUnavailable, "unavailable", "the store does not answer").Write(w)
	})
}
