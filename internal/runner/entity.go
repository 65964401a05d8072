package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// An application may make another thing's row of a target at any time, with attributes of the same
// names. A value that is shown on a row must then not be written there, although it was decided before.

// IsOf returns the condition that a row exists and passes an entity's where, as far as a store can
// ask for that. AsItWas has the rest.
func (r *Runner) IsOf(e *model.Entity) store.Cond {
	cond := store.Cond{r.ExistsCondition(e.Table.Name)}
	for i := range e.Where {
		cond = append(cond, conditionOf(&e.Where[i])...)
	}
	return cond
}

// AsItWas returns the condition that everything of which a store cannot be asked whether it passes an
// entity's where is as it was in a row that was read.
func AsItWas(e *model.Entity, row value.Item) (cond store.Cond) {
	return seq.Map(unaskedAttributes(e), func(name string) []store.Test { return []store.Test{store.AsRead(name, row.Get(name))} })
}

// unaskedAttributes returns the attributes of tests that a store cannot ask.
func unaskedAttributes(e *model.Entity) (names []string) {
	for i := range e.Where {
		if !isAsked(&e.Where[i]) {
			f := e.Where[i].Field
			name := f.Attr
			if f.Key != nil {
				name = f.Name // the key does not change
			}
			if key := e.Table.Key; !slices.Contains(names, name) && name != key.Partition.Name && name != key.Sort.Name {
				names = append(names, name)
			}
		}
	}
	return names
}

// conditionOf returns the condition that a row passes a test, as far as a store is asked that.
func conditionOf(t *model.Test) (cond store.Cond) {
	if t.Field.Key != nil || t.Field.Number {
		return nil
	}
	for i := range t.Is {
		if asksTerm(&t.Is[i]) {
			cond = append(cond, askTerm(t.Field.Attr, &t.Is[i])...)
		}
	}
	return cond
}

// isAsked reports whether ask is all of a test.
func isAsked(t *model.Test) bool {
	if t.Field.Key != nil || t.Field.Number {
		return t.Field.Key != nil && !t.Field.Number && isDecidedByKey(t)
	}
	return !slices.ContainsFunc(t.Is, func(is value.Term) bool { return !asksTerm(&is) })
}

// isDecidedByKey reports whether a row's key alone decides a test of a name in the key. A bound may tell an escaped
// text from the attribute that has it as it is, and any term the case that a key in lower case does not have.
func isDecidedByKey(t *model.Test) bool {
	return !t.Field.Key.IsLower() && !slices.ContainsFunc(t.Is, func(term value.Term) bool {
		return term.Op >= value.AtLeast || slices.ContainsFunc(term.Values, func(v value.Value) bool { return t.Field.Key.Escape(v.Text()) != v.Text() })
	})
}

// mostAsked is how many values a condition lists. An expression has room for 300 operators, and each that
// a value must not be takes three.
const mostAsked = 20

// asksTerm reports whether a store is asked a term: it has no instants, orders only values below a value, and
// takes few values.
func asksTerm(term *value.Term) bool {
	switch term.Op {
	case value.Exists, value.Absent:
		return true
	case value.In, value.NotIn:
		return term.As == value.AsIs && len(term.Values) <= mostAsked
	}
	return term.As == value.AsIs && (term.Op == value.AtMost || term.Op == value.Below)
}

// askTerm returns the condition that an attribute passes a term, which asksTerm has passed.
func askTerm(attr string, term *value.Term) (cond store.Cond) {
	is := func(op store.Comparison, v value.Value) store.Test { return store.Test{Attr: attr, Is: op, Value: v} }
	switch term.Op {
	case value.Exists:
		return store.Cond{{is(store.Exists, value.Value{})}, {is(store.Ne, value.OfNull())}}
	case value.Absent:
		return store.Cond{{is(store.Absent, value.Value{}), is(store.Eq, value.OfNull())}}
	case value.AtMost:
		return store.Cond{{is(store.Le, term.Values[0])}}
	case value.Below:
		return store.Cond{{is(store.Lt, term.Values[0])}}
	}
	var clause []store.Test
	for _, v := range term.Values {
		equal := []value.Value{v}
		if s := value.Scalar(v); s == "true" || s == "false" { // a flag is a text or a boolean
			equal = []value.Value{value.OfString(s), value.OfBool(s == "true")}
		}
		for _, v := range equal {
			if clause = append(clause, is(store.Eq, v)); term.Op == value.NotIn {
				cond = append(cond, []store.Test{is(store.Ne, v)})
			}
		}
	}
	if term.Op == value.In {
		cond = store.Cond{clause}
	}
	return cond
}

// showOn does writes that show something on rows of entities, one for each write. Where a store cannot
// ask for all of an entity's where, it reads the row first. A row that is of its entity no more fails the
// condition.
func (r *Runner) showOn(ctx context.Context, ws []store.Write, of []*model.Entity) ([]store.Outcome, error) {
	if !slices.ContainsFunc(of, mustRead) {
		return r.Write(ctx, ws)
	}
	out := make([]store.Outcome, len(ws))
	var rest []store.Write
	var at []int
	for i := range ws {
		if !mustRead(of[i]) {
			rest, at = append(rest, ws[i]), append(at, i)
			continue
		}
		var err error
		if out[i], err = r.showRow(ctx, ws[i], of[i]); err != nil {
			return nil, err
		}
	}
	done, err := r.Write(ctx, rest)
	for j, i := range at[:len(done)] {
		out[i] = done[j]
	}
	return out, err
}

// mustRead reports whether a row of an entity must be read before something is shown on it.
func mustRead(e *model.Entity) bool { return !isGroup(e) && len(unaskedAttributes(e)) > 0 }

// showRow is showOn of one row that must be read.
func (r *Runner) showRow(ctx context.Context, wr store.Write, e *model.Entity) (store.Outcome, error) {
	asked := wr.If
	wr.Return = true
	for range store.MaxRounds {
		row, err := r.GetRow(ctx, wr.Ref)
		if err != nil || r.Model.Table(wr.Table).Classify(row) != e {
			return store.Outcome{Err: wr.Failed(store.ErrCondition), Row: row}, err
		}
		was := AsItWas(e, row)
		wr.If = append(slices.Clip(asked), was...)
		out, err := r.Write(ctx, []store.Write{wr})
		if err != nil || !errors.Is(out[0].Err, store.ErrCondition) || was.Holds(out[0].Row) {
			return out[0], err
		}
	}
	return store.Outcome{}, fmt.Errorf("%v changes all the time", wr.Ref)
}
