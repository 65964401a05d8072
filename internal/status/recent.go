package status

import (
	"context"
	"time"

	"weir/internal/system"
)

// Recent reads the status of a model for a server, at most once a second: a reading describes
// each table, and DynamoDB limits how often an account may do that. Use one for each model. It
// may be used from several goroutines.
type Recent struct {
	of   *system.System
	part *system.Part
	now  func() time.Time
	turn chan struct{} // full while one reads
	at   time.Time
	last Status
}

// recentFor is how long a reading answers.
const recentFor = time.Second

// NewRecent returns the reader of a model's status. now tells the time that passes.
func NewRecent(s *system.System, part *system.Part, now func() time.Time) *Recent {
	return &Recent{of: s, part: part, now: now, turn: make(chan struct{}, 1)}
}

// Status returns the status as it was at most a second before the call, or a newer one. An
// error is not kept: the next call reads again.
func (r *Recent) Status(ctx context.Context) (Status, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return Status{}, ctx.Err()
	}
	defer func() { <-r.turn }()
	if began := r.now(); r.at.IsZero() || began.Before(r.at) || began.Sub(r.at) >= recentFor {
		is, err := Of(ctx, r.of, r.part)
		if err != nil {
			return Status{}, err
		}
		r.at, r.last = began, is
	}
	return r.last, nil
}
