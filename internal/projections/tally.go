package projections

import (
	"fmt"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// foldTallies folds tallies: a row contributes to the accumulators of each target what
// the tally's aggregate says (package aggregate), and takes it back when it is deleted.
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

// contribute adds what a row contributes to one tally, or takes it away if take is set. A
// value that the tally cannot use is a fault and contributes nothing.
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

// unfit notes a fault: a field's value is not of the kind that the derivation needs.
func (e *Effects) unfit(derivation string, f *model.Field, v value.Value, want string, old bool) {
	e.fault(derivation, fmt.Sprintf("%s is %s, not %s", f.Name, describe(v), want), old)
}

func describe(v value.Value) string {
	if s := value.Scalar(v); s != "" {
		return fmt.Sprintf("the %s %.40q", v.Kind(), s)
	}
	return "a " + v.Kind().String()
}

// scalarOf returns the value of an expression that is a field or a constant.
func scalarOf(x *model.Expr, row value.Item) value.Value {
	if x.Field != nil {
		return x.Field.Get(row)
	}
	return x.Const
}

// net sums what one change adds to the same accumulator and leaves out sums of 0, so a
// change that makes no difference here costs no write.
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
		if err != nil { // it would take 10^15 rows: let the store refuse the two adds
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

// SameRow reports whether two references name the same row.
func SameRow(a, b store.Ref) bool {
	return a.Table == b.Table && value.Equal(a.Key.Partition, b.Key.Partition) && value.Equal(a.Key.Sort, b.Key.Sort)
}

// Unshown says that a target cannot show a sum or a mean, because DynamoDB cannot hold
// the number.
type Unshown struct {
	Tally *model.Tally
	Why   error
}

func (u *Unshown) String() string { return "cannot be computed: " + u.Why.Error() }

// CannotShow says which values of a ledger a target of the entity cannot show. It returns
// "" if the target can show all. The text names only the tallies, so it stays the same
// when their amounts change.
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

// SaidUnshown returns what a ledger records about values that cannot be shown: the id of
// the dead letter, and its reason.
func SaidUnshown(ledger value.Item) (id, why string) {
	id, why, _ = strings.Cut(ledger.Get(book.Unshown).Text(), " ")
	return id, why
}

// Published returns what a target row shows of its ledger: an attribute for each tally
// that is not hidden. The attribute is Missing for the mean of nothing, and for a number
// that DynamoDB cannot hold; such a number does not affect the other attributes. A nil
// ledger is one in which nothing was ever counted.
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
