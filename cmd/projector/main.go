// Command projector derives data from recorded or live streams and answers
// queries on it. It parses its command line and wires; the work is in internal/.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/runner"
	searchembedded "weir/internal/search/embedded"
	"weir/internal/search/opensearch"
	"weir/internal/store"
	"weir/internal/system"
)

// Exit codes, the same for every command.
const (
	exitGood        = 0
	exitCheck       = 1 // a check failed: drift, lint
	exitUsage       = 2 // usage or configuration
	exitDown        = 3 // a service or the disk is down
	exitPart        = 4 // part done; the same command again goes on
	exitInterrupted = 130
)

type commands struct {
	Replay replayCommand  `cmd:"" help:"Derive from recorded streams: core rows, derived rows, search."`
	Run    runCommand     `cmd:"" help:"Follow the store's streams and serve queries over HTTP."`
	Dev    devCommand     `cmd:"" help:"Everything in one process, with sample data, to try a model out."`
	Query  queryCommand   `cmd:"" help:"Answer a named query, one JSON object a line."`
	Verify verifyCommand  `cmd:"" help:"Recount every derived value from the core rows and print what differs."`
	Why    whyCommand     `cmd:"" help:"List the records of recorded files that made a value what it is."`
	Sim    simCommand     `cmd:"" help:"Run a model in a simulated world in which everything goes wrong, and recount."`
	Dead   deadCommands   `cmd:"" help:"Look at, retry or discard what could not be applied."`
	Deploy deployCommands `cmd:"" help:"Make what a model needs on AWS."`
	Lint   lintCommand    `cmd:"" help:"Check model files."`
	Schema schemaCommand  `cmd:"" help:"Print the JSON Schema of model files, for editors."`
}

const description = `Derived data for DynamoDB tables, kept exactly right.

MODEL is the name of a built-in model or the path of a model file. Data is printed
on stdout, everything else on stderr. Exit codes: 0 good, 1 a check failed, 2 usage
or configuration, 3 a service or the disk is down, 4 part done and resumable, 130
interrupted.`

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
	limitMemory()
	p := &program{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	var c commands
	exited := -1
	parser, err := kong.New(&c, kong.Name("projector"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(n int) { exited = n }), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.Bind(p))
	if err != nil {
		fmt.Fprintln(stderr, "projector:", err)
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
		fmt.Fprintf(stderr, "projector: %v\nTry: projector --help\n", err)
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
	var damage *searchembedded.DamageError
	switch {
	case errors.As(err, &f):
		return int(f)
	case errors.Is(err, context.Canceled) && p.ctx.Err() != nil:
		fmt.Fprintln(p.stderr, "projector: interrupted; the same command again goes on where this one stopped")
		return exitInterrupted
	case errors.As(err, &problems):
		fmt.Fprintln(p.stderr, err)
		return exitUsage
	case errors.Is(err, store.ErrOwned), errors.Is(err, system.ErrNotReplayed), errors.Is(err, fs.ErrNotExist), errors.Is(err, errUsage), errors.Is(err, opensearch.ErrTarget), errors.As(err, &damage),
		errors.Is(err, query.ErrNotFound), errors.Is(err, query.ErrParameter), errors.Is(err, query.ErrCursor), errors.Is(err, runner.ErrNoDead):
		fmt.Fprintln(p.stderr, "projector:", err)
		return exitUsage
	case errors.Is(err, runner.ErrNoRetry):
		fmt.Fprintln(p.stderr, "projector:", err)
		return exitCheck
	}
	fmt.Fprintln(p.stderr, "projector:", err)
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

// data is the flags that say where rows and documents are.
type data struct {
	Data       string `default:"./data" placeholder:"DIR" help:"Directory of the embedded store and index (default ${default})."`
	AWS        bool   `name:"aws" help:"Rows are in DynamoDB, found by the SDK's own environment: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL_DYNAMODB and the rest."`
	OpenSearch string `name:"opensearch" placeholder:"URL" help:"Search in this OpenSearch cluster instead of the embedded index. A domain of Amazon OpenSearch Service is signed for, as is any with ?sign=REGION."`
}

// output is the flag that says how results are printed.
type output struct {
	Output string `short:"o" enum:"text,json,jsonl" default:"text" help:"How results are printed: text, json or jsonl."`
}

// open loads the models and opens the embedded system in the directory.
func (p *program) open(d data, names []string, o system.Options) (*system.System, error) {
	models, err := load(names)
	if err != nil {
		return nil, err
	}
	if _, err := system.Tables(models); err != nil {
		return nil, usage("%v", err)
	}
	o.OpenSearch = d.OpenSearch
	if d.AWS {
		db, err := p.dynamodb(models)
		if err != nil {
			return nil, err
		}
		return p.openAWS(db, models, o)
	}
	return system.Open(p.ctx, d.Data, models, o)
}

func load(names []string) (models []*model.Model, err error) {
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return nil, usage("the model %s is named twice", n)
		}
		m, err := model.Load(n)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}

// existing is open for commands that only make sense where there is data.
func (p *program) existing(d data, names []string, o system.Options) (*system.System, error) {
	if _, err := os.Stat(filepath.Join(d.Data, "store")); err != nil && !d.AWS {
		return nil, usage("there is no data in %s: replay a recording into it first, or say where it is with --data", d.Data)
	}
	return p.open(d, names, o)
}
