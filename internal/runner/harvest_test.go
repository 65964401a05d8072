package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/runner/runnertest"
	"weir/internal/search"
)

// counting is an index that counts what it is given, and fails where it is told to.
type counting struct {
	search.Index
	given map[string]int // by id
	calls int
	fails bool
}

func (c *counting) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	if c.fails {
		return nil, errors.New("no index today")
	}
	c.calls++
	for _, d := range docs {
		c.given[d.ID]++
	}
	return c.Index.Apply(ctx, docs)
}

// searching is a gallery, and catching up with its search.
type searching struct {
	*testing.T
	*harness
	index *counting
}

func newSearching(t *testing.T) *searching {
	m, err := model.Load("gallery")
	must(t, err)
	h := newHarness(t, m)
	h.mood = &moody{Index: h.index, refuses: "forbidden", fails: map[string]int{}}
	return &searching{t, h, &counting{Index: h.mood, given: map[string]int{}}}
}

// album writes album n, with this title.
func (s *searching) album(n int, title string) {
	must(s.T, s.write(fmt.Sprintf(`put gallery {"PK":"ALBUM#%d","SK":"METADATA","EntityType":"Album","id":"%d","title":"%s","isPublic":"true","createdAt":"2026-01-01T00:00:00Z"}`, n, n, title)))
}

func (s *searching) catchUp() error {
	r := s.runner(nil)
	r.Store, r.Index = untrimmed{s.store}, s.index
	done := make(chan struct{})
	close(done)
	f := runner.Follower{Runner: r}
	return f.CatchUp(context.Background(), done)
}

// counted holds what is counted against the streams.
func (s *searching) counted(kept int) {
	s.Helper()
	for s.pull() > 0 {
	}
	n, err := runnertest.Counted(context.Background(), s.runner(nil), runner.GroupSearch)
	must(s.T, err)
	if n.Applied+n.Skipped+n.Kept != len(s.records) || n.Kept != kept {
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
	must(t, s.catchUp())
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

// An index that fails leaves every place where it was: nothing is lost, and nothing
// counts twice.
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
	for shard := range checkpoints(s.harness) {
		if strings.Contains(shard, runner.GroupSearch) {
			t.Errorf("the place in %s was saved", shard)
		}
	}
	s.index.fails = false
	s.album(3, "after")
	must(t, s.catchUp())
	s.counted(0)
	if out := s.audit(); out != "" {
		t.Error(out)
	}
}

// What the index refuses is kept with the record that it is of, once; a change that
// replaced a refused one before anybody asked the index keeps nothing.
func TestCatchUpRefused(t *testing.T) {
	s := newSearching(t)
	defer s.close()
	for i := range 30 {
		s.album(i%10, map[bool]string{true: "forbidden", false: "allowed"}[i == 4 || i >= 27 && i < 29])
	}
	must(t, s.catchUp())
	s.counted(2)
	text, _, err := s.dead()
	must(t, err)
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
		must(t, err)
		for _, sh := range slices.Backward(shards) {
			if !sh.Closed {
				must(t, s.store.Split(context.Background(), "gallery", sh.ID))
			}
		}
	}
	s.album(1, "last")
	must(t, s.catchUp())
	s.counted(0)
	if out := s.audit(); out != "" {
		t.Error(out)
	}
}
