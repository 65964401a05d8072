// Package opensearch keeps search documents in OpenSearch, one index for each
// schema.
//
// # What is in an index
//
// A live document has the fields
//
//	p    its position, 34 hexadecimal digits, which compare as positions do
//	i    its id again, by which equal hits are ordered
//	t    its words, cut by search.Words, with a space between each two
//	f0…  the terms of the filters, in the order of their names
//	o0…  the keys of the sorts, in the order of their names
//
// and a deleted one leaves a tombstone under its id, for 48 hours or more:
//
//	p    its position
//	x    the hour it was written in, since 1970
//
// A change is a scripted upsert that compares positions inside the shard, so what
// comes late or twice changes nothing, whoever sends it and whenever it arrives.
// OpenSearch's own external versions cannot do this: they have 64 bits where a
// position has 133, and are forgotten a minute after a delete.
//
// # Names
//
// The index of a schema is reached by the alias weir-NAME-FINGERPRINT, where the
// fingerprint stands for the schema and for whose documents they are; behind it is
// the index weir-NAME-FINGERPRINT.docs. Another definition has another name, so that
// processes of both may run while one takes over from the other. Writes go through
// the alias only, so that an index that somebody deleted is missed rather than made
// again by the cluster, without its mapping.
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
)

// Options of an index. The zero Options are good for one store on one cluster.
type Options struct {
	// Source names the store whose positions the documents carry. Positions of two
	// stores do not compare, so each has indexes of its own.
	Source string
	// Current is, by name of the schema, the instance that has all documents: what
	// Instance gave when that index was filled last. Any other instance has missed
	// changes and is made anew.
	Current map[string]string
	// Patience is how long a call keeps trying while nothing of it succeeds; zero
	// is 30 seconds. A context that ends sooner ends it sooner.
	Patience time.Duration
	// Refresh is how often what was written is shown, "" as the cluster has it.
	Refresh string
	// Now tells the time by which tombstones age; nil is time.Now.
	Now func() time.Time
}

// Index is a search.Index over indexes of one cluster.
type Index struct {
	server *server
	now    func() time.Time
	spaces map[string]*space

	mu     sync.Mutex
	closed bool
	wrote  map[string]bool // names of spaces written to since they were refreshed
}

var _ search.Index = (*Index)(nil)

// space is the index of one schema.
type space struct {
	schema   search.Schema
	filters  []string // sorted; f0 is the first
	sorts    []string
	alias    string
	instance string
	fresh    bool // under Index.mu

	mu        sync.Mutex
	nextPrune time.Time
}

// Open connects to a cluster and makes the indexes that are not there. Fresh tells
// which have to be filled. See ParseTarget for the forms of the URL. Where nothing
// answers it says so within seconds, ErrUnreachable; a cluster that answers has
// the options' patience to become well.
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
	if ix.server, err = connect(ctx, t, o.Patience); err != nil {
		return nil, err
	}
	if err := ix.server.reach(ctx); err != nil {
		return nil, fmt.Errorf("OpenSearch at %s %w", t.Shown(), err)
	}
	for _, s := range schemas {
		if ix.spaces[s.Name] != nil {
			continue
		}
		sp := newSpace(s, o.Source)
		// Many processes that start together must not all prune together.
		sp.nextPrune = o.Now().Add(rand.N(pruneEvery))
		if err := ix.server.open(ctx, sp, o.Current[s.Name], o.Refresh); err != nil {
			return nil, fmt.Errorf("search index %s at %s: %w", s.Name, t.Shown(), err)
		}
		ix.spaces[s.Name] = sp
	}
	return ix, nil
}

// Fresh lists, in order, the indexes whose instance is not the current one: they
// lack documents of rows that are older than they.
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

// Filled says that an index is complete. What makes it so for the next process is that
// its Instance is remembered.
func (ix *Index) Filled(name string) error {
	sp, err := ix.space(name)
	if err == nil {
		ix.mu.Lock()
		sp.fresh = false
		ix.mu.Unlock()
	}
	return err
}

// Instance identifies what an index holds now: it is another one whenever the index
// was made anew. Whoever filled the index remembers it.
func (ix *Index) Instance(name string) string {
	if sp := ix.spaces[name]; sp != nil {
		return sp.instance
	}
	return ""
}

// errClosed answers whoever comes late.
var errClosed = errors.New("the search index is closed")

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

// Apply implements search.Index. What it acknowledged is on the disks of the
// cluster, and found within the index's refresh interval.
func (ix *Index) Apply(ctx context.Context, docs []search.Document) ([]error, error) {
	errs := make([]error, len(docs))
	groups := map[*space][]int{}
	for i := range docs {
		sp, err := ix.space(docs[i].Index)
		if err == nil {
			err = docs[i].Check()
		}
		if errs[i] = err; err == nil {
			groups[sp] = append(groups[sp], i)
		}
	}
	var wg sync.WaitGroup
	for sp, which := range groups {
		wg.Go(func() {
			ix.server.apply(ctx, sp, newest(docs, which), errs, ix.now())
			ix.mu.Lock()
			ix.wrote[sp.schema.Name] = true
			ix.mu.Unlock()
			// What is not pruned now costs room, no more, and is tried again.
			_ = ix.server.prune(ctx, sp, ix.now())
		})
	}
	wg.Wait()
	return errs, ctx.Err()
}

// newest groups changes by document: of each the newest, with the places in docs
// that it answers for. Of two at one position the later counts.
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
	hits, err := ix.server.search(ctx, sp, &plan)
	if err != nil {
		return nil, fmt.Errorf("search index %s: %w", q.Index, err)
	}
	return hits, nil
}

// Refresh has the cluster show what was acknowledged so far, by this process or
// another.
func (ix *Index) Refresh(ctx context.Context) error {
	ix.mu.Lock()
	ix.wrote = map[string]bool{}
	ix.mu.Unlock()
	return ix.refresh(ctx, slices.Sorted(maps.Keys(ix.spaces)))
}

func (ix *Index) refresh(ctx context.Context, names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, ix.server.refresh(ctx, ix.spaces[name]))
	}
	return errors.Join(errs...)
}

// Close has the cluster show what was written, and ends the index.
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
	return ix.refresh(ctx, wrote)
}

const closeWait = 20 * time.Second

// tries is the way a call is tried again: with jitter, until nothing succeeded for
// as long as it has patience, or its context ends.
func tries(ctx context.Context, patience time.Duration) backoff.BackOffContext {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(patience),
	)
	return backoff.WithContext(b, ctx)
}
