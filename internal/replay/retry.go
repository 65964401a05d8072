package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weir/internal/deadletter"
	"weir/internal/events"
)

// Retry replays a dead letter of an earlier replay with the model as it is now, and
// then deletes it. A row that has seen something newer meanwhile stays as it is. If the
// record still cannot be used, the error wraps deadletter.ErrNoRetry and the dead letter
// stays. A crash may leave the dead letter of a record that was written; retrying it
// again changes nothing.
func (r *Replay) Retry(ctx context.Context, d *deadletter.Letter) error {
	entries, err := r.entriesOf(d)
	if err != nil {
		return err
	}
	again := *r
	again.retried = true
	err = again.Batch(ctx, entries, d.ChangeRecord().Table)
	if r.Summary = again.Summary; err != nil {
		return fmt.Errorf("%s: %w", d.ID, err)
	}
	return r.Runner.Letters().Forget(ctx, d)
}

// entriesOf decodes a dead letter: the bytes of a record that could not be read, or a
// record that was read. If the letter knows the record's table, that holds, whatever name
// the table had in the store.
func (r *Replay) entriesOf(d *deadletter.Letter) (entries []events.Entry, err error) {
	if err := d.Whole(); err != nil {
		return nil, err
	}
	if d.Raw == "" {
		return []events.Entry{{Record: d.ChangeRecord()}}, nil
	}
	err = events.Read(strings.NewReader(d.Raw), d.Source, func(e events.Entry) error {
		entries = append(entries, e)
		return nil
	})
	if errors.Is(err, events.ErrNoRecords) {
		return nil, fmt.Errorf("%s: %w: %w", d.ID, err, deadletter.ErrNoRetry)
	}
	if err == nil && d.ChangeRecord().Table == "" {
		err = r.Names.Entries(entries)
	}
	for i := range entries {
		if t := d.ChangeRecord().Table; t != "" {
			entries[i].Record.Table = t
		}
	}
	return entries, err
}
