package follow

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// A position that a row carries, or a value in our own table, may be of another stream than the changes that come, and above all
// of these (package copies, apply_above.go).

// keepNewest keeps the values that a higher position kept from being stored, if their rows have them now. A job gives
// them to all followers.
func (w *Work) keepNewest(ctx context.Context, refused []*Value) error {
	refs := make([]store.Ref, len(refused))
	for i, s := range refused {
		refs[i] = s.Source
	}
	rows, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i, s := range refused {
		gone := w.Model.Table(s.Source.Table).Classify(rows[i]) != s.Entity
		if gone != s.Gone || !gone && !value.Equal(ValueOf(s.Entity, s.Entity.Field(s.Field), rows[i]), s.Value) {
			continue // a newer change decides
		}
		fix := &ValueFix{Source: s.Source, Entity: s.Entity, Field: s.Field}
		if err := w.ApplyFix(ctx, fix, fmt.Sprintf("what follows %s of %s", s.Field, w.DescribeRow(s.Source)), nil); err != nil {
			return err
		}
	}
	return nil
}

// loweredWrites returns the writes that give followers their values although they carry higher positions. That of a list is written before
// its followers get it, so a follower with a higher one than its list has the position of another stream. Each write has the
// condition that the follower still has that position, or one below the list's.
func loweredWrites(ctx context.Context, r *runner.Runner, out []store.Outcome, of []serving) (ws []store.Write, which []serving, err error) {
	var rows []value.Item
	var refs []store.Ref
	for i, s := range of {
		if errors.Is(out[i].Err, store.ErrCondition) && onList(out[i].Row, s.attr, s.list) {
			which, rows, refs = append(which, s), append(rows, out[i].Row), append(refs, owntable.FollowedList(s.list))
		}
	}
	lists, err := r.Get(ctx, refs)
	if err != nil {
		return nil, nil, err
	}
	some := which[:0]
	for i, s := range which {
		v, version := keptIn(lists[i]), rows[i].Get(owntable.FollowVersion(s.attr))
		if !v.Existed() || events.PositionFrom(version).Compare(v.Position) <= 0 {
			continue
		}
		keeps := KeepsLast(r.Model, r.Model.Table(s.row.Table).Classify(rows[i]), s.attr, s.list)
		wr := serveWrite(s.list, s.row, s.attr, v.Position, v.shownValue(keeps))
		wr.If[1] = append(wr.If[1], store.AsRead(owntable.FollowVersion(s.attr), version))
		ws, some = append(ws, wr), append(some, s)
	}
	return ws, some, nil
}
