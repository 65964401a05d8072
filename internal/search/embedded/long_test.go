package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"weir/internal/search"
)

// TestMany indexes WEIR_SEARCH_DOCS documents and prints the rate, the memory and
// what queries take. It has nothing to fail on but errors.
func TestMany(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("WEIR_SEARCH_DOCS"))
	if n == 0 {
		t.Skip("WEIR_SEARCH_DOCS is not set")
	}
	debug.SetMemoryLimit(200 << 20)
	dir := t.TempDir()
	ix, err := Open(dir, []search.Schema{benchSchema}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	source := newBenchDocs()
	start := time.Now()
	var peak int
	for i := 0; i < n; i += benchBatch {
		if errs, err := ix.Apply(t.Context(), source.batch()); err != nil || errs[0] != nil {
			t.Fatal(err, errs[0])
		}
		peak = max(peak, status(t, "RssAnon"))
		if i%50000 == 0 {
			t.Logf("%d documents, %.0f/s, anonymous memory %d MB, peak %d MB", i, float64(i)/time.Since(start).Seconds(), status(t, "RssAnon")>>10, peak>>10)
		}
	}
	t.Logf("%d documents, %.0f/s; peak of anonymous memory %d MB, of all %d MB", n, float64(n)/time.Since(start).Seconds(), peak>>10, status(t, "VmHWM")>>10)
	for _, q := range []search.Query{
		{}, {Sort: "createdAt", Reverse: true}, {Text: vocabulary[0]}, {Text: vocabulary[0], Sort: "createdAt"}, {Text: vocabulary[20000]}, {Text: vocabulary[0][:1]},
		{Text: vocabulary[0] + " " + vocabulary[1]}, {Text: vocabulary[0] + " " + vocabulary[1][:2]}, {Text: vocabulary[3000] + "x", Fuzzy: true},
	} {
		q.Index, q.Limit = "bench", 20
		start := time.Now()
		hits, err := ix.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-40s %d hits in %v", fmt.Sprintf("%q sort %q", q.Text, q.Sort), len(hits), time.Since(start).Round(time.Microsecond))
	}
	start = time.Now()
	again := newBenchDocs()
	for range 20 {
		if _, err := ix.Apply(t.Context(), again.batch()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("redelivery: %.0f documents/s", 20*benchBatch/time.Since(start).Seconds())
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, f := range must(filepath.Glob(filepath.Join(dir, "bench-*", "*"))) {
		size += must(os.Stat(f)).Size()
	}
	start = time.Now()
	openTest(t, dir, Options{}, benchSchema)
	t.Logf("%d MB are opened in %v", size>>20, time.Since(start).Round(time.Millisecond))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// status is a line of the process's own status, in KB.
func status(t *testing.T, name string) int {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip(err)
	}
	m := regexp.MustCompile(name + `:\s*(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("no %s", name)
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb
}
