package feed

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
)

// Without shards, a list's positions say nothing (marks.go). So each row that sends
// notifications to a list has a deduplication mark beside the list: it holds the position
// of the row's last change that has a moment, that moment, and whether its notifications
// are still being written. The list's counter and the mark change in one transaction, so each change has one moment, and its notifications keep that moment
// however often they are written. The changes of one row arrive in order: if the mark is
// further, earlier notifications have been written.

// notifyMarked writes the batch's notifications, one after the other.
func (w *work) notifyMarked(ctx context.Context) error {
	for i := range w.notifications {
		t := &w.notifications[i]
		for round := 0; ; round++ {
			if round == runner.MaxRounds {
				return fmt.Errorf("the moments of %s keep changing", t.List)
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
	list := owntable.Subscribers(w.Model.Name, t.List)
	mark := owntable.NotificationMark(w.Model.Name, t.List, w.Changes[t.Change].Row)
	rows, err := w.Get(ctx, []store.Ref{list, mark})
	if err != nil {
		return false, err
	}
	is := owntable.NotificationMarkFrom(rows[1])
	moment := is.Moment
	switch d := is.Position.Compare(t.Position); {
	case d > 0, d == 0 && !is.Sending:
		return true, nil
	case d < 0:
		if err := w.Fresh(); err != nil {
			return false, err
		}
		var next []store.Write
		next, moment = owntable.ListFrom(rows[0]).NextMarked(list, mark, t.Position, w.Now(), w.Expiry(), w.Ends())
		err := w.Store.Transact(ctx, next)
		if errors.Is(err, store.ErrRefused) {
			return true, w.unlisted(ctx, t.List, t.Change, err.Error())
		}
		done, err := runner.Transacted(err)
		if !done || err != nil {
			return false, err
		}
	}
	first, err := readPage(ctx, w.Runner, list.Key.Partition.Text(), "")
	if err != nil {
		return true, err
	}
	if any, err := w.sendOne(ctx, list, first, t, moment); !any || err != nil {
		return true, err
	}
	_, err = w.Write(ctx, []store.Write{owntable.EndMarked(mark, t.Position)})
	return true, err
}
