package runner

import (
	"context"
	"iter"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// freeClaims deletes the claims on unique values that rows of the batch have no more. A command that deletes
// a row, or gives it another value, does so itself, so this is for the writes of TTL and other programs.
// A row that has the value again keeps its claim. A stream without old images does not tell the value: then a claim
// stays.
func (w *Work) freeClaims(ctx context.Context) error {
	var refs []store.Ref
	var lost []loss
	for i := range w.Changes {
		c := &w.Changes[i]
		for of, u := range lostValues(c) {
			lacks := w.absentCondition(c.Row)
			if c.New != nil {
				lacks = []store.Test{{Attr: u.Field.Attr, Is: store.Ne, Value: c.Old.Get(u.Field.Attr)}}
			}
			refs, lost = append(refs, owntable.Claim(w.Model.Name, of.Name, u.Field.Name, value.Scalar(u.Field.Stored(c.Old)))), append(lost, loss{c.Row, lacks})
		}
	}
	claims, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i, l := range lost {
		claim := owntable.ClaimFrom(claims[i])
		if claims[i] == nil || !claim.IsOf(l.row) {
			continue
		}
		if _, err := w.writeWhile(ctx, l.row, l.lacks, claim.Free(refs[i], l.row)); err != nil {
			return err
		}
	}
	return nil
}

// lostValues yields the rules of unique values, each with its entity, of which a row had a value before a change that it has no more.
func lostValues(c *projections.Change) iter.Seq2[*model.Entity, *model.Unique] {
	return func(yield func(*model.Entity, *model.Unique) bool) {
		for _, e := range c.Table.Entities {
			if len(e.Unique) == 0 || c.Old == nil || !c.MayBe(e) {
				continue
			}
			for _, u := range e.Unique {
				was := value.Scalar(u.Field.Stored(c.Old))
				if was != "" && was != value.Scalar(u.Field.Stored(c.New)) && !yield(e, u) {
					return
				}
			}
		}
	}
}

// loss is a row that had a unique value, and the tests of which one holds while it has it no more.
type loss struct {
	row   store.Ref
	lacks []store.Test
}
