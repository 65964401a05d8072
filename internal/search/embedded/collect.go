package embedded

import (
	"container/heap"
	"context"
	"slices"

	"github.com/blevesearch/bleve/v2/index/scorch"
	bsearch "github.com/blevesearch/bleve/v2/search"
	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/search"
)

// collector keeps the first hits of an answer. An id costs a look into the file,
// so it is looked up only when the rest of a place does not decide.
type collector struct {
	plan *search.Plan
	snap *scorch.IndexSnapshot
	keys index.DocValueReader // nil unless sorted by a field
	best []search.Place       // a heap, the worst on top
}

func collect(ctx context.Context, snap *scorch.IndexSnapshot, s bsearch.Searcher, p *search.Plan) ([]search.Hit, error) {
	c := &collector{plan: p, snap: snap}
	if p.Sort != "" {
		var err error
		if c.keys, err = snap.DocValueReader([]string{presort + p.Sort}); err != nil {
			return nil, err
		}
	}
	sc := &bsearch.SearchContext{
		DocumentMatchPool: bsearch.NewDocumentMatchPool(s.DocumentMatchPoolSize()+1, 0),
		IndexReader:       snap,
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		m, err := s.Next(sc)
		if err != nil {
			return nil, err
		}
		if m == nil {
			return c.hits(), nil
		}
		if err := c.take(m); err != nil {
			return nil, err
		}
		sc.DocumentMatchPool.Put(m)
	}
}

func (c *collector) take(m *bsearch.DocumentMatch) error {
	place, err := c.rank(m)
	if err != nil {
		return err
	}
	full := len(c.best) == c.plan.Limit
	if full && c.plan.Rank(place, c.best[0]) > 0 || c.plan.After != nil && c.plan.Rank(place, *c.plan.After) < 0 {
		return nil
	}
	if place.ID, err = c.snap.ExternalID(m.IndexInternalID); err != nil {
		return err
	}
	switch {
	case c.plan.After != nil && c.plan.Compare(place, *c.plan.After) <= 0:
	case !full:
		heap.Push(c, place)
	case c.plan.Compare(place, c.best[0]) < 0:
		c.best[0] = place
		heap.Fix(c, 0)
	}
	return nil
}

// rank is the place of a match, but for its id.
func (c *collector) rank(m *bsearch.DocumentMatch) (search.Place, error) {
	if c.keys == nil {
		// Sums of the same scores in another order differ in their last digits.
		return search.PlaceByScore(float64(float32(m.Score)), ""), nil
	}
	place := search.PlaceLast("")
	err := c.keys.VisitDocValues(m.IndexInternalID, func(_ string, key []byte) {
		place = search.PlaceByKey(string(key), "")
	})
	return place, err
}

func (c *collector) hits() []search.Hit {
	slices.SortFunc(c.best, c.plan.Compare)
	hits := make([]search.Hit, len(c.best))
	for i, p := range c.best {
		hits[i] = search.Hit{ID: p.ID, After: p.String()}
	}
	return hits
}

// The heap.

func (c *collector) Len() int           { return len(c.best) }
func (c *collector) Less(i, j int) bool { return c.plan.Compare(c.best[i], c.best[j]) > 0 }
func (c *collector) Swap(i, j int)      { c.best[i], c.best[j] = c.best[j], c.best[i] }
func (c *collector) Push(p any)         { c.best = append(c.best, p.(search.Place)) }

func (c *collector) Pop() any {
	last := c.best[len(c.best)-1]
	c.best = c.best[:len(c.best)-1]
	return last
}
