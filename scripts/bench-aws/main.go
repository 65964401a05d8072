// Command bench-aws measures on a DynamoDB what it costs to derive data from a batch of stream
// records: records per second, and write units for each 1,000 records. It compares
//
//	plain   a handler that does one UpdateItem ADD for each record, which is what most
//	        people write, and which counts wrong after a retry
//	marker  a handler that, for each record, writes a marker and does the ADD in one
//	        transaction
//	weir    the runner, as projector run and functions use it
//
// Both handlers process a batch one record after the other, as handlers do. "at once" is the
// plain handler with as many concurrent requests as weir uses.
//
// With -faults it measures instead what lost and refused answers cost (faults.go), with -hot what one
// album costs that gets 5,000 pictures a second (hot.go), and with -delay what the time costs that a
// request takes on the network (delay.go).
//
// All use the same recordings (workload.go), each in a DynamoDB of its own (world.go). Write
// units are those that DynamoDB reports, including those of indexes.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"weir/internal/model"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	records := flag.Int("records", 2000, "records of each recording")
	costs := flag.String("costs", "", "also write the requests and write units of weir to this file, the same each time")
	faulty := flag.Bool("faults", false, "measure instead which share of its speed weir keeps when answers are lost")
	hotTarget := flag.Bool("hot", false, "measure instead one album that gets 5,000 pictures a second")
	delayed := flag.Bool("delay", false, "measure instead the speed with a network that takes 1, 5 and 10 ms for a request")
	process := flag.Bool("process", false, "measure instead a whole process on 1 and on 20 shards, with a network that takes 5 ms for a request")
	flag.Parse()
	err := error(nil)
	switch {
	case *faulty:
		err = measureFaults(ctx, *records)
	case *delayed:
		err = measureDelays(ctx, *records)
	case *process:
		err = measureProcess(ctx, *records)
	case *hotTarget:
		err = measureHot(ctx)
	default:
		err = runBenches(ctx, *records, *costs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-aws:", err)
		os.Exit(1)
	}
}

var batches = []int{10, 100, 1000}

func runBenches(ctx context.Context, records int, costs string) error {
	m, err := model.Load("gallery")
	if err != nil {
		return err
	}
	var lines []line
	for _, w := range []workload{uploadsWorkload(m, records), likesWorkload(m, records)} {
		found, err := measureAll(ctx, m, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		lines = append(lines, found...)
	}
	if costs != "" {
		if err := os.WriteFile(costs, costsOf(lines), 0o644); err != nil {
			return err
		}
	}
	return printLines(lines)
}

// costsOf returns one line for each batch size, with units and requests but no
// times.
func costsOf(lines []line) (out []byte) {
	for _, l := range lines {
		out = fmt.Appendf(out, "%s, batches of %d, weir: %.1f units", l.workload, l.batch, l.weir.units)
		for _, op := range slices.Sorted(maps.Keys(l.weir.calls)) {
			out = fmt.Appendf(out, ", %d %s", l.weir.calls[op], op)
		}
		out = append(out, '\n')
	}
	return out
}

// figures are the results of one handler on a recording.
type figures struct {
	records int
	took    time.Duration
	units   float64
	calls   map[string]int // requests by operation
}

func (f figures) speed() float64   { return float64(f.records) / f.took.Seconds() }
func (f figures) per1000() float64 { return f.units * 1000 / float64(f.records) }

// line compares weir with the handlers on one recording with one batch size.
type line struct {
	workload      string
	batch         int
	weir          figures
	plain, marker figures
	plainAtOnce   figures
	bound         float64 // units of one ledger row and one write of the target for each target of a batch
	targets       float64 // of a batch
}

func measureAll(ctx context.Context, m *model.Model, w workload) (lines []line, err error) {
	for _, n := range batches {
		fmt.Fprintf(os.Stderr, "%s, batches of %d\n", w.name, n)
		l := line{workload: w.name, batch: n}
		for _, way := range []struct {
			into *figures
			new  func(*world) handler
		}{
			{&l.weir, (*world).weirHandler}, {&l.plain, (*world).plainHandler}, {&l.plainAtOnce, (*world).plainAtOnce}, {&l.marker, (*world).markingHandler},
		} {
			if *way.into, err = runThrough(ctx, m, w, n, concurrency, way.new); err != nil {
				return nil, err
			}
		}
		targets := w.countTargets(n)
		l.targets = float64(targets) * float64(n) / float64(len(w.records))
		own := l.plain.units / float64(l.plain.records) // the cost of a write of the target
		l.bound = float64(targets) * (1 + own) * 1000 / float64(len(w.records))
		lines = append(lines, l)
	}
	return lines, nil
}

// handler applies one batch.
type handler func(ctx context.Context, first, last int) error

// runThrough runs a recording through a handler in a world of its own and checks the resulting
// numbers.
func runThrough(ctx context.Context, m *model.Model, w workload, batch, atOnce int, way func(*world) handler) (f figures, err error) {
	wd, err := newWorld(ctx, m, w, atOnce)
	if err != nil {
		return f, err
	}
	defer wd.endWorld()
	handle := way(wd)
	wd.units.reset()
	start := time.Now()
	for at := 0; at < len(w.records); at += batch {
		if err := handle(ctx, at, min(at+batch, len(w.records))); err != nil {
			return f, err
		}
	}
	f = figures{records: len(w.records), took: time.Since(start), units: wd.units.sum(), calls: wd.units.requestCounts()}
	return f, wd.recountTarget(ctx)
}

func printLines(lines []line) error {
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, strings.Join([]string{"recording", "batch", "targets", "weir rec/s", "plain", "at once", "marker",
		"weir units/1000", "bound", "plain", "marker", "speed/plain", "units/plain", "units/marker", "units/bound", ""}, "\t"))
	for _, l := range lines {
		fmt.Fprintf(tw, "%s\t%d\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f ×\t%.2f ×\t%.2f ×\t%.3f ×\t\n", l.workload, l.batch, l.targets,
			l.weir.speed(), l.plain.speed(), l.plainAtOnce.speed(), l.marker.speed(),
			l.weir.per1000(), l.bound, l.plain.per1000(), l.marker.per1000(),
			l.weir.speed()/l.plain.speed(), l.weir.units/l.plain.units, l.weir.units/l.marker.units, l.weir.per1000()/l.bound)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return checkGoals(lines)
}

// checkGoals checks the goals, which hold for batches of 1,000 records of the first recording, and
// the limit that holds for all.
func checkGoals(lines []line) error {
	good := true
	say := func(ok bool, format string, args ...any) {
		verdict := "met"
		if !ok {
			verdict, good = "MISSED", false
		}
		fmt.Printf("%-7s %s\n", verdict, fmt.Sprintf(format, args...))
	}
	for _, l := range lines {
		if r := l.weir.per1000() / l.bound; r > 1.05 {
			say(false, "%s, batches of %d: units at most 1.05 × the bound: %.3f ×", l.workload, l.batch, r)
		}
		if l.batch != 1000 || l.workload != lines[0].workload {
			continue
		}
		say(l.weir.speed() >= 5*l.plain.speed(), "%s: at least 5 × the speed of plain: %.2f ×", l.workload, l.weir.speed()/l.plain.speed())
		say(l.weir.units <= 0.35*l.plain.units, "%s: at most 0.35 × its units: %.2f ×", l.workload, l.weir.units/l.plain.units)
		say(l.weir.units <= 0.15*l.marker.units, "%s: at most 0.15 × the units of marker: %.2f ×", l.workload, l.weir.units/l.marker.units)
	}
	if !good {
		return fmt.Errorf("goals missed")
	}
	fmt.Println("met     units at most 1.05 × the bound, everywhere")
	return nil
}
