// Command try runs the simulator of one model from a seed on until a run fails, and
// prints that seed and what failed: "SEED CLASS WHAT", or nothing.
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
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what services do wrong here is nobody's news
	m, err := model.Load(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	from, _ := strconv.ParseUint(os.Args[2], 10, 64)
	n, _ := strconv.ParseUint(os.Args[3], 10, 64)
	for seed := from; seed < from+n; seed++ {
		if f := failure(m, seed); f != nil {
			fmt.Printf("%d %s %s\n", seed, f.Class, strings.ReplaceAll(f.What, "\n", " "))
			return
		}
	}
}

// patience is far more than a run takes.
const patience = 20 * time.Second

func failure(m *model.Model, seed uint64) *sim.Failure {
	done := make(chan []sim.Failure, 1)
	go func() { done <- sim.Run(m, seed, sim.Options{Faults: sim.Kinds}).Failures }()
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
