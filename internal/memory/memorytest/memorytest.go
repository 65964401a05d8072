// Package memorytest ends tests that take too much memory, before the machine has none left.
package memorytest

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/memory"
)

// Race reports whether the test runs with the race detector, which has memory of its own.
const Race = instrumented > 1

// LeastHeap is the least that the limit of a heap may be. The race detector's memory is not Go's,
// so it is taken from the heap.
func LeastHeap(s memory.Size) int64 {
	if Race {
		return s.Heap(math.MaxInt64) / 2
	}
	return s.Heap(math.MaxInt64)
}

// Bound ends the process when it has more than most resident, and prints what every
// goroutine does at that moment, and each open case. Where the kernel does not say what is
// resident, it does nothing. A test calls begin before a case, and done after it.
func Bound(t *testing.T, most memory.Size) (begin func(name string) (done func())) {
	most *= instrumented
	var mu sync.Mutex
	open := map[*string]string{}
	ended := make(chan bool)
	t.Cleanup(func() { close(ended) })
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(10 * time.Millisecond):
			}
			is := resident()
			if is <= most {
				continue
			}
			mu.Lock()
			var stacks bytes.Buffer
			pprof.Lookup("goroutine").WriteTo(&stacks, 2)
			fmt.Fprintf(os.Stderr, "%s\n%s has %d MB resident, and %s is the most. Open cases:\n%s\n",
				&stacks, t.Name(), is/memory.MB, most, strings.Join(slices.Sorted(maps.Values(open)), "\n"))
			os.Exit(1)
		}
	}()
	return func(name string) func() {
		key := &name
		mu.Lock()
		defer mu.Unlock()
		open[key] = name
		return func() {
			mu.Lock()
			defer mu.Unlock()
			delete(open, key)
		}
	}
}

// resident is the memory that the process has, 0 if the kernel does not say.
func resident() memory.Size {
	b, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(b))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return memory.Size(pages * int64(os.Getpagesize()))
}
