// Package ingestcli is the program ingest, and weir ingest. It writes rows: it checks the commands that people and
// programs want written against a model, and keeps the model's rules. It parses its command line and
// wires; the work is in other packages.
//
// Each command is a struct whose fields are its arguments and flags, with the methods Help and
// Run, as in package projectorcli. To read first:
//
//	put.go        commands from files: done in batches, refusals printed
//	serve.go      writes over HTTP; lambda.go is the same as a function, and for queues
//	backfill.go   attributes that rows were written without
//	migrate.go    old rows into rows of the model
//
// All of them write through package ingest or migrate, and open no search index: each write
// reaches documents by the stream, like every other write.
package ingestcli

import (
	"context"
	"io"
	"log/slog"
	"os"

	"weir/internal/cli"
	"weir/internal/interrupt"
	"weir/internal/memory"
	"weir/internal/system"
)

// commands is the command line of ingest. kong reads it; docs/guide/cli.md is made from its help texts.
type commands struct {
	Put   putCommand   `cmd:"" help:"Write rows: commands as JSON lines, checked against the model."`
	Serve serveCommand `cmd:"" help:"Take writes over HTTP, checked against the model."`

	Backfill backfillCommand `cmd:"" help:"Give rows the defaults and index keys that they were written without."`
	Migrate  migrateCommand  `cmd:"" help:"Make old rows into rows of the model, as a migration in its file says."`

	cli.Extras
}

const description = `Writes rows of a model, and keeps the model's rules.

MODEL is the name of a built-in model or the path of a model file. The environment can
say what flags say: WEIR_DATA is --data, WEIR_WRITE_BUDGET is --write-budget. Data is printed
on stdout, everything else on stderr. Exit codes: 0 good, 1 something was refused, 2
usage or configuration, 3 a service or the disk is down, or the output could not be written,
4 incomplete: run the same command again, 130 interrupted.`

// program is the base of all commands: where data and talk go, and the outside world.
type program struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer // data
	stderr io.Writer // talk
	limit  *cli.Limit
	log    *slog.Logger // of work that runs beside a command; nil for slog.Default
}

// Main serves if Lambda has started the program, and reads a command line otherwise.
func Main(args []string) {
	ctx := cli.Stopped(context.Background())
	if cli.InLambda(args) {
		os.Exit(serveLambda(ctx, os.Stderr))
	}
	os.Exit(run(ctx, args, os.Stdin, os.Stdout, os.Stderr))
}

// theProgram describes the program for cli, with fresh commands: flags are read into them.
func theProgram() *cli.Program {
	return &cli.Program{
		Name: cli.Called("ingest"), Description: description, Commands: &commands{},
		Again: "goes on, and changes nothing that is done",
	}
}

// run is the program as a function: arguments in, exit code out.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	limit := cli.LimitMemory(memory.Default, 0)
	defer limit.Stop()
	prog := theProgram()
	ctx, out := prog.Results(ctx, stdout)
	stderr = cli.Messages(stderr)
	return out.Code(prog.Run(ctx, args, out, stderr, &program{ctx: ctx, stdin: interrupt.Reader(ctx, stdin), stdout: out, stderr: stderr, limit: limit}), stderr)
}

// reportFailure reports an error and chooses the exit code by what to do next.
func (p *program) reportFailure(err error) int { return theProgram().Fail(p.ctx, err, p.stderr) }

// data is the flags that say where rows are.
type data struct {
	cli.MemoryFlag
	cli.StageFlags
	Data string `default:"./data" placeholder:"DIR" help:"Directory of the embedded store (default ${default})."`
	AWS  bool   `name:"aws" help:"Rows are in DynamoDB, found by the SDK's own environment: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL_DYNAMODB and the rest."`
}

// at is the place that the flags name. It does no I/O.
func (d data) at() system.Place {
	return system.Place{Data: d.Data, AWS: d.AWS, Memory: d.Memory, Stage: d.Deployment()}
}

// output is the flag that says how results are printed.
type output struct {
	Output string `short:"o" enum:"text,json" default:"text" help:"How results are printed: text or json."`
}

// openTables loads the models and opens their tables. The system has no search: a row that is
// written reaches indexes by the stream.
// The caller syncs the store before it reports success, and closes the system.
func (p *program) openTables(d data, names []string) (*system.System, error) {
	p.limit.To(d.Memory)
	at := d.at()
	at.Log = p.log
	return cli.Open(p.ctx, at, names, system.Options{NoSearch: true, Writes: true, Log: p.log})
}
