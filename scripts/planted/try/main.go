// Command try runs the simulator for some models, with one seed after the other, until a run
// fails; "builds" in place of "runs" is for runs with builds, and "bulk" for those that replay in bulk. It prints the failed run as "MODEL SEED CLASS WHAT", or nothing.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/internal/model"
	"weir/internal/sim"
)

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // failures of services are expected here
	run := sim.Run
	switch os.Args[1] {
	case "builds":
		run = sim.RunBuilds
	case "bulk":
		run = sim.RunBulk
	}
	seeds, err := strconv.ParseUint(os.Args[2], 10, 64)
	if err != nil {
		fail(err)
	}
	var models []*model.Model
	for _, name := range os.Args[3:] {
		m, err := model.Load(name)
		if err != nil {
			fail(err)
		}
		models = append(models, m)
	}
	for seed := range seeds {
		for _, m := range models {
			if f := findFailure(run, m, seed); f != nil {
				fmt.Printf("%s %d %s %s\n", m.Name, seed, f.Class, strings.ReplaceAll(f.What, "\n", " "))
				return
			}
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

// A run that does not end is stuck. Neither limit goes by a clock on the wall, so that the result is the same on a
// busy machine.
const (
	patience = 30 * time.Second // of the processor: far more than a run takes
	glances  = 1000             // at goroutines, none of which can go on
)

func findFailure(run func(*model.Model, uint64, sim.Options) sim.Outcome, m *model.Model, seed uint64) *sim.Failure {
	done := make(chan []sim.Failure, 1)
	from := processorTime()
	go func() { done <- run(m, seed, sim.Options{Faults: sim.Kinds}).Failures }()
	for waiting := 0; ; {
		select {
		case all := <-done:
			if len(all) > 0 {
				return &all[0]
			}
			return nil
		case <-time.After(10 * time.Millisecond):
		}
		if waiting++; !allWait() {
			waiting = 0
		}
		if processorTime()-from > patience || waiting == glances {
			return &sim.Failure{Class: sim.Stuck, What: "it does not end"}
		}
	}
}

// processorTime is how much time of the processor the program has taken.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		fail(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// allWait reports whether every goroutine but this one waits for another. One that waits for the processor does not.
func allWait() bool {
	states := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/goroutines/not-in-go:goroutines"}}
	metrics.Read(states)
	n := uint64(0)
	for _, s := range states {
		n += s.Value.Uint64()
	}
	return n <= 1
}
