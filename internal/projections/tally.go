package projections

import (
	"fmt"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// foldTallies: a row contributes to the accumulators of each target what the tally's
// aggregate says (package aggregate), and takes it back when it goes.
func foldTallies(c *Change, e *Effects) {
	start := len(e.Adds)
	if c.Is != nil {
		for _, src := range c.Is.Sources {
			contribute(e, src, c.New, false)
		}
	}
	if c.Was != nil {
		for _, src := range c.Was.Sources {
			contribute(e, src, c.Old, true)
		}
	}
	e.Adds = append(e.Adds[:start], net(e.Adds[start:], e)...)
}

func contribute(e *Effects, src *model.Source, row value.Item, take bool) {
	if !model.Holds(src.Where, row) {
		return
	}
	t := src.Tally
	amount := value.Value{}
	if src.Field != nil {
		amount = src.Field.Get(row)
		if amount.Kind() == value.Missing || amount.Kind() == value.Null {
			return
		}
	}
	key, ok := t.Target.KeyFrom(src.To, row)
	if !ok || !e.reachable(t.Name, t.Target.Table, key, take) {
		return
	}
	adds, unfit := t.Kind.Adds(e.adds[:0], t.Attr, amount)
	if e.adds = adds; unfit != "" {
		e.unfit(t.Name, src.Field, amount, unfit, take)
		return
	}
	if t.IsSet() && !t.Target.Takes(key) {
		return
	}
	for _, a := range adds {
		if take {
			a.Value = value.Negate(a.Value)
		}
		e.Adds = append(e.Adds, Add{
			Target: store.Ref{Table: t.Target.Table.Name, Key: key}, Entity: t.Target, Field: a.Name, Amount: a.Value,
		})
	}
}

// unfit notes that a field's value is not what a derivation needs.
func (e *Effects) unfit(derivation string, f *model.Field, v value.Value, want string, old bool) {
	e.fault(derivation, fmt.Sprintf("%s is %s, not %s", f.Name, describe(v), want), old)
}

func describe(v value.Value) string {
	if s := value.Scalar(v); s != "" {
		return fmt.Sprintf("the %s %.40q", v.Kind(), s)
	}
	return "a " + v.Kind().String()
}

func scalarOf(x *model.Expr, row value.Item) value.Value {
	if x.Field != nil {
		return x.Field.Get(row)
	}
	return x.Const
}

// net sums what one change adds to the same accumulator and leaves out what comes
// to nothing, so that an edit that changes nothing here costs nothing.
func net(adds []Add, e *Effects) []Add {
	out := adds[:0]
	for _, a := range adds {
		i := 0
		for ; i < len(out); i++ {
			if out[i].Field == a.Field && out[i].Entity == a.Entity && SameRow(out[i].Target, a.Target) {
				break
			}
		}
		if i == len(out) {
			out = append(out, a)
			continue
		}
		sum, err := value.AddNumbers(out[i].Amount, a.Amount)
		if err != nil { // not in 10^15 rows: let the store refuse the two one by one
			out = append(out, a)
			continue
		}
		out[i].Amount = sum
	}
	kept := out[:0]
	for _, a := range out {
		if a.Amount.Sign() != 0 {
			kept = append(kept, a)
		}
	}
	return kept
}

// SameRow reports whether two references name one row.
func SameRow(a, b store.Ref) bool {
	return a.Table == b.Table && value.Equal(a.Key.Partition, b.Key.Partition) && value.Equal(a.Key.Sort, b.Key.Sort)
}

// Unshown says that a target cannot show a sum or a mean, since no number can hold it.
type Unshown struct {
	Tally *model.Tally
	Why   error
}

func (u *Unshown) String() string { return "cannot be computed: " + u.Why.Error() }

// CannotShow says which values of a ledger a target of the entity cannot show; "" where
// it can show all. Another number of the same kind changes nothing about it.
func CannotShow(e *model.Entity, ledger value.Item) string {
	if e == nil {
		return ""
	}
	_, cannot := Published(e, ledger)
	if len(cannot) == 0 {
		return ""
	}
	var names []string
	for i := range cannot {
		names = append(names, cannot[i].Tally.Name)
	}
	return "cannot be computed: " + strings.Join(names, ", ") + "; verify says why, and all else of the row is right"
}

// SaidUnshown is what a ledger has said of what cannot be shown: the id of the dead
// letter, and its reason.
func SaidUnshown(ledger value.Item) (id, why string) {
	id, why, _ = strings.Cut(ledger.Get(book.Unshown).Text(), " ")
	return id, why
}

// Published is what a target row shows of its ledger: an attribute for each tally
// that is not hidden, Missing for the mean of nothing, and for what no number can
// hold. The rest of the target is as if that one were not there. A nil ledger is one
// in which nothing was ever counted.
func Published(e *model.Entity, b value.Item) (out []value.Attr, cannot []Unshown) {
	for _, t := range e.Values {
		if !t.Shows() {
			continue
		}
		v, err := t.Kind.Shown(t.Attr, t.Round, b)
		if err != nil {
			cannot = append(cannot, Unshown{t, err})
		}
		out = append(out, value.Attr{Name: t.Attr, Value: v})
	}
	return out, cannot
}
