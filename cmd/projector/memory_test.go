package main

import (
	"io"
	"runtime/debug"
	"strings"
	"testing"

	"weir/internal/cli"
	"weir/internal/memory"
	"weir/internal/memory/memorytest"
	embeddedstore "weir/internal/store/embedded"
	"weir/internal/system"
)

// TestMemoryReachesTheStore: --memory, or WEIR_MEMORY, is what the heap's limit and the
// store's caches are shares of.
func TestMemoryReachesTheStore(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	t.Setenv("GOMEMLIMIT", "")
	limit := cli.LimitMemory(memory.Default, 0)
	defer limit.Stop()
	p := &program{ctx: t.Context(), limit: limit}
	d := data{Data: t.TempDir()}
	d.Memory = memory.GB
	s, err := p.open(d, []string{"gallery"}, system.Options{NoSearch: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if o := s.Store.(*embeddedstore.Store).Options(); o.CacheBytes != 48<<20 || o.RowCacheBytes != 96<<20 {
		t.Errorf("caches of %d and %d bytes", o.CacheBytes, o.RowCacheBytes)
	}
	if got := debug.SetMemoryLimit(-1); got < memorytest.LeastHeap(memory.GB) {
		t.Errorf("the heap's limit is %d", got)
	}
}

// TestMemoryRefused: a size that nothing works with is refused before anything is opened.
func TestMemoryRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"run", "gallery"}, {"replay", "gallery", "-"}, {"query", "gallery", "albums"}, {"verify", "gallery"}, {"dev"}} {
		for _, c := range []struct{ flag, env, want string }{
			{"1MB", "", "128MB is the least"}, {"much", "", "not a size"}, {"", "127MB", "128MB is the least"},
		} {
			t.Setenv("WEIR_MEMORY", c.env)
			line := args
			if c.flag != "" {
				line = append([]string{}, args...)
				line = append(line, "--memory", c.flag)
			}
			var talk strings.Builder
			if code := run(t.Context(), line, strings.NewReader(""), io.Discard, &talk); code != cli.Mistake || !strings.Contains(talk.String(), c.want) {
				t.Errorf("%q, %q: exit %d, %s", line, c.env, code, talk.String())
			}
		}
	}
}
