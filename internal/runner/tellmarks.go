package runner

import (
	"context"
	"fmt"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Without lanes a list's positions say nothing (marks.go). Each row that a list is
// told of has a mark of its own beside it: the position p of its last change that
// has a moment, which w is, and f until it is told. The list's count and the mark
// move in one transaction, so that each change has one moment, and is told as of
// that however often it comes. Changes of one row come in order: a mark that is
// further has told what was before.

// tellsMarked tells each list what there is to tell, one after the other.
func (w *work) tellsMarked(ctx context.Context) error {
	for i := range w.Tells {
		t := &w.Tells[i]
		for round := 0; ; round++ {
			if round == maxRounds {
				return fmt.Errorf("the moments of %s do not come to rest", t.List)
			}
			done, err := w.tellMarked(ctx, t)
			if err != nil {
				return err
			}
			if done {
				break
			}
		}
	}
	return nil
}

// tellMarked tells one thing. done is false where somebody else took the moment.
func (w *work) tellMarked(ctx context.Context, t *projections.Tell) (done bool, err error) {
	list := book.Followers(w.Model.Name, t.List)
	mark := book.TellMark(w.Model.Name, t.List, w.Changes[t.Change].Row)
	rows, err := w.get(ctx, []store.Ref{list, mark})
	if err != nil {
		return false, err
	}
	moment, _ := rows[1].Get(momentAttr).Int64()
	switch d := events.PositionFrom(rows[1].Get(book.Position)).Compare(t.Position); {
	case d > 0, d == 0 && !rows[1].Has(firstAttr):
		return true, nil
	case d < 0:
		n, _ := rows[0].Get(book.Count).Int64()
		moment = n + 1
		if err := w.fresh(); err != nil {
			return false, err
		}
		done, err := transacted(w.Store.Transact(ctx, w.markMoment(t, list, mark, rows[0].Get(book.Count), moment)))
		if !done || err != nil {
			return false, err
		}
	}
	if any, err := w.tellOne(ctx, list, t, moment); !any || err != nil {
		return true, err
	}
	_, err = w.write(ctx, []store.Write{{
		Ref: mark, If: store.Cond{{{Attr: book.Position, Is: store.Eq, Value: t.Position.Value()}}},
		Ops: []store.Op{{Kind: store.Remove, Attr: firstAttr}, {Kind: store.Remove, Attr: momentAttr}},
	}})
	return true, err
}

// markMoment gives what is told the list's next moment.
func (w *work) markMoment(t *projections.Tell, list, mark store.Ref, count value.Value, moment int64) []store.Write {
	return []store.Write{
		{Ref: list, If: store.Cond{{store.AsRead(book.Count, count)}}, Ops: []store.Op{set(book.Count, value.OfInt(moment))}},
		{Ref: mark, If: store.Cond{below(book.Position, t.Position.Value())}, Ops: []store.Op{
			set(book.Position, t.Position.Value()), set(firstAttr, t.Position.Value()), set(momentAttr, value.OfInt(moment)), set(book.Expiry, w.expiry()),
		}},
	}
}
