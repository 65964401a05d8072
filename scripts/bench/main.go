// Command bench measures weir, and libraries that do a part of it ("peers"), in one run on one machine. It
// prints a table; each line has weir's figure, the peer's figure, their ratio and the goal.
//
// The goals of replays are those of goals.go. The file of each other stage describes the measurement: replay.go,
// models.go, search.go, lists.go and load.go. Rounds of weir and of its peer alternate, and a
// line shows medians, so that other load on the machine affects both alike.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"weir/internal/cli"
	"weir/internal/memory"
	"weir/internal/seq"
)

// bench is one run of the program.
type bench struct {
	ctx   context.Context
	talk  io.Writer // progress
	dir   string    // for recordings and stores; removed at the end
	short bool
	bin   string // the built projector
	most  int    // records of the largest recording of goals

	records int // of each model's recording

	profiles profiles
	table    table
	files    map[string]recording // by path

	size  memory.Size // the memory that a process may have
	limit *cli.Limit
}

type stage struct {
	name  string
	run   func(*bench) error
	asked bool // runs only when it is asked for
}

var stages = []stage{
	{name: "goals", run: (*bench).benchGoals},
	{name: "replay", run: (*bench).benchReplay},
	{name: "models", run: (*bench).benchModels},
	{name: "search", run: (*bench).benchSearch},
	{name: "lists", run: (*bench).benchLists},
	{name: "load", run: (*bench).benchLoad, asked: true},
	{name: "hostile", run: (*bench).benchHostile, asked: true},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	b := &bench{ctx: ctx, talk: os.Stderr, files: map[string]recording{}}
	only := flag.String("only", "", "stages to run, with commas between: "+stageNames())
	flag.BoolVar(&b.short, "short", false, "smaller recordings and fewer rounds, in under two minutes")
	flag.StringVar(&b.bin, "projector", "bin/weir", "the built `program`, of which the memory is measured")
	flag.StringVar(&b.profiles.cpu, "cpuprofile", "", "write a CPU profile of the first replay to `file`")
	flag.StringVar(&b.profiles.memory, "memprofile", "", "write a profile of all allocations, the peers' too, to `file`")
	flag.TextVar(&b.size, "memory", memory.Default, "what the process that is measured may have resident, as projector's --memory")
	generate := flag.String("generate", "", "only write a recording of -records to `file`: the gallery's, or of -model")
	of := flag.String("model", "", "the `model` whose recording -generate repeats with other names")
	flag.IntVar(&b.records, "records", 100_000, "how many records -generate writes, and models replays")
	temp := flag.String("temp", "", "`directory` for recordings and stores")
	flag.Parse()
	if *generate != "" {
		return b.generateRecording(*generate, *of)
	}
	if err := b.parseArguments(flag.Args(), only); err != nil {
		return err
	}
	b.limit = cli.LimitMemory(b.size, 0)
	chosen, err := chooseStages(*only)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(*temp, "weir-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	defer func() {
		if e := b.profiles.endProfiles(); err == nil {
			err = e
		}
	}()
	for _, s := range chosen {
		fmt.Fprintf(b.talk, "%s\n", s.name)
		if err := s.run(b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return b.table.print(os.Stdout)
}

// generateRecording writes a recording.
func (b *bench) generateRecording(path, model string) error {
	name, next := "gallery", newWorld(1).appendNext
	if model != "" {
		c, err := b.newCopies(model, b.records)
		if err != nil {
			return err
		}
		name, next = model, c.appendNext
	}
	_, err := b.recordingAt(path, name, next, b.records)
	return err
}

// parseArguments reads the names of stages, and how many records the largest recording of goals has.
func (b *bench) parseArguments(args []string, only *string) error {
	var named []string
	b.most = 1_000_000
	for _, a := range args {
		n, err := strconv.Atoi(a)
		if err != nil {
			named = append(named, a)
			continue
		}
		if b.most = n; n < 100_000 {
			return fmt.Errorf("%d records are too few for the goals: 100000 are the least", n)
		}
	}
	if len(named) > 0 {
		*only = strings.Join(named, ",")
	} else if len(args) > 0 {
		*only = "goals"
	}
	return nil
}

func stageNames() string {
	return strings.Join(seq.Map(stages, func(s stage) string { return s.name }), ",")
}

func chooseStages(only string) ([]stage, error) {
	if only == "" {
		return slices.DeleteFunc(slices.Clone(stages), func(s stage) bool { return s.asked }), nil
	}
	var out []stage
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(stages, func(s stage) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no stage %q; there are %s", name, stageNames())
		}
		out = append(out, stages[i])
	}
	return out, nil
}

// printProgress writes a line of progress.
func (b *bench) printProgress(format string, args ...any) {
	fmt.Fprintf(b.talk, "  "+format+"\n", args...)
}

// shortOrFull returns the first value for a short run and the second for a full one.
func shortOrFull[T any](b *bench, short, full T) T {
	if b.short {
		return short
	}
	return full
}
