package embedded

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/search"
	"weir/internal/summed"
)

// keyDescribed is scorch's internal value that is a described.
var keyDescribed = []byte("weir.index")

// Format must be raised when the content of documents, the way words are cut, or the
// internal values change.
const Format = 1

// fingerprint is equal for schemas that one index can serve.
func fingerprint(s search.Schema) string {
	b, err := json.Marshal([]any{Format, slices.Sorted(slices.Values(s.Filters)), slices.Sorted(slices.Values(s.Sorts)), s.Version})
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// made is the identity for which an index was made.
type made struct {
	Schema   string // the schema's fingerprint
	Instance string // tells the index from others at its place
	After    string // the instance that was noted then
}

// corpus is one index: a scorch, and the only goroutine that writes into it.
// Reads may come from any goroutine.
type corpus struct {
	schema  search.Schema
	dir     string
	options Options
	scorch  *scorch.Scorch
	filled  atomic.Bool

	made made

	requests chan *request
	closing  chan struct{} // closed to end the writer
	ended    chan struct{} // closed when the writer has ended
	failed   chan error    // a recent failure of scorch to write
	broken   chan struct{} // closed when scorch has given up
	compared chan struct{} // closed when scorch may merge: the segments that it opened have been compared
	breaking sync.Once
	cause    error // why it is broken; read it only after broken is closed

	commits   commits   // of the writer: the number of the last one
	committed *os.File  // the file that says so
	unsure    bool      // of the writer: scorch may show changes that are not on disk
	nextPrune time.Time // of the writer
}

// dirName is the name of the index's directory. Characters that a file system might not
// distinguish, or might read otherwise, are written as %XX.
func dirName(name string) string { return search.PlainName(name, "%%%02X") }

// discarded is the suffix of a directory that is being deleted. dirName never contains
// a period, so no index has such a name.
const discarded = ".discarded"

// discardIndex deletes the directory of an index. It is renamed first, so a crash leaves no
// index of which a part is missing.
func discardIndex(dir string) error {
	err := os.Rename(dir, dir+discarded)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir + discarded)
}

// openCorpus opens the index of a schema in its directory, or makes it. The caller must
// close the corpus.
func openCorpus(dir string, s search.Schema, o Options, q *index.AnalysisQueue) (*corpus, error) {
	c := newCorpus(dir, s, o)
	if err := c.guardCall(func() error { return c.openDirectory(q) }); err != nil {
		return nil, err
	}
	go c.write()
	return c, nil
}

// newCorpus returns a corpus that is not open and has no writer yet.
func newCorpus(dir string, s search.Schema, o Options) *corpus {
	return &corpus{
		schema: s, dir: dir, options: o,
		requests: make(chan *request), closing: make(chan struct{}),
		ended: make(chan struct{}), failed: make(chan error, 1), broken: make(chan struct{}),
		compared: make(chan struct{}),
	}
}

// openDirectory checks the directory before scorch opens it, and compares afterwards. An index
// that is not the one that was noted, and was not made to replace that one, has missed
// changes: it is deleted and made again.
func (c *corpus) openDirectory(q *index.AnalysisQueue) error {
	if err := os.RemoveAll(c.dir + discarded); err != nil {
		return err
	}
	found, err := inspectDirectory(c.dir)
	if err != nil {
		return err
	}
	want, current := fingerprint(c.schema), c.options.Noted[c.schema.Name]
	if found.exists && (found.made.Schema != want || current != "" && found.made.Instance != current && found.made.After != current) {
		if err := discardIndex(c.dir); err != nil {
			return err
		}
		found = inspection{}
	}
	if found.exists && !found.closed {
		if err := c.checkContent(found); err != nil {
			return err
		}
		if err := c.renewRoot(); err != nil {
			return err
		}
	}
	if c.made = found.made; !found.exists {
		c.made = made{want, noted + rand.Text(), current}
	}
	c.filled.Store(found.Filled && (current == "" || c.made.Instance == current))
	c.commits = found.Commits
	if found.exists {
		if err := c.noteCommits(); err != nil {
			return err
		}
	}
	if err := removeChecksum(c.dir); err != nil {
		return err
	}
	if err := c.startScorch(q); err != nil {
		return err
	}
	if err := c.checkOpened(found); err != nil {
		return errors.Join(err, c.closeScorch(c.scorch.Close))
	}
	return nil
}

// checkOpened checks that scorch has opened everything that was found, and makes the index if
// there was none.
func (c *corpus) checkOpened(found inspection) error {
	defer close(c.compared)
	snap, err := c.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	if err := c.compareFound(snap, found); err != nil || found.exists {
		return err
	}
	b := index.NewBatch()
	if err := c.addDescription(b, 0, false); err != nil {
		return err
	}
	if err := c.persistBatch(b); err != nil {
		return err
	}
	return c.noteCommits()
}

// addDescription adds the description of the index to a batch after which it holds the content.
// It is in the batch of the change itself, so after a crash the sum and the number belong to the
// documents in the index.
func (c *corpus) addDescription(b *index.Batch, holds content, filled bool) error {
	is, err := summed.Marshal(described{c.made, holds, c.commits, filled})
	b.SetInternal(keyDescribed, is)
	return err
}

// startScorch opens scorch. It merges nothing until compared is closed: otherwise the segments
// that were found might be others by the time that they are compared.
func (c *corpus) startScorch(q *index.AnalysisQueue) error {
	name, done := listen(c.takeError, func(e scorch.Event) bool {
		if e.Kind == scorch.EventKindPreMergeCheck {
			<-c.compared
		}
		return true
	})
	defer done()
	ix, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path":                   c.dir,
		"bolt_timeout":           lockWait.String(),
		"unsafe_batch":           true, // persist waits for the disk
		"asyncErrorCallbackName": name,
		"eventCallbackName":      name,
	}, q)
	if err != nil {
		return err
	}
	c.scorch = ix.(*scorch.Scorch)
	return c.scorch.Open()
}

// listeners numbers the names under which scorch finds its callbacks. scorch's registries
// are plain maps; listening guards them.
var (
	listeners atomic.Int64
	listening sync.Mutex
)

// listen registers callbacks until done is called. Scorch looks them up when it is made.
func listen(failed func(error), event func(scorch.Event) bool) (name string, done func()) {
	name = fmt.Sprintf("weir-%d", listeners.Add(1))
	listening.Lock()
	scorch.RegistryAsyncErrorCallbacks[name] = func(err error, _ string) { failed(err) }
	scorch.RegistryEventCallbacks[name] = event
	return name, func() {
		delete(scorch.RegistryEventCallbacks, name)
		delete(scorch.RegistryAsyncErrorCallbacks, name)
		listening.Unlock()
	}
}

// errClosed is the error of every call after Close.
var errClosed = errors.New("the search index is closed")

// close ends the writer and scorch.
func (c *corpus) close() error {
	close(c.closing)
	return c.closeScorch(func() error {
		<-c.ended
		if c.committed != nil {
			c.committed.Close() // nothing of it is synced
		}
		if err := c.scorch.Close(); err != nil || c.unsure || c.options.InMemory {
			return err
		}
		return writeChecksum(c.dir)
	})
}

// closeScorch closes scorch. A scorch that is broken may never end; end leaves it running.
// The error is then the cause, and its goroutines may still use the files.
func (c *corpus) closeScorch(close func() error) error {
	done := make(chan error, 1)
	go func() { done <- c.guardCall(close) }()
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

// snapshotOf is the content of a scorch, errClosed if it was closed. The caller closes the snapshot.
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
