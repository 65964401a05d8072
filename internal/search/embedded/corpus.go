package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/search"
)

// Scorch's internal values.
var (
	keySchema = []byte("weir.schema")
	keyFilled = []byte("weir.filled")
)

// format is raised when what documents hold, or how words are cut, changes.
const format = 1

// fingerprint is the same for schemas that one index can serve.
func fingerprint(s search.Schema) string {
	b, err := json.Marshal([]any{format, slices.Sorted(slices.Values(s.Filters)), slices.Sorted(slices.Values(s.Sorts)), s.Version})
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// corpus is one index: a scorch and the goroutine that alone writes into it.
type corpus struct {
	schema  search.Schema
	dir     string
	options Options
	scorch  *scorch.Scorch
	filled  bool

	requests chan *request
	closing  chan struct{} // closed to end the writer
	ended    chan struct{} // closed when the writer has ended
	broken   chan struct{} // closed when scorch has given up
	breaking sync.Once
	cause    error // why it is broken; read it behind broken

	unsure    bool      // the writer's: scorch may show what is not on disk
	nextPrune time.Time // the writer's
}

// dirName is a directory for the index: what a file system might not keep apart
// or might read otherwise is written as %XX.
func dirName(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// discarded is added to the name of a directory that is being deleted. dirName
// has no dots, so no index has such a name.
const discarded = ".discarded"

func openCorpus(dir string, s search.Schema, o Options, q *index.AnalysisQueue) (*corpus, error) {
	c := &corpus{
		schema: s, dir: dir, options: o,
		requests: make(chan *request), closing: make(chan struct{}),
		ended: make(chan struct{}), broken: make(chan struct{}),
	}
	if err := c.guard(func() error { return c.open(q) }); err != nil {
		return nil, err
	}
	go c.write()
	return c, nil
}

func (c *corpus) open(q *index.AnalysisQueue) error {
	if err := os.RemoveAll(c.dir + discarded); err != nil {
		return err
	}
	found, err := inspect(c.dir)
	if err != nil {
		return err
	}
	want := fingerprint(c.schema)
	if found.exists && found.schema != want {
		if err := os.Rename(c.dir, c.dir+discarded); err != nil {
			return err
		}
		if err := os.RemoveAll(c.dir + discarded); err != nil {
			return err
		}
		found = inspection{}
	}
	c.filled = found.filled
	if err := c.start(q); err != nil {
		return err
	}
	if err := c.compare(found); err != nil {
		return errors.Join(err, c.scorch.Close())
	}
	if found.exists {
		return nil
	}
	b := index.NewBatch()
	b.SetInternal(keySchema, []byte(want))
	return c.scorch.Batch(b)
}

// start opens scorch.
func (c *corpus) start(q *index.AnalysisQueue) error {
	name, done := listen(c.heard)
	defer done()
	ix, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path":                   c.dir,
		"bolt_timeout":           lockWait.String(),
		"unsafe_batch":           c.options.InMemory,
		"asyncErrorCallbackName": name,
	}, q)
	if err != nil {
		return err
	}
	c.scorch = ix.(*scorch.Scorch)
	return c.scorch.Open()
}

// listeners numbers the names under which scorch finds its callbacks; its registry
// is a plain map, which listening guards.
var (
	listeners atomic.Int64
	listening sync.Mutex
)

// listen registers f until done is called: scorch looks it up when it is made.
func listen(f func(error)) (name string, done func()) {
	name = fmt.Sprintf("weir-%d", listeners.Add(1))
	listening.Lock()
	scorch.RegistryAsyncErrorCallbacks[name] = func(err error, _ string) { f(err) }
	return name, func() {
		delete(scorch.RegistryAsyncErrorCallbacks, name)
		listening.Unlock()
	}
}

// heard takes what goes wrong in scorch's own goroutines. A write that fails is
// answered to whoever waits for it, and scorch tries again at once: the pause
// keeps a full disk from costing a processor. A panic has ended the goroutine, and
// whoever waits for it would wait for ever.
func (c *corpus) heard(err error) {
	if errors.Is(err, scorch.ErrAsyncPanic) {
		c.breakDown(c.damaged(err))
		return
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

// setFilled makes a note of it that survives a crash.
func (c *corpus) setFilled() error {
	return c.guard(func() error {
		b := index.NewBatch()
		b.SetInternal(keyFilled, []byte{1})
		return c.scorch.Batch(b)
	})
}

// errClosed answers whoever comes late.
var errClosed = errors.New("the search index is closed")

// close ends the writer and scorch. A scorch that has broken down may not end, and
// is left.
func (c *corpus) close() error {
	close(c.closing)
	done := make(chan error, 1)
	go func() {
		done <- c.guard(func() error {
			<-c.ended
			return c.scorch.Close()
		})
	}()
	select {
	case <-c.broken:
		select {
		case err := <-done:
			return err
		case <-time.After(time.Second):
			return c.cause
		}
	case err := <-done:
		return err
	}
}

// snapshot is what is in the index now; the caller closes it.
func (c *corpus) snapshot() (*scorch.IndexSnapshot, error) {
	r, err := c.scorch.Reader()
	if err != nil {
		return nil, err
	}
	s, _ := r.(*scorch.IndexSnapshot)
	if s == nil {
		return nil, errClosed
	}
	return s, nil
}
