package function

import (
	"io"
	"math"
	"runtime/debug"
	"testing"
)

// TestMemoryOfLambda: the heap's limit is a part of what Lambda gives, unless GOMEMLIMIT says another one.
func TestMemoryOfLambda(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	t.Setenv(envModel, "")
	for _, c := range []struct {
		lambda, limit string
		want          int64
	}{
		{"128", "", 96 << 20}, {"10240", "", 7680 << 20}, {"128", "64MiB", math.MaxInt64}, {"", "", math.MaxInt64}, {"many", "", math.MaxInt64}, {"0", "", math.MaxInt64},
	} {
		t.Setenv(envMemory, c.lambda)
		t.Setenv("GOMEMLIMIT", c.limit)
		debug.SetMemoryLimit(math.MaxInt64)
		if err := Serve(t.Context(), io.Discard, io.Discard); err == nil {
			t.Fatal("a function without a model serves")
		}
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("of %q MB, with GOMEMLIMIT %q: %d, want %d", c.lambda, c.limit, got, c.want)
		}
	}
}
