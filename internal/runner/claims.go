package runner

import (
	"context"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// freeClaims deletes the claims on unique values of the rows that the batch removes. A command
// that deletes a row does so itself, so this is for rows that TTL or another program deletes.
// A row that is there again keeps its claim.
func (w *Work) freeClaims(ctx context.Context) error {
	var refs, rows []store.Ref
	for i := range w.Changes {
		c := &w.Changes[i]
		if c.Is != nil || c.Was == nil {
			continue
		}
		for _, u := range c.Was.Unique {
			if v := value.Scalar(u.Field.Get(c.Old)); v != "" {
				refs, rows = append(refs, owntable.Claim(w.Model.Name, c.Was.Name, u.Field.Name, v)), append(rows, c.Row)
			}
		}
	}
	claims, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i, row := range rows {
		claim := owntable.ClaimFrom(claims[i])
		if claims[i] == nil || !claim.IsOf(row) {
			continue
		}
		if err := w.whileGone(ctx, row, claim.Free(refs[i], row)); err != nil {
			return err
		}
	}
	return nil
}
