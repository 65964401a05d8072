package query

import (
	"context"
	"fmt"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// partitionStep is a step that reads the rows that the key names reach from a row of another.
func partitionStep(of *model.Entity, fields []*model.Field, from []model.Assign, prior *step) *step {
	s := &model.Step{Entity: of}
	for i, f := range fields {
		s.With = append(s.With, model.Bind{Field: f, Const: from[i].Expr.Const, Prior: from[i].Expr.Field})
	}
	return newStep(s, prior)
}

// eachRow yields all rows that the step reads for the row before. It gives up with
// ErrTooMuch where that would cost more than a page may.
func (r *run) eachRow(ctx context.Context, st *step, sc scope, yield func(value.Item)) error {
	for _, q := range st.scopeQueries(sc) {
		if err := r.throughOne(ctx, st, sc, q.Query, yield); err != nil {
			return err
		}
	}
	return nil
}

// throughOne yields every row of one partition that belongs to a step. It ends with ErrTooMuch,
// between two pages, when the request has read as much as one may.
func (r *run) throughOne(ctx context.Context, st *step, sc scope, q store.Query, yield func(value.Item)) error {
	for q.Limit = manyRows; ; {
		page, err := r.readPage(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			if st.rowBelongs(row, sc, r.now) {
				yield(st.rowAsRead(row, r.now))
			}
		}
		if page.Next == nil {
			return nil
		}
		if r.isSpent() {
			return fmt.Errorf("reading all of %s: %w", st.Entity.Name, ErrTooMuch)
		}
		q.After = page.Next
	}
}

// list is a list attribute of a step's rows, with the step that reads the rows that it
// stands for where a row has none.
type list struct {
	*model.Attribute
	others *step
}

// newList compiles a list of the rows that a step reads.
func newList(a *model.Attribute, of *step) *list {
	l := &list{Attribute: a}
	if o := a.Others; o != nil {
		l.others = partitionStep(o.Of, o.Links, o.Key, of)
	}
	return l
}

// listElements are those of a row's list, each once.
// A list that stands for rows of another entity is read from that partition if the row has none of
// its own.
func (r *run) listElements(ctx context.Context, l *list, row value.Item) ([]value.Value, error) {
	var out []value.Value
	seen := map[string]bool{}
	add := func(v value.Value) {
		if text := value.Scalar(v); text != "" && !seen[text] {
			seen[text] = true
			out = append(out, v)
		}
	}
	if v, unlike := l.Attribute.Read(row.Get(l.Name), false); v.Kind() != value.Missing && v.Kind() != value.Null {
		if unlike == "" {
			for _, el := range v.Elements() {
				add(el.Value)
			}
		}
		return out, nil
	}
	if l.others == nil {
		return nil, nil
	}
	err := r.eachRow(ctx, l.others, scope{prior: row}, func(other value.Item) { add(l.others.readField(l.Others.Field, other)) })
	return out, err
}

// forEach makes of each row one for every element of the lists that the step is
// fixed to, with that element in the place of the list.
func (w *walk) forEach(st *step, from []found) ([]found, error) {
	for _, l := range st.lists {
		var out []found
		for _, f := range from {
			elements, err := w.listElements(w.ctx, l, f.row)
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
