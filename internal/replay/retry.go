package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weir/internal/events"
	"weir/internal/runner"
)

// Retry replays what an earlier replay kept because it could not use it, with the
// model as it is now, and takes it away from what is kept. A row that has seen
// something newer meanwhile stays as it is. The error wraps runner.ErrNoRetry, and
// nothing is taken away, when it still cannot be used.
func (r *Replay) Retry(ctx context.Context, d *runner.Dead) error {
	entries, err := entriesOf(d)
	if err != nil {
		return err
	}
	again := *r
	again.retried = true
	err = again.Batch(ctx, entries, d.ChangeRecord().Table)
	if r.Summary = again.Summary; err != nil {
		return fmt.Errorf("%s: %w", d.ID, err)
	}
	return r.Runner.Forget(ctx, d)
}

// entriesOf decodes what is kept: the bytes of a record that could not be read, or
// one that was read.
func entriesOf(d *runner.Dead) (entries []events.Entry, err error) {
	if d.Raw == "" {
		return []events.Entry{{Record: d.ChangeRecord()}}, nil
	}
	err = events.Read(strings.NewReader(d.Raw), d.Source, func(e events.Entry) error {
		entries = append(entries, e)
		return nil
	})
	if errors.Is(err, events.ErrNoRecords) {
		return nil, fmt.Errorf("%s: %w: %w", d.ID, err, runner.ErrNoRetry)
	}
	return entries, err
}
