package embedded

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"weir/internal/search"
)

// DamageError says that a directory does not hold an index that can be used. The
// index is made anew once the directory is deleted.
type DamageError struct {
	Dir   string
	Cause error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("search index %s is damaged or not ours (%v): delete the directory, and it is made anew from the rows", e.Dir, e.Cause)
}

func (e *DamageError) Unwrap() error { return e.Cause }

func (c *corpus) damaged(cause error) error { return &DamageError{c.dir, cause} }

// heard takes what goes wrong in scorch's own goroutines, one of which calls it. A
// write that failed is tried again at once: the pause keeps a full disk from costing
// a processor. A panic has ended the goroutine, and whoever waits for it would wait
// for ever.
func (c *corpus) heard(err error) {
	if errors.Is(err, scorch.ErrAsyncPanic) {
		c.breakDown(c.damaged(err))
		return
	}
	select {
	case c.failed <- err:
	default:
	}
	select {
	case <-c.closing:
	case <-time.After(200 * time.Millisecond):
	}
}

func (c *corpus) breakDown(err error) {
	c.breaking.Do(func() {
		c.cause = err
		close(c.broken)
	})
}

// guard runs f and says which index its error is about. A panic, and a fault in
// memory that a file no longer backs, are errors too: scorch trusts its files.
func (c *corpus) guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = c.damaged(fmt.Errorf("%v", p))
		}
	}()
	err = f()
	var d *DamageError
	if err == nil || errors.Is(err, search.ErrQuery) || errors.As(err, &d) {
		return err
	}
	return fmt.Errorf("search index %s: %w", c.dir, err)
}
