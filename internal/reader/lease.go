package reader

import (
	"context"
	"errors"
	"time"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// The lease says which process polls the streams of a model. Its row (owntable.LeaseRow) has a fence,
// which grows with each owner, and, under one fence, beats (renewals). Processes do not
// compare clocks. A process that has seen neither number change for as long as a lease
// lasts, by its own clock, takes the lease over. A holder that could not beat for that
// long, by its own clock, stops reading. Both sides notice the pause of a whole process:
// the others see no beats, and the holder sees by its clock how long it was paused.

// takeLease takes a lease that was seen free or unchanged for long enough. If another
// process was first, ok is false and err is nil. The row says which process was first: no
// two have the same name.
func takeLease(ctx context.Context, s store.Store, at store.Ref, seen owntable.LeaseRow, owner string) (fence int64, ok bool, err error) {
	done, row, err := tryWrite(ctx, s, seen.Take(at, owner))
	if err != nil {
		return 0, false, err
	}
	now, err := owntable.DecodeLease(row)
	ok = err == nil && (done || now.Owner == owner && now.Fence == seen.Fence+1)
	if !ok {
		return 0, false, err
	}
	return now.Fence, true, nil
}

// beatLease renews a lease. If another process has taken it, ok is false and err is nil.
func beatLease(ctx context.Context, s store.Store, at store.Ref, fence int64) (ok bool, err error) {
	ok, _, err = tryWrite(ctx, s, owntable.BeatLease(at, fence))
	return ok, err
}

// releaseLease gives a lease back, so that other processes need not wait for it to run out.
func releaseLease(ctx context.Context, s store.Store, at store.Ref, fence int64) error {
	_, _, err := tryWrite(ctx, s, owntable.FreeLease(at, fence))
	return err
}

// tryWrite does a conditional write, which may happen twice, and returns the row that it has met or made. A failed condition is no
// error: another process was first.
func tryWrite(ctx context.Context, s store.Store, w store.Write) (done bool, row value.Item, err error) {
	w.Repeatable = true
	if row, err = store.WriteRow(ctx, s, w); errors.Is(err, store.ErrCondition) {
		return false, row, nil
	}
	return err == nil, row, err
}

// watch is this process's view of a lease that another process holds.
// It is kept in memory alone: a process that starts waits a whole lease before it takes one.
type watch struct {
	owntable.LeaseRow
	since time.Time // when it was first seen in this state
}

// observeLease notes the lease as it was read between the times before and after, and reports
// whether it may be taken. It counts the wait from after to a later before, which is the
// shortest wait possible: the holder counts from the time before its last beat.
func (w *watch) observeLease(now owntable.LeaseRow, before, after time.Time, lasts time.Duration) bool {
	if now != w.LeaseRow || w.since.IsZero() {
		w.LeaseRow, w.since = now, after
	}
	return now.Owner == "" || before.Sub(w.since) >= lasts
}
