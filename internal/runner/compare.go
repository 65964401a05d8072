package runner

import (
	"context"
	"time"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Comparison compares rows that weir makes in place with the rows that they are derived from. One goroutine uses it.
type Comparison struct {
	Model *model.Model
	Store store.Store
	Now   func() time.Time // tells which rows TTL may have deleted
	Fix   func(Fix)        // is called with the correction of each difference, as soon as it is found
}

// Compares is one kind's part in a Comparison.
type Compares interface {
	// Compare compares what rows of the application's tables show. Each comes as the change that inserting it would be; Is is nil
	// for a row of no entity.
	Compare(ctx context.Context, rows []projections.Change) error
	// OwnRows compares rows of our own table. It ignores rows of other kinds and of other models.
	OwnRows(ctx context.Context, rows []value.Item) error
}

// Get reads rows with strong consistency. Without refs it does no read.
func (v *Comparison) Get(ctx context.Context, refs ...store.Ref) ([]value.Item, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	return v.Store.Get(ctx, refs)
}

// RowText returns a row in the form in which differences name rows.
func RowText(m *model.Model, r store.Ref) string {
	t := m.Table(r.Table)
	if t == nil {
		return r.String()
	}
	return r.Table + " " + string(value.AppendPlainItem(nil, t.Item(r.Key)))
}

// Nothing is printed in place of a missing value.
const Nothing = "nothing"

// ValueText returns a value in the form in which differences show values.
func ValueText(v value.Value) string {
	if v.IsMissing() {
		return Nothing
	}
	return string(value.AppendPlain(nil, v))
}
