package ingestcli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"weir/internal/cli"
	"weir/internal/ingest"
	"weir/internal/measures"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/web"
	"weir/internal/writeapi"
)

// serveCommand takes writes over HTTP. It derives nothing.
type serveCommand struct {
	data
	web.Flags
	measures.Logging
	web.Limits
	Models []string `arg:"" name:"model" help:"Names of built-in models or paths of model files."`
	Addr   string   `default:"127.0.0.1:8481" placeholder:"HOST:PORT" help:"Where writes are taken, port 0 for any free one (default ${default})."`
}

func (serveCommand) Help() string {
	return `POST /v1/{model}/{entity} creates a row, PUT creates or replaces it, PATCH merges
fields into it, DELETE removes it, POST /v1/{model}/batch does many commands. The
body is the row's fields as JSON; those of its key may be query parameters. All of it
is described by GET /openapi.json.

On an interrupt or SIGTERM it answers the requests in progress and stops. An answered
write is durable. Exits with 0 on SIGTERM, with 130 on an interrupt.

Only one process may open an embedded directory at a time: to write and derive there,
use projector dev. With --aws, any number of processes may run, beside projector run.

  ingest serve gallery wardrobe --addr 127.0.0.1:8481
  WEIR_KEYS=$(openssl rand -hex 32) ingest serve gallery --aws --addr :8481
  curl http://127.0.0.1:8481/v1/gallery/Album -H 'Content-Type: application/json' \
    -d '{"id": "sea", "title": "The sea", "createdAt": "2026-01-31T12:00:00Z"}'`
}

// Run returns when the server has answered all requests that were in progress.
// The embedded directory is its own from the start until then. SIGTERM ends it with 0, an interrupt
// with 130.
func (c *serveCommand) Run(p *program) (err error) {
	log, stderr := c.Logging.Open(p.stderr)
	p.log, p.stderr = log, stderr
	s, err := p.openTables(c.data, c.Models)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	handler, err := writeAPI(s, c.KeysFile != "" || os.Getenv(web.EnvKeys) != "", log)
	if err != nil {
		return cli.Usage("%v", err)
	}
	_, size := s.Room()
	server, err := c.Serve(c.Addr, c.Limits, s.OpenFiles(), size, handler, log)
	if err != nil {
		return cli.Usage("%v", err)
	}
	fmt.Fprintf(p.stderr, "taking writes of %s on http://%s/v1, into %s%s\n", strings.Join(c.Models, ", "), server.Addr(), c.at().Store().Name(c.at()), cli.OfStage(&s.Names))
	if err := server.Run(p.ctx); err != nil {
		return err
	}
	fmt.Fprintln(p.stderr, "stopped")
	if errors.Is(context.Cause(p.ctx), cli.ErrTerminated) {
		return nil
	}
	return cli.Failed(cli.Interrupted)
}

// writeAPI is the handler of a system's models.
// The health check reads one row of our own table, so it fails where the store cannot be reached.
func writeAPI(s *system.System, keyed bool, log *slog.Logger) (*writeapi.API, error) {
	return writeapi.New(targets(s), writeapi.Options{
		Log:   log,
		Keyed: keyed,
		Health: func(ctx context.Context) error {
			_, err := s.Store.Get(ctx, []store.Ref{owntable.Secret()})
			return err
		},
	})
}

// targets are the models with the writers of their rows, in their order.
func targets(s *system.System) []writeapi.Target {
	return seq.Map(s.Models, func(p *system.Part) writeapi.Target {
		return writeapi.Target{Model: p.Model, Writer: &ingest.Writer{Model: p.Model, Store: s.Store}}
	})
}
