package tally

import (
	"slices"

	"weir/internal/contribution"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// ContributionsOf returns the amounts that a row of entity is adds to the tallies, which are of one
// entity and no sets. is is nil for no row. unfit says which tallies cannot use the row.
func ContributionsOf(of []*model.Tally, is *model.Entity, row value.Item) (out []projections.Contribution, unfit []projections.Fault) {
	if is == nil || row == nil {
		return nil, nil
	}
	var faults projections.Faults
	e := folding{Faults: &faults}
	for _, src := range is.Sources {
		if slices.Contains(of, src.Tally) {
			if e.adds == nil { // a mean adds two amounts, and few add more
				e.adds = make([]projections.Add, 0, 2*len(is.Sources))
			}
			e.addContribution(src, row, false)
		}
	}
	for _, a := range e.adds {
		i := slices.IndexFunc(out, func(c projections.Contribution) bool { return projections.SameRow(c.Target, a.Target) })
		if i < 0 {
			i = len(out)
			out = append(out, projections.Contribution{Target: a.Target, Amounts: make([]value.Attr, 0, len(e.adds))})
		}
		out[i].Amounts = append(out[i].Amounts, value.Attr{Name: a.Field, Value: a.Amount})
	}
	kept := out[:0]
	for _, c := range out {
		if c.Amounts = contribution.Sum(c.Amounts); len(c.Amounts) > 0 {
			kept = append(kept, c)
		}
	}
	return kept, faults.NewFaults()
}

// OffersOf returns the offers of changes, which must be in stream order, to tallies of one entity.
// counts leaves out changes by their positions.
func OffersOf(of []*model.Tally, changes []projections.Change, counts func(*projections.Change) bool) []projections.Offered {
	var out []projections.Offered
	at := map[string]int{}
	for i := range changes {
		c := &changes[i]
		if !counts(c) {
			continue
		}
		was, _ := ContributionsOf(of, c.Was, c.Old)
		is, _ := ContributionsOf(of, c.Is, c.New)
		for _, t := range changedContributions(was, is) {
			name := owntable.RowText(t.Target)
			n, met := at[name]
			if !met {
				n = len(out)
				at[name] = n
				out = append(out, projections.Offered{Target: t.Target})
			}
			out[n].Offers = append(out[n].Offers, contribution.Offer{
				Source: owntable.RowText(c.Row), Position: c.Position, Change: i, Amounts: t.Amounts,
			})
		}
	}
	for i := range out {
		out[i].Offers = contribution.Last(out[i].Offers)
	}
	return out
}

// changedContributions returns the present contributions to the targets at which they have changed.
// A target to which nothing is contributed any more has an entry without amounts.
func changedContributions(was, is []projections.Contribution) (out []projections.Contribution) {
	of := func(cs []projections.Contribution, target store.Ref) []value.Attr {
		return seq.Find(cs, func(c projections.Contribution) bool { return projections.SameRow(c.Target, target) }).Amounts
	}
	out = append(out, seq.Where(is, func(c projections.Contribution) bool { return !contribution.Same(c.Amounts, of(was, c.Target)) })...)
	for _, c := range was {
		if of(is, c.Target) == nil {
			out = append(out, projections.Contribution{Target: c.Target})
		}
	}
	return out
}
