package cli

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// A process is to stay within 256 MB on recordings of any size. memoryAim is what it
// may have resident: its heap, and the files mapped beside it, which are the program
// and the index. The heap gets what the files leave, and never less than heapLeast, with
// which it would be collected without end; an index has to be large for that.
const (
	memoryAim  = 246 << 20
	heapLeast  = 180 << 20
	memoryLook = 100 * time.Millisecond
)

// heapGrowth lets the heap grow to that limit before it is collected: with the
// caches nearly all that lives is there to stay, and looking at it often is dear.
const heapGrowth = 400

// LimitMemory limits the heap by what is mapped beside it, from time to time until stop
// is called. beside is what the heap has besides the program: 0 but where a program is
// measured within another. GOGC and GOMEMLIMIT override it; where there is no /proc, the
// limit is the least.
func LimitMemory(beside int64) (stop func()) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	look := func() { debug.SetMemoryLimit(heapLimit(mapped()) + beside) }
	look()
	tick, done := time.NewTicker(memoryLook), make(chan struct{})
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				look()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// heapLimit is the heap's share beside so many mapped bytes, in whole megabytes.
func heapLimit(mapped int64) int64 {
	return max(memoryAim-mapped, heapLeast) &^ (1<<20 - 1)
}

// mapped is how many bytes of files are resident, by proc(5); where that is not told,
// as many as there may be.
func mapped() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return memoryAim
	}
	var size, resident, shared int64 // in pages
	if _, err := fmt.Sscan(string(b), &size, &resident, &shared); err != nil {
		return memoryAim
	}
	return shared * int64(os.Getpagesize())
}
