// Package web is the base of every HTTP server of weir: problems as RFC 9457 writes
// them, who may ask and how often, the answer when a handler panics, and a server
// that lets requests in progress end when it stops.
//
// A request meets these parts in turn, each of which may turn it away with a problem:
//
//   - listener.go: connections, at most Bounds.Connections and half of them from one address;
//   - access.go and keys.go: the key, compared by its hash, and the rate of that key;
//   - load.go: the body, read before the work begins and within a limit of bytes that all
//     requests share, so that a slow sender holds no worker;
//   - web.go: the handler, whose panic becomes a 500, or a broken connection, and a line in the log.
//
// server.go ends all that in order: no new connections, then the requests in progress. event.go has a handler answer
// requests that come as events of Lambda.
//
// Nothing here knows rows or models. All types may be used by many goroutines.
package web

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// MaxQuery is how many bytes a query string may have. A cursor may be long, since it
// holds keys.
const MaxQuery = 64 << 10

// MaxMistakes is how many mistakes a problem lists; it counts the rest.
const MaxMistakes = 100

// Problem is an error, an application/problem+json. Its type is
// urn:weir:problem:KIND.
type Problem struct {
	Type string `json:"type"`
	// Title is the same for all problems of a kind; Detail is about this one.
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Errors   any      `json:"errors,omitempty"` // each mistake by itself, of many the first
	More     int      `json:"more,omitempty"`   // how many mistakes there are besides
	Models   []string `json:"models,omitempty"` // the names that there are
	Queries  []string `json:"queries,omitempty"`
	Entities []string `json:"entities,omitempty"`
	ID       string   `json:"id,omitempty"` // under which the log has more
}

// ProblemOf makes a problem of a kind.
func ProblemOf(status int, kind, detail string) *Problem {
	return &Problem{Type: "urn:weir:problem:" + kind, Title: http.StatusText(status), Status: status, Detail: detail}
}

// Write answers with the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	SetHeaders(w, "application/problem+json")
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}

// SetHeaders sets the fields of every answer.
func SetHeaders(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// WriteJSON answers with a value as JSON.
func WriteJSON(w http.ResponseWriter, v any) {
	SetHeaders(w, "application/json")
	json.NewEncoder(w).Encode(v)
}

// Talk answers for errors that are not the asker's mistake. The parts that are not theirs to know are
// logged, and the answer has only the id of it.
type Talk struct{ Log *slog.Logger }

// Unavailable says that the same request may succeed later.
func (t Talk) Unavailable(w http.ResponseWriter, r *http.Request, detail string, err error) {
	t.Log.WarnContext(r.Context(), "a request cannot be answered now", "path", r.URL.Path, "error", err)
	w.Header().Set("Retry-After", "5")
	ProblemOf(http.StatusServiceUnavailable, "unavailable", detail).Write(w)
}

// Broken says that something is wrong here.
func (t Talk) Broken(w http.ResponseWriter, r *http.Request, err error, more ...any) {
	p := ProblemOf(http.StatusInternalServerError, "internal", "something is wrong here; the log has it under this id")
	p.ID = rand.Text()[:12]
	t.Log.ErrorContext(r.Context(), "a request failed", append([]any{"id", p.ID, "path", r.URL.Path, "error", err}, more...)...)
	p.Write(w)
}

// Text answers with a text that never changes.
func Text(contentType string, text []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		SetHeaders(w, contentType)
		w.Write(text)
	})
}

// Reads refuses methods that change something. HEAD is answered as GET without a body, OPTIONS with the methods.
func Reads(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			NotAllowed(w, r, "GET, HEAD, OPTIONS")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// NotAllowed refuses a method. OPTIONS is answered with the allowed ones.
func NotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	ProblemOf(http.StatusMethodNotAllowed, "method", fmt.Sprintf("%.20q is not possible here; these are: %s", r.Method, allowed)).Write(w)
}

// Guard stands before every request: it refuses a query string that is too long, and
// answers for a handler that panics. A panic after the answer has begun breaks the
// connection off, so that no client takes a part for the whole.
func (t Talk) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &watcher{ResponseWriter: w}
		defer func() {
			v := recover()
			switch {
			case v == nil:
			case v == http.ErrAbortHandler || seen.begun:
				t.Log.ErrorContext(r.Context(), "a request broke off", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			default:
				t.Broken(w, r, fmt.Errorf("panic: %v", v), "stack", string(debug.Stack()))
			}
		}()
		if n := len(r.URL.RawQuery); n > MaxQuery {
			ProblemOf(http.StatusRequestURITooLong, "too-long", fmt.Sprintf("the query string has %d bytes; %d are possible", n, MaxQuery)).Write(w)
			return
		}
		next.ServeHTTP(seen, r)
	})
}

// watcher notes whether an answer has begun.
type watcher struct {
	http.ResponseWriter
	begun bool
}

// Unwrap lets http.ResponseController find the writer below.
func (w *watcher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watcher) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *watcher) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}
