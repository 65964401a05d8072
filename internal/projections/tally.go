package projections

import (
	"fmt"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

var one, minusOne = value.OfInt(1), value.OfInt(-1)

// foldTallies: a row contributes 1 to a count, its number to a sum, both to a
// mean, and 1 to the count of its value for a distinct or a set. A count of a field
// goes by the same rule as a mean of it: a row without a number there is not counted.
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
	add := Add{Target: store.Ref{Table: t.Target.Table.Name, Key: key}, Entity: t.Target, Amount: one}
	if take {
		add.Amount = minusOne
	}
	switch t.Kind {
	case model.Count:
		if src.Field != nil && amount.Kind() != value.Number {
			e.unfit(t.Name, src.Field, amount, "a number", take)
			return
		}
		add.Field = book.Sum(t.Attr)
	case model.Distinct:
		text, ok := e.member(t, src, amount, take)
		if !ok {
			return
		}
		add.Field = book.Value(t.Attr, text)
	case model.Set:
		text, ok := e.member(t, src, amount, take)
		if !ok || !t.Target.Takes(key) {
			return
		}
		add.Field = book.Value(t.Attr, text)
	case model.Mean, model.Sum:
		if amount.Kind() != value.Number {
			e.unfit(t.Name, src.Field, amount, "a number", take)
			return
		}
		if t.Kind == model.Mean {
			add.Field = book.Rows(t.Attr)
			e.Adds = append(e.Adds, add)
		}
		if take {
			amount = value.Negate(amount)
		}
		for _, part := range book.Split(t.Attr, amount) {
			add.Field, add.Amount = part.Name, part.Value
			e.Adds = append(e.Adds, add)
		}
		return
	}
	e.Adds = append(e.Adds, add)
}

// member is a value as a set or a distinct counts it.
func (e *Effects) member(t *model.Tally, src *model.Source, v value.Value, old bool) (text string, ok bool) {
	switch text = model.Scalar(v); {
	case text == "":
		e.unfit(t.Name, src.Field, v, "a string or a number", old)
		return "", false
	case len(text) > MaxMember:
		e.unfit(t.Name, src.Field, v, fmt.Sprintf("a member of at most %d bytes", MaxMember), old)
		return "", false
	}
	return text, true
}

// unfit notes that a field's value is not what a derivation needs.
func (e *Effects) unfit(derivation string, f *model.Field, v value.Value, want string, old bool) {
	e.fault(derivation, fmt.Sprintf("%s is %s, not %s", f.Name, describe(v), want), old)
}

func describe(v value.Value) string {
	if s := model.Scalar(v); s != "" {
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
		if t.Hidden || t.Kind == model.Set {
			continue
		}
		v, err := publish(t, b)
		if err != nil {
			cannot = append(cannot, Unshown{t, err})
		}
		out = append(out, value.Attr{Name: t.Attr, Value: v})
	}
	return out, cannot
}

func publish(t *model.Tally, b value.Item) (value.Value, error) {
	switch t.Kind {
	case model.Distinct:
		return value.OfInt(int64(len(DistinctValues(t, b)))), nil
	case model.Mean, model.Sum:
		return total(t, b)
	}
	if v := b.Get(book.Sum(t.Attr)); !v.IsMissing() {
		return v, nil
	}
	return value.OfInt(0), nil
}

// total is what a ledger's sum comes to, or the mean of it, Missing for that of nothing.
func total(t *model.Tally, b value.Item) (value.Value, error) {
	sum, err := book.Total(t.Attr, b)
	switch rows := b.Get(book.Rows(t.Attr)); {
	case err != nil:
		return value.Value{}, err
	case t.Kind == model.Sum:
		return sum.Number()
	case rows.Kind() != value.Number || rows.Sign() == 0:
		return value.Value{}, nil
	default:
		return sum.Mean(rows, t.Round)
	}
}

// DistinctValues are the values that at least one row holds, in order.
func DistinctValues(t *model.Tally, b value.Item) []string {
	var out []string
	names := book.Values(t.Attr)
	for _, a := range b {
		if len(a.Name) > len(names) && a.Name[:len(names)] == names && a.Value.Sign() > 0 {
			out = append(out, a.Name[len(names):])
		}
	}
	return out
}
