package projectorcli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"weir/internal/cli"
	"weir/internal/deploy"
)

// costCommand prints the price of a model. It asks no service.
type costCommand struct {
	output
	Model     string    `arg:"" help:"Name of a built-in model or path of a model file."`
	Writes    perSecond `env:"WEIR_COST_WRITES" required:"" placeholder:"N/s" help:"Writes of source rows, such as 1000/s, 36000/h or 50000/d."`
	Shards    int       `env:"WEIR_COST_SHARDS" default:"4" placeholder:"N" help:"Open shards of the streams (default ${default}): a partition of a table has one."`
	Targets   float64   `env:"WEIR_COST_TARGETS" default:"10000" placeholder:"N" help:"Rows that show a derivation and change, all alike often (default ${default}): fewer repeat more in a batch."`
	Window    float64   `env:"WEIR_COST_WINDOW" default:"1" placeholder:"SECONDS" help:"The batching window (default ${default})."`
	Row       float64   `env:"WEIR_COST_ROW" default:"1" placeholder:"KB" help:"Size of a row that weir writes (default ${default})."`
	Memory    float64   `env:"WEIR_COST_MEMORY" default:"512" placeholder:"MB" help:"Memory of the function (default ${default})."`
	Processes int       `env:"WEIR_COST_PROCESSES" placeholder:"N" help:"Processes that run in place of functions, one that reads and others that stand by."`
	EachEvent bool      `env:"WEIR_COST_EACH_EVENT" help:"The function writes metrics for each event (WEIR_METRICS=event)."`
	ByTable   bool      `env:"WEIR_COST_BY_TABLE" help:"The function writes metrics of each table too (WEIR_METRICS=table)."`
}

// perSecond is a rate as people write it.
type perSecond float64

// UnmarshalText reads 1000, 1000/s, 10/m, 36000/h or 50000/d.
func (r *perSecond) UnmarshalText(text []byte) error {
	number, per, _ := strings.Cut(string(text), "/")
	seconds, known := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[per]
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(n >= 0) || n > 1e9 {
		return fmt.Errorf("%q is no rate such as 1000/s, 36000/h or 50000/d", text)
	}
	*r = perSecond(n / seconds)
	return nil
}

func (costCommand) Help() string {
	return `Says what a model costs on AWS in a month, line by line, beside a handler that adds
for each record, one that is correct by a marker in the same transaction, and, if the model
searches, a pipeline that copies rows to the index. Writes are of all source entities, as
many of each. Prices are on demand in us-east-1. The page docs/guide/cost.md has the
formulas, and what they leave out.

  projector cost gallery --writes 1000/s --targets 2000
  projector cost shop.yaml --writes 0 --shards 1000 --processes 2 -o json`
}

// Run reads the model alone.
func (c *costCommand) Run(p *program) error {
	m, err := cli.LoadModel(p.ctx, c.Model)
	if err != nil {
		return err
	}
	const most = 1e12 // and NaN is in no range
	is := func(n, least float64) bool { return n >= least && n <= most }
	if c.Shards < 1 || c.Processes < 0 || !is(c.Window, 0) || !is(c.Row, 0) || c.Row == 0 || !is(c.Memory, 128) || !is(c.Targets, 1) {
		return usage("--shards and --targets are 1 or more, --row more than 0, --memory 128 or more, --window and --processes 0 or more, and none more than %.0f", most)
	}
	ways := deploy.CostOf(m, deploy.Load{Writes: float64(c.Writes), Shards: c.Shards, Window: c.Window, Targets: c.Targets, RowKB: c.Row, Memory: c.Memory / 1024, Processes: c.Processes, EachEvent: c.EachEvent, ByTable: c.ByTable})
	if c.Output != "text" {
		return json.NewEncoder(p.stdout).Encode(ways)
	}
	for _, w := range ways {
		fmt.Fprintf(p.stdout, "%s: $%.2f a month", w.Name, w.Dollars)
		if plain := ways[1].Dollars; w.Name == "weir" && plain > 0 {
			fmt.Fprintf(p.stdout, ", %.2f times the plain handler", w.Dollars/plain)
		}
		fmt.Fprintln(p.stdout)
		for _, line := range w.Lines {
			fmt.Fprintf(p.stdout, "  %-20s %14.0f %-10s $%.2f\n", line.What, line.Count, line.Unit, line.Dollars)
		}
	}
	return nil
}
