package feed

import (
	"context"
	"errors"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
)

// A table may take no writes for long (runner/outage.go). A notification cannot be told from rows, so its row is
// owed as it is. It has its position, so it may be written late, and again.

// owe notes that rows are owed to their subscribers. kept reports that one was too large for that, and is a
// dead letter.
func owe(ctx context.Context, r *runner.Runner, t *Notification, puts []projections.Put) (kept bool, err error) {
	if len(puts) == 0 {
		return false, nil
	}
	owed := make([]runner.Owed, len(puts))
	for i := range puts {
		owed[i] = runner.Owed{Row: puts[i].Row, OwedRow: owntable.OwedRow{
			Kind: owntable.OwedNotification, Rule: t.Rule.Name, Position: puts[i].Position, Record: owntable.RecordItem(&events.Record{New: puts[i].Image}),
		}}
	}
	refused, err := r.OweAll(ctx, owed)
	if err != nil {
		return false, err
	}
	for i, e := range refused {
		if e == nil {
			continue
		}
		kept = true
		reason := "its table takes no writes, and our own has no room for it until it does: " + e.Error()
		if err := keepRefused(ctx, r, runner.DeadNotification, t, &puts[i], reason); err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// Settle writes a row that is owed to a subscriber. One that its table refuses becomes a dead letter.
func (Kind) Settle(ctx context.Context, r *runner.Runner, o runner.Owed) (mine, done bool, err error) {
	if o.Kind != owntable.OwedNotification {
		return false, false, nil
	}
	rec := owntable.RecordFrom(o.Record)
	put := projections.Put{Row: o.Row, Image: rec.New, Position: o.Position}
	_, err = r.Did(ctx, notificationWrite(r, &put))
	if errors.Is(err, store.ErrRefused) {
		_, err = r.KeepDead(ctx, refused(r, runner.DeadNotification, o.Rule, &put, err.Error()))
	}
	return true, err == nil, err
}
