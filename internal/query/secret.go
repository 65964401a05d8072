package query

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"weir/internal/owntable"
	"weir/internal/store"
)

// secretBytes is the length of a new secret.
const secretBytes = 32

// LoadSecret is the secret that signs cursors and keys the revisions of rows, kept in weir's own table so
// that all processes have the same one, today and tomorrow. The first to ask makes it.
// The table must exist.
func LoadSecret(ctx context.Context, s store.Store) ([]byte, error) {
	row, err := store.GetRow(ctx, s, owntable.Secret())
	if err != nil {
		return nil, fmt.Errorf("read the secret of cursors: %w", err)
	}
	if row != nil {
		return owntable.DecodeSecret(row)
	}
	fresh := make([]byte, secretBytes)
	rand.Read(fresh)
	out, err := s.Write(ctx, []store.Write{owntable.SetSecret(fresh)})
	if err == nil {
		err = out[0].Err
	}
	switch {
	case errors.Is(err, store.ErrCondition): // another was first
		return owntable.DecodeSecret(out[0].Row)
	case err != nil:
		return nil, fmt.Errorf("make the secret of cursors: %w", err)
	}
	return fresh, s.Sync(ctx)
}
