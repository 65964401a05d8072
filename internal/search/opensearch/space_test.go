package opensearch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opensearch-project/opensearch-go/v2/opensearchapi"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/search"
	"weir/internal/search/opensearch/opensearchtest"
)

func (ix *Index) must(t *testing.T, docs ...search.Document) {
	t.Helper()
	errs, err := ix.Apply(t.Context(), docs)
	failtest.On(t, errors.Join(append(errs, err)...))
}

// ids are the ids of all documents, with their last changes.
func (ix *Index) ids(t *testing.T, q search.Query) (out []string) {
	t.Helper()
	failtest.On(t, ix.Refresh(t.Context()))
	q.Limit = 20000
	hits, err := ix.Search(t.Context(), q)
	failtest.On(t, err)
	for _, h := range hits {
		out = append(out, h.ID)
	}
	return out
}

// TestInstances: an index is fresh until its instance is the current one; a changed
// schema has another index; and an index that was not used meanwhile is made again.
func TestInstances(t *testing.T) {
	source := fmt.Sprint(rand.Uint64())
	one, two := search.Schema{Name: "test"}, search.Schema{Name: "test", Filters: []string{"f"}}
	open := func(s search.Schema, current string) (*Index, string) {
		ix := openReal(t, []search.Schema{s}, Options{Source: source, Current: map[string]string{"test": current}})
		return ix, ix.Instance("test")
	}
	fresh := func(ix *Index, want bool, docs ...string) {
		t.Helper()
		if got := slices.Equal(ix.Fresh(), []string{"test"}); got != want {
			t.Errorf("fresh: %v, want %v", got, want)
		}
		if got := ix.ids(t, search.Query{Index: "test"}); !slices.Equal(got, docs) {
			t.Errorf("documents %v, want %v", got, docs)
		}
	}
	a, first := open(one, "")
	fresh(a, true)
	a.must(t, testDocs("x")...)
	fresh(a, true, "x")
	again, same := open(one, "") // another process, while the first fills it
	fresh(again, true, "x")
	if same != first {
		t.Error("two processes made two indexes")
	}
	filled, _ := open(one, first)
	fresh(filled, false, "x")

	b, second := open(two, first)
	fresh(b, true)
	b.must(t, testDocs("y")...)
	fresh(a, true, "x") // is left alone
	back, third := open(one, second)
	fresh(back, true) // has missed what the second got
	if third == first || second == first {
		t.Error("an instance twice")
	}
	other := openReal(t, []search.Schema{one}, Options{})
	fresh(other, true) // another store
}

// TestManyOpen: processes that open at the same time all get the same index.
func TestManyOpen(t *testing.T) {
	opensearchtest.URL(t)
	source := fmt.Sprint(rand.Uint64())
	var wg sync.WaitGroup
	instances := make([]string, 6)
	for i := range instances {
		wg.Go(func() {
			instances[i] = openReal(t, []search.Schema{{Name: "test"}}, Options{Source: source}).Instance("test")
		})
	}
	wg.Wait()
	if slices.Sort(instances); instances[0] == "" || instances[0] != instances[5] {
		t.Error(instances)
	}
}

// TestDeletedIndex: an index that an operator deletes is not made again without its
// mapping, and its documents are not refused but wait.
func TestDeletedIndex(t *testing.T) {
	ix := openReal(t, []search.Schema{{Name: "test"}}, Options{})
	failtest.On(t, ix.server.dropIndex(t.Context(), ix.spaces["test"]))
	errs, err := ix.Apply(t.Context(), testDocs("a"))
	if err != nil || errs[0] == nil || errors.Is(errs[0], search.ErrRefused) || !strings.Contains(errs[0].Error(), "index_not_found") {
		t.Errorf("%v, %v", errs, err)
	}
	if _, err := ix.Search(t.Context(), search.Query{Index: "test", Limit: 1}); err == nil {
		t.Error("it is searched")
	}
	ix.wrote = nil
}

// TestTombstones: tombstones stay for 48 hours, and are deleted afterwards.
func TestTombstones(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ix := openReal(t, []search.Schema{{Name: "test"}}, Options{Now: func() time.Time { return now }})
	gone := testDocs("a", "b")
	for i := range gone {
		gone[i].Deleted, gone[i].Position = true, events.PositionOf(9)
	}
	entries := func() int {
		t.Helper()
		failtest.On(t, ix.Refresh(t.Context()))
		sp := ix.spaces["test"]
		n := 0
		for _, id := range []string{"a", "b", "c"} {
			got, err := (opensearchapi.GetRequest{Index: sp.alias, DocumentID: id}).Do(t.Context(), ix.server.client)
			failtest.On(t, err)
			if got.Body.Close(); got.StatusCode == http.StatusOK {
				n++
			}
		}
		return n
	}
	ix.must(t, append(gone, testDocs("c")...)...)
	for _, wait := range []time.Duration{0, 30 * time.Hour, 18 * time.Hour} {
		now = now.Add(wait)
		ix.spaces["test"].nextPrune = now
		ix.must(t, testDocs("a", "b")...) // late
		if n := entries(); n != 3 {
			t.Errorf("%d entries after %v more", n, wait)
		}
	}
	now = now.Add(2 * time.Hour)
	again := gone[1]
	again.Position = events.PositionOf(10)
	ix.must(t, again)
	if n := entries(); n != 2 { // b was deleted again
		t.Errorf("%d entries after 50 hours", n)
	}
	if got := ix.ids(t, search.Query{Index: "test"}); !slices.Equal(got, []string{"c"}) {
		t.Errorf("documents %v", got)
	}
}

// TestRepeatedWritesNothing: a repeated change does not change the document's version.
func TestRepeatedWritesNothing(t *testing.T) {
	ix := openReal(t, []search.Schema{{Name: "test"}}, Options{})
	version := func() string {
		got, err := (opensearchapi.GetRequest{Index: ix.spaces["test"].alias, DocumentID: "a"}).Do(t.Context(), ix.server.client)
		failtest.On(t, err)
		defer got.Body.Close()
		body, _ := io.ReadAll(got.Body)
		_, after, _ := strings.Cut(string(body), `"_version":`)
		v, _, _ := strings.Cut(after, ",")
		return v
	}
	doc := testDocs("a")
	ix.must(t, doc...)
	ix.must(t, doc...)
	if v := version(); v != "1" {
		t.Errorf("version %q after the same twice", v)
	}
	doc[0].Text = []string{"rebuilt"}
	ix.must(t, doc...)
	if v := version(); v != "2" {
		t.Errorf("version %q after another document at its position", v)
	}
}

// unkind is a proxy in front of a real cluster: it refuses requests, cuts off answers
// to requests that were carried out, and carries old requests out again later.
type unkind struct {
	next *httputil.ReverseProxy
	mu   sync.Mutex
	rand *rand.Rand
	old  [][]byte // bodies carried out
}

func (u *unkind) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	u.mu.Lock()
	fate, late := u.rand.IntN(8), []byte(nil)
	if u.old = append(u.old, body); u.rand.IntN(3) == 0 {
		late = u.old[u.rand.IntN(len(u.old))]
	}
	u.mu.Unlock()
	if fate == 0 {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	send := func(w http.ResponseWriter, body []byte) {
		again := r.Clone(r.Context())
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		u.next.ServeHTTP(w, again)
	}
	if fate == 1 {
		send(httptest.NewRecorder(), body)
		panic(http.ErrAbortHandler)
	}
	if late != nil {
		send(httptest.NewRecorder(), late)
	}
	send(w, body)
}

// TestUnkindCluster: whatever of this happens, the newest changes are found.
func TestUnkindCluster(t *testing.T) {
	real, err := url.Parse(opensearchtest.URL(t))
	failtest.On(t, err)
	proxy := httptest.NewServer(&unkind{next: httputil.NewSingleHostReverseProxy(real), rand: rand.New(rand.NewPCG(3, 4))})
	defer proxy.Close()
	ix := openReal(t, []search.Schema{{Name: "test"}}, Options{})
	through, err := newClient(t.Context(), Target{URL: proxy.URL}, time.Minute)
	failtest.On(t, err)
	direct := ix.server
	ix.server = through
	r := rand.New(rand.NewPCG(5, 6))
	var history []search.Document
	model := map[string]search.Document{}
	for n := range 400 {
		d := testDocs("document " + string(rune('a'+r.IntN(20))))[0]
		d.Position, d.Deleted = events.PositionOf(uint64(n+1)), r.IntN(4) == 0
		d.Text = []string{"change" + string(rune('a'+n%26))}
		history = append(history, d)
		model[d.ID] = d
	}
	r.Shuffle(len(history), func(i, j int) { history[i], history[j] = history[j], history[i] })
	var wg sync.WaitGroup
	for part := range slices.Chunk(history, 100) {
		wg.Go(func() {
			for docs := range slices.Chunk(part, 7) {
				errs, err := ix.Apply(t.Context(), docs)
				if err := errors.Join(append(errs, err)...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	ix.server = direct
	for letter := 'a'; letter <= 'z'; letter++ {
		var want []string
		for id, d := range model {
			if !d.Deleted && d.Text[0] == "change"+string(letter) {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		got := ix.ids(t, search.Query{Index: "test", Text: "change" + string(letter)})
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%c: %v, want %v", letter, got, want)
		}
	}
}
