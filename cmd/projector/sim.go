package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"weir/internal/cli"
	"weir/internal/sim"
)

type simCommand struct {
	output
	Models    []string `arg:"" name:"model" help:"Names of built-in models or paths of model files."`
	Seed      uint64   `help:"The first seed; the others are the next ones."`
	Schedules int      `default:"200" help:"How many runs of each model (default ${default})."`
	Faults    string   `placeholder:"LIST" help:"Only these kinds of faults, with commas between them; none is for none."`
	Skip      string   `placeholder:"N,N-N" help:"Leave out these acts of the application, by number."`
	Without   string   `placeholder:"N,N-N" help:"Leave out these faults, by number."`
	Trace     bool     `help:"Print every step on stderr; for a single run."`
}

func (simCommand) Help() string {
	return `Runs the code that derives in a simulated world: the model's own rows are written
at random, and everything goes wrong that can: processes die amid a write, batches come
again and out of order, shards split, services refuse, clocks jump. After each run all
that is derived is held against a recount that shares no code with weir. It touches no
data and no service.

A run that fails is made as small as it can be, and printed with the command that does
it again: the same seed gives the same run. Exits with 1 when any failed.

  projector sim my-model.yaml --schedules 1000`
}

func (c *simCommand) Run(p *program) error {
	if c.Schedules < 1 {
		return usage("--schedules is %d; it is 1 at the least", c.Schedules)
	}
	if c.Trace && (c.Schedules != 1 || len(c.Models) != 1) {
		return usage("--trace is for one run of one model: say --schedules 1")
	}
	o, err := c.options(p)
	if err != nil {
		return usage("%v", err)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what services do wrong here is nobody's news
	var total sim.Report
	for _, name := range c.Models {
		m, err := cli.LoadModel(p.ctx, name)
		if err != nil {
			return err
		}
		r := sim.Many(p.ctx, m, c.Seed, c.Schedules, o)
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
		return failed(exitCheck)
	}
	return nil
}

func (c *simCommand) options(p *program) (o sim.Options, err error) {
	if o.Faults, err = sim.ParseKinds(c.Faults); err != nil {
		return o, fmt.Errorf("--faults: %w", err)
	}
	if o.Skip, err = sim.ParseNumbers(c.Skip); err != nil {
		return o, fmt.Errorf("--skip: %w", err)
	}
	if o.Without, err = sim.ParseNumbers(c.Without); err != nil {
		return o, fmt.Errorf("--without: %w", err)
	}
	if c.Trace {
		o.Trace = func(line string) { fmt.Fprintln(p.stderr, line) }
	}
	return o, nil
}

func (c *simCommand) print(p *program, r *sim.Report) {
	for _, f := range r.Failed {
		for _, x := range f.Failures {
			fmt.Fprintf(p.stdout, "seed %d: %s: %s\n", f.Seed, x.Class, x.What)
		}
		fmt.Fprintf(p.stdout, "again: %s\n", f.Again)
	}
	fmt.Fprintf(p.stdout, "%s: %d schedules, %d records, %d faults (%d of %d pairs met): lost %d, doubled %d, reordered %d, unaccounted %d, stuck %d; %.1f s\n",
		strings.ReplaceAll(r.Model, " ", ", "), r.Schedules, r.Records, r.Faults, r.PairsMet, r.Pairs, r.Lost, r.Doubled, r.Reordered, r.Unaccounted, r.Stuck, r.Seconds)
}
