package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"weir/internal/query"
	"weir/internal/store"
)

// problem is what went wrong, as RFC 9457 writes it.
type problem struct {
	Type    string          `json:"type"`
	Title   string          `json:"title"`
	Status  int             `json:"status"`
	Detail  string          `json:"detail"`
	Errors  []query.Problem `json:"errors,omitempty"`
	Models  []string        `json:"models,omitempty"`
	Queries []string        `json:"queries,omitempty"`
	ID      string          `json:"id,omitempty"` // under which the log has more
}

func problemOf(status int, kind, detail string) *problem {
	return &problem{Type: "urn:weir:problem:" + kind, Title: http.StatusText(status), Status: status, Detail: detail}
}

func (p *problem) write(w http.ResponseWriter) {
	setHeaders(w, "application/problem+json")
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}

var errMalformed = errors.New("the query string is not key=value&key=value with %-escapes")

// fail answers with what went wrong. What is not the asker's to know is logged
// under an id, and the answer has only the id.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	var wrong *query.ParameterError
	switch {
	case errors.As(err, &wrong):
		p := problemOf(http.StatusBadRequest, "parameter", wrong.Error())
		p.Errors = wrong.Problems
		p.write(w)
	case errors.Is(err, query.ErrCursor):
		p := problemOf(http.StatusBadRequest, "cursor", query.ErrCursor.Error()+"; begin again without it")
		p.Errors = []query.Problem{{Parameter: "cursor", Message: "is not one of this query with these parameters"}}
		p.write(w)
	case errors.Is(err, errMalformed):
		problemOf(http.StatusBadRequest, "malformed", err.Error()).write(w)
	case errors.Is(err, query.ErrTooMuch):
		problemOf(http.StatusUnprocessableEntity, "too-much", query.ErrTooMuch.Error()).write(w)
	case errors.Is(err, query.ErrUnavailable):
		problemOf(http.StatusServiceUnavailable, "unavailable", query.ErrUnavailable.Error()).write(w)
	case errors.Is(err, store.ErrClosed):
		a.unavailable(w, r, "the store is closed", err)
	case r.Context().Err() != nil: // nobody waits for an answer
	case errors.Is(err, context.DeadlineExceeded):
		a.unavailable(w, r, fmt.Sprintf("no answer within %d seconds", maxSeconds), err)
	default:
		a.broken(w, r, err)
	}
}

func (a *API) unavailable(w http.ResponseWriter, r *http.Request, detail string, err error) {
	a.log.WarnContext(r.Context(), "a request cannot be answered now", "path", r.URL.Path, "error", err)
	w.Header().Set("Retry-After", "5")
	problemOf(http.StatusServiceUnavailable, "unavailable", detail).write(w)
}

func (a *API) broken(w http.ResponseWriter, r *http.Request, err error, more ...any) {
	p := problemOf(http.StatusInternalServerError, "internal", "something is wrong here; the log has it under this id")
	p.ID = rand.Text()[:12]
	a.log.ErrorContext(r.Context(), "a request failed", append([]any{"id", p.ID, "path", r.URL.Path, "error", err}, more...)...)
	p.write(w)
}

// guard stands before every request: it refuses what no route takes, and answers
// for a handler that panics.
func (a *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &watcher{ResponseWriter: w}
		defer func() {
			v := recover()
			switch {
			case v == nil:
			case v == http.ErrAbortHandler || seen.begun:
				a.log.ErrorContext(r.Context(), "a request broke off", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			default:
				a.broken(w, r, fmt.Errorf("panic: %v", v), "stack", string(debug.Stack()))
			}
		}()
		switch {
		case len(r.URL.RawQuery) > maxQuery:
			problemOf(http.StatusRequestURITooLong, "too-long", fmt.Sprintf("the query string has %d bytes; %d are possible", len(r.URL.RawQuery), maxQuery)).write(w)
		case r.Method == http.MethodOptions:
			w.Header().Set("Allow", allowed)
			w.WriteHeader(http.StatusNoContent)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", allowed)
			problemOf(http.StatusMethodNotAllowed, "method", fmt.Sprintf("%.20q is not possible here; these are: %s", r.Method, allowed)).write(w)
		default:
			next.ServeHTTP(seen, r)
		}
	})
}

const allowed = "GET, HEAD, OPTIONS"

// watcher notes whether an answer has begun.
type watcher struct {
	http.ResponseWriter
	begun bool
}

func (w *watcher) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *watcher) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}
