package runner

import (
	"cmp"
	"context"
	"fmt"

	"weir/internal/catalog"
	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/owntable"
)

// Start identifies the model's tables and enters the program in the model's catalog. The
// error wraps catalog.ErrRefused if the program must not derive from them. Without it, the
// first batch does the same.
func (r *Runner) Start(ctx context.Context) error {
	if r.Catalog == nil {
		return nil
	}
	return r.Catalog.Start(ctx, r.noteSwitchedStream)
}

// StreamOff says that the stream of a table is off, and the remedy; it is nil while the stream is on. open says whether a
// shard of the stream gets records. See catalog.Off.
func (r *Runner) StreamOff(ctx context.Context, table string, open bool) (off, err error) {
	if r.Catalog == nil {
		return nil, nil
	}
	return r.Catalog.StreamOff(ctx, table, open)
}

// Admit reads the model's catalog and decides whether records that were received from the streams of
// these tables before the call may be applied. Call it once for each batch,
// apply nothing of the batch after an error, which wraps catalog.ErrRefused if this
// program is not the right one, and give the batch the catalog that it returns.
func (r *Runner) Admit(ctx context.Context, tables []string) (owntable.CatalogRow, error) {
	return r.askCatalog(ctx, catalog.Batch{Tables: tables})
}

// AdmitEvent is Admit for the records of one table that a function received, from the stream with a label.
func (r *Runner) AdmitEvent(ctx context.Context, table, label string) (owntable.CatalogRow, error) {
	return r.askCatalog(ctx, catalog.Batch{Tables: []string{table}, Labels: map[string]string{table: label}})
}

// askCatalog asks the catalog.
func (r *Runner) askCatalog(ctx context.Context, b catalog.Batch) (owntable.CatalogRow, error) {
	if r.Catalog == nil {
		return owntable.CatalogRow{}, nil
	}
	b.Reader = cmp.Or(r.Reader, catalog.Process)
	return r.Catalog.Admit(ctx, b, r.noteSwitchedStream)
}

// TablePin returns the catalog's entry of a table, which is nothing if the runner has no catalog.
func (r *Runner) TablePin(ctx context.Context, table string) (owntable.Pin, error) {
	if r.Catalog == nil {
		return owntable.Pin{}, nil
	}
	return r.Catalog.PinOf(ctx, table)
}

// noteSwitchedStream keeps a dead letter for a stream that was switched off and on, as the reader of
// a process does that meets one.
func (r *Runner) noteSwitchedStream(ctx context.Context, s catalog.Switch) error {
	_, err := r.Letters().Keep(ctx, SwitchedGap(r, s))
	return err
}

// SwitchedGap is the dead letter of a stream that was switched off and on, or lacks records that another
// model has removed. It is the same whenever it is made.
func SwitchedGap(r *Runner, s catalog.Switch) deadletter.Letter {
	if s.Passed {
		return deadletter.Letter{
			Kind: deadletter.Gap, Target: "stream of " + s.Table, Position: events.Position{}, Time: r.Now().UTC(), Source: "up to " + s.To,
			Reason: fmt.Sprintf("another model ran here alone and has removed records of %s before %s: what they say is missing from history. All else is built again from the rows (docs/guide/lifecycle.md)", s.Table, s.To),
		}
	}
	return deadletter.Letter{
		Kind: deadletter.Gap, Target: "stream of " + s.Table, Position: events.Position{}, Time: r.Now().UTC(),
		Source: fmt.Sprintf("of %s, up to %s", s.From, s.To),
		Reason: fmt.Sprintf("the stream of %s was switched off and on again: what was written in between, before %s, is in no stream, and what is derived from it may be wrong. Run projector verify MODEL, which says what is wrong (docs/guide/operations.md, After a gap)", s.Table, s.To),
	}
}
