package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"weir/internal/query"
	"weir/internal/store"
	"weir/internal/web"
)

// errMalformed is a query string that cannot be read at all.
var errMalformed = errors.New("the query string is not key=value&key=value with %-escapes")

// fail answers with what went wrong.
// Errors that are not the client's are logged with an id; the answer has the id and nothing of the store's words.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	var wrong *query.ParameterError
	switch {
	case errors.As(err, &wrong):
		few := wrong.Problems[:min(len(wrong.Problems), web.MaxMistakes)]
		p := web.ProblemOf(http.StatusBadRequest, "parameter", wrong.Error())
		p.Errors, p.More = few, len(wrong.Problems)-len(few)
		p.Write(w)
	case errors.Is(err, query.ErrCursor):
		p := web.ProblemOf(http.StatusBadRequest, "cursor", query.ErrCursor.Error()+"; begin again without it")
		p.Errors = []query.Problem{{Parameter: "cursor", Message: "is not one of this query with these parameters"}}
		p.Write(w)
	case errors.Is(err, errMalformed):
		web.ProblemOf(http.StatusBadRequest, "malformed", err.Error()).Write(w)
	case errors.Is(err, query.ErrTooMuch):
		web.ProblemOf(http.StatusUnprocessableEntity, "too-much", query.ErrTooMuch.Error()).Write(w)
	case errors.Is(err, query.ErrUnavailable):
		web.ProblemOf(http.StatusServiceUnavailable, "unavailable", query.ErrUnavailable.Error()).Write(w)
	case errors.Is(err, query.ErrBuilding):
		w.Header().Set("Retry-After", "10")
		web.ProblemOf(http.StatusServiceUnavailable, "building", query.ErrBuilding.Error()+"; until it is complete, searches are not answered").Write(w)
	case errors.Is(err, store.ErrClosed):
		a.talk.Unavailable(w, r, "the store is closed", err)
	case r.Context().Err() != nil: // the client no longer waits for an answer
	case errors.Is(err, context.DeadlineExceeded):
		a.talk.Unavailable(w, r, fmt.Sprintf("no answer in time, which is %d seconds at the most: ask for less, or later", maxSeconds), err)
	default:
		a.talk.Broken(w, r, err)
	}
}

// allowed is the Allow header of every path.
const allowed = "GET, HEAD, OPTIONS"

// reads refuses what changes something.
// HEAD is answered as GET without a body, OPTIONS with the methods.
func reads(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			web.NotAllowed(w, r, allowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}
