package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/search"
	"weir/internal/soaktest"
	"weir/internal/value"
)

var plain = search.Schema{Name: "plain", Filters: []string{"version"}}

// version is state number v of document n, at position v; some states are none.
func version(n, v int) search.Document {
	return search.Document{
		Index: "plain", ID: fmt.Sprint("document ", n), Position: events.PositionOf(uint64(v)), Deleted: (n+v)%5 == 0,
		Text:   []string{fmt.Sprint("text v", v)},
		Values: map[string]value.Value{"version": value.OfInt(int64(v))},
	}
}

func mustApply(t *testing.T, ix *Index, docs ...search.Document) {
	t.Helper()
	errs, err := ix.Apply(t.Context(), docs)
	failtest.On(t, err)
	for _, err := range errs {
		failtest.On(t, err)
	}
}

func count(t *testing.T, ix *Index, q search.Query) int {
	t.Helper()
	q.Limit = 100000
	hits, err := ix.Search(t.Context(), q)
	failtest.On(t, err)
	return len(hits)
}

const (
	killDir  = "WEIR_TEST_KILL_DIR"
	killFrom = "WEIR_TEST_KILL_FROM"
	killDocs = 20
)

// TestMain is also the process that TestKill kills: it applies one version of all
// documents after the other, and writes a line for each that is acknowledged.
func TestMain(m *testing.M) {
	dir := os.Getenv(killDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	from, _ := strconv.Atoi(os.Getenv(killFrom))
	ix, err := Open(dir, []search.Schema{plain}, Options{})
	for v := from; err == nil; v++ {
		var docs []search.Document
		for n := range killDocs {
			docs = append(docs, version(n, v))
		}
		var errs []error
		if errs, err = ix.Apply(context.Background(), docs); err == nil {
			err = errs[0]
		}
		fmt.Println(v)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKill kills a writing process with SIGKILL, again and again over the same
// directory. Every change that the process reported as applied must be there, with its
// position.
func TestKill(t *testing.T) {
	soaktest.Calm(t)
	dir := t.TempDir()
	last := 0
	for round := range 6 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killDir+"="+dir, fmt.Sprint(killFrom, "=", last+1))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		failtest.On(t, err)
		failtest.On(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if last, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if n == 8+5*round {
				time.AfterFunc(time.Duration(round)*time.Millisecond, func() { cmd.Process.Kill() })
			}
		}
		cmd.Wait()
		checkKilled(t, dir, last)
	}
}

// checkKilled checks that all documents are in the version acknowledged last, or all
// in the next, and that older ones change nothing.
func checkKilled(t *testing.T, dir string, last int) {
	t.Helper()
	ix := openTest(t, dir, Options{}, plain)
	defer ix.Close()
	in := func(v int) bool {
		want := 0
		for n := range killDocs {
			if d := version(n, v); !d.Deleted {
				want++
			}
		}
		of := search.Query{Index: "plain", Filters: map[string]value.Value{"version": value.OfInt(int64(v))}}
		return count(t, ix, of) == want && count(t, ix, search.Query{Index: "plain"}) == want
	}
	for range 2 {
		if !in(last) && !in(last+1) {
			t.Errorf("after version %d was acknowledged the documents are in another", last)
		}
		for n := range killDocs {
			mustApply(t, ix, version(n, last-1-n%3)) // late
		}
	}
}

// TestFailedWrite: while the disk refuses writes, nothing is acknowledged, not even a
// repeated change; the documents that are there can be found. Afterwards writes succeed
// again.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	ix := openTest(t, dir, Options{}, plain)
	mustApply(t, ix, version(1, 1))
	here := ix.corpora["plain"].dir
	failtest.On(t, os.Rename(here, here+"-away"))
	for range 3 {
		errs, err := ix.Apply(t.Context(), []search.Document{version(1, 2)})
		if err == nil && errs[0] == nil {
			t.Fatal("a write was acknowledged that no disk holds")
		}
		if n := count(t, ix, search.Query{Index: "plain"}); n != 1 {
			t.Errorf("%d documents", n)
		}
	}
	failtest.On(t, os.Rename(here+"-away", here))
	for deadline := time.Now().Add(time.Minute); ; {
		errs, err := ix.Apply(t.Context(), []search.Document{version(1, 2)})
		if err == nil && errs[0] == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err, errs)
		}
	}
	failtest.On(t, ix.Close())
	ix = openTest(t, dir, Options{}, plain)
	if n := count(t, ix, search.Query{Index: "plain", Text: "v2"}); n != 1 {
		t.Errorf("%d documents after opening again", n)
	}
}

// TestGroups: writers that wait for the disk at the same time share a commit.
func TestGroups(t *testing.T) {
	ix := openTest(t, t.TempDir(), Options{}, plain)
	const writers, each = 32, 10
	start := time.Now()
	done := make(chan error, writers)
	for w := range writers {
		go func() {
			var last error
			for v := range each {
				errs, err := ix.Apply(t.Context(), []search.Document{{Index: "plain", ID: fmt.Sprint(w, " ", v), Text: []string{"text"}}})
				if err != nil || errs[0] != nil {
					last = fmt.Errorf("%v %v", err, errs)
				}
			}
			done <- last
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Logf("%.0f documents/s, one at a time from %d writers", writers*each/time.Since(start).Seconds(), writers)
	if n := count(t, ix, search.Query{Index: "plain"}); n != writers*each {
		t.Errorf("%d documents", n)
	}
}

// TestBreakdown: when one of scorch's goroutines has ended in a panic, no call waits
// for it.
func TestBreakdown(t *testing.T) {
	ix := openTest(t, t.TempDir(), Options{}, plain)
	mustApply(t, ix, version(1, 1))
	ix.corpora["plain"].takeError(scorch.NewScorchError("persister", "panic: no reason", scorch.ErrAsyncPanic))
	var d *DamageError
	for range 5 {
		if errs, err := ix.Apply(t.Context(), []search.Document{version(1, 2)}); err != nil || errs[0] != nil && !errors.As(errs[0], &d) {
			t.Error(errs, err)
		}
	}
	ix.Close()
}

// TestGivingUp: a caller whose context has ended gets an answer, and may use its
// documents again.
func TestGivingUp(t *testing.T) {
	ix := openTest(t, t.TempDir(), Options{}, plain)
	ctx, cancel := context.WithCancel(t.Context())
	docs := []search.Document{version(1, 1)}
	go cancel()
	for range 100 {
		_, err := ix.Apply(ctx, docs)
		docs[0] = version(2, 1)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if _, err := ix.Search(ctx, search.Query{Index: "plain", Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestHeavy: one call with more than fits into a commit.
func TestHeavy(t *testing.T) {
	ix := openTest(t, t.TempDir(), Options{}, plain)
	var docs []search.Document
	for n := range 2500 {
		docs = append(docs, search.Document{Index: "plain", ID: fmt.Sprint("light ", n)})
	}
	for n := range 30 {
		docs = append(docs, search.Document{Index: "plain", ID: fmt.Sprint("heavy ", n), Text: []string{strings.Repeat(fmt.Sprint("word", n, " "), 50000)}})
	}
	mustApply(t, ix, docs...)
	if n := count(t, ix, search.Query{Index: "plain"}); n != len(docs) {
		t.Errorf("%d documents", n)
	}
	if n := count(t, ix, search.Query{Index: "plain", Text: "word29"}); n != 1 {
		t.Errorf("%d heavy documents", n)
	}
}
