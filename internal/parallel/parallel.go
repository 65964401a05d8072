// Package parallel runs independent calls concurrently, with a limit.
package parallel

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Do calls do for each i below n, at most limit calls at a time, and returns after the
// last one. An error stops no other call; Do returns all of them, joined in the order
// of i. With a limit of 1, or one call, it calls do in the caller's goroutine, in order.
func Do(n, limit int, do func(i int) error) error {
	errs := make([]error, n)
	if n == 1 || limit == 1 {
		for i := range n {
			errs[i] = do(i)
		}
		return errors.Join(errs...)
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(n, limit) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = do(i)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
