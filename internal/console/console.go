// Package console serves web pages that show the derived data of a model, and explain it:
//
//	GET /                              the models
//	GET /console/{model}               derivations, their sources and states
//	GET /console/{model}/rows          rows by entity, by index, by item collection
//	GET /console/{model}/row           one row: the application's values and weir's
//	GET /console/{model}/row.json      the same row, in DynamoDB's JSON
//	GET /console/{model}/why           the rows that count towards a derived value now
//	GET /console/{model}/queries       the named queries
//	GET /console/{model}/query/{query} a form for one, and its answer
//	GET /console/{model}/tail          records as they are applied
//	GET /console/{model}/tail/events   the same as server-sent events
//	GET /console/{model}/dead          dead letters
//	GET /console/{model}/dead/{id}     one, with its record
//	GET /console/{model}/health        lag by shard, builds, tables, search, differences
//
// A console that may act (Options.Write) also answers these:
//
//	POST /console/{model}/dead         retries all dead letters
//	POST /console/{model}/dead/{id}    retries or discards one
//	POST /console/{model}/verify       recounts everything, or ends a recount
//
// With tools to try things out (Options.Try) there are /try, /new/{entity} and /kill as well, and /console/run.txt, by which a
// page sees that the process has begun again, with another model.
//
// The pages are rendered here and need no JavaScript; a small script adds records to a tail and asks a search as one types. A
// value of a row is text in them and never markup: html/template escapes it, and the content
// security policy allows no script but the console's own file, and no style but the one text that each page has: a browser
// draws a page with one request. A page reads a bounded
// number of rows. Between requests, only the last records that were applied are kept (hub.go).
//
// A GET changes nothing. A POST must come from one of the console's own pages (act.go).
//
// The files, by page:
//
//	console.go, render.go              paths and access, templates
//	graph.go, derivations.go,
//	streams.go                         the model, drawn from the plan, with the state of each derivation and stream
//	rows.go, row.go, refs.go           rows, a row, and the links from one to another
//	why.go, history.go, picture.go     the rows that count towards a value, the records that changed it, its course
//	queries.go                         forms for queries and searches
//	hub.go, tail.go, effects.go        the reports of followers, handed to tails that may be slow
//	letters.go                         the same for programs, as JSON
//	dead.go, retry.go                  dead letters, and the actions on one
//	health.go, course.go, check.go     lag and its last hour, leases, builds; a recount
//	act.go, try.go                     the proof that every action needs; the tools of dev
package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"weir/internal/budget"
	"weir/internal/reader"
	"weir/internal/status"
	"weir/internal/system"
	"weir/internal/web"
)

//go:embed assets/console.css
var style string

//go:embed assets/console.js
var script []byte

//go:embed pages
var pages embed.FS

// Options are the needs of a console besides the system.
type Options struct {
	Log *slog.Logger // nil is slog.Default()
	// Status returns the status of a model; see status.Recent.
	// It is called for each page that shows a state, so it should remember its answer for a moment.
	Status func(ctx context.Context, model string) (status.Status, error)
	// Shards returns the shards that this process reads of a model; nil for a store that one process has.
	// It is called while a page is made and must not wait for a service.
	Shards func(model string) []reader.Status
	// Stopped returns the parts of a model that stand still; nil for a store where nothing can.
	Stopped func(model string) []reader.Stopped
	// Units returns the write units used of each table; nil where they are not counted.
	Units func() []budget.Use
	// Activity has the records that the followers of this process apply; nil is nothing.
	Activity *Activity
	// Recordings has, by model, recorded files that a page may read to explain a value.
	Recordings map[string]Recordings
	// Reader names the process that reads the streams of a model, "" for this one; nil for a store that one process
	// has.
	Reader func(model string) string
	// Write allows actions; without it the console only reads.
	Write bool
	// Try, if set, adds tools to try things out to a console that may act.
	Try          *Try
	every        time.Duration // between samples; 0 is sampleEvery
	mostRecorded int           // 0 is mostRecorded
}

// Console is the handler. It answers under / and web.Console.
// It may be used from many goroutines. It reads the system's store and runner, and starts
// goroutines of its own only for actions; Close waits for these.
type Console struct {
	system  *system.System
	options Options
	talk    web.Talk
	pages   *template.Template
	handler http.Handler
	tails   chan struct{}      // has an element for each open tail
	reading chan struct{}      // has an element while recordings are read
	courses map[string]*course // by model, as checks; no model is added later, so the maps need no lock
	checks  map[string]*check
	// token is in every form of this process, and the same for all readers: it proves that a form was rendered here, not
	// which person sends it. Keys do that (package web).
	token string
	one   chan struct{} // has an element while an action is being done
	// ctx ends when the console closes. Work that outlives its request, such as a recount, runs
	// under it and not under the request's context.
	ctx     context.Context
	end     context.CancelFunc
	working sync.WaitGroup
}

// maxSeconds limits the time that a page may take to be made.
const maxSeconds = 20

// New makes the console of a system. The caller closes it before the system.
// The models of the system must not change afterwards. An error is a mistake in the pages that are
// part of the program, never one of a model.
func New(s *system.System, o Options) (*Console, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Activity == nil {
		o.Activity = NewActivity(s.Models)
	}
	c := &Console{system: s, options: o, talk: web.Talk{Log: o.Log}, tails: make(chan struct{}, maxTails), reading: make(chan struct{}, 1), courses: map[string]*course{}, checks: map[string]*check{}, token: rand.Text(), one: make(chan struct{}, 1)}
	c.ctx, c.end = context.WithCancel(context.Background())
	for _, p := range s.Models {
		c.courses[p.Model.Name], c.checks[p.Model.Name] = &course{}, &check{}
	}
	var err error
	if c.pages, err = template.New("").Funcs(functions).ParseFS(pages, "pages/*.html"); err != nil {
		return nil, err
	}
	zip, err := gzhttp.NewWrapper(gzhttp.MinSize(1024), gzhttp.CompressionLevel(1))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", c.answerPage(c.listModels))
	mux.HandleFunc("GET "+web.Console+"{$}", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusSeeOther) })
	mux.HandleFunc("GET "+web.Console+"console.js", serveAsset("text/javascript", script)) // a model's name has no dot
	if o.Try != nil {
		mux.HandleFunc("GET "+web.Console+"run.txt", serveAsset("text/plain", []byte(o.Activity.run)))
	}
	for path, h := range map[string]func(*request) error{
		"": c.model, "/rows": c.listRows, "/row": c.showRow, "/row.json": c.rowJSON, "/why": c.explainValue, "/queries": c.listQueries, "/query/{query}": c.query,
		"/tail": c.tail, "/dead": c.showLetters, "/dead/{id}": c.showOneLetter, "/health": c.health,
		"/letters.json": asJSON(c.answerLetters), "/letter.json": asJSON(c.oneLetter), "/try": c.ifTry(c.try), "/new/{entity}": c.ifTry(c.newRow),
	} {
		mux.HandleFunc("GET "+web.Console+"{model}"+path, c.answerPage(h))
	}
	for path, h := range map[string]func(*request) error{
		"/kill": c.act(c.ifTry(c.killFollower)), "/new/{entity}": c.act(c.ifTry(c.write)),
		"/dead": c.act(c.retryAll), "/dead/{id}": c.act(c.actOnLetter), "/verify": c.act(c.toggleVerify), "/letter.json": asJSON(c.command(c.onLetter)),
	} {
		mux.HandleFunc("POST "+web.Console+"{model}"+path, c.answerPage(h))
	}
	mux.HandleFunc("/", c.answerPage(func(*request) error { return errNothing }))
	all := http.NewServeMux()
	all.HandleFunc("GET "+web.Console+"{model}/tail/events", c.streamEvents) // as it is: compression would hold it back
	all.Handle("/", zip(mux))
	c.handler = c.talk.Guard(all)
	c.working.Go(c.takeSamples)
	return c, nil
}

// Close ends the console's own work, and that of actions, and waits for it.
// Requests may still come: an action that would begin such
// work is then answered 503.
func (c *Console) Close() {
	c.end()
	c.working.Wait()
}

// ServeHTTP answers every path below the console's, with a page for unknown ones. The caller has
// checked keys and rates before.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// Beside serves the console, and everything else by other.
func (c *Console) Beside(other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if web.IsConsole(r.URL.Path) {
			c.ServeHTTP(w, r)
			return
		}
		other.ServeHTTP(w, r)
	})
}

// styled is the style of every page. A browser takes it by the checksum of its text in the policy.
var styled = template.HTML("<style>" + style + "</style>")

// policy is the content security policy of every page.
var policy = "default-src 'none'; style-src 'sha256-" + styleSum() + "'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func styleSum() string {
	sum := sha256.Sum256([]byte(style))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// setHeaders is for every answer of the console, of whatever kind: an asset and a row as JSON have
// the policy too, since a browser may be sent there directly.
func setHeaders(w http.ResponseWriter, contentType string) {
	web.SetHeaders(w, contentType)
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin")
}

// serveAsset answers with content that is part of the program. It needs the same keys as a page.
func serveAsset(kind string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		setHeaders(w, kind+"; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache") // the next version may have another one
		_, _ = w.Write(content)
	}
}

// errNothing answers a path that has no page.
var errNothing = &mistake{http.StatusNotFound, "There is nothing here."}

// errReadsOnly answers an action where the console has none, errNoAction a form with an action that its
// page does not have, errNoLetter the id of no dead letter.
var (
	errReadsOnly = &mistake{http.StatusForbidden, "This console only reads. Start the program with --console=write for actions."}
	errNoAction  = &mistake{http.StatusBadRequest, "There is no such action."}
	errNoLetter  = &mistake{http.StatusNotFound, "There is no dead letter with this id. It may have been retried or discarded."}
)

// mistake is an error that the reader can correct. Its text is shown on a page with the status, so
// it must not contain a value that the model hides.
type mistake struct {
	status int
	text   string
}

func (m *mistake) Error() string { return m.text }

// request is one request for a page.
type request struct {
	w http.ResponseWriter
	*http.Request
	// ctx ends after maxSeconds, or when the browser leaves. Reads of a page use it.
	ctx   context.Context
	c     *Console
	part  *system.Part // of the model in the path, nil if there is none
	began time.Time
}

// answerPage answers with the page that h renders. An error of h becomes a page, or the problem of something
// that is not the reader's mistake.
// Each page spends one command of the key's rate. A page that takes longer than maxSeconds is 503,
// any other error of h a problem with an id that the log has, too. h must not have begun its answer
// when it returns an error, unless the error is http.ErrAbortHandler.
func (c *Console) answerPage(h func(*request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !web.Spend(w, r, 1) {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), maxSeconds*time.Second)
		defer cancel()
		req := &request{w: w, Request: r, ctx: ctx, c: c, began: time.Now()}
		err := req.find()
		if err == nil {
			err = h(req)
		}
		var m *mistake
		switch {
		case err == nil:
		case errors.As(err, &m):
			req.renderPage(m.status, "mistake", "Not possible", m.text)
		case errors.Is(err, context.DeadlineExceeded):
			c.talk.Unavailable(w, r, "the store takes too long to answer", err)
		default:
			c.talk.Broken(w, r, err)
		}
	}
}

// find looks up the model in the path.
// Where the path names no model, part stays nil.
func (r *request) find() error {
	name := r.PathValue("model")
	if name == "" {
		return nil
	}
	for _, p := range r.c.system.Models {
		if p.Model.Name == name {
			r.part = p
			return nil
		}
	}
	return &mistake{http.StatusNotFound, "There is no model of this name here."}
}

// path returns a path below the model's, with a query string of pairs. Pairs without a value are
// left out.
func (r *request) path(below string, pairs ...string) string {
	return modelPath(r.part.Model.Name, below, pairs...)
}

// modelPath escapes all that it is given, so any text of a row may be a value in it.
// pairs are names and values in turn. A pair without a value is left out.
func modelPath(model, below string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	out := web.Console + url.PathEscape(model) + below
	if len(values) > 0 {
		out += "?" + values.Encode()
	}
	return out
}

// param returns a parameter of the query string.
func (r *request) param(name string) string { return r.URL.Query().Get(name) }
