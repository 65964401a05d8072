// Package embedded keeps search documents in Bleve's scorch indexes. Each schema has an
// index in a directory of its own.
//
// # The content of an index
//
// A live document has the fields
//
//	p        stored: its stamp (position, hash of the content), see stamp
//	t        its words
//	f:FIELD  the terms of a filter
//	o:FIELD  the key of a sort, as a doc value
//
// and a deleted document leaves a tombstone under its id, for 48 hours or more:
//
//	p        stored: its stamp
//	x        the term "x", and "h" with the hour in which it was written
//
// Besides, scorch holds one internal value, weir.index: the description of the index (described).
//
// A document and its stamp are written as one, so a crash leaves both or neither. There
// is no other record of which changes were applied.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/search"
)

// Options are the choices of a caller. The zero Options are good for production.
type Options struct {
	// InMemory keeps nothing: the indexes are in a temporary directory that Close
	// deletes, and Apply does not wait for the disk. (Scorch without a directory would
	// never merge its segments.) After a crash the operating system has to delete the
	// directory.
	InMemory bool
	// Now is the clock that decides the age of tombstones; nil is time.Now.
	Now func() time.Time
	// Noted is, by name of the schema, the Instance of the index that was filled last,
	// whether by this driver or another; "" for none.
	Noted map[string]string
}

// Index is a search.Index over the indexes of one directory.
// It may be used by many goroutines. Close ends all calls.
type Index struct {
	dir     string
	corpora map[string]*corpus
	queue   *index.AnalysisQueue
	scratch string // the directory to delete on Close, or ""
	once    sync.Once
	closed  error
}

var _ search.Index = (*Index)(nil)

// analysts is how many documents are cut into words at the same time.
const analysts = 2

// Open opens the indexes of these schemas in dir, and makes those that do not exist.
// Another definition has another index. Fresh lists the indexes that have to be filled.
// Indexes in dir that belong to no schema are left alone.
//
// Only one process at a time may have dir open; the caller makes sure of that. An empty
// dir means Options.InMemory.
func Open(dir string, schemas []search.Schema, opts Options) (*Index, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	ix := &Index{corpora: map[string]*corpus{}}
	if dir == "" || opts.InMemory {
		scratch, err := os.MkdirTemp("", "weir-search-")
		if err != nil {
			return nil, fmt.Errorf("a place for the search indexes: %w", err)
		}
		dir, ix.scratch, opts.InMemory = scratch, scratch, true
	}
	ix.dir = dir
	ix.queue = index.NewAnalysisQueue(analysts)
	for _, s := range schemas {
		if ix.corpora[s.Name] != nil {
			continue
		}
		c, err := openCorpus(filepath.Join(dir, placeOf(s)), s, opts, ix.queue)
		if err != nil {
			return nil, errors.Join(err, ix.Close())
		}
		ix.corpora[s.Name] = c
	}
	return ix, nil
}

// noted is the beginning of every Instance.
const noted = "embedded "

// placeOf is the name of the directory of a schema's index.
func placeOf(s search.Schema) string { return dirName(s.Name) + "-" + fingerprint(s)[:12] }

// Look implements search.Index. No other program has the directory.
func (ix *Index) Look(context.Context) error { return nil }

// Place implements search.Index: it is the name of a directory.
func (ix *Index) Place(name string) string {
	if c := ix.corpora[name]; c != nil {
		return placeOf(c.schema)
	}
	return ""
}

// Drop implements search.Index.
func (ix *Index) Drop(_ context.Context, place string) error {
	for _, c := range ix.corpora {
		if placeOf(c.schema) == place {
			return fmt.Errorf("search index %s is in use: it is not dropped", place)
		}
	}
	if place == "" || dirName(place) != place {
		return fmt.Errorf("%q is no place of an embedded search index", place)
	}
	return discardIndex(filepath.Join(ix.dir, place))
}

// Fresh lists the indexes that were made, now or earlier, and not reported Filled
// since. They lack the documents of rows that are older than the index.
func (ix *Index) Fresh() (names []string) {
	for name, c := range ix.corpora {
		if !c.filled.Load() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Filled says that all rows that existed when the index was made are in it, or that
// there were none. After a crash before Filled, the index is still fresh.
func (ix *Index) Filled(name string) error {
	c, err := ix.corpus(name)
	if err != nil {
		return err
	}
	return c.askWriter(context.Background(), &request{filled: true})
}

// Instance implements search.Index.
func (ix *Index) Instance(name string) string {
	if c := ix.corpora[name]; c != nil {
		return c.made.Instance
	}
	return ""
}

// Refresh implements search.Index. It does nothing, because acknowledged changes can be
// found at once.
func (ix *Index) Refresh(context.Context) error { return nil }

// corpus is the index of a name. Names are those of Options; another one is a mistake of the
// caller, and an error.
func (ix *Index) corpus(name string) (*corpus, error) {
	if c := ix.corpora[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("there is no search index %q", name)
}

// Apply implements search.Index. Changes of concurrent calls share a commit. Apply may
// read the texts and values of documents for a while after ctx has ended.
func (ix *Index) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	groups, errs := search.Group(docs, ix.corpus)
	var wg sync.WaitGroup
	for c, which := range groups {
		wg.Go(func() {
			for len(which) > 0 {
				r, n := requestOf(docs, which)
				err := c.askWriter(ctx, r)
				for _, i := range which[:n] {
					errs[i] = err
				}
				which = which[n:]
			}
		})
	}
	wg.Wait()
	return errs, ctx.Err()
}

// A commit is closed when it has this many documents, or bytes of text and values. So
// memory is limited whatever the callers give. Each commit is a segment, and segments
// have to be merged: few large commits cost less.
const (
	maxCommit       = 4096
	maxCommitWeight = 4 << 20
)

// requestOf is a request for the first n of some documents. It holds copies. The writer
// may still read them when the caller has given up and uses docs again.
func requestOf(docs []search.Document, which []int) (r *request, n int) {
	copies := make([]search.Document, 0, min(len(which), maxCommit))
	r = &request{docs: make([]*search.Document, 0, cap(copies))}
	for len(copies) < cap(copies) && r.weight < maxCommitWeight {
		d := docs[which[len(copies)]]
		r.weight += d.Size()
		copies = append(copies, d)
		r.docs = append(r.docs, &copies[len(copies)-1])
	}
	return r, len(copies)
}

// Search implements search.Index.
func (ix *Index) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	c, err := ix.corpus(q.Index)
	if err != nil {
		return nil, err
	}
	return c.searchSnapshot(ctx, q)
}

// Close ends the indexes. Acknowledged changes are kept. Changes of calls that have not
// returned may be kept or lost.
func (ix *Index) Close() error {
	ix.once.Do(func() {
		var errs []error
		for _, c := range ix.corpora {
			errs = append(errs, c.close())
		}
		ix.queue.Close()
		if ix.scratch != "" {
			errs = append(errs, os.RemoveAll(ix.scratch))
		}
		ix.closed = errors.Join(errs...)
	})
	return ix.closed
}
