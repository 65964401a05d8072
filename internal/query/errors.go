package query

import (
	"errors"
	"fmt"
	"strings"

	"weir/internal/model"
	"weir/internal/seq"
)

// The kinds of error, by the caller's next step. Every other one is a fault of
// the store, of the index or of the model, and says so.
var (
	// ErrNotFound: the model has no query of this name.
	ErrNotFound = errors.New("no such query")
	// ErrParameter: a parameter is missing, unknown, or not of its type. The error
	// is a *ParameterError.
	ErrParameter = errors.New("a parameter is wrong")
	// ErrCursor: the cursor did not come from an answer to this query with these
	// parameters. Start again from the first page.
	ErrCursor = errors.New("the cursor is not one of this query with these parameters")
	// ErrUnavailable: there is no search index.
	ErrUnavailable = errors.New("search is not available")
	// ErrBuilding: the search index is not built yet, or has not caught up yet, or is gone from its cluster.
	ErrBuilding = errors.New("the search index is being built")
	// ErrTooMuch: the answer cannot be given in parts, and needs more reading than
	// one request may cost.
	ErrTooMuch = errors.New("there is more to read than one answer may cost")
)

// ParameterError says everything that is wrong with the parameters of a query. It
// wraps ErrParameter.
type ParameterError struct {
	Problems []Problem
}

// Problem is the fault of one parameter.
type Problem struct {
	Parameter string `json:"parameter"`
	Message   string `json:"message"`
}

// maxSentences is how many problems Error lists.
const maxSentences = 10

// Error lists the first problems on one line, and counts the rest.
func (e *ParameterError) Error() string {
	parts := seq.Map(e.Problems[:min(len(e.Problems), maxSentences)], func(p Problem) string { return p.Parameter + " " + p.Message })
	if more := len(e.Problems) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

func (e *ParameterError) Unwrap() error { return ErrParameter }

// notFound says that the model has no such query, with the one that was probably meant.
func (e *Engine) notFound(name string) error {
	names := make([]string, len(e.Model.Queries))
	for i, q := range e.Model.Queries {
		names[i] = q.Name
	}
	return &notFound{fmt.Sprintf("%s has no query %.100q", e.Model.Name, name) + model.Meant(name, names)}
}

// notFound is an ErrNotFound that says which names there are instead.
type notFound struct{ text string }

// Error names the query, and one that was probably meant.
func (e *notFound) Error() string { return e.text }
func (e *notFound) Unwrap() error { return ErrNotFound }
