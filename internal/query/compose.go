package query

import (
	"context"

	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/value"
)

// returned is an attribute that a query makes of the row it found.
type returned struct {
	*model.Returned
	size     *list
	distinct *step
}

// newReturned compiles the part of the row that a query returns. nil means the whole row.
func newReturned(q *model.Query, of *step) []returned {
	var out []returned
	for i := range q.Return {
		r := returned{Returned: &q.Return[i]}
		if r.Size != nil {
			r.size = newList(r.Size, of)
		}
		if d := r.Distinct; d != nil {
			fields := seq.Map(d.Key, func(a model.Assign) *model.Field { return d.Entity.Field(a.Name) })
			r.distinct = partitionStep(d.Entity, fields, d.Key, of)
		}
		out = append(out, r)
	}
	return out
}

// composeRow is the answer of the query from the row that it found.
// Values that are counted are read for each row of the page, at moments of their own.
func (r *run) composeRow(ctx context.Context, row value.Item) (value.Item, error) {
	last := r.plan.steps[len(r.plan.steps)-1]
	shown := last.outsideRow(row)
	var out []value.Attr
	for _, ret := range r.plan.returned {
		var v value.Value
		var err error
		switch {
		case ret.size != nil:
			var all []value.Value
			all, err = r.listElements(ctx, ret.size, row)
			v = value.OfInt(int64(len(all)))
		case ret.distinct != nil:
			v, err = r.countValues(ctx, ret.distinct, ret.Distinct.Field, row)
		default:
			if v = shown.Get(ret.Field.Name); v.IsMissing() {
				v = last.readField(ret.Field, row)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, value.Attr{Name: ret.Name, Value: v})
	}
	return value.NewItem(out...), nil
}

// countValues is how many values a field has in the rows that the step reads.
// It reads all rows of the step. Values that are no single value do not count.
func (r *run) countValues(ctx context.Context, st *step, f *model.Field, row value.Item) (value.Value, error) {
	seen := map[string]bool{}
	err := r.eachRow(ctx, st, scope{prior: row}, func(other value.Item) {
		if text := value.Scalar(st.readField(f, other)); text != "" {
			seen[text] = true
		}
	})
	return value.OfInt(int64(len(seen))), err
}
