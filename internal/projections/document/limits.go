package document

import (
	"weir/internal/projections"
	"weir/internal/search"
)

// Limits notes the ids of a row's documents that are too long.
func (Kind) Limits(x *projections.Limits, c *projections.Change, from projections.Origin) {
	for _, s := range c.Is.Search {
		if d, ok := DocumentOf(x.Model, s, c.Is, c.Row.Key, c.New); ok && len(d.ID) > search.MaxID {
			x.AddExcess(projections.Origins(c.Is.KeyNames(), from), "makes the id of a document in search %s %d bytes long, %d are possible", s.Name, len(d.ID), search.MaxID)
		}
	}
}
