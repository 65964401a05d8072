package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"weir/internal/seq"
)

// cost is the time that something took: wall-clock time, and CPU time of all processors.
type cost struct{ wall, cpu time.Duration }

// measureCost runs f from a clean heap.
func measureCost(f func() error) (cost, error) {
	runtime.GC()
	runtime.GC() // pools let go in the second
	cpu, start := cpuTime(), time.Now()
	err := f()
	return cost{time.Since(start), cpuTime() - cpu}, err
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// runDelay is how long the threads of this process were ready to run and had no processor, as
// Linux counts it; 0 elsewhere. Threads that have ended are not counted.
func runDelay() (sum time.Duration) {
	files, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, name := range files {
		var ran, waited int64
		if b, err := os.ReadFile(name); err == nil {
			_, _ = fmt.Sscan(string(b), &ran, &waited)
		}
		sum += time.Duration(waited)
	}
	return sum
}

// medianRate returns how many things were done per second: the median over rounds of n things each.
func medianRate(n int, costs []cost) float64 {
	return medianOf(costs, func(c cost) float64 { return float64(n) / c.wall.Seconds() })
}

// cpuEach returns the CPU time for one thing in µs: the median over rounds of n things each.
func cpuEach(n int, costs []cost) float64 {
	return medianOf(costs, func(c cost) float64 { return float64(c.cpu.Microseconds()) / float64(n) })
}

// medianCost returns the medians of the wall-clock times and of the CPU times.
func medianCost(costs []cost) cost {
	return cost{
		time.Duration(medianOf(costs, func(c cost) float64 { return float64(c.wall) })),
		time.Duration(medianOf(costs, func(c cost) float64 { return float64(c.cpu) })),
	}
}

func medianOf(costs []cost, of func(cost) float64) float64 { return median(seq.Map(costs, of)) }

func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	xs = slices.Sorted(slices.Values(xs))
	m := len(xs) / 2
	if len(xs)%2 == 1 {
		return xs[m]
	}
	return (xs[m-1] + xs[m]) / 2
}

// profiles are where to write profiles, "" for none.
type profiles struct {
	cpu, memory string
	started     bool
}

// profileRun runs f, the first time with a CPU profile.
func (p *profiles) profileRun(f func() error) error {
	if p.cpu == "" || p.started {
		return f()
	}
	p.started = true
	file, err := os.Create(p.cpu)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}

func (p *profiles) endProfiles() error {
	if p.memory == "" {
		return nil
	}
	file, err := os.Create(p.memory)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}
