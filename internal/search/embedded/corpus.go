package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/search"
	"weir/internal/summed"
)

// Scorch's internal values.
var (
	keySchema  = []byte("weir.schema")
	keyFilled  = []byte("weir.filled")
	keyContent = []byte("weir.content")
	keyCommits = []byte("weir.commits")
)

// format must be raised when the content of documents, the way words are cut, or the
// internal values change.
const format = 3

// fingerprint is equal for schemas that one index can serve.
func fingerprint(s search.Schema) string {
	b, err := json.Marshal([]any{format, slices.Sorted(slices.Values(s.Filters)), slices.Sorted(slices.Values(s.Sorts)), s.Version})
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// corpus is one index: a scorch, and the only goroutine that writes into it.
type corpus struct {
	schema  search.Schema
	dir     string
	options Options
	scorch  *scorch.Scorch
	filled  bool

	requests chan *request
	closing  chan struct{} // closed to end the writer
	ended    chan struct{} // closed when the writer has ended
	failed   chan error    // a recent failure of scorch to write
	broken   chan struct{} // closed when scorch has given up
	breaking sync.Once
	cause    error // why it is broken; read it only after broken is closed

	commits   commits   // of the writer: the number of the last one
	committed *os.File  // the file that says so
	unsure    bool      // of the writer: scorch may show what is not on disk
	nextPrune time.Time // of the writer
}

// dirName is the name of the index's directory. Characters that a file system might not
// distinguish, or might read otherwise, are written as %XX.
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

// discarded is the suffix of a directory that is being deleted. dirName never contains
// a period, so no index has such a name.
const discarded = ".discarded"

// openCorpus opens the index of a schema in its directory, or makes it. The caller must
// close the corpus.
func openCorpus(dir string, s search.Schema, o Options, q *index.AnalysisQueue) (*corpus, error) {
	c := &corpus{
		schema: s, dir: dir, options: o,
		requests: make(chan *request), closing: make(chan struct{}),
		ended: make(chan struct{}), failed: make(chan error, 1), broken: make(chan struct{}),
	}
	if err := c.guard(func() error { return c.open(q) }); err != nil {
		return nil, err
	}
	go c.write()
	return c, nil
}

// open checks the directory before scorch opens it, and compares afterwards. An index
// of another definition is deleted and made again. Its directory is renamed first, so a
// crash leaves no index of which a part is missing.
func (c *corpus) open(q *index.AnalysisQueue) error {
	if err := os.RemoveAll(c.dir + discarded); err != nil {
		return err
	}
	found, err := inspect(c.dir)
	if err != nil {
		return err
	}
	want := fingerprint(c.schema)
	if found.exists && !found.closed && found.schema == want {
		if err := c.checkContent(found); err != nil {
			return err
		}
		if err := c.renewRoot(); err != nil {
			return err
		}
	}
	if found.exists && found.schema != want {
		if err := os.Rename(c.dir, c.dir+discarded); err != nil {
			return err
		}
		if err := os.RemoveAll(c.dir + discarded); err != nil {
			return err
		}
		found = inspection{}
	}
	c.filled, c.commits = found.filled, found.commits
	if found.exists {
		if err := c.noteCommits(); err != nil {
			return err
		}
	}
	if err := reopened(c.dir); err != nil {
		return err
	}
	if err := c.start(q); err != nil {
		return err
	}
	if err := c.begin(found, want); err != nil {
		return errors.Join(err, c.end(c.scorch.Close))
	}
	return nil
}

// begin checks that scorch has opened everything that was found, and makes the index if
// there was none.
func (c *corpus) begin(found inspection, want string) error {
	snap, err := c.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	if err := c.compare(snap, found); err != nil || found.exists {
		return err
	}
	b := index.NewBatch()
	if err := c.describe(b, 0); err != nil {
		return err
	}
	if err := c.persist(b); err != nil {
		return err
	}
	return c.noteCommits()
}

// describe adds the internal values to a batch after which the index holds the content.
func (c *corpus) describe(b *index.Batch, holds content) error {
	schema, err := summed.Marshal(fingerprint(c.schema))
	if err != nil {
		return err
	}
	held, err := holds.bytes()
	if err != nil {
		return err
	}
	number, err := summed.Marshal(c.commits)
	b.SetInternal(keySchema, schema)
	b.SetInternal(keyContent, held)
	b.SetInternal(keyCommits, number)
	return err
}

// start opens scorch.
func (c *corpus) start(q *index.AnalysisQueue) error {
	name, done := listen(c.heard)
	defer done()
	ix, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path":                   c.dir,
		"bolt_timeout":           lockWait.String(),
		"unsafe_batch":           true, // persist waits for the disk
		"asyncErrorCallbackName": name,
	}, q)
	if err != nil {
		return err
	}
	c.scorch = ix.(*scorch.Scorch)
	return c.scorch.Open()
}

// listeners numbers the names under which scorch finds its callbacks. scorch's registry
// is a plain map; listening guards it.
var (
	listeners atomic.Int64
	listening sync.Mutex
)

// listen registers f until done is called. Scorch looks f up when it is made.
func listen(f func(error)) (name string, done func()) {
	name = fmt.Sprintf("weir-%d", listeners.Add(1))
	listening.Lock()
	scorch.RegistryAsyncErrorCallbacks[name] = func(err error, _ string) { f(err) }
	return name, func() {
		delete(scorch.RegistryAsyncErrorCallbacks, name)
		listening.Unlock()
	}
}

// errClosed is the error of every call after Close.
var errClosed = errors.New("the search index is closed")

// close ends the writer and scorch.
func (c *corpus) close() error {
	close(c.closing)
	return c.end(func() error {
		<-c.ended
		if c.committed != nil {
			c.committed.Close() // nothing of it is synced
		}
		if err := c.scorch.Close(); err != nil || c.unsure || c.options.InMemory {
			return err
		}
		return leave(c.dir)
	})
}

// end closes scorch. A scorch that is broken may never end; end leaves it running.
func (c *corpus) end(close func() error) error {
	done := make(chan error, 1)
	go func() { done <- c.guard(close) }()
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

// snapshot is the current content of the index; the caller closes it.
func (c *corpus) snapshot() (*scorch.IndexSnapshot, error) { return snapshotOf(c.scorch) }

func snapshotOf(ix *scorch.Scorch) (*scorch.IndexSnapshot, error) {
	r, err := ix.Reader()
	if err != nil {
		return nil, err
	}
	s, _ := r.(*scorch.IndexSnapshot)
	if s == nil {
		return nil, errClosed
	}
	return s, nil
}
