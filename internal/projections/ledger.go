package projections

import (
	"slices"
	"strings"

	"weir/internal/aggregate"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// A ledger and its target's values belong to no single kind: the runner counts in
// the ledger and shows it, a status shows it together with itself, a build shows another
// one, and a replay shows that of nothing.

// Unshown says that a target cannot show a tally: a distinct has more values than its max.
type Unshown struct {
	Tally *model.Tally
	Why   error
}

func (u *Unshown) String() string { return "cannot be computed: " + u.Why.Error() }

// CannotShow says which values of a ledger a target cannot show, and why. It returns "" if the
// target can show all of the tallies. The text stays the same when amounts change.
func CannotShow(tallies []*model.Tally, ledger value.Item) string {
	if !slices.ContainsFunc(tallies, mayLack) { // as nearly always
		return ""
	}
	_, cannot := PublishedValues(tallies, ledger)
	if len(cannot) == 0 {
		return ""
	}
	var names []string
	for i := range cannot {
		names = append(names, cannot[i].Tally.Name+": "+cannot[i].Why.Error())
	}
	return "cannot be computed: " + strings.Join(names, "; ") + "; all else of the row is right"
}

// MayLack reports whether a ledger of the entity can hold values that its target cannot show.
func MayLack(e *model.Entity) bool {
	return slices.ContainsFunc(TalliesOf(e), mayLack)
}

func mayLack(t *model.Tally) bool { return t.Shows() && t.Max > 0 }

// TalliesOf returns the tallies of an entity, which may be nil.
func TalliesOf(e *model.Entity) []*model.Tally {
	if e == nil {
		return nil
	}
	return e.Values
}

// TallyOf returns the name of the tally of an entity that an accumulator of a ledger is of,
// "" for none.
func TallyOf(e *model.Entity, accumulator string) string {
	for _, t := range TalliesOf(e) {
		if Accumulates(t.Attr, accumulator) {
			return t.Name
		}
	}
	return ""
}

// Accumulates reports whether an accumulator of a ledger is of the tally that is shown as
// attr.
func Accumulates(attr, accumulator string) bool {
	if owntable.IsHeld(accumulator) {
		is, _ := owntable.HeldIn(accumulator)
		return is == attr
	}
	return accumulator == owntable.SumAccumulator(attr) || accumulator == owntable.RowsAccumulator(attr) ||
		strings.HasPrefix(accumulator, owntable.Values(attr))
}

// SummaryRow returns the row that shows the ledger of a group, as model.Group.Row does. There is none, and ok is false, if
// the ledger counts no source row. tallies are those that are shown.
func SummaryRow(g *model.Group, tallies []*model.Tally, key store.Key, ledger value.Item) (row value.Item, ok bool) {
	if g.RowsIn(ledger).Sign() <= 0 {
		return nil, false
	}
	if row, ok = g.Row(key); !ok {
		return nil, false
	}
	shown, _ := PublishedValues(tallies, ledger)
	return row.With(shown...), true
}

// PublishedValues returns the values that a target row shows of its ledger: an attribute for each of the
// tallies that is not hidden. The attribute is Missing for the mean of nothing, and for values that
// cannot be shown (Unshown); that does not affect the other attributes. A nil
// ledger is one in which nothing was ever counted.
func PublishedValues(tallies []*model.Tally, b value.Item) (out []value.Attr, cannot []Unshown) {
	for _, t := range tallies {
		if !t.Shows() {
			continue
		}
		v, err := t.Kind.Shown(aggregate.Declared{Attr: t.Attr, Round: t.Round, Max: t.Max}, b)
		if err != nil {
			cannot = append(cannot, Unshown{t, err})
		}
		out = append(out, value.Attr{Name: t.Attr, Value: v})
	}
	return out, cannot
}
