package projectorcli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/api"
	"weir/internal/cli"
	"weir/internal/console"
	"weir/internal/ingest"
	"weir/internal/measures"
	"weir/internal/metrics"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/replay"
	"weir/internal/sample"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
	"weir/internal/web"
	"weir/internal/writeapi"
)

// devCommand serves the whole of weir from one process on the embedded store. It is for trying things out; all that it
// writes is an ordinary data directory, which the other commands read.
type devCommand struct {
	web.Flags
	measures.Logging
	web.Limits
	cli.MemoryFlag
	cli.StageFlags
	Console consoleMode `enum:"off,read,write" default:"write" help:"Web pages at / that show what is derived, and why: off, read, or write, which also allows actions (default ${default})."`
	Data    string      `default:"./data" placeholder:"DIR" help:"Directory of the embedded store and index (default ${default})."`
	Reset   bool        `env:"-" help:"Delete what the directory has, and begin with new rows."`
	Sample  []string    `placeholder:"[MODEL=]FILE" sep:"none" help:"Recorded streams, or commands as ingest put reads them, taken in first; a directory is its files."`
	Models  []string    `arg:"" optional:"" name:"model" help:"Names of built-in models or paths of model files; none is all that are built in."`
	Addr    string      `default:"127.0.0.1:8480" placeholder:"HOST:PORT" help:"Where all is served, port 0 for any free one (default ${default})."`
}

func (devCommand) Help() string {
	return `One process with everything, to try a model out: it takes writes, follows the
streams, keeps what is derived, and answers queries and searches, all at one address.
GET /v1/{model}/{query} asks; POST, PUT, PATCH and DELETE /v1/{model}/{entity} write;
GET /openapi.json describes queries and writes, GET /metrics is for Prometheus, / is a
console for browsers. When it is ready, it prints what to try.

If the directory is empty and --sample is not given, it makes up some rows from the
model. It stops as projector run does.

It watches the files of the models. When you save one, it derives what is new or changed
from the rows, and open pages of the console load themselves again. A file with a mistake
is said, and the model before it goes on.

  projector dev
  projector dev reviews.yaml --data ./dev
  projector dev reviews.yaml --reset
  projector dev gallery --sample testdata/streams/gallery`
}

// Run returns when the process is asked to stop, after the records in the streams are applied. SIGTERM is exit code 0,
// an interrupt 130.
func (c *devCommand) Run(p *program) (err error) {
	if len(c.Models) == 0 {
		c.Models = model.Builtin()
	}
	p.log, p.stderr = c.Logging.Open(p.stderr)
	if c.Reset {
		if err := removeDirectory(c.Deployment().Dir(c.Data)); err != nil {
			return err
		}
	}
	files := watchModels(c.Models)
	for first := true; ; first = false {
		again, err := c.serve(p, files, first)
		switch {
		case p.ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
			return p.endCommand()
		case err != nil && first:
			return err
		case err != nil:
			fmt.Fprintf(p.stderr, "%v\nIt is tried again when a file of a model is changed; --reset begins with new rows\n", err)
			files.wait(p)
		case !again:
			return nil
		}
	}
}

// removeDirectory deletes a data directory that no process has open.
func removeDirectory(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "store")); err == nil {
		if err := embedded.Remove(filepath.Join(dir, "store")); err != nil {
			return fmt.Errorf("%w: --reset deletes %s: %w", store.ErrOwned, dir, err)
		}
	}
	return os.RemoveAll(filepath.Join(dir, "search"))
}

// errChanged ends the serving of a model whose file has another one.
var errChanged = errors.New("a file of a model is changed")

// serve serves the models as their files are now, until the process is asked to stop, or a file has another good model: then
// again is true.
func (c *devCommand) serve(p *program, files *modelFiles, first bool) (again bool, err error) {
	ctx, stop := context.WithCancelCause(p.ctx)
	defer stop(nil)
	s, err := p.openSystem(data{Data: c.Data, MemoryFlag: c.MemoryFlag, StageFlags: c.StageFlags}, c.Models, system.Options{Writes: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := p.takeModels(s); err != nil {
		return false, err
	}
	log := p.log
	indexed := make(chan struct{})
	close(indexed)
	told := metrics.New()
	activity := console.NewActivity(s.Models)
	followers := newKillable()
	handler, leave, err := c.newHandler(s, log, told, activity, followers)
	if err != nil {
		return false, usage("%v", err)
	}
	defer leave()
	if err := c.loadSamples(p, s); err != nil {
		return false, err
	}
	_, size := s.Room()
	server, err := c.Serve(c.Addr, c.Limits, s.OpenFiles(), size, handler, log)
	if err != nil {
		return false, usage("%v", err)
	}
	c.Addr = server.Addr().String() // port 0 stays the port that it got
	end, err := cli.Serves(c.Deployment().Dir(c.Data), "http://"+c.Addr)
	if err != nil {
		return false, err
	}
	defer end()
	if first {
		c.printHints(p, s, handler, "http://"+c.Addr)
	} else {
		fmt.Fprintf(p.stderr, "%s: served as the files are now\n", strings.Join(modelNames(s), ", "))
	}
	watch := func(ctx context.Context) error {
		if files.changed(ctx, p.stderr) {
			stop(errChanged)
		}
		return nil
	}
	err = together(ctx, s, server, log, alone(s, log, told, activity, false, followers), watch, indexed)
	return err == nil && errors.Is(context.Cause(ctx), errChanged), err
}

// takeModels enters the models, as their files are now, in their catalogs, and derives new and changed values from the rows.
func (p *program) takeModels(s *system.System) error {
	if err := (&runCommand{}).startValues(p, s); err != nil {
		return err
	}
	for _, part := range s.Models {
		b := part.Builder()
		if len(b.Names) == 0 {
			continue
		}
		if err := runBuilds(p, b, func() error {
			_, err := b.Run(p.ctx)
			return err
		}); err != nil {
			return err
		}
	}
	if err := s.NameIndexes(p.ctx); err != nil {
		return err
	}
	return p.fill(s)
}

// newHandler answers queries, writes and metrics at one address. A name that is both is the query for a GET, and the entity
// for everything else.
func (c *devCommand) newHandler(s *system.System, log *slog.Logger, told *metrics.Metrics, activity *console.Activity, followers *killable) (_ http.Handler, leave func(), err error) {
	status, lagging := statuses(s)
	queries, err := api.New(engines(s), api.Options{Log: log, Status: anyStatus(lagging)})
	if err != nil {
		return nil, nil, err
	}
	targets := seq.Map(s.Models, func(p *system.Part) writeapi.Target {
		return writeapi.Target{Model: p.Model, Writer: &ingest.Writer{Model: p.Model, Store: s.Store}}
	})
	writes, err := writeapi.New(targets, writeapi.Options{Log: log, Queries: true, Keyed: c.KeysFile != "" || os.Getenv(web.EnvKeys) != ""})
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+metrics.Path, told.Handler())
	mux.Handle("/", writes.Beside(queries))
	recorded, err := recordings(s, "--sample", c.Sample)
	if err != nil {
		return nil, nil, err
	}
	return c.Console.addConsole(mux, s, console.Options{Log: log, Status: status, Activity: activity, Recordings: recorded, Try: &console.Try{Kill: followers.Kill}})
}

// loadSamples takes in the files named; with none, and no rows, it makes some up.
// Made-up rows are written only where a model's tables have no row at all, so a second start adds nothing.
func (c *devCommand) loadSamples(p *program, s *system.System) error {
	for _, arg := range c.Sample {
		part, path, err := fileOf(s, "--sample", arg)
		if err != nil {
			return err
		}
		if err := p.sampleFiles(s, part, path); err != nil {
			return err
		}
	}
	if len(c.Sample) > 0 {
		return nil
	}
	for _, part := range s.Models {
		empty, err := isEmpty(p.ctx, s.Store, part.Model)
		if err != nil {
			return err
		}
		if !empty {
			continue
		}
		cs := sample.Commands(part.Model, time.Now())
		if err := p.writeAndApply(part.Runner, cli.New(p.stderr, "rows"), func(ctx context.Context) error { return write(ctx, s, part, cs) }); err != nil {
			return fmt.Errorf("sample rows of %s: %w", part.Model.Name, err)
		}
		fmt.Fprintf(p.stderr, "%s: %d rows made up, to begin with\n", part.Model.Name, len(cs))
	}
	return nil
}

// isEmpty reports whether no table of the model has a row.
func isEmpty(ctx context.Context, st store.Store, m *model.Model) (bool, error) {
	for _, t := range m.Tables {
		page, err := st.Query(ctx, store.Query{Table: t.Name, Limit: 1})
		if err != nil || len(page.Rows) > 0 {
			return false, err
		}
	}
	return true, nil
}

// write does commands. One that is refused is an error: they were made to be taken.
// A create of a row that exists and is equal counts as done, so files may be taken in again.
func write(ctx context.Context, s *system.System, part *system.Part, cs []ingest.Command) error {
	w := &ingest.Writer{Model: part.Model, Store: s.Store, Again: true, Brief: true}
	for i, res := range w.Do(ctx, cs) {
		if res.Err != nil {
			return fmt.Errorf("%s %s: %w", cs[i].Op, cs[i].Entity, res.Err)
		}
	}
	return nil
}

// sampleFiles takes in files of commands or recorded streams.
// The first line of each file says which of the two it is. A directory is its files, in the order of their names.
func (p *program) sampleFiles(s *system.System, part *system.Part, path string) error {
	paths, err := filesIn(path)
	if err != nil {
		return err
	}
	for _, path := range paths {
		commands, err := hasCommands(path)
		if err != nil {
			return err
		}
		reading := cli.New(p.stderr, "records")
		err = p.writeAndApply(part.Runner, reading, func(ctx context.Context) error {
			if commands {
				return putFile(ctx, s, part, path)
			}
			r := &replay.Replay{Model: part.Model, Store: s.Store, Runner: part.Runner, Names: s.Names}
			a := replay.NewArrangement(r, int(window), scratchIn(""))
			defer a.Close()
			unread, err := p.orderRecords([]input{{paths: []string{path}}}, r, a)
			if err == nil {
				err = replayArranged(ctx, reading, a, r, 0)
			}
			return errors.Join(err, unread)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// scan is the lines of a file of commands, as cli.Lines has them.
func scan(path string, each func(number int, line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return cli.Lines(f, each)
}

// hasCommands reports whether the first line of a file is a command.
// A file without lines, or with a first line that is no JSON object, has none.
func hasCommands(path string) (is bool, err error) {
	err = scan(path, func(_ int, line []byte) error {
		it, err := ingest.ReadItem(line)
		is = err == nil && it.Has("op")
		return io.EOF
	})
	if errors.Is(err, io.EOF) || errors.Is(err, cli.ErrUsage) {
		err = nil
	}
	return is, err
}

// putFile writes the commands of a file one by one, in order, and stops at the first that is refused. Its error
// says the line. Rows that were written before stay.
func putFile(ctx context.Context, s *system.System, part *system.Part, path string) error {
	return scan(path, func(n int, line []byte) error {
		c, err := ingest.ReadCommand(line)
		if err == nil {
			err = write(ctx, s, part, []ingest.Command{c})
		}
		if err != nil {
			return usage("line %d: %v", n, err)
		}
		return nil
	})
}

// printHints prints the address and commands to try. It asks each of them first, so that a query has rows, and a row that it suggests
// to delete exists.
func (c *devCommand) printHints(p *program, s *system.System, h http.Handler, base string) {
	fmt.Fprintf(p.stderr, "%s on %s/v1, rows in %s%s. Try:\n\n", strings.Join(modelNames(s), ", "), base, c.Deployment().Dir(c.Data), cli.OfStage(&s.Names))
	for _, part := range s.Models {
		for _, t := range tries(p.ctx, s.Store, part, h) {
			fmt.Fprintf(p.stderr, "  %s\n", t.curl(base))
		}
	}
	fmt.Fprintf(p.stderr, "  curl -s %s/openapi.json\n\n", base)
	if c.Console != "off" {
		fmt.Fprintf(p.stderr, "What is derived, and why: %s/ in a browser\n\n", base)
	}
}

// try is a request to try.
type try struct{ method, path, note string }

// curl is the command that sends it.
func (t try) curl(base string) string {
	method := ""
	if t.method != http.MethodGet {
		method = "-X " + t.method + " "
	}
	return fmt.Sprintf("curl -s %s'%s%s'%s", method, base, t.path, t.note)
}

// heard is the answer of a handler, kept in memory.
type heard struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *heard) Header() http.Header         { return a.header }
func (a *heard) WriteHeader(code int)        { a.code = code }
func (a *heard) Write(b []byte) (int, error) { return a.body.Write(b) }

// hasRows asks for a suggestion, and reports whether the answer has rows, or is one. Of a row that is to be deleted, it asks
// for the row.
func (t try) hasRows(ctx context.Context, h http.Handler) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+t.path, nil)
	if err != nil {
		return false
	}
	a := &heard{header: http.Header{}, code: http.StatusOK}
	h.ServeHTTP(a, req)
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	return a.code == http.StatusOK && json.Unmarshal(a.body.Bytes(), &page) == nil && (t.method != http.MethodGet || len(page.Items) > 0)
}

// tries are requests to try: a search, a query of a row that something is counted on, a
// write that changes the count, and the same query again.
// It reads rows to find one that counts, and returns those that it has if there is none: tries never fail.
func tries(ctx context.Context, st store.Store, part *system.Part, h http.Handler) (out []try) {
	m := part.Model
	path := "/v1/" + url.PathEscape(m.Name) + "/"
	for _, q := range m.Queries {
		if q.Search == nil || !isWordsAlone(q) {
			continue
		}
		words := append([]string{"green"}, wordsIn(ctx, st, q.Search)...)
		found := seq.Find(seq.Map(words, func(word string) *try {
			return &try{http.MethodGet, path + url.PathEscape(q.Name) + "?q=" + url.QueryEscape(word), ""}
		}), func(t *try) bool { return t.hasRows(ctx, h) })
		if found != nil {
			out = append(out, *found)
			break
		}
	}
	for _, t := range m.Tallies {
		get := getOf(m, t.Target)
		if t.Target.Derived || t.Hidden || get == nil {
			continue
		}
		for _, src := range t.Sources {
			row, target := counted(ctx, st, src)
			if row == nil {
				continue
			}
			ask := try{http.MethodGet, path + url.PathEscape(get.Name) + "?" + parametersOf(get, target), ""}
			drop := try{http.MethodDelete, path + url.PathEscape(src.Entity.Name) + "?" + keyParameters(src.Entity, row), fmt.Sprintf("   # %s goes down", t.Attr)}
			if ask.hasRows(ctx, h) && drop.hasRows(ctx, h) {
				return append(out, ask, drop, ask)
			}
		}
	}
	return out
}

// wordsIn are the first words of some rows that a search may find.
func wordsIn(ctx context.Context, st store.Store, x *model.Search) (out []string) {
	page, err := st.Query(ctx, store.Query{Table: x.Of.Table.Name, Limit: 100})
	if err != nil {
		return nil
	}
	for _, row := range page.Rows {
		for _, f := range x.Text {
			if words := strings.Fields(value.Scalar(f.Get(row))); x.Of.Table.Classify(row) == x.Of && len(words) > 0 {
				out = append(out, words[0])
			}
		}
	}
	return out
}

// isWordsAlone reports whether a search needs no parameter but its words.
func isWordsAlone(q *model.Query) bool {
	return !slices.ContainsFunc(query.Described(q), func(p query.Parameter) bool { return p.Name != "q" && !p.Optional })
}

// getOf is the query that gives one row of an entity by its key.
// It is nil if every such query needs something else, such as a value that the model fixes.
func getOf(m *model.Model, e *model.Entity) *model.Query {
	for _, q := range m.Queries {
		if len(q.Steps) == 1 && q.Steps[0].Get && q.Steps[0].Entity == e && len(q.Return) == 0 &&
			!slices.ContainsFunc(q.Steps[0].With, func(b model.Bind) bool { return b.Param == "" }) {
			return q
		}
	}
	return nil
}

// counted is a row that counts, and the row that it counts on.
// It looks at the first 1,000 rows of the table only, and returns nil for both if none of these counts.
func counted(ctx context.Context, st store.Store, src *model.Source) (row, target value.Item) {
	of := src.Tally.Target
	page, err := st.Query(ctx, store.Query{Table: src.Entity.Table.Name, Limit: 1000})
	if err != nil {
		return nil, nil
	}
	for _, row := range page.Rows {
		if src.Entity.Table.Classify(row) != src.Entity || !src.Input.Uses(row) || !src.Given.Uses(row) {
			continue
		}
		key, ok := of.KeyFrom(src.To, row)
		if !ok {
			continue
		}
		if got, err := st.Get(ctx, []store.Ref{{Table: of.Table.Name, Key: key}}); err == nil && got[0] != nil {
			return row, got[0]
		}
	}
	return nil, nil
}

// parametersOf are the parameters by which the query finds the row, as a URL has them.
func parametersOf(q *model.Query, row value.Item) string {
	return strings.Join(seq.Map(q.Steps[0].With, func(b model.Bind) string {
		return url.QueryEscape(b.Param) + "=" + url.QueryEscape(value.Scalar(b.Field.Get(row)))
	}), "&")
}

// keyParameters are the fields of the row's key, as a URL has them.
func keyParameters(e *model.Entity, row value.Item) string {
	return strings.Join(seq.Map(e.KeyNames(), func(name string) string {
		return url.QueryEscape(name) + "=" + url.QueryEscape(value.Scalar(e.Field(name).Get(row)))
	}), "&")
}
