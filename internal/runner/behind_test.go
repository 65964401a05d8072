package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/runner/runnertest"
	"weir/internal/search"
	"weir/internal/store"
)

// counting is an index that counts what it is given, and fails where it is told to.
type counting struct {
	search.Index
	mu    sync.Mutex
	given map[string]int // by id
	calls int
	fails bool
	first func(documents int) // what happens while the first are applied
}

func (c *counting) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fails {
		return nil, errors.New("no index today")
	}
	if c.calls++; c.calls == 1 && c.first != nil {
		c.first(len(docs))
	}
	for _, d := range docs {
		c.given[d.ID]++
	}
	return c.Index.Apply(ctx, docs)
}

// searching is a gallery, and catching up with its search.
type searching struct {
	*testing.T
	*harness
	index  *counting
	prompt bool
}

func newSearching(t *testing.T) *searching {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	h := newHarness(t, m)
	h.mood = &moody{Index: h.index, refuses: "forbidden", fails: map[string]int{}}
	return &searching{t, h, &counting{Index: h.mood, given: map[string]int{}}, false}
}

// album writes album n, with this title.
func (s *searching) album(n int, title string) {
	failtest.On(s.T, s.write(fmt.Sprintf(`put gallery {"PK":"ALBUM#%d","SK":"METADATA","EntityType":"Album","id":"%d","title":"%s","isPublic":"true","createdAt":"2026-01-01T00:00:00Z"}`, n, n, title)))
}

func (s *searching) catchUp() error { return s.catchUpFrom(nil, s.index) }

// catchUpFrom catches up from a source, or the store; without an index with rows only.
func (s *searching) catchUpFrom(source store.Source, ix search.Index) error {
	r := s.runner(nil)
	r.Store, r.Index = untrimmed{s.store}, ix
	done := make(chan struct{})
	close(done)
	f := reader.Follower{Runner: r, Source: source, Prompt: s.prompt}
	return f.CatchUp(context.Background(), done)
}

// places are the shards whose positions are saved.
func (s *searching) places() (out []string) {
	for _, row := range s.scan("weir") {
		if row.Get("k").Text() == owntable.Checkpoints("gallery") && row.Has("p") {
			out = append(out, row.Get("s").Text())
		}
	}
	return out
}

// counted holds what is counted against the streams.
func (s *searching) counted(kept int) {
	s.Helper()
	for s.pull() > 0 {
	}
	n, err := runnertest.Counted(context.Background(), s.runner(nil))
	failtest.On(s.T, err)
	if n.Applied+n.Skipped+n.Dead != len(s.records) || n.Dead != kept {
		s.Errorf("%+v are counted of %d records", n, len(s.records))
	}
	for i := range s.records {
		s.done[i+1] = true
	}
}

// A document that changes again and again is indexed once by who catches up, however
// many pages it changes in, and each record is counted.
func TestCatchUpIndexesOnce(t *testing.T) {
	s := newSearching(t)
	defer s.close()
	const albums, edits = 2, 6000
	for i := range edits {
		s.album(i%albums, fmt.Sprint("title", i))
	}
	failtest.On(t, s.catchUp())
	if s.index.calls != 1 || len(s.index.given) != albums {
		t.Errorf("%d documents in %d calls", len(s.index.given), s.index.calls)
	}
	for id, n := range s.index.given {
		if n != 1 {
			t.Errorf("document %s was indexed %d times", id, n)
		}
	}
	s.counted(0)
	if out := s.audit(); out != "" {
		t.Error(out)
	}
}

// Documents that an index does not take are pending, and rows go on: nothing is lost, and nothing counts twice. Who catches up says so
// at its end.
func TestCatchUpBroken(t *testing.T) {
	s := newSearching(t)
	defer s.close()
	for i := range 50 {
		s.album(i%9, fmt.Sprint("title", i))
	}
	s.index.fails = true
	if err := s.catchUp(); err == nil || !strings.Contains(err.Error(), "no index today") {
		t.Fatalf("the error is %v", err)
	}
	if n, err := document.CountPending(t.Context(), s.runner(nil), 100); err != nil || n != 9 || len(s.places()) == 0 {
		t.Errorf("%d documents are pending, %v; the places in %v were saved", n, err, s.places())
	}
	s.index.fails = false
	s.album(3, "after")
	failtest.On(t, s.catchUp())
	s.counted(0)
	if out := s.audit(); out != "" {
		t.Error(out)
	}
}

// While the index takes a flush, rows go on, and the next flush is gathered. Places move only behind what it took. If it does not take the
// last one, that is said at the end.
func TestCatchUpGathersOn(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fails ", fails), func(t *testing.T) { catchUpGathersOn(t, fails) })
	}
}

func catchUpGathersOn(t *testing.T, fails bool) {
	s := newSearching(t)
	defer s.close()
	s.prompt = fails  // it looks for documents that are pending at its beginning
	const albums = 90 // more bytes than a flush has
	long := strings.Repeat(".", 60_000)
	for i := range albums {
		s.album(i, fmt.Sprintf("title%03d%s", i, long))
	}
	source := &counting{Index: s.index, given: map[string]int{}}
	read := &reads{Source: untrimmed{s.store}}
	source.first = func(documents int) {
		for until := time.Now().Add(time.Minute); read.records.Load() <= int64(documents); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Error("nothing is read while the index is busy")
				break
			}
		}
		if saved := s.places(); len(saved) > 0 {
			t.Errorf("the places in %v were saved before the index had it", saved)
		}
		source.fails = fails
	}
	err := s.catchUpFrom(read, source)
	if failed := err != nil && strings.Contains(err.Error(), "documents are pending: no index today"); failed != fails {
		t.Fatalf("the error is %v", err)
	}
	source.fails = false
	failtest.On(t, s.catchUpFrom(read, source))
	if len(source.given) != albums {
		t.Errorf("%d documents are indexed", len(source.given))
	}
	s.counted(0)
	if out := s.audit(); out != "" {
		t.Error(out)
	}
}

// reads counts the records that are read of a source.
type reads struct {
	store.Source
	records atomic.Int64
}

func (c *reads) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	page, err := c.Source.Read(ctx, table, shard, after, limit)
	c.records.Add(int64(len(page.Records)))
	return page, err
}

// What the index refuses is kept with the record that it is of, once; a change that
// replaced a refused one before anybody asked the index keeps nothing.
func TestCatchUpRefused(t *testing.T) {
	s := newSearching(t)
	defer s.close()
	for i := range 30 {
		s.album(i%10, map[bool]string{true: "forbidden", false: "allowed"}[i == 4 || i >= 27 && i < 29])
	}
	failtest.On(t, s.catchUp())
	s.counted(2)
	text, _, err := s.dead()
	failtest.On(t, err)
	for _, want := range []string{"ALBUM#7", "ALBUM#8"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not kept:\n%s", want, text)
		}
	}
	if strings.Contains(text, "ALBUM#4") {
		t.Errorf("what was replaced is kept:\n%s", text)
	}
}

// A shard that is closed with unapplied records in it is finished before its children
// are read.
func TestCatchUpOverSplits(t *testing.T) {
	s := newSearching(t)
	defer s.close()
	for round := range 4 {
		for i := range 40 {
			s.album(i%8, fmt.Sprint("round", round, "edit", i))
		}
		shards, err := s.store.Shards(context.Background(), "gallery")
		failtest.On(t, err)
		for _, sh := range slices.Backward(shards) {
			if !sh.Closed {
				failtest.On(t, s.store.Split(context.Background(), "gallery", sh.ID))
			}
		}
	}
	s.album(1, "last")
	failtest.On(t, s.catchUp())
	s.counted(0)
	if out := s.audit(); out != "" {
		t.Error(out)
	}
}

// TestDeadTwice: a record of which a value cannot be derived and a document is refused counts as dead once.
func TestDeadTwice(t *testing.T) {
	m, err := loadText(t, `model: shelf
tables: {shelf: {key: [PK, SK]}}
entities:
  Box: {where: {type: Box}, key: {PK: "BOX#{id}", SK: METADATA}, attributes: {title: string}}
  Thing: {where: {type: Thing}, key: {PK: "BOX#{id}", SK: "THING#{n}"}, attributes: {name: string, weight: number}}
derive:
  Box.weight: {sum: Thing.weight, to: {id: id}}
search:
  things: {of: Thing, text: [name]}
`)
	failtest.On(t, err)
	h := newHarness(t, m)
	defer h.close()
	long := strings.Repeat("x", 600)
	failtest.On(t, h.write(fmt.Sprintf(`put shelf {"PK":"BOX#1","SK":"THING#%[1]s","type":"Thing","id":"1","n":"%[1]s","name":"a","weight":"heavy"}`, long)))
	done := make(chan struct{})
	close(done)
	var sum runner.Counts
	f := reader.Follower{Runner: h.runner(nil), Report: func(a reader.Applied) { sum.Add(a.Counts) }}
	failtest.On(t, f.CatchUp(t.Context(), done))
	if sum != (runner.Counts{Dead: 1}) {
		t.Errorf("%+v", sum)
	}
}
