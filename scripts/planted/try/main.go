// Command try runs the simulator for some models, with one seed after the other, until a run
// fails; "builds" in place of "runs" is for runs with builds, and "bulk" for those that replay in bulk. It prints the failed run as "MODEL SEED CLASS WHAT", or nothing.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
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
			if f := failure(run, m, seed); f != nil {
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

// patience is far more than a run takes.
const patience = 20 * time.Second

func failure(run func(*model.Model, uint64, sim.Options) sim.Outcome, m *model.Model, seed uint64) *sim.Failure {
	done := make(chan []sim.Failure, 1)
	go func() { done <- run(m, seed, sim.Options{Faults: sim.Kinds}).Failures }()
	select {
	case all := <-done:
		if len(all) > 0 {
			return &all[0]
		}
		return nil
	case <-time.After(patience):
		return &sim.Failure{Class: sim.Stuck, What: "it does not end"}
	}
}
