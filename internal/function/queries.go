package function

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"weir/internal/api"
	"weir/internal/cli"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/system"
	"weir/internal/web"
)

// queries is a function that answers the queries of a model. Searches are refused until the model's indexes are built. Between
// events it does not run, so it cannot wait for that: it asks, before it answers a search.
// Its methods are called by one invocation at a time, as Lambda runs them. It has no field of a system: the value in an interface
// keeps the methods of its fields in the program, and a system's are many.
type queries struct {
	http     http.Handler
	api      http.Handler
	built    func(context.Context) error
	searches map[string]bool // paths
	model    string
	log      *slog.Logger

	found, said bool
	asked       time.Time
}

// How often it asks whether the indexes are built, and how long it waits for the answer. The cluster may be down.
const (
	askEvery = 10 * time.Second
	askAgain = time.Minute // once they are: another program may make an index again
	askTime  = 5 * time.Second
)

// newQueries makes such a function from the environment, and opens the system that it reads, which the caller closes.
func newQueries(ctx context.Context, m *model.Model, log *slog.Logger) (*queries, *system.System, error) {
	models, at, err := placeOfEnvironment(ctx, m, log)
	if err != nil {
		return nil, nil, err
	}
	keys, err := web.OpenKeys("", os.Getenv(web.EnvKeys), log)
	if err != nil {
		return nil, nil, cli.Usage("%v", err)
	}
	s, err := cli.OpenModels(ctx, at, models, system.Options{WhenBuilt: true, Existing: true, Log: log})
	if err != nil {
		return nil, nil, err
	}
	part := s.Models[0]
	q := &queries{built: func(ctx context.Context) error { return s.Built(ctx, part) }, searches: map[string]bool{}, model: part.Model.Name, log: log}
	if q.api, err = api.New([]*query.Engine{part.Query}, api.Options{Log: log, Keyed: keys != nil}); err != nil {
		s.Close()
		return nil, nil, cli.Usage("%v", err)
	}
	for _, of := range part.Model.Queries {
		if of.Search != nil {
			q.searches["/v1/"+part.Model.Name+"/"+of.Name] = true
		}
	}
	q.http = web.Access{Keys: keys, Open: os.Getenv(envOpen) == "1"}.Wrap(q)
	return q, s, nil
}

// Invoke answers one event, which is a request.
func (q *queries) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return web.AnswerEvent(ctx, q.http, payload)
}

// ServeHTTP answers a request that may come in.
func (q *queries) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if since := time.Since(q.asked); q.searches[r.URL.Path] && (since >= askAgain || !q.found && since >= askEvery) {
		q.ask(r.Context())
	}
	q.api.ServeHTTP(w, r)
}

// ask asks whether the indexes are built, from when on searches are answered.
func (q *queries) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	err := q.built(ctx)
	q.asked, q.found = time.Now(), err == nil
	if err != nil && !q.said {
		q.said = true
		q.log.Warn("searches are refused until the search indexes are built", "model", q.model, "error", err)
	}
}
