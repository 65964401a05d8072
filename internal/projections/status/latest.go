package status

import (
	"fmt"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// The latest of rows (max, min, latest, earliest) is the first fact of a list whose names have
// the order of the rows (owntable.OrderedFact). A row that is deleted, edited or moved withdraws its
// fact, and then the next fact is the first.

// MaxShown is how many bytes the attributes may have that a target takes from one row. It leaves
// room in the target for the application's attributes.
const MaxShown = 32 << 10

// takesPart returns the fact that a row takes part in a latest, with the values that the target
// shows if the row comes first. A row without a value to order it by takes no part.
func takesPart(c *projections.Change, l *model.Latest, row value.Item, faults *projections.Faults, old bool) (Fact, bool) {
	of := faults
	if l.Group != nil {
		of = nil // the group reports mistakes of its own tests and keys
	}
	if !of.IsUsable(&l.Input, row, old) || !faults.IsUsable(&l.Given, row, old) {
		return Fact{}, false
	}
	by := l.By.Get(row)
	if by.IsMissing() || by.Kind() == value.Null {
		return Fact{}, false
	}
	key, _, ok := l.TargetOf(row)
	if !ok || !of.IsReachableKey(l.Name, l.Target.Table, key, old) {
		return Fact{}, false
	}
	target := store.Ref{Table: l.Target.Table.Name, Key: key}
	name, unfit := owntable.OrderedFact(by, c.Row.Key, l.Greatest())
	if unfit != "" {
		faults.NoteFault(l.Name, fmt.Sprintf("%s is no value by which rows have an order: it must be %s", l.By.Name, unfit), old)
		return Fact{}, false
	}
	f := Fact{List: owntable.FactsOf(l.Name, target), Name: name, Entity: l.Target, Target: target, Latest: l, Says: value.Item{}}
	for i := range l.Set {
		if v := l.Set[i].Expr.Field.Get(row); !v.IsMissing() {
			f.Says = f.Says.With(value.Attr{Name: l.Set[i].Name, Value: v})
		}
	}
	if n := f.Says.Size(); n > MaxShown {
		faults.NoteFault(l.Name, fmt.Sprintf("what the row would show there has %d bytes, the limit is %d", n, MaxShown), old)
		return Fact{}, false
	}
	return f, true
}

// latestOf returns the values that a row shows of the latest of rows, all attributes of one row each. An attribute
// that this row lacks, and all if there is no row, are Missing.
func latestOf(e *model.Entity, target store.Ref, known Facts) (out []value.Attr, err error) {
	for _, l := range e.Latest {
		first, err := known.First(owntable.FactsOf(l.Name, target), l)
		if err != nil {
			return nil, err
		}
		for _, name := range l.Attributes() {
			out = append(out, value.Attr{Name: name, Value: first.Get(name)})
		}
	}
	return out, nil
}

// putFor returns, for each latest of a target, which facts of some put something.
func putFor(facts []Fact, target store.Ref) (out []owntable.PutFacts) {
	for i := range facts {
		f := &facts[i]
		if f.Latest == nil || f.Says == nil || !projections.SameRow(f.Target, target) {
			continue
		}
		attr := f.Latest.Set[0].Name
		n := slices.IndexFunc(out, func(p owntable.PutFacts) bool { return p.Attr == attr })
		if n < 0 {
			n, out = len(out), append(out, owntable.PutFacts{Attr: attr})
		}
		out[n].Names = append(out[n].Names, f.Name)
	}
	return out
}
