package reader

import (
	"context"
	"testing"

	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/store"
)

// TestOffCostsNothing: without a Tracer and an Observer, work is done as if there were no spans: nothing is allocated
// for them, and the work has the context of its caller.
func TestOffCostsNothing(t *testing.T) {
	r := &runner.Runner{Model: &model.Model{Name: "gallery"}}
	c := &consumer{Follower: &Follower{Runner: r}}
	ctx, pieces := t.Context(), make([]shardPage, 3)
	var of [3]store.Write
	var observe store.Observer
	n := 0
	if allocs := testing.AllocsPerRun(100, func() {
		work := func(in context.Context) error {
			if in != ctx {
				t.Error("the work has another context")
			}
			n++
			return nil
		}
		if err := c.tracePages(ctx, pieces, work); err != nil {
			t.Error(err)
		}
		if err := r.RunTraced(ctx, runner.Span{Name: runner.SpanBatch, Table: "gallery", Items: 3}, work); err != nil {
			t.Error(err)
		}
		if r.AppliedIn(ctx, runner.Result{}) != "" {
			t.Error("it is in a trace")
		}
		in, end := observe.Begin(ctx, store.Call{Method: store.IsWrite, Of: of[:]})
		if end(nil); in != ctx {
			t.Error("the call has another context")
		}
	}); allocs != 0 || n == 0 {
		t.Errorf("%v allocations", allocs)
	}
}
