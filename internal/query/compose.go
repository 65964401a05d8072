package query

import (
	"context"
	"fmt"
	"slices"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// partition is a step that reads what the key names reach from a row of another.
func partition(m *model.Model, of *model.Entity, fields []*model.Field, from []model.Assign, prior *step) *step {
	s := &model.Step{Entity: of}
	for i, f := range fields {
		s.With = append(s.With, model.Bind{Field: f, Const: from[i].Expr.Const, Prior: from[i].Expr.Field})
	}
	return newStep(m, s, prior)
}

// through yields all rows that the step reads for the row before. It gives up with
// ErrTooMuch where that would cost more than a page may.
func (r *run) through(ctx context.Context, st *step, sc scope, yield func(value.Item)) error {
	q, ok := st.query(sc)
	if !ok {
		return nil
	}
	for q.Limit = manyRows; ; {
		page, err := r.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		r.reads++
		for _, row := range page.Rows {
			if r.bytes += row.Size(); st.belongs(row, sc, r.now) {
				yield(st.reads(row, r.now))
			}
		}
		if page.Next == nil {
			return nil
		}
		if r.spent() {
			return fmt.Errorf("reading all of %s: %w", st.Entity.Name, ErrTooMuch)
		}
		q.After = page.Next
	}
}

// list is a list attribute of a step's rows, with the step that reads what it
// stands for where a row has none.
type list struct {
	*model.Attribute
	others *step
}

func newList(m *model.Model, a *model.Attribute, of *step) *list {
	l := &list{Attribute: a}
	if o := a.Others; o != nil {
		l.others = partition(m, o.Of, o.Links, o.Key, of)
	}
	return l
}

// elements are those of a row's list, each once.
func (r *run) elements(ctx context.Context, l *list, row value.Item) ([]value.Value, error) {
	var out []value.Value
	seen := map[string]bool{}
	add := func(v value.Value) {
		if text := model.Scalar(v); text != "" && !seen[text] {
			seen[text] = true
			out = append(out, v)
		}
	}
	if v := row.Get(l.Name); projections.IsList(v) {
		for _, el := range v.Elements() {
			add(el.Value)
		}
		return out, nil
	}
	if l.others == nil {
		return nil, nil
	}
	err := r.through(ctx, l.others, scope{prior: row}, func(other value.Item) { add(l.others.read(l.Others.Field, other)) })
	return out, err
}

// spread makes of each row one for every element of the lists that the step is
// fixed to, with that element in the place of the list.
func (w *walk) spread(st *step, from []found) ([]found, error) {
	for _, l := range st.lists {
		var out []found
		for _, f := range from {
			elements, err := w.elements(w.ctx, l, f.row)
			if err != nil {
				return nil, err
			}
			for _, v := range elements {
				out = append(out, found{f.row.With(value.Attr{Name: l.Name, Value: v}), f.at})
			}
		}
		from = out
	}
	return from, nil
}

// returned is an attribute that a query makes of the row it found.
type returned struct {
	*model.Returned
	size     *list
	distinct *step
}

func newReturned(m *model.Model, q *model.Query, of *step) []returned {
	var out []returned
	for i := range q.Return {
		r := returned{Returned: &q.Return[i]}
		if r.Size != nil {
			r.size = newList(m, r.Size, of)
		}
		if d := r.Distinct; d != nil {
			var fields []*model.Field
			for _, a := range d.Key {
				fields = append(fields, d.Entity.Field(a.Name))
			}
			r.distinct = partition(m, d.Entity, fields, d.Key, of)
		}
		out = append(out, r)
	}
	return out
}

// compose is what the query gives of the row that it found.
func (r *run) compose(ctx context.Context, row value.Item) (value.Item, error) {
	last := r.plan.steps[len(r.plan.steps)-1]
	shown := last.outside(row)
	var out []value.Attr
	for _, ret := range r.plan.returned {
		var v value.Value
		var err error
		switch {
		case ret.size != nil:
			var all []value.Value
			all, err = r.elements(ctx, ret.size, row)
			v = value.OfInt(int64(len(all)))
		case ret.distinct != nil:
			v, err = r.count(ctx, ret.distinct, ret.Distinct.Field, row)
		default:
			if v = shown.Get(ret.Field.Name); v.IsMissing() {
				v = last.read(ret.Field, row)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, value.Attr{Name: ret.Name, Value: v})
	}
	return value.NewItem(out...), nil
}

// count is how many values a field has in the rows that the step reads.
func (r *run) count(ctx context.Context, st *step, f *model.Field, row value.Item) (value.Value, error) {
	seen := map[string]bool{}
	err := r.through(ctx, st, scope{prior: row}, func(other value.Item) {
		if text := model.Scalar(st.read(f, other)); text != "" {
			seen[text] = true
		}
	})
	return value.OfInt(int64(len(seen))), err
}

// sorted answers a list in an order that is not its key's. The whole list is read
// for each page; rows without the field come last.
func (r *run) sorted(ctx context.Context, from place) ([]value.Item, place, error) {
	st := r.plan.steps[0]
	type ranked struct {
		row value.Item
		at  store.Cursor
	}
	var all []ranked
	err := r.through(ctx, st, scope{args: r.args}, func(row value.Item) {
		if key, ok := st.Entity.Table.KeyOf(row); ok {
			all = append(all, ranked{row, store.Cursor{Key: key, Entry: store.Key{Partition: rank(st.read(r.plan.Sort, row))}}})
		}
	})
	if err != nil {
		return nil, place{}, err
	}
	slices.SortFunc(all, func(a, b ranked) int { return compareRanks(a.at, b.at) })
	var items []value.Item
	for i, a := range all {
		switch {
		case len(from.at) > 0 && compareRanks(a.at, from.at[0]) <= 0:
		case len(items) == r.want:
			return items, place{at: []store.Cursor{all[i-1].at}}, nil
		default:
			items = append(items, st.outside(a.row))
		}
	}
	return items, place{}, nil
}

// rank is a value that orders rows, Missing for one that cannot.
func rank(v value.Value) value.Value {
	switch v.Kind() {
	case value.String, value.Number, value.Binary:
		return v
	}
	return value.Value{}
}

func compareRanks(a, b store.Cursor) int {
	x, y := a.Entry.Partition, b.Entry.Partition
	switch c := value.Compare(x, y); {
	case x.IsMissing() != y.IsMissing():
		return -c // Missing is the least kind, and comes last
	case c != 0:
		return c
	}
	return compareKeys(a.Key, b.Key)
}
