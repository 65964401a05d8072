package query

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"weir/internal/book"
	"weir/internal/store"
	"weir/internal/value"
)

const (
	secretBytes = 32
	secretAttr  = "v"
)

// LoadSecret is the secret that signs cursors, kept in weir's own table so that
// all processes have the same one, today and tomorrow. The first to ask makes it.
// The table must exist.
func LoadSecret(ctx context.Context, s store.Store) ([]byte, error) {
	ref := book.Ref("secret", "cursor")
	rows, err := s.Get(ctx, []store.Ref{ref})
	if err != nil {
		return nil, fmt.Errorf("read the secret of cursors: %w", err)
	}
	if rows[0] != nil {
		return secretOf(rows[0])
	}
	fresh := make([]byte, secretBytes)
	rand.Read(fresh)
	own := book.Table()
	row := own.Item(ref.Key).With(value.Attr{Name: secretAttr, Value: value.OfBinary(string(fresh))})
	out, err := s.Write(ctx, []store.Write{{
		Ref: ref, Put: row, Return: true,
		If: store.Cond{{{Attr: book.Partition, Is: store.Absent}}},
	}})
	if err == nil {
		err = out[0].Err
	}
	switch {
	case errors.Is(err, store.ErrCondition): // another was first
		return secretOf(out[0].Row)
	case err != nil:
		return nil, fmt.Errorf("make the secret of cursors: %w", err)
	}
	return fresh, s.Sync(ctx)
}

func secretOf(row value.Item) ([]byte, error) {
	v := row.Get(secretAttr)
	if v.Kind() != value.Binary || len(v.Text()) < minSecret {
		return nil, fmt.Errorf("the secret of cursors in table %s is damaged; delete the row %s %q to have a new one", book.TableName, book.Partition, "secret")
	}
	return []byte(v.Text()), nil
}
