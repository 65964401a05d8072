// Package opensearch keeps search documents in OpenSearch, one index for each schema.
//
// # The content of an index
//
// A live document has the fields
//
//	p    its position, 34 hexadecimal digits, which sort like positions
//	i    its id again, by which equal hits are ordered
//	t    its words, cut by search.Words, with a space between each two
//	f0…  the terms of the filters, in the order of their names
//	o0…  the keys of the sorts, in the order of their names
//
// and a deleted document leaves a tombstone under its id, for 48 hours or more:
//
//	p    its position
//	x    the hour in which it was written, since 1970
//
// A change is a scripted upsert that compares positions inside the shard. So a change
// that is late or repeated has no effect, whichever process sends it and whenever it
// arrives. OpenSearch's own external versions cannot do this: they have 64 bits where a
// position has 133, and are forgotten a minute after a delete.
//
// # Names
//
// The index of a schema is reached through the alias weir-NAME-FINGERPRINT, or
// weir-PREFIXNAME-FINGERPRINT. The fingerprint stands for the schema and for the store
// whose documents the index holds. Behind the alias is the index of its name with .docs. Another definition has
// another name, so processes of both versions may run while one replaces the other.
// Writes use only the alias. So a write to an index that an operator deleted fails;
// otherwise the cluster would make the index again, without its mapping.
package opensearch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"weir/internal/search"
	"weir/internal/seq"
)

// Options of an index. The zero Options are good for one store on one cluster.
type Options struct {
	// Source names the store whose positions the documents carry. Positions of two
	// stores cannot be compared, so each store has indexes of its own.
	Source string
	// Prefix begins the names of the indexes, after "weir-", so that people know the
	// stage of an index. Only Source makes names of different stores different.
	Prefix string
	// Current is, by name of the schema, the Instance that the index had when it was
	// filled last. An index with another instance has missed changes and is made again.
	Current map[string]string
	// Existing makes no index: one that is not there, or was not filled, is search.ErrGone.
	Existing bool
	// Patience is how long a call retries while nothing succeeds; 0 is 30 seconds. A
	// context that ends sooner ends the call.
	Patience time.Duration
	// Refresh is the interval after which changes can be found, "" for the cluster's
	// own setting.
	Refresh string
	// Now is the clock that decides the age of tombstones; nil is time.Now.
	Now func() time.Time
}

// Index is a search.Index over indexes of one cluster.
type Index struct {
	server *server
	now    func() time.Time
	spaces map[string]*space

	mu     sync.Mutex
	closed bool
	wrote  map[string]bool // names of spaces written to since the last refresh
}

var _ search.Index = (*Index)(nil)

// space is the index of one schema.
type space struct {
	schema   search.Schema
	filters  []string // sorted; f0 is the first one
	sorts    []string
	alias    string
	instance string
	fresh    bool // guarded by Index.mu

	mu        sync.Mutex
	nextPrune time.Time
}

// Open connects to a cluster and makes the indexes that do not exist. Fresh lists the
// indexes that have to be filled. See ParseTarget for the forms of the URL. If nothing
// answers, Open returns ErrUnreachable within seconds. A cluster that answers but is
// not ready gets the time of Options.Patience.
func Open(ctx context.Context, url string, schemas []search.Schema, o Options) (*Index, error) {
	t, err := ParseTarget(url)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	ix := &Index{now: o.Now, spaces: map[string]*space{}, wrote: map[string]bool{}}
	if ix.server, err = newClient(ctx, t, o.Patience); err != nil {
		return nil, err
	}
	if err := ix.server.awaitAnswer(ctx); err != nil {
		return nil, fmt.Errorf("OpenSearch at %s %w", t.Shown(), err)
	}
	for _, s := range schemas {
		if ix.spaces[s.Name] != nil {
			continue
		}
		sp := newSpace(s, o.Source, o.Prefix)
		// Processes that start at the same time must not all prune at the same time.
		sp.nextPrune = o.Now().Add(rand.N(pruneEvery))
		err := error(nil)
		if sp.instance = o.Current[s.Name]; o.Existing {
			err = ix.server.present(ctx, sp)
		} else {
			err = ix.server.openIndex(ctx, sp, sp.instance, o.Refresh)
		}
		if err != nil {
			return nil, fmt.Errorf("search index %s at %s: %w", s.Name, t.Shown(), err)
		}
		ix.spaces[s.Name] = sp
	}
	return ix, nil
}

// Fresh lists, in order, the indexes whose instance is not the current one. They lack
// the documents of rows that are older than the index.
func (ix *Index) Fresh() []string {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	var names []string
	for name, sp := range ix.spaces {
		if sp.fresh {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Filled says that an index is complete. The next process knows it only if the caller
// has saved the index's Instance and gives it in Options.Current.
func (ix *Index) Filled(name string) error {
	sp, err := ix.space(name)
	if err == nil {
		ix.mu.Lock()
		sp.fresh = false
		ix.mu.Unlock()
	}
	return err
}

// Instance identifies the present content of an index. It changes whenever the index is made
// again. The process that fills the index saves it.
func (ix *Index) Instance(name string) string {
	if sp := ix.spaces[name]; sp != nil {
		return sp.instance
	}
	return ""
}

// Look implements search.Index.
func (ix *Index) Look(ctx context.Context) error {
	for _, sp := range ix.spaces {
		if err := ix.server.present(ctx, sp); err != nil {
			return err
		}
	}
	return nil
}

// Place implements search.Index: it is the alias of an index.
func (ix *Index) Place(name string) string {
	if sp := ix.spaces[name]; sp != nil {
		return sp.alias
	}
	return ""
}

// Drop implements search.Index. Only names that weir gives are deleted.
func (ix *Index) Drop(ctx context.Context, place string) error {
	for _, sp := range ix.spaces {
		if sp.alias == place {
			return fmt.Errorf("search index %s is in use: it is not dropped", place)
		}
	}
	if !isAlias(place) {
		return fmt.Errorf("%q is no place of a search index", place)
	}
	return ix.server.dropIndex(ctx, &space{alias: place})
}

// errClosed is the error of every call after Close.
var errClosed = errors.New("the search index is closed")

// space is the index of a schema; the error says that it is closed or unknown.
func (ix *Index) space(name string) (*space, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed {
		return nil, errClosed
	}
	if sp := ix.spaces[name]; sp != nil {
		return sp, nil
	}
	return nil, fmt.Errorf("there is no search index %q", name)
}

// Apply implements search.Index. Acknowledged changes are on the disks of the cluster,
// and can be found within the index's refresh interval.
func (ix *Index) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	groups, errs := search.Group(docs, ix.space)
	var wg sync.WaitGroup
	for sp, which := range groups {
		wg.Go(func() {
			ix.server.applyChanges(ctx, sp, newest(docs, which), errs, ix.now())
			ix.mu.Lock()
			ix.wrote[sp.schema.Name] = true
			ix.mu.Unlock()
			// Tombstones that are not pruned now only cost space; pruning is tried
			// again.
			_ = ix.server.pruneTombstones(ctx, sp, ix.now())
		})
	}
	wg.Wait()
	return errs, ctx.Err()
}

// newest groups changes by document. For each document it returns the newest change,
// with the indexes in docs that the change answers for. Of two changes at one position,
// the later counts.
func newest(docs []search.Document, which []int) []*change {
	at := make(map[string]*change, len(which))
	var out []*change
	for _, i := range which {
		c := at[docs[i].ID]
		if c == nil {
			c = &change{doc: &docs[i]}
			at[docs[i].ID] = c
			out = append(out, c)
		} else if c.doc.Position.Compare(docs[i].Position) <= 0 {
			c.doc = &docs[i]
		}
		c.places = append(c.places, i)
	}
	return out
}

// Search implements search.Index.
func (ix *Index) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	sp, err := ix.space(q.Index)
	if err != nil {
		return nil, err
	}
	plan, err := sp.schema.Plan(q)
	if err != nil || plan.Nothing {
		return nil, err
	}
	hits, err := ix.server.searchPages(ctx, sp, &plan)
	if err != nil {
		return nil, fmt.Errorf("search index %s: %w", q.Index, err)
	}
	return hits, nil
}

// Refresh makes the cluster show every change that was acknowledged before, by this
// process or another.
func (ix *Index) Refresh(ctx context.Context) error {
	ix.mu.Lock()
	ix.wrote = map[string]bool{}
	ix.mu.Unlock()
	return ix.refreshAll(ctx, slices.Sorted(maps.Keys(ix.spaces)))
}

// refreshAll makes everything that was written visible to searches. All indexes are tried, also after
// an error.
func (ix *Index) refreshAll(ctx context.Context, names []string) error {
	return errors.Join(seq.Map(names, func(name string) error { return ix.server.refreshIndex(ctx, ix.spaces[name]) })...)
}

// Close makes the cluster show all writes, and ends the index.
func (ix *Index) Close() error {
	ix.mu.Lock()
	closed, wrote := ix.closed, slices.Sorted(maps.Keys(ix.wrote))
	ix.closed = true
	ix.mu.Unlock()
	if closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	defer ix.server.close()
	return ix.refreshAll(ctx, wrote)
}

const closeWait = 20 * time.Second

// tries is how a call is retried: with jitter, until nothing has succeeded for the time
// of patience, or the context ends.
func tries(ctx context.Context, patience time.Duration) backoff.BackOffContext {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(patience),
	)
	return backoff.WithContext(b, ctx)
}
