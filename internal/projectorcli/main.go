// Package projectorcli is the program projector, whose commands are at the top of weir, too. It derives
// data from recorded or live streams and answers queries on it. It parses its command line and wires;
// the work is in other packages.
//
// Each command is a struct whose fields are its arguments and flags, with the methods Help and
// Run. kong fills it in and calls Run with the program, which has stdin, stdout and stderr. A
// command returns an error, and cli chooses the exit code by the user's next step. To read
// first:
//
//	main.go            the commands, and flags that several of them have
//	replay.go          recorded files: source rows are written while a follower derives from them;
//	                   replay_bulk.go lands many rows at a time where nothing follows yet
//	run.go             the process: server, followers, sweep, builds (run_build.go), side by side
//	build.go           builds by command
//	server.go          commands that ask a running process instead of opening rows
//	verify.go          derives again and compares; why.go explains
//	dead.go            dead letters
//	lambda.go          the program as a function: its environment, and its metrics
//	deploy*.go         tables, and a template for CloudFormation
//	doctor.go          the obstacles on AWS
//	dev.go             everything in one process, with sample rows
//
// Where a command prints results, text is for people and may change; json and jsonl are for
// scripts and keep their names.
package projectorcli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"

	"weir/internal/budget"
	"weir/internal/catalog"
	"weir/internal/cli"
	"weir/internal/deadletter"
	"weir/internal/function"
	"weir/internal/memory"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/query"
	"weir/internal/runner"
	"weir/internal/system"
	"weir/internal/traces"
)

// The exit codes of commands, by the names that they use.
const (
	exitGood        = cli.Good
	exitCheck       = cli.Check
	exitUsage       = cli.Mistake
	exitInterrupted = cli.Interrupted
)

type failed = cli.Failed

var (
	usage         = cli.Usage
	errTerminated = cli.ErrTerminated
)

// commands is the command line of projector. kong reads it; docs/guide/cli.md is made from its help texts.
type commands struct {
	Replay replayCommand  `cmd:"" help:"Derive from recorded streams: source rows, derived rows, search."`
	Run    runCommand     `cmd:"" help:"Follow the store's streams and serve queries over HTTP."`
	Serve  serveCommand   `cmd:"" help:"Serve queries over HTTP beside functions or processes that derive."`
	Dev    devCommand     `cmd:"" help:"Everything in one process, with sample data, to try a model out."`
	Query  queryCommand   `cmd:"" help:"Answer a named query, one JSON object a line."`
	Build  buildCommand   `cmd:"" help:"Derive from existing rows, beside the live stream; fill indexes."`
	Status statusCommand  `cmd:"" help:"Show the catalog of a model: tables, readers, derivations."`
	Verify verifyCommand  `cmd:"" help:"Derive everything again from the source rows and print what differs."`
	Why    whyCommand     `cmd:"" help:"List the records of recorded files that made a value what it is."`
	Dead   deadCommands   `cmd:"" help:"Look at, retry or discard what could not be applied."`
	Deploy deployCommands `cmd:"" help:"Make what a model needs on AWS."`
	Doctor doctorCommand  `cmd:"" help:"Examine whether a model can run on AWS, and say what mends it."`
	Lint   lintCommand    `cmd:"" help:"Check model files."`
	Cost   costCommand    `cmd:"" help:"Say what a model costs on AWS in a month."`
	Init   initCommand    `cmd:"" help:"Write a first model, or draft one from the rows of a table."`
	Test   testCommand    `cmd:"" help:"Run your own cases of a model: rows, and what is derived from them."`
	Diff   diffCommand    `cmd:"" help:"Say what a changed model will do, before it is deployed."`
	Schema schemaCommand  `cmd:"" help:"Print the JSON Schema of model files, for editors."`
	Retire retireCommand  `cmd:"" hidden:""`

	cli.Extras
}

// retireCommand is a command of before, which names the one in its place.
type retireCommand struct {
	Args []string `arg:"" optional:"" passthrough:""`
}

// Run refuses.
func (*retireCommand) Run(*program) error {
	return usage("there is no command retire any more: projector build MODEL retires what the file of the model no longer has, and an hour later projector build MODEL --prune removes what that has shown. " +
		"Of a model whose file is gone, write one with its name and its tables, and nothing to derive")
}

const description = `Derived data for DynamoDB tables, kept exactly right.

MODEL is the name of a built-in model or the path of a model file. The environment can
say what flags say: WEIR_DATA is --data, WEIR_WRITE_BUDGET is --write-budget. Data is printed
on stdout, everything else on stderr. Exit codes: 0 good, 1 a check failed, 2 usage
or configuration, 3 a service or the disk is down, or the output could not be written, 4
incomplete: run the same command again, 130 interrupted.`

// program is the base of all commands: where data and talk go, and the outside world.
type program struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer // data
	stderr io.Writer // talk
	// limit is the memory of the process; commands that open a store share it with its caches.
	limit *cli.Limit
	// log is of work beside a command, nil for slog.Default; spans are of its work, nil for none.
	log   *slog.Logger
	spans *traces.Tracing
	// about is the model that the command is for, by its name and flags; nil for none.
	about *model.Model
}

// messages writes texts with their commands as the user can type them. A line of JSON stays one.
type messages struct {
	*program
	to io.Writer
}

// Write passes a text on.
func (m messages) Write(b []byte) (int, error) {
	text := b
	if m.about != nil {
		text = []byte(m.about.Typed(string(b)))
	}
	if json.Valid(b) && !json.Valid(text) {
		text = b
	}
	_, err := m.to.Write(text)
	return len(b), err
}

// weirCommands is the command line of weir: the commands of projector, and the other programs, which package main runs.
type weirCommands struct {
	commands
	Ingest    otherProgram    `cmd:"" passthrough:"" help:"Write rows, checked against the model: put, serve, backfill, migrate."`
	Simulator otherProgram    `cmd:"" passthrough:"" help:"Run models in a simulated world in which everything goes wrong."`
	Function  functionCommand `cmd:"" help:"Derive as a Lambda function, which Lambda starts."`
}

// otherProgram is a program in the list of weir's commands.
type otherProgram struct {
	Args []string `arg:"" optional:""`
}

// Run refuses. Package main runs the others before.
func (otherProgram) Run(*program) error { return usage("the simulator is in weir's own program alone") }

// functionCommand is the program as a function.
type functionCommand struct{}

// Help describes function.
func (functionCommand) Help() string {
	return `In a container image, Lambda starts this command without arguments. A zip has a program
of its own, which is smaller. The environment says what flags say elsewhere:
docs/guide/operations.md, Functions.

  WEIR_MODEL=gallery weir function`
}

// Run serves until Lambda ends the process.
func (functionCommand) Run(p *program) error {
	if !cli.InLambda(nil) {
		return usage("Lambda starts this command; what a person runs is projector run MODEL")
	}
	return function.Serve(p.ctx, os.Stdout, os.Stderr)
}

// Main is the program. Lambda starts it without arguments.
func Main(args []string) {
	ctx := cli.Stopped(context.Background())
	if cli.InLambda(args) {
		os.Exit(theProgram().Fail(ctx, function.Serve(ctx, os.Stdout, os.Stderr), os.Stderr))
	}
	os.Exit(run(ctx, args, os.Stdin, os.Stdout, os.Stderr))
}

// theProgram describes the program for cli, with fresh commands: flags are read into them.
func theProgram() *cli.Program {
	p := &cli.Program{
		Name: cli.Called("projector"), Description: description, Commands: &commands{},
		Again: "goes on where this one stopped", Code: codeOf,
		Elsewhere: map[string]string{"sim": cli.Called("simulator")},
	}
	if p.Name != "projector" {
		p.Commands = &weirCommands{}
	}
	return p
}

// run is the program as a function: arguments in, exit code out.
// It changes no global state but the memory limit, which it gives back, so tests may call it many times.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	limit := cli.LimitMemory(memory.Default, 0)
	defer limit.Stop()
	prog := theProgram()
	ctx, out := prog.Results(ctx, stdout)
	p := &program{ctx: ctx, stdin: stdin, stdout: out, limit: limit}
	p.stderr = messages{p, cli.Messages(stderr)}
	return out.Code(prog.Run(ctx, args, out, p.stderr, p), p.stderr)
}

// codeOf is the exit code of errors that only this program has.
// ok is false for errors that cli knows. A refusal that another command or a changed model resolves is exit code 2.
func codeOf(err error) (code int, ok bool) {
	for _, mistake := range []error{system.ErrNotReplayed, catalog.ErrRefused, owntable.ErrNewer, memory.ErrFew, query.ErrNotFound, query.ErrParameter, query.ErrCursor, deadletter.ErrNoDead} {
		if errors.Is(err, mistake) {
			return cli.Mistake, true
		}
	}
	if system.IsMistake(err) {
		return cli.Mistake, true
	}
	return cli.Check, errors.Is(err, deadletter.ErrNoRetry) || errors.Is(err, runner.ErrStands)
}

// data is the flags that say where rows and documents are.
type data struct {
	cli.MemoryFlag
	cli.StageFlags
	Data       string `default:"./data" placeholder:"DIR" help:"Directory of the embedded store and index (default ${default})."`
	AWS        bool   `name:"aws" help:"Rows are in DynamoDB, found by the SDK's own environment: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL_DYNAMODB and the rest."`
	DeriveIn   string `placeholder:"REGION" help:"Which region derives from tables that are replicated between regions (global tables); give it alike in all of them. The others receive what is derived with the rows, and refuse to derive."`
	OpenSearch string `name:"opensearch" placeholder:"URL" help:"Search in this OpenSearch cluster instead of the embedded index. A domain of Amazon OpenSearch Service is signed for, as is any with ?sign=REGION."`
}

// at is the place that the flags name. It does no I/O.
func (d data) at() system.Place {
	return system.Place{Data: d.Data, AWS: d.AWS, OpenSearch: d.OpenSearch, Memory: d.Memory, Stage: d.Deployment()}
}

// shared reports whether other processes may use the rows at the same time.
func (d data) shared() bool { return d.at().Store().Shared() }

// assume is the flag that lets a model begin on tables of which weir does not know that
// their streams have every change.
type assume struct {
	AssumeComplete bool `env:"-" help:"Begin on tables that weir did not make. Only where no row was ever written or deleted that the stream no longer has (it keeps 24 hours): each such row is missing from counts, copies and statuses for good, and a count goes below zero when it is deleted. The catalog keeps that you said so, and when."`
}

// output is the flag that says how results are printed.
type output struct {
	Output string `short:"o" enum:"text,json,jsonl" default:"text" help:"How results are printed: text, json or jsonl."`
}

// results prints the results of a command, in the form that its flag says.
type results struct {
	output
	enc   *json.Encoder
	all   []any             // with json, which prints one array at the end
	table *tabwriter.Writer // for texts that stand in columns; end and flush write it
}

func (o output) to(w io.Writer) *results {
	return &results{o, json.NewEncoder(w), []any{}, tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
}

// printResult prints a result: with text by a call of text, with jsonl as a line.
func (r *results) printResult(result any, text func()) {
	switch r.Output {
	case "text":
		text()
	case "jsonl":
		r.enc.Encode(result)
	default:
		r.all = append(r.all, result)
	}
}

// printEnd prints the table, and the array of json.
func (r *results) printEnd() {
	r.table.Flush()
	if r.Output == "json" {
		r.enc.Encode(r.all)
	}
}

// openSystem loads the models and opens them where they are.
// The caller closes the system. Opening the embedded store takes its directory: a second process is refused.
func (p *program) openSystem(d data, names []string, o system.Options) (*system.System, error) {
	return p.openCounted(d, nil, names, o)
}

// openCounted is openSystem with write units that are counted and limited.
func (p *program) openCounted(d data, writes *budget.Writes, names []string, o system.Options) (*system.System, error) {
	at := p.place(d, names, writes, &o)
	return cli.Open(p.ctx, at, names, o)
}

// place is the place that the flags name, with the command's additions to it and to the options.
func (p *program) place(d data, names []string, writes *budget.Writes, o *system.Options) system.Place {
	p.limit.To(d.Memory)
	o.DeriveIn, o.Log = d.DeriveIn, p.log
	at := d.at()
	at.Writes, at.Log = writes, p.log
	p.noteModel(d, names)
	if p.spans != nil {
		o.Tracer, at.Observe = p.spans, p.spans.Observer
	}
	return at
}

// noteModel notes which model the command is for, and where, so that its messages say so. Of several models they say MODEL.
func (p *program) noteModel(d data, names []string) {
	p.about = &model.Model{Arg: "MODEL", Flags: cli.Flags(d.at(), system.Options{DeriveIn: d.DeriveIn})}
	if len(names) == 1 {
		p.about.Arg = names[0]
	}
}

// beginTracing begins to send spans as flags and environment say. Call it before openSystem, and end at the end of the command.
func (p *program) beginTracing(f traces.Flag) (end func(), err error) {
	if p.spans, err = traces.Open(p.ctx, f.Traces, "weir", cli.Version(), p.log); err != nil {
		return nil, usage("%v", err)
	}
	return p.spans.Close, nil
}

// existing is openSystem for commands that only make sense where there is data.
// A directory without a store is a usage error, and stays as it is: a typing mistake makes no empty store.
func (p *program) existing(d data, names []string, o system.Options) (*system.System, error) {
	if err := p.hasData(d); err != nil {
		return nil, err
	}
	return p.openSystem(d, names, o)
}

// named is existing for commands that can do without the model's file: gone says that there is only its name.
func (p *program) named(d data, name string, o system.Options) (s *system.System, gone bool, err error) {
	if err := p.hasData(d); err != nil {
		return nil, false, err
	}
	at := p.place(d, []string{name}, nil, &o)
	return cli.OpenNamed(p.ctx, at, name, o)
}

// hasData refuses a directory without a store.
func (p *program) hasData(d data) error {
	if dir := d.at().Directory(); !d.shared() {
		if _, err := os.Stat(filepath.Join(dir, "store")); err != nil {
			return usage("there is no data in %s: replay a recording into it first, or say where it is with --data", dir)
		}
	}
	return nil
}
