package embedded

import (
	"container/heap"
	"slices"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/search"
)

// collector keeps the first hits of an answer. Reading an id costs a file access, so an
// id is read only if the rest of the place does not decide.
type collector struct {
	plan *search.Plan
	snap *scorch.IndexSnapshot
	keys index.DocValueReader // nil unless the answer is sorted by a field
	best []search.Place       // a heap, the worst on top
	id   index.IndexInternalID
}

// newCollector returns a collector over a snapshot, which the caller keeps open while it collects.
func newCollector(snap *scorch.IndexSnapshot, p *search.Plan) (*collector, error) {
	c := &collector{plan: p, snap: snap}
	if p.Sort == "" {
		return c, nil
	}
	var err error
	c.keys, err = snap.DocValueReader([]string{presort + p.Sort})
	return c, err
}

// addMatch adds a matching document, by its number in the index.
// The id of a document is looked up only if its score and sort key can be among the best.
func (c *collector) addMatch(doc uint64, score float64) error {
	c.id = index.NewIndexInternalID(c.id, doc)
	place, err := c.rank(score)
	if err != nil {
		return err
	}
	full := len(c.best) == c.plan.Limit
	if full && c.plan.Rank(place, c.best[0]) > 0 || c.plan.After != nil && c.plan.Rank(place, *c.plan.After) < 0 {
		return nil
	}
	if place.ID, err = c.snap.ExternalID(c.id); err != nil {
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

// rank is the place of a match, without its id.
func (c *collector) rank(score float64) (search.Place, error) {
	if c.keys == nil {
		return search.PlaceByScore(score, ""), nil
	}
	place := search.PlaceLast("")
	err := c.keys.VisitDocValues(c.id, func(_ string, key []byte) {
		place = search.PlaceByKey(string(key), "")
	})
	return place, err
}

// hits are the collected hits, the best first. Call it once, at the end.
func (c *collector) hits() []search.Hit {
	slices.SortFunc(c.best, c.plan.Compare)
	hits := make([]search.Hit, len(c.best))
	for i, p := range c.best {
		hits[i] = search.Hit{ID: p.ID, After: p.String()}
	}
	return hits
}

// The heap, for container/heap.

// Len, Less, Swap and Push are the heap of the best hits, the worst of them first, so that it gives
// way to a better one.
func (c *collector) Len() int           { return len(c.best) }
func (c *collector) Less(i, j int) bool { return c.plan.Compare(c.best[i], c.best[j]) > 0 }
func (c *collector) Swap(i, j int)      { c.best[i], c.best[j] = c.best[j], c.best[i] }
func (c *collector) Push(p any)         { c.best = append(c.best, p.(search.Place)) }

// Pop takes the worst place from the end, as container/heap asks for.
func (c *collector) Pop() any {
	last := c.best[len(c.best)-1]
	c.best = c.best[:len(c.best)-1]
	return last
}
