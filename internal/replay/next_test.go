package replay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// reads is a store that reports each read before it happens.
type reads struct {
	store.Store
	before func() error
}

func (r *reads) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if err := r.before(); err != nil {
		return nil, err
	}
	return r.Store.Get(ctx, refs)
}

// TestUnread breaks a replay at each single read. It ends there, and done again it is
// as if nothing had happened.
func TestUnread(t *testing.T) {
	all := lives()
	want := onePass(t, all)
	for _, size := range []int{0, 1, 2, 5} {
		for at, broke := 1, true; broke; at++ {
			w, n := newWorld(t), 0
			r := w.over(&reads{w.store, func() error {
				if n++; n == at {
					return errBroken
				}
				return nil
			}})
			err := batches(r, all, size)
			if broke = n >= at; broke != errors.Is(err, errBroken) || n > at {
				t.Fatalf("batches of %d, broken at read %d of %d: %v", size, at, n, err)
			}
			w.replay(all, 2)
			same(t, fmt.Sprintf("broken at read %d, batches of %d, the history", at, size), w.history(), want)
		}
	}
}

// TestReadsBeside: the rows of a batch are read while the one before it is being
// written.
func TestReadsBeside(t *testing.T) {
	all := lives()[:4] // of two rows, in turns
	w := newWorld(t)
	read := make(chan bool, 10)
	s := &meanwhile{w.store, func() {
		for range 2 { // the row, and the mark of its removal
			select {
			case <-read:
			case <-time.After(20 * time.Second):
				t.Error("nothing is read while the first batch is being written")
			}
		}
	}}
	r := w.over(&reads{s, func() error { read <- true; return nil }})
	must(t, r.Next(t.Context(), all[:1], ""))
	<-read
	<-read
	must(t, r.Next(t.Context(), all[1:2], "")) // writes the first
	must(t, r.Next(t.Context(), all[2:], ""))
	must(t, r.Next(t.Context(), nil, ""))
	if r.Summary.Applied != len(all) || len(w.gaps) > 0 {
		t.Errorf("%+v, gaps %q", r.Summary, w.gaps)
	}
}
