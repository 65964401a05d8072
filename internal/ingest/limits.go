package ingest

import (
	"slices"

	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/store"
	"weir/internal/value"
)

// checkDerivable refuses a row from which something can never be derived. Such a change
// would stay a dead letter for ever, and the program that wrote the row would never be
// told.
func (c *checked) checkDerivable(old, row value.Item) *Refusal {
	if !c.leads {
		return nil
	}
	change := projections.PlannedChange(c.Table, c.ref, old, row, 0)
	var r Refusal
	for _, x := range kinds.Excesses(c.model, &change) {
		at := c.largestAttribute(row)
		if len(x.Fields) > 0 {
			at = c.pointerTo(c.longestName(row, x.Fields))
		}
		r.addProblem(at, x.Reason)
	}
	if len(r.Problems) == 0 {
		return nil
	}
	return &r
}

// longestName is the name with the longest text.
func (c *checked) longestName(row value.Item, names []string) string {
	return slices.MaxFunc(names, func(a, b string) int { return len(c.textOf(row, a)) - len(c.textOf(row, b)) })
}

// textOf is the given value of a name as text or, if none is given, the row's.
func (c *checked) textOf(row value.Item, name string) string {
	if v, ok := c.given.find(name); ok {
		return value.Scalar(v)
	}
	return value.Scalar(row.Get(name))
}

// checkSize refuses a row that is too large for a table, counting weir's additions to it. The
// problem points to the largest attribute.
func (c *checked) checkSize(row value.Item) *Refusal {
	if n := row.Size() + c.reserve; n > store.MaxItemBytes {
		return newRefusal(TooLarge, c.largestAttribute(row), "makes a row of %d bytes, %d are possible", n, store.MaxItemBytes)
	}
	return nil
}

// largestAttribute is the pointer to a row's largest attribute in the item.
func (c *checked) largestAttribute(row value.Item) (at string) {
	most := 0
	for i := range row {
		if n := row[i : i+1].Size(); n > most && c.attrs[row[i].Name] != nil {
			at, most = c.pointerTo(row[i].Name), n
		}
	}
	return at
}
