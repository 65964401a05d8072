package cli

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"weir/internal/memory"
)

// memoryLook is how often the heap's limit follows the memory that is resident beside it.
const memoryLook = 100 * time.Millisecond

// heapGrowth lets the heap grow to that limit before it is collected: with the
// caches nearly all that lives is there to stay, and looking at it often is dear.
const heapGrowth = 400

// MemoryFlag is the flag of a process's memory.
// A command embeds it, and passes its value to Limit.To before it opens anything.
type MemoryFlag struct {
	Memory memory.Size `default:"256MB" placeholder:"SIZE" help:"What the process may have resident, as 256MB, 1GB or bytes; its heap and caches are shares of it (default 256MB)."`
}

// Limit keeps the heap at its part of the process's memory.
type Limit struct {
	size   atomic.Int64
	beside int64
	fixed  bool
	done   chan struct{}
}

// LimitMemory limits the heap to its part of the process's memory (package memory), by
// memory that is resident beside it, from time to time until it is stopped. beside is the memory that the
// heap has besides the program: 0 but where a program is measured within another. GOGC
// and GOMEMLIMIT override it; where there is no /proc, the limit is the least.
func LimitMemory(size memory.Size, beside int64) *Limit {
	l := &Limit{beside: beside, fixed: os.Getenv("GOMEMLIMIT") != "", done: make(chan struct{})}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	giveBack()
	l.To(size)
	go l.follow()
	return l
}

// To changes the size. A nil Limit has none.
func (l *Limit) To(size memory.Size) {
	if l != nil {
		l.size.Store(int64(size))
		l.setLimit()
	}
}

// Stop leaves the limit as it is.
// Call it once.
func (l *Limit) Stop() { close(l.done) }

// setLimit sets the heap's limit by the memory that is mapped now.
func (l *Limit) setLimit() {
	if !l.fixed {
		files, outside := beside()
		debug.SetMemoryLimit(heapBeside(memory.Size(l.size.Load()), files, outside) + l.beside)
	}
}

// heapBeside is the limit of the heap beside so many bytes of files and of memory that Go does not know of. It is
// never less than half of the limit that files alone would leave: a heap without room is collected without end, so a process
// that has more outside takes more than it was given.
func heapBeside(size memory.Size, files, outside int64) int64 {
	heap := size.Heap(files)
	return max(heap-outside, heap/2)
}

// follow looks every memoryLook until Stop.
func (l *Limit) follow() {
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.setLimit()
		case <-l.done:
			return
		}
	}
}

// beside is the resident memory beside Go's: bytes of files, by proc(5), and memory
// that Go does not know of, which is Pebble's caches and memtables in a program with cgo.
// Where that is not told, files are as many as there may be.
func beside() (files, outside int64) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return math.MaxInt64, 0
	}
	var size, resident, shared int64 // in pages
	if _, err := fmt.Sscan(string(b), &size, &resident, &shared); err != nil {
		return math.MaxInt64, 0
	}
	has := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(has)
	page := int64(os.Getpagesize())
	return shared * page, max(0, (resident-shared)*page-int64(has[0].Value.Uint64()-has[1].Value.Uint64()))
}
