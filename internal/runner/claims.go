package runner

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// freeClaims deletes the claims on unique values that rows of the batch have no more. A command that deletes
// a row, or gives it another value, does so itself, so this is for what TTL and other programs do.
// A row that has the value again keeps its claim. What a row in a table says that cannot be looked at is owed. A stream without old images does not tell the value: then a claim
// stays.
func (w *Work) freeClaims(ctx context.Context) error {
	var refs []store.Ref
	var lost []loss
	for i := range w.Changes {
		c := &w.Changes[i]
		for _, e := range c.Table.Entities {
			if len(e.Unique) == 0 || c.Old == nil || !c.MayBe(e) {
				continue
			}
			for _, u := range e.Unique {
				was, is := value.Scalar(u.Field.Get(c.Old)), value.Scalar(u.Field.Get(c.New))
				if was == "" || was == is {
					continue
				}
				lacks := w.absent(c.Row)
				if c.New != nil {
					lacks = []store.Test{{Attr: u.Field.Attr, Is: store.Ne, Value: c.Old.Get(u.Field.Attr)}}
				}
				refs, lost = append(refs, owntable.Claim(w.Model.Name, e.Name, u.Field.Name, was)), append(lost, loss{c.Row, lacks, e.Name, u.Field.Name})
			}
		}
	}
	claims, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	var owed []Owed
	for i, l := range lost {
		claim := owntable.ClaimFrom(claims[i])
		if claims[i] == nil || !claim.IsOf(l.row) {
			continue
		}
		if w.IsOut(l.row.Table) != nil {
			owed = append(owed, Owed{Row: l.row, OwedRow: owntable.OwedRow{
				Kind: owntable.OwedClaim, Rule: l.entity, Attr: l.field, List: refs[i].Key.Partition.Text(),
			}})
			continue
		}
		if err := w.while(ctx, l.row, l.lacks, claim.Free(refs[i], l.row)); err != nil {
			return err
		}
	}
	return w.OweSmall(ctx, owed...)
}

// settleClaim deletes a claim of a row whose table could not be looked at when the row lost the value, unless it has
// the value again.
func (r *Runner) settleClaim(ctx context.Context, o *Owed) error {
	ref := owntable.Ref(o.List, "")
	rows, err := r.Get(ctx, []store.Ref{ref, o.Row})
	if err != nil || rows[0] == nil {
		return err
	}
	claim := owntable.ClaimFrom(rows[0])
	if !claim.IsOf(o.Row) {
		return nil
	}
	lacks := r.absent(o.Row)
	if e := r.Model.Entity(o.Rule); e != nil && rows[1] != nil {
		f := e.Field(o.Attr)
		if f == nil || projections.SameRow(owntable.Claim(r.Model.Name, e.Name, f.Name, value.Scalar(f.Get(rows[1]))), ref) {
			return nil
		}
		lacks = []store.Test{store.AsRead(f.Attr, f.Get(rows[1]))}
	}
	return r.while(ctx, o.Row, lacks, claim.Free(ref, o.Row))
}

// loss is a row that had a unique value, and the tests of which one holds while it has it no more.
type loss struct {
	row           store.Ref
	lacks         []store.Test
	entity, field string
}
