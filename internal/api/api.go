// Package api answers the named queries of models over HTTP:
//
//	GET /v1                     {"models": [{"name", "href"}]}
//	GET /v1/{model}             {"model", "queries": [{"name", "href", "parameters": [{"name", "type", "optional", "oneOf"}]}]}
//	GET /v1/{model}/{query}     {"items": [row, …], "cursor": "…"}, by key=value, limit=, cursor= and select=
//	GET /v1/{model}/status      tables, readers, derivations, builds and search indexes
//	GET /healthz                {"status": "ok"}, or 503
//	GET /openapi.json           all of this as an OpenAPI description of the models
//
// A page without a cursor is the last; one with a cursor may be short, or empty.
// An error is an application/problem+json (RFC 9457) with type, title,
// status and detail. 429 is for one who asks too often, 503 for too much at once; both say
// when to ask again (Retry-After). Wrong parameters are listed under errors, and a name that is
// not there comes with the names that are.
//
// api.go has the paths and the errors, describe.go the OpenAPI description, which
// writeapi shares. turns.go bounds the requests that are worked on at once; connections, keys and rates are
// package web's.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/query"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
	"weir/internal/web"
)

// maxSeconds bounds the work of a request, the wait for its turn included.
const maxSeconds = 30

// Queries that are worked on at once, and pieces of pages above smallPage that are written at once,
// which bounds the memory that they hold; a key, or an address without one, may have half of
// each. How long others wait for their turn; and how long a page may take to be read.
const (
	maxQueries = 16
	maxPages   = 256      // pieces of smallPage
	smallPage  = 64 << 10 // bytes of rows
	maxWait    = 2 * time.Second
	maxWrite   = 15 * time.Second
)

// API is the handler. It answers under /v1 and /healthz, and 404 elsewhere.
// It may be used by many goroutines. It keeps no state but turns: any number of servers may answer for one store.
type API struct {
	engines []*query.Engine
	options Options
	talk    web.Talk
	handler http.Handler
	turns   *turns // of queries
	pages   *turns // of pieces of pages that are written
}

// Options are the options of an API. The zero Options are right for tests.
type Options struct {
	Log *slog.Logger // nil is slog.Default()
	// Keyed says that requests need a key, in the description of the API.
	Keyed bool
	// Status returns the answer of GET /v1/{model}/status, as JSON. Without it there is none.
	Status func(ctx context.Context, model string) (any, error)
}

// New makes the API of models, each with its engine.
// Two models of one name are an error. Nothing is read from the stores until a request comes.
func New(engines []*query.Engine, o Options) (*API, error) {
	a := &API{engines: engines, options: o, talk: web.Talk{Log: o.Log}, turns: newTurns(maxQueries, maxWait), pages: newTurns(maxPages, maxWait)}
	if o.Log == nil {
		a.talk.Log = slog.Default()
	}
	for i, e := range engines {
		if a.engine(e.Model.Name) != engines[i] {
			return nil, fmt.Errorf("two models are named %s", e.Model.Name)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1", a.answerModels)
	mux.HandleFunc("/v1/{$}", a.answerModels)
	mux.HandleFunc("/v1/{model}", a.answerQueries)
	mux.HandleFunc("/v1/{model}/{query}", a.answerQuery)
	if o.Status != nil {
		mux.HandleFunc("/v1/{model}/"+model.StatusPath, a.answerStatus)
	}
	mux.Handle(web.Health, a.talk.Healthy(a.answerHealth))
	description, err := a.describe()
	if err != nil {
		return nil, err
	}
	mux.Handle("/openapi.json", web.Text("application/json", description))
	mux.HandleFunc("/", a.answerNotFound)
	zip, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.CompressionLevel(1))
	if err != nil {
		return nil, err
	}
	a.handler = zip(a.talk.Guard(web.Reads(mux)))
	return a, nil
}

// ServeHTTP answers one request. A panic before the first byte is a 500 with an id that the log has too; after it, the
// connection breaks off.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// engine is the engine of a model, nil if there is none of that name.
func (a *API) engine(model string) *query.Engine {
	return seq.Find(a.engines, func(e *query.Engine) bool { return e.Model.Name == model })
}

// modelNames are the names of the models, never nil, for answers and hints.
func (a *API) modelNames() []string {
	return seq.Map(a.engines, func(e *query.Engine) string { return e.Model.Name })
}

// queryNames are the names of a model's queries, never nil, in the order of its file.
func queryNames(e *query.Engine) []string {
	return seq.Map(e.Model.Queries, func(q *model.Query) string { return q.Name })
}

// link is a model or a query in a list. Parameters is nil for a model, and left out.
type link struct {
	Name       string             `json:"name"`
	Href       string             `json:"href"`
	Parameters *[]query.Parameter `json:"parameters,omitempty"`
}

// answerModels answers GET /v1.
func (a *API) answerModels(w http.ResponseWriter, r *http.Request) {
	links := seq.Map(a.engines, func(e *query.Engine) link {
		return link{Name: e.Model.Name, Href: "/v1/" + url.PathEscape(e.Model.Name)}
	})
	web.WriteJSON(w, map[string]any{"models": links})
}

// answerQueries answers GET /v1/{model}.
func (a *API) answerQueries(w http.ResponseWriter, r *http.Request) {
	e := a.engine(r.PathValue("model"))
	if e == nil {
		a.noModel(w, r)
		return
	}
	links := []link{}
	for _, q := range e.Model.Queries {
		ps := append([]query.Parameter{}, e.Parameters(q.Name)...)
		links = append(links, link{q.Name, "/v1/" + url.PathEscape(e.Model.Name) + "/" + url.PathEscape(q.Name), &ps})
	}
	web.WriteJSON(w, map[string]any{"model": e.Model.Name, "queries": links})
}

// answerQuery answers GET /v1/{model}/{query}. A request costs its asker one of the rate; a query that has to wait too
// long for its turn is a 503, which is safe to send again.
func (a *API) answerQuery(w http.ResponseWriter, r *http.Request) {
	e := a.engine(r.PathValue("model"))
	if e == nil {
		a.noModel(w, r)
		return
	}
	params, page, names, err := parseParameters(r.URL.RawQuery)
	if err != nil {
		a.answerError(w, r, err)
		return
	}
	if !web.Spend(w, r, 1) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxSeconds*time.Second)
	defer cancel()
	res, written, err := a.runQuery(ctx, r, e, params, page)
	defer written()
	switch {
	case errors.Is(err, errBusy):
		busy(w)
	case errors.Is(err, query.ErrNotFound):
		p := web.ProblemOf(http.StatusNotFound, "not-found", err.Error())
		p.Queries = queryNames(e)
		p.Write(w)
	case err != nil:
		a.answerError(w, r, err)
	default:
		if len(res.Unfinished) > 0 {
			w.Header().Set(Unfinished, strings.Join(res.Unfinished, ", "))
		}
		// What cannot be told so has its own limit.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(maxWrite))
		writePage(w, res, names)
	}
}

// Unfinished is the header of an answer with the names of derivations whose values the rows do not show yet, or show by another
// definition, because a build is not complete; or show as of when the stream of a table was switched off. A search names its index so.
const Unfinished = "Weir-Unfinished"

// answerStatus answers GET /v1/{model}/status. It takes a turn as a query does, since it reads the store.
func (a *API) answerStatus(w http.ResponseWriter, r *http.Request) {
	if a.engine(r.PathValue("model")) == nil {
		a.noModel(w, r)
		return
	}
	if !web.Spend(w, r, 1) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxSeconds*time.Second)
	defer cancel()
	who := web.AskerOf(r)
	if !a.turns.take(ctx, who, 1) {
		busy(w)
		return
	}
	defer a.turns.give(who, 1)
	st, err := a.options.Status(ctx, r.PathValue("model"))
	if err != nil {
		a.answerError(w, r, err)
		return
	}
	web.WriteJSON(w, st)
}

// errBusy means that a turn did not come within maxWait. Nothing was read.
var errBusy = errors.New("there are too many queries")

// runQuery answers a query when it has its turn, and gives the turn back: a client that reads slowly
// keeps none. A page that is not small has a turn to be written, until written is called.
// written is never nil and has to be called once, also after an error.
func (a *API) runQuery(ctx context.Context, r *http.Request, e *query.Engine, params map[string]string, page query.Page) (res query.Result, written func(), err error) {
	who, written := web.AskerOf(r), func() {}
	if !a.turns.take(ctx, who, 1) {
		return res, written, errBusy
	}
	defer a.turns.give(who, 1)
	if res, err = e.Run(ctx, r.PathValue("query"), params, page); err != nil {
		return res, written, err
	}
	size := 0
	for _, row := range res.Items {
		size += row.Size()
	}
	if size > smallPage {
		n := min(1+size/smallPage, a.pages.share)
		if !a.pages.take(ctx, who, n) {
			return query.Result{}, written, errBusy
		}
		written = func() { a.pages.give(who, n) }
	}
	return res, written, nil
}

// busy refuses a query because of others.
func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "2")
	web.ProblemOf(http.StatusServiceUnavailable, "busy", fmt.Sprintf("%d queries are worked on, and large pages written, at once, half of them for one key or address, and others wait; ask again later", maxQueries)).Write(w)
}

// parseParameters reads a query string. limit and cursor may be there without a value. names are
// the attributes to answer, none for all.
// All that is wrong is collected into one query.ParameterError, so a client sees every mistake at once.
func parseParameters(raw string) (params map[string]string, page query.Page, names []string, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, page, nil, errMalformed
	}
	var bad query.ParameterError
	params = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if params[name] = values.Get(name); len(values[name]) > 1 {
			bad.Problems = append(bad.Problems, query.Problem{Parameter: name, Message: "is given more than once"})
		}
	}
	if text := params["limit"]; text != "" {
		if page.Limit, err = strconv.Atoi(text); err != nil || page.Limit < 1 || page.Limit > query.MaxLimit {
			bad.Problems = append(bad.Problems, query.Problem{Parameter: "limit", Message: fmt.Sprintf("must be a number from 1 to %d, not %.20q", query.MaxLimit, text)})
		}
	}
	page.Cursor = params["cursor"]
	if text, given := params["select"]; given {
		names = strings.Split(text, ",")
		if slices.Contains(names, "") {
			bad.Problems = append(bad.Problems, query.Problem{Parameter: "select", Message: "must list names of attributes with commas between them"})
		}
	}
	delete(params, "limit")
	delete(params, "cursor")
	delete(params, "select")
	if bad.Problems != nil {
		return nil, page, nil, &bad
	}
	return params, page, names, nil
}

// answerHealth says whether queries can be answered: it reads one row of weir's own table for each model.
func (a *API) answerHealth(ctx context.Context) error {
	for _, e := range a.engines {
		if _, err := e.Store.Get(ctx, []store.Ref{owntable.Secret()}); err != nil {
			return err
		}
	}
	return nil
}

// answerNotFound answers for every other path.
func (a *API) answerNotFound(w http.ResponseWriter, r *http.Request) {
	web.ProblemOf(http.StatusNotFound, "not-found", "there is nothing here; the models are under /v1").Write(w)
}

// noModel answers for a model that the server does not have, with the names of those that it has and a guess.
func (a *API) noModel(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("model")
	p := web.ProblemOf(http.StatusNotFound, "not-found", fmt.Sprintf("there is no model %.100q", name))
	p.Models = a.modelNames()
	p.Detail += model.Meant(name, p.Models)
	p.Write(w)
}

// chunk is how many bytes are gathered before they are written.
const chunk = 32 << 10

// chunks are the buffers of writePage. Small pages allocated little beside their buffer.
var chunks = sync.Pool{New: func() any { b := make([]byte, 0, chunk); return &b }}

// writePage streams a page: no more than a chunk and a row is in memory as JSON.
// A client that goes away ends it silently: by then the status is sent, and no client is left to tell.
func writePage(w http.ResponseWriter, res query.Result, names []string) {
	web.SetHeaders(w, "application/json")
	buf := chunks.Get().(*[]byte)
	b := append((*buf)[:0], `{"items":[`...)
	defer func() {
		if *buf = b; cap(b) <= 2*chunk { // a large row does not stay in memory
			chunks.Put(buf)
		}
	}()
	for i, row := range res.Items {
		if i > 0 {
			b = append(b, ',')
		}
		if b = value.AppendPlainItem(b, query.Select(row, names)); len(b) < chunk {
			continue
		}
		if _, err := w.Write(b); err != nil {
			return // the client no longer listens
		}
		b = b[:0]
	}
	b = append(b, ']')
	if res.Cursor != "" {
		b = append(b, `,"cursor":"`...) // base64url needs no escapes
		b = append(append(b, res.Cursor...), '"')
	}
	b = append(b, "}\n"...)
	w.Write(b)
}

// errMalformed is a query string that cannot be read at all.
var errMalformed = errors.New("the query string is not key=value&key=value with %-escapes")

// answerError answers with the problem that an error is.
// Errors that are not the client's are logged with an id; the answer has the id and nothing of the store's words.
func (a *API) answerError(w http.ResponseWriter, r *http.Request, err error) {
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
