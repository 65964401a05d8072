package projectorcli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"

	"weir/internal/api"
	"weir/internal/budget"
	"weir/internal/cli"
	"weir/internal/console"
	"weir/internal/measures"
	"weir/internal/metrics"
	"weir/internal/parallel"
	"weir/internal/system"
	"weir/internal/traces"
	"weir/internal/web"
)

// serving is the flags of commands that answer queries at an address.
type serving struct {
	web.Flags
	measures.Logging
	traces.Flag
	Recordings []string `placeholder:"[MODEL=]FILE" sep:"none" help:"Recorded streams, which the console reads to show what made a value; a directory is its files."`
	Rate       float64  `default:"1000" placeholder:"N" help:"Queries a second that each key, or everybody without one, may have; 0 is any number (default ${default})."`
	Addr       string   `default:"127.0.0.1:8480" placeholder:"HOST:PORT" help:"Where queries are served, port 0 for any free one (default ${default})."`
	Models     []string `arg:"" name:"model" help:"Names of built-in models or paths of model files."`
}

// begin has the program log and trace as the flags say, until end.
func (c *serving) begin(p *program) (end func(), err error) {
	p.log, p.stderr = c.Logging.Open(p.stderr)
	return p.beginTracing(c.Flag)
}

// newServer makes the server of queries, metrics and console, which answers once it runs. The caller calls end when it has stopped.
// o has the console's knowledge of the readers.
func (c *serving) newServer(s *system.System, told *metrics.Metrics, writes *budget.Writes, mode consoleMode, o console.Options) (_ *web.Server, end func(), err error) {
	plain, lagging := statuses(s)
	o.Status, o.Units = plain, func() []budget.Use { return usesOf(s, writes) }
	told.Writes = func() ([]budget.Use, map[budget.Cause]int64) { return usesOf(s, writes), writes.Retries() }
	told.Builds = buildsOf(plain)
	handler, err := api.New(engines(s), api.Options{Log: o.Log, Status: anyStatus(addSpending(lagging, o.Units)), Keyed: c.KeysFile != "" || os.Getenv(web.EnvKeys) != ""})
	if err != nil {
		return nil, nil, usage("%v", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+metrics.Path, told.Handler())
	mux.Handle("/", handler)
	if o.Recordings, err = recordings(s, "--recordings", c.Recordings); err != nil {
		return nil, nil, err
	}
	pages, end, err := mode.addConsole(mux, s, o)
	if err != nil {
		return nil, nil, err
	}
	_, size := s.Room()
	server, err := c.Serve(c.Addr, web.Limits{Rate: c.Rate}, s.OpenFiles(), size, pages, o.Log)
	if err != nil {
		end()
		return nil, nil, usage("%v", err)
	}
	return server, end, nil
}

// saysAddress says where queries are answered.
func (c *serving) saysAddress(p *program, s *system.System, d data, server *web.Server) {
	fmt.Fprintf(p.stderr, "serving %s on http://%s/v1, from %s%s\n", strings.Join(modelNames(s), ", "), server.Addr(), d.at().Store().Name(d.at()), cli.OfStage(&s.Names))
	for _, part := range s.Models {
		if s.Index == nil && len(part.Model.Searches) > 0 {
			fmt.Fprintf(p.stderr, "searches of %s are refused, for there is no search index: give --opensearch URL, or start one process with run --search-dir DIR\n", part.Model.Name)
		}
	}
}

// endCommand ends a command that was asked to stop.
func (p *program) endCommand() error {
	fmt.Fprintln(p.stderr, "stopped")
	if errors.Is(context.Cause(p.ctx), errTerminated) {
		return nil
	}
	return failed(exitInterrupted)
}

// serveCommand answers queries beside functions or processes that derive. It reads no stream.
type serveCommand struct {
	data
	serving
	Console consoleMode `enum:"off,read" default:"read" help:"Web pages at / that show what is derived, and why: off or read (default ${default}). They need the same keys: a browser takes one as the password."`
}

func (serveCommand) Help() string {
	return `Serves GET /v1/{model}/{query}?key=value&limit=&cursor=, GET /metrics for Prometheus and a console
for browsers at /, beside functions or processes that derive. It reads no stream, builds
nothing and writes no row, so any number of them may run. Searches are answered once the
indexes of the model are built, and with 503 before. It is for --aws: an embedded
directory has one process, and projector run answers queries too.

Exits with 0 on SIGTERM, with 130 on an interrupt. On an address that other machines reach,
it needs keys, or --open:

  projector serve gallery --aws
  WEIR_KEYS=$(openssl rand -hex 32) projector serve gallery wardrobe --aws --addr :8480`
}

// Run returns when the process is asked to stop, after the requests in progress are answered.
func (c *serveCommand) Run(p *program) error {
	if !c.shared() {
		return usage("serve is for --aws; the process that derives in a directory answers queries too: projector run MODEL")
	}
	end, err := c.begin(p)
	if err != nil {
		return err
	}
	defer end()
	writes := budget.New(0, c.Deployment().Own())
	s, err := p.openCounted(c.data, writes, c.Models, system.Options{Late: true})
	if err != nil {
		return err
	}
	defer s.Close()
	server, leave, err := c.newServer(s, metrics.New(), writes, c.Console, console.Options{Log: p.log, Activity: console.NewActivity(s.Models)})
	if err != nil {
		return err
	}
	defer leave()
	defer server.Close()
	c.saysAddress(p, s, c.data, server)
	ctx, cancel := context.WithCancel(p.ctx)
	var beside sync.WaitGroup
	beside.Go(func() { awaitIndexes(ctx, s, p.log) })
	defer beside.Wait()
	defer cancel()
	if err := server.Run(p.ctx); err != nil {
		return err
	}
	return p.endCommand()
}

// awaitIndexes asks until each model's indexes are built, from when on searches are answered, and begins again when one is gone.
func awaitIndexes(ctx context.Context, s *system.System, log *slog.Logger) {
	for ctx.Err() == nil {
		for _, part := range s.Models {
			for said := false; ; said = true {
				err := s.Built(ctx, part)
				if err == nil || ctx.Err() != nil {
					break
				}
				if !said {
					log.Warn("searches are refused until the search indexes are built", "model", part.Model.Name, "error", err)
				}
				_ = parallel.Sleep(ctx, reachAgain)
			}
		}
		_ = s.AwaitGone(ctx)
	}
}
