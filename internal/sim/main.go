// This file is the program simulator, and weir simulator: it parses the command line and runs schedules.
// No program that Lambda loads imports this package.

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"weir/internal/cli"
	"weir/internal/memory"
)

const description = `Run a model in a simulated world in which everything goes wrong, and recount.

MODEL is the name of a built-in model or the path of a model file. Exit codes: 0 good,
1 a run failed, 2 usage or configuration, 3 the results cannot be written, 130 interrupted.`

// program is where results and messages go.
type program struct {
	ctx    context.Context
	stdout io.Writer // results
	stderr io.Writer // messages
}

// Main is the program.
func Main(args []string) {
	os.Exit(run(cli.Stopped(context.Background()), args, os.Stdout, os.Stderr))
}

// theProgram describes the program for cli, with a fresh command: flags are read into it.
func theProgram() *cli.Program {
	return &cli.Program{Name: cli.Called("simulator"), Description: description, Commands: &simulatorCommand{}, Again: "starts with the first seed"}
}

// run is the program as a function: arguments in, exit code out.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	defer cli.LimitMemory(memory.Default, 0).Stop()
	prog := theProgram()
	ctx, out := prog.Results(ctx, stdout)
	stderr = cli.Messages(stderr)
	return out.Code(prog.Run(ctx, args, out, stderr, &program{ctx: ctx, stdout: out, stderr: stderr}), stderr)
}

type simulatorCommand struct {
	Version   cli.VersionFlag `env:"-" help:"Print the version and the formats of stored data."`
	Models    []string        `arg:"" name:"model" help:"Names of built-in models or paths of model files."`
	Seed      uint64          `help:"The first seed; the others are the next ones."`
	Schedules int             `default:"200" help:"How many runs of each model (default ${default})."`
	Faults    string          `placeholder:"LIST" help:"Only these kinds of faults, with commas between them; none is for none."`
	Skip      string          `placeholder:"N,N-N" help:"Leave out these acts of the application, by number."`
	Without   string          `placeholder:"N,N-N" help:"Leave out these faults, by number."`
	Bulk      bool            `xor:"how" help:"Runs with replays in bulk of what was recorded, by processes that die of their disk."`
	Builds    bool            `xor:"how" help:"Runs with builds: existing rows, builders that are killed, changed derivations."`
	Trace     bool            `help:"Print every step on stderr; for a single run."`
	Output    string          `short:"o" enum:"text,json,jsonl" default:"text" help:"How results are printed: text, json or jsonl."`
}

func (simulatorCommand) Help() string {
	return `Runs the code that derives in a simulated world: the model's own rows are written
at random, and everything goes wrong that can: processes die in the middle of a write,
batches come again and out of order, shards split, services refuse, clocks jump. After each run all
that is derived is held against a recount that shares no code with weir. It touches no
data and no service.

A run that fails is made as small as it can be, and printed with the command that does
it again: the same seed gives the same run. Exits with 1 when any failed.

  simulator gallery
  simulator my-model.yaml --schedules 1000
  simulator my-model.yaml --seed 1337 --schedules 1 --trace`
}

func (c *simulatorCommand) Run(p *program) error {
	if c.Schedules < 1 {
		return cli.Usage("--schedules is %d; it is 1 at the least", c.Schedules)
	}
	if c.Trace && (c.Schedules != 1 || len(c.Models) != 1) {
		return cli.Usage("--trace is for one run of one model: say --schedules 1")
	}
	o, err := c.options(p)
	if err != nil {
		return cli.Usage("%v", err)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what services do wrong here is expected
	var total Report
	for _, name := range c.Models {
		m, err := cli.LoadModel(p.ctx, name)
		if err != nil {
			return err
		}
		r := Many(p.ctx, m, c.Seed, c.Schedules, o)
		if p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		total.Sum(r)
	}
	if c.Output == "text" {
		c.print(p, &total)
	} else if err := json.NewEncoder(p.stdout).Encode(&total); err != nil {
		return err
	}
	if len(total.Failed) > 0 {
		return cli.Failed(cli.Check)
	}
	return nil
}

func (c *simulatorCommand) options(p *program) (o Options, err error) {
	o.Builds, o.Bulk = c.Builds, c.Bulk
	if o.Faults, err = ParseKinds(c.Faults); err != nil {
		return o, fmt.Errorf("--faults: %w", err)
	}
	if o.Skip, err = ParseNumbers(c.Skip); err != nil {
		return o, fmt.Errorf("--skip: %w", err)
	}
	if o.Without, err = ParseNumbers(c.Without); err != nil {
		return o, fmt.Errorf("--without: %w", err)
	}
	if c.Trace {
		o.Trace = func(line string) { fmt.Fprintln(p.stderr, line) }
	}
	return o, nil
}

func (c *simulatorCommand) print(p *program, r *Report) {
	for _, f := range r.Failed {
		for _, x := range f.Failures {
			fmt.Fprintf(p.stdout, "seed %d: %s: %s\n", f.Seed, x.Class, x.What)
		}
		fmt.Fprintf(p.stdout, "again: %s\n", cli.Typed(f.Again))
	}
	fmt.Fprintf(p.stdout, "%s: %d schedules, %d records, %d faults (%d of %d pairs met): lost %d, doubled %d, reordered %d, unaccounted %d, stuck %d; %.1f s\n",
		strings.ReplaceAll(r.Model, " ", ", "), r.Schedules, r.Records, r.Faults, r.PairsMet, r.Pairs, r.Lost, r.Doubled, r.Reordered, r.Unaccounted, r.Stuck, r.Seconds)
}
