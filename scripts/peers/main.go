// Command peers runs weir and the other ways to keep a gallery's counters on one recording, checks that all of
// them end with the same counts, and prints the cost of each.
//
//	scripts/peers.sh
//	RECORDS=1000000 scripts/peers.sh -rounds 1
//	scripts/peers.sh -only weir,sqlite
//
// Rounds of all contenders alternate, and the table has medians, so that other load on the machine affects all
// alike. The command ends with 1 if the counts differ.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
)

// A contender derives a gallery's counts from a recording.
type contender struct {
	name  string
	keeps string // the data that it has when it is done

	load func(p *peers, recording, dir string) (*exec.Cmd, error) // the command that is measured
	dump func(p *peers, dir string, out io.Writer) error          // prints "TARGET VALUE N" for each count that is not 0
}

var contenders = []contender{
	{name: "weir", keeps: "rows, indexes, ledgers, counts; exactly once, resumable", load: (*peers).loadWeir, dump: (*peers).dumpWeir},
	{name: "sqlite", keeps: "rows, indexes, counts; resumable", load: self("sqlite"), dump: dumpSQLite},
	{name: "decoding", keeps: "nothing: the limit of the Go peers, which decode in one goroutine", load: self("decoding")},
}

// goal is the limit that weir's cost is compared with.
var goal = map[string]float64{"sqlite": 4}

type peers struct {
	projector string // the built program
	model     string // the path of the model that its rows are read with
	dir       string // for recordings and data; removed at the end
	memory    string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// loads are the contenders that this program is, in a process of its own.
var loads = map[string]func(recording, dir string) error{
	"sqlite":   loadSQLite,
	"decoding": func(recording, _ string) error { return readChanges(recording, func(int, change) error { return nil }) },
}

func run(args []string) (err error) {
	if len(args) == 4 && args[0] == "load" {
		return loads[args[1]](args[2], args[3])
	}
	p := &peers{}
	flags := flag.NewFlagSet("peers", flag.ExitOnError)
	flags.StringVar(&p.projector, "projector", "bin/weir", "the built `program`")
	flags.StringVar(&p.memory, "memory", "256MB", "what weir may have resident, as projector's --memory")
	recording := flags.String("recording", "", "the recording, a `file` of a gallery that scripts/bench.sh -generate makes")
	model := flags.String("model", "models/gallery.yaml", "the gallery's model, a `file`")
	rounds := flags.Int("rounds", 3, "how often each runs")
	only := flags.String("only", "", "contenders to run, with commas between: "+names())
	asJSON := flags.Bool("json", false, "print a list of JSON objects in place of the table")
	temp := flags.String("temp", "", "`directory` for data")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *recording == "" {
		return errors.New("which recording? see -recording")
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if p.dir, err = os.MkdirTemp(*temp, "weir-peers-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(p.dir)) }()
	if err := p.writeModel(*model); err != nil {
		return err
	}
	n, err := countChanges(*recording)
	if err != nil {
		return err
	}
	return p.compare(chosen, *recording, n, *rounds, *asJSON)
}

func names() string {
	var out []string
	for _, c := range contenders {
		out = append(out, c.name)
	}
	return strings.Join(out, ",")
}

// choose returns the contenders of a list, or all without one.
func choose(only string) (out []contender, err error) {
	for _, c := range contenders {
		if only != "" && !slices.Contains(strings.Split(only, ","), c.name) {
			continue
		}
		out = append(out, c)
	}
	if only != "" && len(out) != len(strings.Split(only, ",")) {
		return nil, fmt.Errorf("-only %s: there are %s", only, names())
	}
	return out, nil
}

func countChanges(recording string) (n int, err error) {
	err = readChanges(recording, func(i int, _ change) error { n = i + 1; return nil })
	return n, err
}

// compare runs all contenders, round after round, and prints the table.
func (p *peers) compare(all []contender, recording string, records, rounds int, asJSON bool) error {
	costs, counts := make([][]cost, len(all)), make([][]byte, len(all))
	for round := range rounds {
		for i, c := range all {
			spent, count, err := p.once(c, recording)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %-13s %6.1f s, %6.1f s of CPU, %5.0f MB\n", round+1, rounds, c.name, spent.wall.Seconds(), spent.cpu.Seconds(), mb(spent.peak))
			costs[i] = append(costs[i], spent)
			if counts[i] = count; c.dump != nil && !bytes.Equal(count, counts[0]) {
				return fmt.Errorf("%s ends with other counts than %s: %s", c.name, all[0].name, firstDifference(counts[0], count))
			}
		}
	}
	fmt.Fprintf(os.Stderr, "the counts of all are the same: %d values\n", bytes.Count(counts[0], []byte("\n")))
	if asJSON {
		return printJSON(os.Stdout, all, costs, records)
	}
	return print(os.Stdout, all, costs, records)
}

// once runs a contender in a new directory, and returns its counts, sorted.
func (p *peers) once(c contender, recording string) (spent cost, counts []byte, err error) {
	dir, err := os.MkdirTemp(p.dir, c.name+"-")
	if err != nil {
		return spent, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cmd, err := c.load(p, recording, dir)
	if err != nil {
		return spent, nil, err
	}
	if spent, err = measure(cmd); err != nil {
		return spent, nil, err
	}
	if spent.disk, err = size(dir); err != nil || c.dump == nil {
		return spent, nil, err
	}
	var out bytes.Buffer
	if err := c.dump(p, dir, &out); err != nil {
		return spent, nil, fmt.Errorf("reading its counts: %w", err)
	}
	lines := slices.SortedFunc(bytes.Lines(out.Bytes()), bytes.Compare)
	return spent, bytes.Join(lines, nil), nil
}

// firstDifference returns the first line that only one of two sorted texts has.
func firstDifference(a, b []byte) string {
	as, bs := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	i := 0
	for i < min(len(as), len(bs)) && as[i] == bs[i] {
		i++
	}
	at := func(s []string) string {
		if i >= len(s) {
			return "nothing"
		}
		return fmt.Sprintf("%q", s[i])
	}
	return fmt.Sprintf("line %d is %s and %s", i+1, at(as), at(bs))
}

// A result is the medians of a contender.
type result struct {
	Name, Keeps    string
	CPU, Rate      float64 // µs a record, and records a second
	PeakMB, DiskMB float64
}

func results(all []contender, costs [][]cost, records int) (out []result) {
	for i, c := range all {
		of := func(f func(cost) float64) float64 { return median(costs[i], f) }
		out = append(out, result{
			Name: c.name, Keeps: c.keeps,
			CPU:    1e6 * of(func(c cost) float64 { return c.cpu.Seconds() }) / float64(records),
			Rate:   float64(records) / of(func(c cost) float64 { return c.wall.Seconds() }),
			PeakMB: mb(int64(of(func(c cost) float64 { return float64(c.peak) }))),
			DiskMB: mb(int64(of(func(c cost) float64 { return float64(c.disk) }))),
		})
	}
	return out
}

// printJSON prints the results for another program, scripts/bench.
func printJSON(w io.Writer, all []contender, costs [][]cost, records int) error {
	return json.MarshalWrite(w, results(all, costs, records))
}

// print prints a line for each contender: medians, and the CPU time as a multiple of the first one's.
func print(w io.Writer, all []contender, costs [][]cost, records int) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%d records\tCPU µs each\trecords/s\tpeak MB\tdisk MB\tCPU, against %s\tkeeps\n", records, all[0].name)
	first := 0.0
	for i, r := range results(all, costs, records) {
		if i == 0 {
			first = r.CPU
		}
		ratio := fmt.Sprintf("%.1f ×", r.CPU/first)
		if g := goal[r.Name]; g > 0 && all[0].name == "weir" {
			ratio += fmt.Sprintf(" (goal ≥ %.0f ×: %s)", g, map[bool]string{true: "met", false: "missed"}[r.CPU >= g*first])
		}
		fmt.Fprintf(out, "%s\t%.1f\t%.0f\t%.0f\t%.0f\t%s\t%s\n", r.Name, r.CPU, r.Rate, r.PeakMB, r.DiskMB, ratio, r.Keeps)
	}
	return out.Flush()
}

func median(costs []cost, of func(cost) float64) float64 {
	var xs []float64
	for _, c := range costs {
		xs = append(xs, of(c))
	}
	slices.SortFunc(xs, cmp.Compare)
	return xs[len(xs)/2]
}

func mb(n int64) float64 { return float64(n) / 1e6 }

// self is a load of this program, by its name, in a process of its own.
func self(name string) func(p *peers, recording, dir string) (*exec.Cmd, error) {
	return func(_ *peers, recording, dir string) (*exec.Cmd, error) {
		exe, err := os.Executable()
		return exec.Command(exe, "load", name, recording, dir), err
	}
}
