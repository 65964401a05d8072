package cli

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	"weir/internal/memory"
	"weir/internal/memory/memorytest"
)

// TestLimitMemory: the limit follows what is mapped, and is the user's where he gave one.
func TestLimitMemory(t *testing.T) {
	limit, growth := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	defer debug.SetMemoryLimit(limit)
	defer debug.SetGCPercent(growth)
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("GOGC", "")
	l := LimitMemory(memory.Default, 1<<30)
	defer l.Stop()
	if got := debug.SetMemoryLimit(-1) - 1<<30; got < memorytest.LeastHeap(memory.Default) || got > memory.Default.Heap(0) {
		t.Errorf("the limit is 1 GB and %d", got)
	}
	l.To(memory.GB)
	if got := debug.SetMemoryLimit(-1) - 1<<30; got < memorytest.LeastHeap(memory.GB) || got > memory.GB.Heap(0) {
		t.Errorf("of 1 GB the limit is 1 GB and %d", got)
	}
	if files, _ := beside(); runtime.GOOS == "linux" && (files <= 0 || files >= memory.Default.Heap(0)) {
		t.Errorf("%d bytes are mapped", files)
	}
	if got := debug.SetGCPercent(100); got != heapGrowth {
		t.Errorf("the growth is %d", got)
	}
	l.size.Store(int64(memory.Default))
	debug.SetMemoryLimit(777)
	t.Setenv("GOMEMLIMIT", "777")
	t.Setenv("GOGC", "100")
	fixed := LimitMemory(memory.Default, 0)
	defer fixed.Stop()
	fixed.To(memory.GB)
	if got := debug.SetMemoryLimit(-1); got != 777 {
		t.Errorf("with GOMEMLIMIT the limit is %d", got)
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("with GOGC the growth is %d", got)
	}
}

// TestHeapBeside: what is outside is taken from the heap, but never more than half of it.
func TestHeapBeside(t *testing.T) {
	whole := memory.Default.Heap(0)
	for outside, want := range map[int64]int64{0: whole, 1000: whole - 1000, whole / 2: whole / 2, whole: whole / 2, math.MaxInt64: whole / 2} {
		if got := heapBeside(memory.Default, 0, outside); got != want {
			t.Errorf("beside %d bytes the heap has %d, want %d", outside, got, want)
		}
	}
}
