package runner

import (
	"context"
	"time"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Comparison compares rows that weir makes in place with the rows that they are derived from, and reports to Yield. One goroutine
// uses it. Yield is called with each difference as soon as it is found, in the order of the rows.
type Comparison struct {
	Model *model.Model
	Store store.Store
	Now   func() time.Time // tells which rows TTL may have deleted
	Yield func(Difference)
}

// Compares is one kind's part in a Comparison.
type Compares interface {
	// Compare compares what rows of the application's tables show. Each comes as the change that inserting it would be; Is is nil
	// for a row of no entity.
	Compare(ctx context.Context, rows []projections.Change) error
	// OwnRow compares a row of our own table. It ignores rows of other kinds and of other models.
	OwnRow(ctx context.Context, row value.Item) error
}

// Difference is a derived value that differs from what the source rows give. Its texts are
// for people, and stable: Row as RowText writes it, Want and Have as ValueText does.
type Difference struct {
	// Derivation names what differs, as verify prints it.
	Derivation string `json:"derivation"`
	Row        string `json:"row"`
	Want       string `json:"want"`
	Have       string `json:"have"`
	Fix        Fix    `json:"-"` // nil if nothing corrects it alone
}

// Shown returns the difference as it may leave weir: without values that the model hides.
func (d Difference) Shown(m *model.Model) Difference {
	if m.HidesValuesOf(d.Derivation) {
		d.Want, d.Have = model.HiddenText, model.HiddenText
	}
	return d
}

// Check yields a Difference if the values differ.
func (v *Comparison) Check(derivation string, row store.Ref, want, have value.Value, fix Fix) {
	if !value.Equal(want, have) {
		v.Differs(derivation, v.RowText(row), ValueText(want), ValueText(have), fix)
	}
}

// Differs yields a Difference.
func (v *Comparison) Differs(derivation, row, want, have string, fix Fix) {
	v.Yield(Difference{derivation, row, want, have, fix})
}

// Get reads rows with strong consistency. Without refs it does no read.
func (v *Comparison) Get(ctx context.Context, refs ...store.Ref) ([]value.Item, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	return v.Store.Get(ctx, refs)
}

// RowText returns a row in the form in which differences name rows.
func (v *Comparison) RowText(r store.Ref) string { return RowText(v.Model, r) }

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
