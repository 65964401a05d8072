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
	of   *system.System
	part *system.Part
	now  func() time.Time
	turn chan struct{} // full while one reads
	at   time.Time
	last Status

	lagTurn chan struct{} // full while one reads lags, for which no status waits
	lagsAt  time.Time
	lags    lags
}

// For how long a reading answers, and one of the lags.
const (
	recentFor = time.Second
	lagsFor   = 10 * time.Second
)

// NewRecent returns the reader of a model's status. now tells the time that passes.
func NewRecent(s *system.System, part *system.Part, now func() time.Time) *Recent {
	return &Recent{of: s, part: part, now: now, turn: make(chan struct{}, 1), lagTurn: make(chan struct{}, 1)}
}

// Status returns the status without lags as it was at most a second before the call, or a newer one. An
// error is not kept: the next call reads again.
func (r *Recent) Status(ctx context.Context) (Status, error) {
	if err := take(ctx, r.turn); err != nil {
		return Status{}, err
	}
	defer func() { <-r.turn }()
	if began := r.now(); stale(r.at, began, recentFor) {
		is, err := known(ctx, r.of, r.part)
		if err != nil {
			return Status{}, err
		}
		r.at, r.last = began, is
	}
	return r.last, nil
}

// Lagging returns the status with lags, which may be 10 seconds older.
func (r *Recent) Lagging(ctx context.Context) (Status, error) {
	is, err := r.Status(ctx)
	if err == nil {
		err = take(ctx, r.lagTurn)
	}
	if err != nil {
		return Status{}, err
	}
	defer func() { <-r.lagTurn }()
	if began := r.now(); stale(r.lagsAt, began, lagsFor) {
		lags, err := lagsOf(ctx, r.part, &is)
		if err != nil {
			return Status{}, err
		}
		r.lagsAt, r.lags = began, lags
	}
	return is.with(r.lags, r.part.Model), nil
}

// take takes a turn, or returns the error of ctx if that ends before.
func take(ctx context.Context, turn chan<- struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stale reports whether what was read at a time no longer answers.
func stale(at, now time.Time, after time.Duration) bool {
	return at.IsZero() || now.Before(at) || now.Sub(at) >= after
}
