package build_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// firstRead lets another builder begin when a builder has seen that no segment is taken.
type firstRead struct {
	store.Store
	then func()
}

func (s *firstRead) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	rows, err := s.Store.Get(ctx, refs)
	segment := slices.ContainsFunc(refs, func(r store.Ref) bool { return strings.HasPrefix(r.Key.Partition.Text(), "build|") })
	if s.then != nil && segment {
		then := s.then
		s.then = nil
		then()
	}
	return rows, err
}

// stopping ends its builder once it has written a segment as it is to be.
type stopping struct {
	store.Store
	at   func(store.Write) bool
	stop func()
}

func (s *stopping) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out, err := s.Store.Write(ctx, ws)
	if slices.ContainsFunc(ws, func(w store.Write) bool {
		return strings.HasPrefix(w.Ref.Key.Partition.Text(), "build|") && s.at(w)
	}) {
		s.stop()
	}
	return out, err
}

// TestBuildersOfDifferentPlans: two builders that were told different numbers of segments
// begin at the same time, and die: one when it has taken a segment, the other when it is done
// with one. The next one reads all rows.
func TestBuildersOfDifferentPlans(t *testing.T) {
	f := open(t, load(t, mixed))
	for i := range 40 {
		f.write("PK", fmt.Sprint("TASK#", i), "SK", "METADATA", "type", "Task", "name", "a", "owner", "o", "team", "1", "tag", "x", "status", "open")
		f.write("PK", fmt.Sprint("TASK#", i), "SK", "VOTE#1", "type", "Vote", "up", "yes", "points", 1)
	}
	f.unread()
	f.announced(mixedNames...)
	dies := func(segments int, s store.Store, at func(store.Write) bool) {
		ctx, stop := context.WithCancel(t.Context())
		run := *f.runner()
		run.Store, run.Alone = &stopping{s, at, stop}, true
		b := f.builder(mixedNames...)
		b.Runner, b.Segments = &run, segments
		if _, err := b.Run(ctx); err == nil {
			t.Fatal("it did not die")
		}
	}
	dies(4, &firstRead{f.Store, func() {
		dies(1, f.Store, func(store.Write) bool { return true })
	}}, func(w store.Write) bool {
		return slices.ContainsFunc(w.Ops, func(op store.Op) bool { return op.Attr == "over" && op.Value.Bool() })
	})
	f.build(owntable.BuildLive, mixedNames...)
	f.catchUp()
	f.compareMixed()
}
