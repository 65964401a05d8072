// Package writeapi takes writes of a model's rows over HTTP:
//
//	POST   /v1/{model}/{entity}         creates a row: 201 with its Location, 409 where it exists
//	PUT    /v1/{model}/{entity}         creates it (201) or replaces the application's attributes (200)
//	PATCH  /v1/{model}/{entity}         merges the fields given into it; null removes one
//	DELETE /v1/{model}/{entity}         removes it: 204, also where it is gone already
//	GET    /v1/{model}/{entity}         the row, with its ETag
//	POST   /v1/{model}/batch            commands, each answered by itself
//	GET    /openapi.json                all of this, described
//	GET    /healthz                     {"status": "ok"}, or 503
//
// The body is the row's fields as a JSON object. Those of its key may be given as
// query parameters instead, or as well. Idempotency-Key makes a write that is sent
// again be the same write; If-Match makes it hold for one revision of the row, which
// is its ETag. An error is an application/problem+json; each field that is not
// right is listed under errors, by its JSON pointer.
//
// The order of a request: its path names model and entity (entity.go), body and headers become a
// command, the writer does it, and the result or refusal becomes an answer. batch.go
// does the same for many commands. openapi.go and schema.go describe all of it from the models.
// Nothing is checked twice: the rules of a command are the writer's part (package ingest).
package writeapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/value"
	"weir/internal/web"
)

// maxSeconds bounds the work of a request.
const maxSeconds = 30

// Writer is the writer of the rows of a model: an *ingest.Writer.
// It has to be safe for many goroutines. A Result with an error that is no *ingest.Refusal means that the outcome is
// not known, and that the same command with the same idempotency key may be sent again.
type Writer interface {
	// Do answers each command, in order.
	Do(ctx context.Context, commands []ingest.Command) []ingest.Result
	// Sync returns when the commands that were done survive a crash.
	Sync(ctx context.Context) error
	// Read gives the row of an entity that has the key fields given.
	Read(ctx context.Context, entity string, key value.Item) ingest.Result
}

// Target is a model with the writer of its rows.
// Several APIs may share a Writer.
type Target struct {
	Model  *model.Model
	Writer Writer
}

// API is the handler. It answers under /v1, /openapi.json and /healthz, and 404
// elsewhere.
type API struct {
	targets []*target
	talk    web.Talk
	handler http.Handler
}

// target is a Target with the entities of its model that may be written.
type target struct {
	Target
	entities []*entity
	names    []string
}

// Options of an API.
type Options struct {
	Log   *slog.Logger // nil is slog.Default()
	Keyed bool         // requests need a key; the description says so
	// Queries are answered at the same address (Beside); the description has them too.
	Queries bool
	Health  func(context.Context) error // whether rows can be written now
}

// New makes the API of models, each with its writer.
// It makes the description once; the models must not change afterwards. Entities whose rows only
// weir writes have no path.
func New(targets []Target, o Options) (*API, error) {
	a := &API{talk: web.Talk{Log: o.Log}}
	if o.Log == nil {
		a.talk.Log = slog.Default()
	}
	for _, t := range targets {
		if a.target(t.Model.Name) != nil {
			return nil, fmt.Errorf("two models are named %s", t.Model.Name)
		}
		one := &target{Target: t}
		for _, e := range t.Model.Entities {
			if !e.Derived {
				one.entities = append(one.entities, newEntity(t.Model, e))
				one.names = append(one.names, e.Name)
			}
		}
		a.targets = append(a.targets, one)
	}
	description, err := a.describe(o.Keyed, o.Queries)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/{model}/batch", a.answerBatch)
	mux.HandleFunc("/v1/{model}/{entity}", a.answerEntity)
	mux.Handle("/openapi.json", web.Reads(web.Text("application/json", description)))
	mux.Handle(web.Health, web.Reads(a.talk.Healthy(o.Health)))
	mux.HandleFunc("/", a.answerNotFound)
	a.handler = a.talk.Guard(mux)
	return a, nil
}

// ServeHTTP answers one request. It may be called by many goroutines.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// Has reports whether an entity's rows are written here.
func (a *API) Has(model, entity string) bool {
	t := a.target(model)
	return t != nil && t.entity(entity) != nil
}

// target is the target of a model, nil if there is none of that name.
func (a *API) target(name string) *target {
	return seq.Find(a.targets, func(t *target) bool { return t.Model.Name == name })
}

// entity is an entity that may be written, nil for one that weir writes alone or that does not exist.
func (t *target) entity(name string) *entity {
	return seq.Find(t.entities, func(e *entity) bool { return e.Name == name })
}

// Do does commands. A command that is answered as done survives a crash.
// Where Sync fails, no command of cs counts as done, whatever the writer answered: none is known to survive.
func Do(ctx context.Context, w Writer, cs []ingest.Command) []ingest.Result {
	out := w.Do(ctx, cs)
	if !slices.ContainsFunc(out, isDone) {
		return out
	}
	if err := w.Sync(ctx); err != nil {
		for i := range out {
			if isDone(out[i]) {
				out[i] = ingest.Result{Err: err}
			}
		}
	}
	return out
}

// isDone reports whether a command has an effect that has to survive, or had it before.
func isDone(r ingest.Result) bool { return r.Err == nil }

const (
	// The Allow headers, for rows and batches.
	allowedEntity = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
	allowedBatch  = "POST, OPTIONS"
)

// ops are the methods that write.
var ops = map[string]ingest.Op{
	http.MethodPost: ingest.Create, http.MethodPut: ingest.Put, http.MethodPatch: ingest.Update, http.MethodDelete: ingest.Delete,
}

// answerEntity answers for one row.
// A read costs nothing of the rate; a write costs one.
func (a *API) answerEntity(w http.ResponseWriter, r *http.Request) {
	t := a.target(r.PathValue("model"))
	if t == nil {
		a.noModel(w, r)
		return
	}
	e := t.entity(r.PathValue("entity"))
	if e == nil {
		a.noEntity(w, t, r.PathValue("entity"))
		return
	}
	op, writes := ops[r.Method]
	ctx, cancel := context.WithTimeout(r.Context(), maxSeconds*time.Second)
	defer cancel()
	switch {
	case writes && web.Spend(w, r, 1):
		c, err := e.readCommand(w, r, op)
		if err != nil {
			a.answerError(w, r, err)
			return
		}
		a.answerCommand(w, r, t, e, Do(ctx, t.Writer, []ingest.Command{c})[0])
	case writes:
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		key, err := e.readQuery(r.URL.RawQuery)
		if err != nil {
			a.answerError(w, r, err)
			return
		}
		a.answerCommand(w, r, t, e, t.Writer.Read(ctx, e.Name, key))
	default:
		web.NotAllowed(w, r, allowedEntity)
	}
}

// answerCommand answers with the outcome of a command.
// ETag and Idempotent-Replayed are set also on problems, where the result has them.
func (a *API) answerCommand(w http.ResponseWriter, r *http.Request, t *target, e *entity, res ingest.Result) {
	if res.Revision != "" {
		w.Header().Set("ETag", `"`+res.Revision+`"`)
	}
	if res.Repeated {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	switch {
	case res.Err != nil:
		a.answerError(w, r, res.Err)
		return
	case isGone(ops[r.Method], res):
		gone().Write(w)
		return
	case r.Method == http.MethodDelete:
		web.SetHeaders(w, "")
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	web.SetHeaders(w, "application/json")
	if status := statusOf(res); status == http.StatusCreated {
		w.Header().Set("Location", e.location(t.Model.Name, res.Row))
		w.WriteHeader(status)
	}
	w.Write(append(value.AppendPlainItem(nil, res.Row), '\n'))
}

// isGone reports whether a write was done before, by its idempotency key, and its row was
// removed since: there is nothing to give, and it is not done again.
func isGone(op ingest.Op, res ingest.Result) bool {
	return res.Err == nil && res.Repeated && res.Row == nil && op != ingest.Delete
}

// gone is the problem of such a write.
func gone() *web.Problem {
	return web.ProblemOf(http.StatusGone, "gone", "this request was done before, and its row was removed since; use another idempotency key to write it again")
}

// statusOf is the status of a command that went well.
func statusOf(res ingest.Result) int {
	switch {
	case res.Done == ingest.Created && !res.Repeated:
		return http.StatusCreated
	case res.Done == ingest.Deleted || res.Row == nil:
		return http.StatusNoContent
	}
	return http.StatusOK
}

// answerNotFound answers for every other path.
func (a *API) answerNotFound(w http.ResponseWriter, r *http.Request) {
	web.ProblemOf(http.StatusNotFound, "not-found", "there is nothing here; /openapi.json says what there is").Write(w)
}

// noModel answers for a model that is not served, with the names of those that are and a guess.
func (a *API) noModel(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("model")
	p := web.ProblemOf(http.StatusNotFound, "not-found", fmt.Sprintf("there is no model %.100q", name))
	p.Models = append(p.Models, seq.Map(a.targets, func(t *target) string { return t.Model.Name })...)
	p.Detail += model.Meant(name, p.Models)
	p.Write(w)
}

// noEntity answers for an entity that is not written here, and says if weir alone writes it.
func (a *API) noEntity(w http.ResponseWriter, t *target, name string) {
	p := web.ProblemOf(http.StatusNotFound, "not-found", fmt.Sprintf("there is no entity %.100q in model %s", name, t.Model.Name))
	if t.Model.Entity(name) != nil {
		p.Detail = fmt.Sprintf("rows of %s are written by weir alone; read them with a query", name)
	}
	p.Entities = t.names
	p.Detail += model.Meant(name, p.Entities)
	p.Write(w)
}

// answerError answers with the problem that an error is.
// Only a *refused or an *ingest.Refusal is the client's mistake. Of everything else the outcome is not known, and the
// answer says so with a 503.
func (a *API) answerError(w http.ResponseWriter, r *http.Request, err error) {
	var p *refused
	switch refusal := (*ingest.Refusal)(nil); {
	case errors.As(err, &p):
		for name, v := range p.header {
			w.Header().Set(name, v)
		}
		p.problem.Write(w)
	case errors.As(err, &refusal):
		problemOf(refusal, "").Write(w)
	case r.Context().Err() != nil: // the client no longer waits for an answer
	case errors.Is(err, context.DeadlineExceeded):
		a.talk.Unavailable(w, r, fmt.Sprintf("no answer within %d seconds; whether it was written is not known: send it again", maxSeconds), err)
	default:
		a.talk.Unavailable(w, r, "the store does not answer; whether it was written is not known: send it again", err)
	}
}

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

// newRefusal makes a refusal. kind is the last part of the problem's type, and stable; detail is a sentence for people.
func newRefusal(status int, kind, detail string, mistakes ...mistake) *refused {
	p := web.ProblemOf(status, kind, detail)
	if len(mistakes) > 0 {
		few := mistakes[:min(len(mistakes), web.MaxMistakes)]
		p.Errors, p.More = few, len(mistakes)-len(few)
	}
	return &refused{problem: p}
}

// kinds are the statuses and names of a writer's refusals.
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

// problemOf is the problem of a writer's refusal. The item stands in the body at a pointer, ""
// where it is the body; a fault of the whole is the detail alone.
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

// Beside serves this API and one that answers queries at the same address. A GET of a
// name that is both a query and an entity is the query; everything that only one of
// them knows is its own.
// The paths of this API are checked first, so queries sees only its own.
func (a *API) Beside(queries http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		model, name, two := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
		t := a.target(model)
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case r.URL.Path == "/openapi.json":
			a.ServeHTTP(w, r)
		case !two || t == nil || !strings.HasPrefix(r.URL.Path, "/v1/"):
			queries.ServeHTTP(w, r)
		case reads && t.Model.Query(name) == nil && t.entity(name) != nil:
			a.ServeHTTP(w, r)
		case !reads && (name == "batch" || t.entity(name) != nil || t.Model.Query(name) == nil):
			a.ServeHTTP(w, r)
		default:
			queries.ServeHTTP(w, r)
		}
	})
}
