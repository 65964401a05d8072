package feed

import (
	"context"
	"fmt"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Without shards, a list's positions say nothing (marks.go). So each row that sends
// notifications to a list has a deduplication mark beside the list. Its attribute p is
// the position of the row's last change that has a moment, w is that moment, and f is
// present until the notifications are written. The list's counter and the mark change in
// one transaction, so each change has one moment, and its notifications keep that moment
// however often they are written. The changes of one row arrive in order: if the mark is
// further, earlier notifications have been written.

// notifyMarked writes the batch's notifications, one after the other.
func (w *work) notifyMarked(ctx context.Context) error {
	for i := range w.notifications {
		t := &w.notifications[i]
		for round := 0; ; round++ {
			if round == runner.MaxRounds {
				return fmt.Errorf("the moments of %s do not come to rest", t.List)
			}
			done, err := w.sendMarked(ctx, t)
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

// sendMarked writes one notification to its list. done is false if another worker took
// the moment.
func (w *work) sendMarked(ctx context.Context, t *Notification) (done bool, err error) {
	list := owntable.Followers(w.Model.Name, t.List)
	mark := owntable.TellMark(w.Model.Name, t.List, w.Changes[t.Change].Row)
	rows, err := w.Get(ctx, []store.Ref{list, mark})
	if err != nil {
		return false, err
	}
	moment, _ := rows[1].Get(momentAttr).Int64()
	switch d := events.PositionFrom(rows[1].Get(owntable.Position)).Compare(t.Position); {
	case d > 0, d == 0 && !rows[1].Has(firstAttr):
		return true, nil
	case d < 0:
		n, _ := rows[0].Get(owntable.Count).Int64()
		moment = n + 1
		if err := w.Fresh(); err != nil {
			return false, err
		}
		done, err := runner.Transacted(w.Store.Transact(ctx, w.momentMarked(t, list, mark, rows[0].Get(owntable.Count), moment)))
		if !done || err != nil {
			return false, err
		}
	}
	if any, err := w.sendOne(ctx, list, t, moment); !any || err != nil {
		return true, err
	}
	_, err = w.Write(ctx, []store.Write{{
		Ref: mark, If: store.Cond{{{Attr: owntable.Position, Is: store.Eq, Value: t.Position.Value()}}},
		Ops: []store.Op{{Kind: store.Remove, Attr: firstAttr}, {Kind: store.Remove, Attr: momentAttr}},
	}})
	return true, err
}

// momentMarked returns the writes that give a notification the list's next moment.
func (w *work) momentMarked(t *Notification, list, mark store.Ref, count value.Value, moment int64) []store.Write {
	return []store.Write{
		{Ref: list, If: store.Cond{{store.AsRead(owntable.Count, count)}}, Ops: []store.Op{runner.Set(owntable.Count, value.OfInt(moment))}},
		{Ref: mark, If: store.Cond{runner.Below(owntable.Position, t.Position.Value())}, Ops: []store.Op{
			runner.Set(owntable.Position, t.Position.Value()), runner.Set(firstAttr, t.Position.Value()), runner.Set(momentAttr, value.OfInt(moment)), runner.Set(owntable.Expiry, w.Expiry()),
		}},
	}
}
