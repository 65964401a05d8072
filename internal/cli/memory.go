package cli

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"weir/internal/memory"
)

// memoryLook is how often the heap's limit follows what is mapped.
const memoryLook = 100 * time.Millisecond

// heapGrowth lets the heap grow to that limit before it is collected: with the
// caches nearly all that lives is there to stay, and looking at it often is dear.
const heapGrowth = 400

// MemoryFlag is the flag of a process's memory.
// A command embeds it, and passes its value to Limit.To before it opens anything.
type MemoryFlag struct {
	Memory memory.Size `default:"256MB" env:"WEIR_MEMORY" placeholder:"SIZE" help:"What the process may have resident, as 256MB, 1GB or bytes; its heap and caches are shares of it (default 256MB)."`
}

// Limit keeps the heap at its part of the process's memory.
type Limit struct {
	size   atomic.Int64
	beside int64
	fixed  bool
	done   chan struct{}
}

// LimitMemory limits the heap to its part of the process's memory (package memory), by
// what is mapped beside it, from time to time until it is stopped. beside is what the
// heap has besides the program: 0 but where a program is measured within another. GOGC
// and GOMEMLIMIT override it; where there is no /proc, the limit is the least.
func LimitMemory(size memory.Size, beside int64) *Limit {
	l := &Limit{beside: beside, fixed: os.Getenv("GOMEMLIMIT") != "", done: make(chan struct{})}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	l.To(size)
	go l.follow()
	return l
}

// To changes the size. A nil Limit has none.
func (l *Limit) To(size memory.Size) {
	if l != nil {
		l.size.Store(int64(size))
		l.look()
	}
}

// Stop leaves the limit as it is.
// Call it once.
func (l *Limit) Stop() { close(l.done) }

// look sets the heap's limit by what is mapped now.
func (l *Limit) look() {
	if !l.fixed {
		debug.SetMemoryLimit(memory.Size(l.size.Load()).Heap(mapped()) + l.beside)
	}
}

// follow looks every memoryLook until Stop.
func (l *Limit) follow() {
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.look()
		case <-l.done:
			return
		}
	}
}

// mapped is how many bytes of files are resident, by proc(5); where that is not told,
// as many as there may be.
func mapped() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return math.MaxInt64
	}
	var size, resident, shared int64 // in pages
	if _, err := fmt.Sscan(string(b), &size, &resident, &shared); err != nil {
		return math.MaxInt64
	}
	return shared * int64(os.Getpagesize())
}
