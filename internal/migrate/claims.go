package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// claim gives rows the claims on their unique values that they have not. Of two rows
// with one value it decides nothing: the second one is told.
func (b *Backfill) claim(ctx context.Context, t *model.Table, rows []value.Item, counts map[string]int) error {
	var claims []ingest.Claim
	var of []Filling
	for _, row := range rows {
		e := t.Classify(row)
		key, ok := t.KeyOf(row)
		if e == nil || !ok || !fillable(e) {
			continue
		}
		ref := store.Ref{Table: t.Name, Key: key}
		for _, c := range ingest.Claims(b.Model, e, ref, row) {
			claims, of = append(claims, c), append(of, Filling{Entity: e, Row: ref})
		}
	}
	for i, c := range claims {
		if err := b.claimOne(ctx, &c, of[i], counts); err != nil {
			return fmt.Errorf("claiming for %s: %w", of[i].Row, err)
		}
	}
	return nil
}

func (b *Backfill) claimOne(ctx context.Context, c *ingest.Claim, f Filling, counts map[string]int) error {
	got, err := b.Store.Get(ctx, []store.Ref{c.Ref})
	if err != nil {
		return err
	}
	if owner, ok := c.Owner(got[0]); ok {
		if owner.String() == f.Row.String() {
			return nil
		}
		other, err := b.Store.Get(ctx, []store.Ref{owner})
		if err != nil {
			return err
		}
		if c.Holds(other[0], time.Now()) {
			counts[sharedCount]++
			f.Reason = fmt.Sprintf("%s %s belongs to another row too: %s", c.Field, value.AppendPlain(nil, c.Value), owner)
			if b.Each != nil {
				b.Each(f)
			}
			return nil
		}
	}
	if !b.DryRun {
		err = b.Store.Transact(ctx, c.Take(got[0], uuid.NewString()))
	}
	switch {
	case errors.Is(err, store.ErrCondition), errors.Is(err, store.ErrConflict):
		return nil // a command was faster, or the row has changed: both come with claims
	case err == nil:
		counts[claimsCount]++
	}
	return err
}
