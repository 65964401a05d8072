package status

import (
	"context"
	"time"

	"weir/internal/system"
)

// Recent reads the status of a model for a server, at most once a second: a reading describes
// each table, and DynamoDB limits how often an account may do that. Lags are read only when they are asked
// for, and less often: streams have limits too, which the readers of the records share.
// Use one for each model. It may be used from several goroutines.
type Recent struct {
	of     *system.System
	part   *system.Part
	now    func() time.Time
	status reading[Status]
	lags   reading[lags] // for which no status waits
}

// For how long a reading answers, and one of the lags.
const (
	recentFor = time.Second
	lagsFor   = 10 * time.Second
)

// NewRecent returns the reader of a model's status. now tells the time that passes.
func NewRecent(s *system.System, part *system.Part, now func() time.Time) *Recent {
	return &Recent{s, part, now, reading[Status]{turn: make(chan struct{}, 1)}, reading[lags]{turn: make(chan struct{}, 1)}}
}

// Status returns the status without lags as it was at most a second before the call, or a newer one. An
// error is not kept: the next call reads again.
func (r *Recent) Status(ctx context.Context) (Status, error) {
	return r.status.get(ctx, r.now, recentFor, func() (Status, error) { return readKnown(ctx, r.of, r.part) })
}

// Lagging returns the status with lags, which may be 10 seconds older.
func (r *Recent) Lagging(ctx context.Context) (Status, error) {
	is, err := r.Status(ctx)
	if err != nil {
		return Status{}, err
	}
	all, err := r.lags.get(ctx, r.now, lagsFor, func() (lags, error) { return lagsOf(ctx, r.part, &is) })
	if err != nil {
		return Status{}, err
	}
	return is.with(all, r.part.Model), nil
}

// reading is the last status that was read.
type reading[T any] struct {
	turn chan struct{} // full while one reads
	at   time.Time
	last T
}

// get returns a status that was read at most so long before the call, or reads again. It returns the error of ctx if that ends
// while another call reads.
func (r *reading[T]) get(ctx context.Context, now func() time.Time, life time.Duration, read func() (T, error)) (is T, err error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return is, ctx.Err()
	}
	if began := now(); r.at.IsZero() || began.Before(r.at) || began.Sub(r.at) >= life {
		if is, err = read(); err != nil {
			return is, err
		}
		r.at, r.last = began, is
	}
	return r.last, nil
}
