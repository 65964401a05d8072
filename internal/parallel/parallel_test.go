package parallel_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"weir/internal/parallel"
)

// TestDo: each call is made once, whatever the limit, and all errors come back in order.
func TestDo(t *testing.T) {
	wrong := errors.New("wrong")
	for _, n := range []int{0, 1, 2, 7, 100} {
		for _, limit := range []int{1, 2, 7, 1000} {
			calls := make([]atomic.Int64, n)
			err := parallel.Do(n, limit, func(i int) error {
				calls[i].Add(1)
				if i%3 == 0 {
					return fmt.Errorf("call %d: %w", i, wrong)
				}
				return nil
			})
			var want []error
			for i := range n {
				if c := calls[i].Load(); c != 1 {
					t.Errorf("%d calls, limit %d: call %d was made %d times", n, limit, i, c)
				}
				if i%3 == 0 {
					want = append(want, fmt.Errorf("call %d: %w", i, wrong))
				}
			}
			if got, want := fmt.Sprint(err), fmt.Sprint(errors.Join(want...)); got != want || errors.Is(err, wrong) != (n > 0) {
				t.Errorf("%d calls, limit %d: the error is\n%s\nwant\n%s", n, limit, got, want)
			}
		}
	}
}

// TestLimit: as many calls as the limit are under way at once, and never more.
func TestLimit(t *testing.T) {
	const limit = 4
	var underWay, most atomic.Int64
	var all sync.WaitGroup // the first calls wait for one another
	all.Add(limit)
	err := parallel.Do(100, limit, func(i int) error {
		now := underWay.Add(1)
		for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
		}
		if i < limit {
			all.Done()
			all.Wait()
		}
		underWay.Add(-1)
		return nil
	})
	if err != nil || most.Load() != limit {
		t.Errorf("at most %d calls were under way at once, want %d (%v)", most.Load(), limit, err)
	}
}

// TestInOrder: with a limit of 1, or one call, calls are made in order by the caller's
// goroutine.
func TestInOrder(t *testing.T) {
	for _, c := range []struct{ n, limit int }{{50, 1}, {1, 16}} {
		var got, want []int
		err := parallel.Do(c.n, c.limit, func(i int) error {
			if got = append(got, i); !strings.Contains(string(debug.Stack()), "parallel_test.TestInOrder(") {
				return errors.New("another goroutine makes the call")
			}
			return nil
		})
		for i := range c.n {
			want = append(want, i)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d calls, limit %d: made in the order %v (%v)", c.n, c.limit, got, err)
		}
	}
}

// TestAhead: all values come in order, an error comes last and once, and a loop that ends early has next end,
// which was at most two values ahead of what the loop has had.
func TestAhead(t *testing.T) {
	wrong := errors.New("wrong")
	for _, last := range []error{io.EOF, wrong} {
		for stop := range 7 {
			var calls atomic.Int64
			next := func() (int, error) {
				n := int(calls.Add(1))
				if n > 5 {
					return 0, last
				}
				return n, nil
			}
			var got []int
			var errs []error
			for n, err := range parallel.Ahead(next) {
				if err != nil {
					errs = append(errs, err)
					continue
				}
				if got = append(got, n); int(calls.Load()) > n+2 {
					t.Errorf("next was called %d times when the loop had %d", calls.Load(), n)
				}
				if n == stop {
					break
				}
			}
			want := []int{1, 2, 3, 4, 5}
			if stop > 0 && stop < 6 {
				want = want[:stop]
			}
			whole := len(want) == 5 && stop != 5
			if !slices.Equal(got, want) || (len(errs) > 0) != (whole && last == wrong) || len(errs) > 1 {
				t.Errorf("stopped at %d, the last error is %v: %v, %v", stop, last, got, errs)
			}
			before := calls.Load()
			runtime.Gosched()
			if calls.Load() != before {
				t.Error("next was called when the loop had ended")
			}
		}
	}
}

// TestBeside: calls run one after the other beside their owner, and an error keeps the next from
// being called and is returned once.
func TestBeside(t *testing.T) {
	var b parallel.Beside
	wrong := errors.New("wrong")
	var running, made atomic.Int64
	call := func(err error) func() error {
		return func() error {
			if running.Add(1) > 1 {
				t.Error("two calls at a time")
			}
			runtime.Gosched()
			running.Add(-1)
			made.Add(1)
			return err
		}
	}
	for range 20 {
		if err := b.Go(call(nil)); err != nil {
			t.Fatal(err)
		}
	}
	release := make(chan bool)
	if err := b.Go(func() error { <-release; return wrong }); err != nil { // it would not come back if Go waited
		t.Fatal(err)
	}
	close(release)
	if err := b.Go(call(nil)); !errors.Is(err, wrong) || made.Load() != 20 {
		t.Errorf("after a call that failed: %v, %d calls", err, made.Load())
	}
	if err := errors.Join(b.Wait(), b.Go(call(nil)), b.Wait(), b.Wait()); err != nil || made.Load() != 21 {
		t.Errorf("%v, %d calls", err, made.Load())
	}
}
