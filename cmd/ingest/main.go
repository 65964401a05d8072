// Command ingest writes rows: it checks what people and programs want written
// against a model, and keeps the model's rules. It parses its command line and
// wires; the work is in internal/.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/system"
)

// Exit codes, the same for every command.
const (
	exitGood        = 0
	exitCheck       = 1 // something was refused
	exitUsage       = 2 // usage or configuration
	exitDown        = 3 // a service or the disk is down
	exitInterrupted = 130
)

type commands struct {
	Put   putCommand   `cmd:"" help:"Write rows: commands as JSON lines, checked against the model."`
	Serve serveCommand `cmd:"" help:"Take writes over HTTP, checked against the model."`

	Backfill backfillCommand `cmd:"" help:"Give rows the defaults and index keys that they were written without."`
	Migrate  migrateCommand  `cmd:"" help:"Make old rows into rows of the model, as a migration in its file says."`
}

const description = `Writes into the core tables of a model, with the model's rules kept.

MODEL is the name of a built-in model or the path of a model file. Data is printed
on stdout, everything else on stderr. Exit codes: 0 good, 1 something was refused, 2
usage or configuration, 3 a service or the disk is down, 4 part done and resumable,
130 interrupted.`

// program is what commands share: where data and talk go, and the outside world.
type program struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer // data
	stderr io.Writer // talk
}

func main() {
	ctx := stopped(context.Background())
	if os.Getenv(runtimeAPI) != "" && len(os.Args) == 1 {
		os.Exit(serveLambda(ctx, os.Stderr))
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// errTerminated is the cause of a context that SIGTERM ended: a service manager
// asked to stop, where an interrupt breaks off.
var errTerminated = errors.New("terminated")

// stopped is a context that ends with the first SIGINT or SIGTERM. The second ends
// the process.
func stopped(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		sig := <-signals
		signal.Stop(signals)
		if sig == syscall.SIGTERM {
			cancel(errTerminated)
		}
		cancel(nil)
	}()
	return ctx
}

// run is the program as a function: arguments in, exit code out.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	p := &program{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	var c commands
	exited := -1
	parser, err := kong.New(&c, kong.Name("ingest"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(n int) { exited = n }), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Bind(p))
	if err != nil {
		fmt.Fprintln(stderr, "ingest:", err)
		return exitUsage
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintf(stderr, "ingest: %v\nTry: ingest --help\n", err)
		return exitUsage
	}
	if err := k.Run(p); err != nil {
		return p.fail(err)
	}
	return exitGood
}

// failed ends a command with a code; what there is to say has been said.
type failed int

func (f failed) Error() string { return fmt.Sprintf("exit %d", int(f)) }

// fail says what went wrong and chooses the exit code by what to do next.
func (p *program) fail(err error) int {
	var f failed
	var problems *model.Problems
	switch {
	case errors.As(err, &f):
		return int(f)
	case errors.Is(err, context.Canceled) && p.ctx.Err() != nil:
		fmt.Fprintln(p.stderr, "ingest: interrupted; the same command again goes on, and changes nothing that is done")
		return exitInterrupted
	case errors.As(err, &problems):
		fmt.Fprintln(p.stderr, err)
		return exitUsage
	case errors.Is(err, store.ErrOwned), errors.Is(err, store.ErrNoTable), errors.Is(err, fs.ErrNotExist), errors.Is(err, errUsage):
		fmt.Fprintln(p.stderr, "ingest:", err)
		return exitUsage
	}
	fmt.Fprintln(p.stderr, "ingest:", err)
	return exitDown
}

// errUsage is wrapped by mistakes in what was asked.
var errUsage = errors.New("usage")

func usage(format string, args ...any) error {
	return fmt.Errorf("%s%w", fmt.Sprintf(format, args...), quiet{})
}

// quiet marks an error as errUsage without showing in its text.
type quiet struct{}

func (quiet) Error() string        { return "" }
func (quiet) Is(target error) bool { return target == errUsage }

// data is the flags that say where rows are.
type data struct {
	Data string `default:"./data" placeholder:"DIR" help:"Directory of the embedded store (default ${default})."`
	AWS  bool   `name:"aws" help:"Rows are in DynamoDB, found by the SDK's own environment: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL_DYNAMODB and the rest."`
}

// output is the flag that says how results are printed.
type output struct {
	Output string `short:"o" enum:"text,json" default:"text" help:"How results are printed: text or json."`
}

// open loads the models and opens their tables. The system has no search: what is
// written reaches indexes by the stream.
func (p *program) open(d data, names []string) (*system.System, error) {
	var models []*model.Model
	for _, n := range names {
		m, err := model.Load(n)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	if !d.AWS {
		return system.Open(p.ctx, d.Data, models, system.Options{NoSearch: true})
	}
	cfg, err := dynamodb.Config(p.ctx)
	if err != nil {
		return nil, usage("%v", err)
	}
	tables, err := system.Tables(models)
	if err != nil {
		return nil, usage("%v", err)
	}
	s, err := system.Over(p.ctx, dynamodb.Open(cfg, tables, dynamodb.Options{}), "", models, system.Options{NoSearch: true})
	if errors.Is(err, store.ErrNoTable) {
		return nil, usage("%v; projector deploy tables %s --aws makes what is missing", err, models[0].Name)
	}
	return s, err
}
