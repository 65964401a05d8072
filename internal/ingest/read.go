package ingest

import (
	"context"

	"weir/internal/store"
	"weir/internal/value"
)

// Read returns the row of an entity whose key has the given fields, in the form in
// which Do returns rows. A row that does not exist, or has expired, is refused as
// Missing.
func (w *Writer) Read(ctx context.Context, entity string, key value.Item) (out Result) {
	w.once.Do(w.init)
	if out.Err = w.loadSecret(ctx, true); out.Err != nil {
		return out
	}
	c, r := w.checkCommand(Command{Op: Delete, Entity: entity, Item: key}, env{}) // it names a row by its key alone
	if r != nil {
		out.Err = r
		return out
	}
	row, err := store.GetRow(ctx, w.Store, c.ref)
	if err != nil {
		out.Err = err
		return out
	}
	now := w.Now()
	if row == nil || c.Table.Classify(row) != c.Entity || c.view.Expired(row, now) {
		out.Err = newRefusal(Missing, "", "there is no such row of %s", c.Name)
		return out
	}
	out.Row, out.Revision, out.Done = c.view.Row(row, now), c.revisionOf(row), Unchanged
	return out
}

// Sync returns once every write that Do has answered for survives a crash.
func (w *Writer) Sync(ctx context.Context) error { return w.Store.Sync(ctx) }
