package runner

import (
	"slices"

	"weir/internal/model"
	"weir/internal/projections"
)

// Most kinds of projection give the same result in whatever order changes of different
// rows are applied. Only for a model with rules of a kind that does not, such as feeds,
// does the runner cut batches into phases, and the reader apply the shards of a store in the order of
// their positions (package reader).

// Orders says where the order of changes of different rows matters to any of some kinds.
type Orders []Order

// Orders returns the decider where the order of changes matters in the runner's model, at
// the beginning of a run of changes. It is empty if the order matters nowhere.
func (r *Runner) Orders() (out Orders) {
	for _, k := range r.Kinds {
		if o := k.Orders(r.Model); o != nil {
			out = append(out, o)
		}
	}
	return out
}

// BeginsPhase reports whether a change, which is the next in the run, begins a new phase.
func (all Orders) BeginsPhase(c *projections.Change) (begins bool) {
	for _, o := range all {
		begins = o.BeginsPhase(c) || begins
	}
	return begins
}

// ConcernsOrder reports whether the order of a change among the changes of other rows matters,
// given the row's old and new entity.
func (all Orders) ConcernsOrder(was, is *model.Entity) bool {
	return slices.ContainsFunc(all, func(o Order) bool { return o.ConcernsOrder(was, is) })
}

// splitPhases cuts a batch into parts that can be gathered as one.
func (r *Runner) splitPhases(b Batch) (out []Batch) {
	order := r.Orders()
	from := 0
	for i := range b.Changes {
		if order.BeginsPhase(&b.Changes[i]) && i > from {
			part := b
			part.Changes = b.Changes[from:i]
			out, from = append(out, part), i
		}
	}
	b.Changes = b.Changes[from:]
	return append(out, b)
}
