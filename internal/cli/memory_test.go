package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestHeapLimit(t *testing.T) {
	for _, c := range []struct{ mapped, want int64 }{
		{0, 246}, {20 << 20, 226}, {20<<20 + 1, 225}, {60 << 20, 186}, {66 << 20, 180}, {67 << 20, 180}, {4 << 30, 180},
	} {
		if got := heapLimit(c.mapped); got != c.want<<20 {
			t.Errorf("beside %d bytes: %d, want %d MB", c.mapped, got, c.want)
		}
	}
}

// TestLimitMemory: the limit follows what is mapped, and is the user's where he gave one.
func TestLimitMemory(t *testing.T) {
	limit, growth := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	defer debug.SetMemoryLimit(limit)
	defer debug.SetGCPercent(growth)
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("GOGC", "")
	LimitMemory(1 << 30)()
	if got := debug.SetMemoryLimit(-1) - 1<<30; got < heapLeast || got > memoryAim {
		t.Errorf("the limit is 1 GB and %d", got)
	}
	if runtime.GOOS == "linux" && (mapped() <= 0 || mapped() >= memoryAim) {
		t.Errorf("%d bytes are mapped", mapped())
	}
	if got := debug.SetGCPercent(100); got != heapGrowth {
		t.Errorf("the growth is %d", got)
	}
	debug.SetMemoryLimit(777)
	t.Setenv("GOMEMLIMIT", "777")
	t.Setenv("GOGC", "100")
	LimitMemory(0)()
	if got := debug.SetMemoryLimit(-1); got != 777 {
		t.Errorf("with GOMEMLIMIT the limit is %d", got)
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("with GOGC the growth is %d", got)
	}
}
