package replay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

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
