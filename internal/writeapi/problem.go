package writeapi

import (
	"net/http"

	"weir/internal/ingest"
	"weir/internal/web"
)

// mistake is one field or parameter that is not right.
// Exactly one of Pointer and Parameter is set.
type mistake struct {
	Pointer   string `json:"pointer,omitempty"` // RFC 6901, into the body
	Parameter string `json:"parameter,omitempty"`
	Message   string `json:"message"`
}

// refused is an error that is answered with this problem.
type refused struct {
	problem *web.Problem
	header  map[string]string
}

func (r *refused) Error() string { return r.problem.Detail }

// refuse makes a refusal. kind is the last part of the problem's type, and stable; detail is a sentence for people.
func refuse(status int, kind, detail string, mistakes ...mistake) *refused {
	p := web.ProblemOf(status, kind, detail)
	if len(mistakes) > 0 {
		few := mistakes[:min(len(mistakes), web.MaxMistakes)]
		p.Errors, p.More = few, len(mistakes)-len(few)
	}
	return &refused{problem: p}
}

// kinds are the statuses and names of what a writer refuses.
var kinds = map[ingest.Kind]struct {
	status int
	name   string
}{
	ingest.Invalid:  {http.StatusUnprocessableEntity, "invalid"},
	ingest.Exists:   {http.StatusConflict, "exists"},
	ingest.Missing:  {http.StatusNotFound, "missing"},
	ingest.Taken:    {http.StatusConflict, "taken"},
	ingest.Backward: {http.StatusConflict, "backward"},
	ingest.Stale:    {http.StatusPreconditionFailed, "stale"},
	ingest.Reused:   {http.StatusUnprocessableEntity, "idempotency-key"},
	ingest.TooLarge: {http.StatusRequestEntityTooLarge, "too-large"},
}

// problemOf says what a writer refused. The item stands in the body at a pointer, ""
// where it is the body; what is wrong with the whole is the detail alone.
func problemOf(r *ingest.Refusal, at string) *web.Problem {
	k := kinds[r.Kind]
	p := web.ProblemOf(k.status, k.name, r.Error())
	var mistakes []mistake
	for _, one := range r.Problems {
		if one.Pointer != "" {
			mistakes = append(mistakes, mistake{Pointer: at + one.Pointer, Message: one.Reason})
		}
	}
	if mistakes != nil {
		p.Errors, p.More = mistakes, r.More
	}
	return p
}
