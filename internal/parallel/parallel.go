// Package parallel runs independent calls concurrently, with a limit, and pauses.
package parallel

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"
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

// Beside runs one call at a time beside its owner, one goroutine. The zero value is ready.
type Beside struct{ done chan error }

// Go calls do in a goroutine of its own, after the call before it, whose error it returns
// instead of calling do. Call Wait when there are no more.
func (b *Beside) Go(do func() error) error {
	if err := b.Wait(); err != nil {
		return err
	}
	b.done = make(chan error, 1)
	go func() { b.done <- do() }()
	return nil
}

// Wait waits for the call that is running, if one is, and returns its error, once.
func (b *Beside) Wait() error {
	if b.done == nil {
		return nil
	}
	err := <-b.done
	b.done = nil
	return err
}

// Ahead yields the results of next until it returns io.EOF or another error, which is yielded last.
// It calls next in a goroutine of its own while the loop's body runs, at most one value ahead. When the
// loop has ended, next has returned and is not called again.
func Ahead[T any](next func() (T, error)) iter.Seq2[T, error] {
	type result struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		results, stop := make(chan result), make(chan struct{})
		var wait sync.WaitGroup
		defer wait.Wait()
		defer close(stop)
		wait.Go(func() {
			for {
				value, err := next()
				select {
				case results <- result{value, err}:
				case <-stop:
					return
				}
				if err != nil {
					return
				}
			}
		})
		for {
			r := <-results
			if errors.Is(r.err, io.EOF) || !yield(r.value, r.err) || r.err != nil {
				return
			}
		}
	}
}

// Sleep returns nil after a while, or the context's error before.
func Sleep(ctx context.Context, while time.Duration) error {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
