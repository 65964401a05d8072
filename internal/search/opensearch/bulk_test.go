package opensearch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/search"
)

// script answers bulk requests as a test says: for each request either a status for the
// whole, or one for each document by its id. Everything else succeeds.
type script struct {
	t     *testing.T
	whole []int                 // status of the n-th request as a whole; 0 asks each
	each  map[string][]string   // answers to an id, one after the other; the last stays
	cut   map[int]bool          // requests that are taken and not answered
	max   int                   // documents in a request, more are too large; 0 is any
	block func(r *http.Request) // called first
	mu    sync.Mutex
	asked [][]string     // ids of each request
	count map[string]int // how often each id was asked
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.block != nil {
		s.block(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := idsOf(s.t, r)
	n := len(s.asked)
	s.asked = append(s.asked, ids)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case s.cut[n]:
		panic(http.ErrAbortHandler)
	case s.max > 0 && len(ids) > s.max:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	case n < len(s.whole) && s.whole[n] != 0:
		w.WriteHeader(s.whole[n])
		fmt.Fprintf(w, `{"error":{"type":"some_exception","reason":"as the test says"},"status":%d}`, s.whole[n])
		return
	}
	var items []string
	for _, id := range ids {
		answer := "200"
		if all := s.each[id]; len(all) > 0 {
			answer = all[min(s.count[id], len(all)-1)]
		}
		s.count[id]++
		status, typ, _ := strings.Cut(answer, " ")
		item := `{"update":{"status":` + status
		if typ != "" {
			typ, reason, _ := strings.Cut(typ, ": ")
			item += fmt.Sprintf(`,"error":{"type":%q,"reason":%q}`, typ, reason)
		}
		items = append(items, item+"}}")
	}
	fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(items, ","))
}

func idsOf(t *testing.T, r *http.Request) []string {
	if r.Method != http.MethodPost || r.URL.Path != "/"+testSpace().alias+"/_bulk" || r.URL.Query().Get("require_alias") != "true" {
		t.Errorf("%s %s", r.Method, r.URL)
	}
	var ids []string
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var action struct {
			Update *struct {
				ID string `json:"_id"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &action); err != nil {
			t.Error(err)
		}
		if action.Update != nil {
			ids = append(ids, action.Update.ID)
		}
	}
	return ids
}

func testSpace() *space {
	sp := newSpace(search.Schema{Name: "test"}, "", "")
	sp.nextPrune = time.Now().Add(time.Hour)
	return sp
}

// scripted is an index whose cluster is a script.
func scripted(t *testing.T, s *script, patience time.Duration) *Index {
	t.Helper()
	s.t, s.count = t, map[string]int{}
	fake := httptest.NewServer(s)
	t.Cleanup(fake.Close)
	srv, err := newClient(t.Context(), Target{URL: fake.URL}, patience)
	failtest.On(t, err)
	return &Index{server: srv, now: time.Now, spaces: map[string]*space{"test": testSpace()}, wrote: map[string]bool{}}
}

func testDocs(ids ...string) (docs []search.Document) {
	for i, id := range ids {
		docs = append(docs, search.Document{Index: "test", ID: id, Position: events.PositionOf(uint64(i + 1)), Text: []string{"text"}})
	}
	return docs
}

// TestItems: in a request with every kind of answer, each document gets its own, and
// only documents that may succeed later are sent again.
func TestItems(t *testing.T) {
	s := &script{each: map[string][]string{
		"busy":    {"429 rejected_execution_exception: queue full", "429 x: y", "200"},
		"down":    {"503 unavailable_shards_exception: no primary", "201"},
		"raced":   {"409 version_conflict_engine_exception: seqNo", "409 x: y", "409 x: y", "200"},
		"bad":     {"400 mapper_parsing_exception: failed to parse"},
		"script":  {"400 illegal_argument_exception: failed to execute script"},
		"blocked": {"403 cluster_block_exception: read only"},
		"gone":    {"404 index_not_found_exception: no such index"},
	}}
	ix := scripted(t, s, time.Minute)
	ids := []string{"good", "busy", "down", "raced", "bad", "script", "blocked", "gone", "fine"}
	errs, err := ix.Apply(t.Context(), testDocs(ids...))
	failtest.On(t, err)
	for i, id := range ids {
		refused, failed := id == "bad", slices.Contains([]string{"bad", "script", "blocked", "gone"}, id)
		if errors.Is(errs[i], search.ErrRefused) != refused || (errs[i] != nil) != failed {
			t.Errorf("%s: %v", id, errs[i])
		}
	}
	want := [][]string{ids, {"busy", "down", "raced"}, {"busy", "raced"}, {"raced"}}
	if fmt.Sprint(s.asked) != fmt.Sprint(want) {
		t.Errorf("asked %v, want %v", s.asked, want)
	}
}

// TestWhole: a request that fails as a whole is sent again as a whole, whether it was
// carried out or not; one that is too large is sent in halves.
func TestWhole(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e"}
	for _, c := range []struct {
		name string
		s    *script
		want int // requests
	}{
		{"busy, then down", &script{whole: []int{429, 503, 502}}, 4},
		{"cut", &script{cut: map[int]bool{0: true, 1: true}}, 3},
		{"too large", &script{max: 1}, 1 + 2 + 2 + 2 + 2},
	} {
		ix := scripted(t, c.s, time.Minute)
		errs, err := ix.Apply(t.Context(), testDocs(ids...))
		if err := errors.Join(append(errs, err)...); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, id := range ids {
			if c.s.count[id] != 1 {
				t.Errorf("%s: %s was taken %d times", c.name, id, c.s.count[id])
			}
		}
		if len(c.s.asked) != c.want {
			t.Errorf("%s: %d requests, want %d", c.name, len(c.s.asked), c.want)
		}
	}
	s := &script{max: -1, whole: []int{413}}
	errs, _ := scripted(t, s, time.Minute).Apply(t.Context(), testDocs("huge"))
	if !errors.Is(errs[0], search.ErrRefused) {
		t.Errorf("a document that is too large: %v", errs[0])
	}
}

// TestGivingUp: a request with a final answer is not sent again; no call takes longer
// than its patience or its context; and changes that are left are reported, but never
// as refused.
func TestGivingUp(t *testing.T) {
	down := slices.Repeat([]int{503}, 1000)
	for _, c := range []struct {
		name     string
		s        *script
		patience time.Duration
		once     bool
	}{
		{"not let in", &script{whole: []int{403, 403}}, time.Minute, true},
		{"wrong", &script{whole: []int{400, 400}}, time.Minute, true},
		{"down", &script{whole: down}, time.Second, false},
		{"one down", &script{each: map[string][]string{"b": {"503 x: y"}}}, time.Second, false},
	} {
		ix := scripted(t, c.s, c.patience)
		errs, err := ix.Apply(t.Context(), testDocs("a", "b"))
		if err != nil || errs[1] == nil || errors.Is(errs[1], search.ErrRefused) {
			t.Errorf("%s: %v, %v", c.name, errs, err)
		}
		if (len(c.s.asked) == 1) != c.once {
			t.Errorf("%s: %d requests", c.name, len(c.s.asked))
		}
		if c.name == "one down" && errs[0] != nil {
			t.Errorf("%s: the other: %v", c.name, errs[0])
		}
	}
}

// TestCancelled: the context ends during the n-th request, which is answered or not.
func TestCancelled(t *testing.T) {
	for _, c := range []struct {
		name     string
		n        int
		answered bool
	}{
		{"while it waits", 2, true},
		{"in another try", 2, false},
		{"in the first", 1, false},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		s := &script{whole: slices.Repeat([]int{503}, 1000), block: func(r *http.Request) {
			switch n++; {
			case n < c.n:
			case c.answered:
				time.AfterFunc(10*time.Millisecond, cancel)
			default:
				io.Copy(io.Discard, r.Body)
				cancel()
				<-r.Context().Done()
			}
		}}
		errs, err := scripted(t, s, time.Hour).Apply(ctx, testDocs("a"))
		if !errors.Is(err, context.Canceled) || !errors.Is(errs[0], context.Canceled) || strings.Contains(errs[0].Error(), "503") != (c.n > 1) {
			t.Errorf("%s: %v, %v", c.name, errs, err)
		}
	}
}

// TestBulkSizes: requests are limited in number and bytes, and all changes are sent.
func TestBulkSizes(t *testing.T) {
	s := &script{}
	ix := scripted(t, s, time.Minute)
	var ids []string
	for n := range 2*maxBulk + 10 {
		ids = append(ids, fmt.Sprint(n))
	}
	docs := testDocs(ids...)
	for i := range 8 {
		docs[i].Text = []string{strings.Repeat("word ", maxBulkBytes/10)}
	}
	errs, err := ix.Apply(t.Context(), docs)
	failtest.On(t, errors.Join(append(errs, err)...))
	if len(s.count) != len(ids) || len(s.asked) < 6 {
		t.Errorf("%d documents in %d requests", len(s.count), len(s.asked))
	}
	for _, r := range s.asked {
		if len(r) > maxBulk {
			t.Errorf("%d documents in a request", len(r))
		}
	}
}

// TestNewestOnly: only the newest change of a document is sent, and its result counts
// for all.
func TestNewestOnly(t *testing.T) {
	s := &script{each: map[string][]string{"a": {"400 mapper_parsing_exception: no"}}}
	ix := scripted(t, s, time.Minute)
	errs, err := ix.Apply(t.Context(), testDocs("a", "b", "a"))
	if err != nil || errs[0] == nil || errs[1] != nil || errs[2] == nil || fmt.Sprint(s.asked) != "[[a b]]" {
		t.Errorf("%v, %v, asked %v", errs, err, s.asked)
	}
}
