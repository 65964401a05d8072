package live

import (
	"context"
	"errors"
	"time"

	"weir/internal/book"
	"weir/internal/store"
)

// A lease says which process reads a shard. Its row (book.LeaseRow) counts holds and,
// while one lasts, beats. Nobody compares clocks: a process that sees neither move for as
// long as a lease lasts, by its own clock, takes over; a holder that could not beat
// for that long, by its own, lets go. A pause of a whole process is seen by both.

// take begins a hold on a lease that was seen free or still; it fails, without an
// error, where another process was first.
func take(ctx context.Context, s store.Store, at store.Ref, seen book.LeaseRow, owner string) (hold int64, ok bool, err error) {
	out, err := s.Write(ctx, []store.Write{seen.Take(at, owner)})
	if err != nil || out[0].Err != nil {
		return 0, false, unlessCondition(out, err)
	}
	now, err := book.DecodeLease(out[0].Row)
	return now.Hold, err == nil, err
}

// beat says that a hold lasts. It fails, without an error, where it is over.
func beat(ctx context.Context, s store.Store, at store.Ref, hold int64) (ok bool, err error) {
	out, err := s.Write(ctx, []store.Write{book.BeatLease(at, hold)})
	if err != nil || out[0].Err != nil {
		return false, unlessCondition(out, err)
	}
	return true, nil
}

// release ends a hold, so that others need not wait.
func release(ctx context.Context, s store.Store, at store.Ref, hold int64) error {
	out, err := s.Write(ctx, []store.Write{book.FreeLease(at, hold)})
	return unlessCondition(out, err)
}

func unlessCondition(out []store.Outcome, err error) error {
	if err == nil && len(out) > 0 && !errors.Is(out[0].Err, store.ErrCondition) {
		err = out[0].Err
	}
	return err
}

// watch is what is known of a lease that is not ours.
type watch struct {
	book.LeaseRow
	since time.Time // when it was first seen as it is
}

// see notes the lease as it was read between two moments, and reports whether it may
// be taken. Of both moments it believes the one that waits longer: the holder counts
// from before its last beat.
func (w *watch) see(now book.LeaseRow, before, after time.Time, lasts time.Duration) bool {
	if now != w.LeaseRow || w.since.IsZero() {
		w.LeaseRow, w.since = now, after
	}
	return now.Owner == "" || before.Sub(w.since) >= lasts
}
