package embedded

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"weir/internal/search"
)

// DamageError says that a directory does not hold a usable index. Delete the directory,
// and the next Open makes the index again, empty.
type DamageError struct {
	Dir   string
	Cause error
}

// Error names the directory, the cause and the remedy.
func (e *DamageError) Error() string {
	return fmt.Sprintf("search index %s is damaged or not ours (%v): delete the directory, and it is built again from the rows", e.Dir, e.Cause)
}

func (e *DamageError) Unwrap() error { return e.Cause }

// damaged is the error for damage of this index.
func (c *corpus) damaged(cause error) error { return &DamageError{c.dir, cause} }

// takeError takes errors of scorch's own goroutines; scorch calls it from these. Scorch
// retries a failed write at once, so heard pauses: otherwise a full disk would keep a
// processor busy. A panic has ended a goroutine of scorch. Calls that wait for that
// goroutine would wait for ever, so the index is marked as broken.
func (c *corpus) takeError(err error) {
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

// breakDown marks the index as broken, for good. From then on ask returns the cause.
func (c *corpus) breakDown(err error) {
	c.breaking.Do(func() {
		c.cause = err
		close(c.broken)
	})
}

// guardCall runs f and adds the name of the index to its error. A panic, and a fault in
// mapped memory that has no file behind it any more, become errors too: scorch trusts
// its files.
func (c *corpus) guardCall(f func() error) (err error) {
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
