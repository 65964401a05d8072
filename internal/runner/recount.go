package runner

import (
	"context"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// Recount is one kind's part in one verification (package verify), or in a count that
// package repair makes. Add is called for every row of the model's tables, then Added
// once; a count ends there. A verification goes on with Compare for every page of the
// same rows, OwnRow for every row of our own table, and End. A kind that has nothing to
// do for a method embeds BaseRecount.
type Recount interface {
	// Add adds what a row contributes by itself, and notes in f, unless f is nil, what it
	// cannot contribute. The row comes as the change that inserting it would be; Is is nil for
	// a row of no entity. Add does no I/O.
	Add(row *projections.Change, f *projections.Faults)
	// Added says that all rows were added.
	Added()
	// Compare compares what rows show with the recount.
	Compare(ctx context.Context, rows []projections.Change) error
	// OwnRow compares a row of our own table with the recount. It ignores rows of other
	// kinds and of other models.
	OwnRow(ctx context.Context, row value.Item) error
	// End reports what the recount demands and no row holds.
	End(ctx context.Context) error
}

// BaseRecount recounts nothing.
type BaseRecount struct{}

// Add adds nothing.
func (BaseRecount) Add(*projections.Change, *projections.Faults) {}

// Added does nothing.
func (BaseRecount) Added() {}

// Compare compares nothing.
func (BaseRecount) Compare(context.Context, []projections.Change) error { return nil }

// OwnRow compares nothing.
func (BaseRecount) OwnRow(context.Context, value.Item) error { return nil }

// End reports nothing.
func (BaseRecount) End(context.Context) error { return nil }

// RecountOf returns the recount of type T, which must be one of all: a kind finds its own
// among those that a Fix is handed. Without one it returns the zero T.
func RecountOf[T Recount](all []Recount) (found T) {
	for _, one := range all {
		if r, ok := one.(T); ok {
			found = r
		}
	}
	return found
}

// Verification is what the recounts of one verification read from and report to. One
// goroutine uses it. Yield is called with each difference as soon as it is found, in the
// order of the scan.
type Verification struct {
	Model   *model.Model
	Store   store.Store
	Index   search.Index     // nil leaves search out
	Now     func() time.Time // nil is time.Now
	Yield   func(Difference)
	Catalog owntable.CatalogRow // which ledgers targets show
	Checked int                 // derived values compared
	Unshown []Unshown           // what cannot be computed or derived
}

// Moment returns the present time, as TTL has it.
func (v *Verification) Moment() time.Time {
	if v.Now != nil {
		return v.Now()
	}
	return time.Now()
}

// Difference is a derived value that differs from what the source rows give. Its texts are
// for people, and stable: Row as RowText writes it, Want and Have as ValueText does.
type Difference struct {
	// Derivation names what differs, as verify prints it.
	Derivation string `json:"derivation"`
	Row        string `json:"row"`
	Want       string `json:"want"`
	Have       string `json:"have"`
	Fix        Fix    `json:"-"` // nil if repair cannot correct it
}

// Plain returns the difference without its Fix. Two plain differences are equal with ==
// if they say the same.
func (d Difference) Plain() Difference {
	d.Fix = nil
	return d
}

// Shown returns the difference as it may leave weir: without values that the model hides.
func (d Difference) Shown(m *model.Model) Difference {
	if m.HidesValuesOf(d.Derivation) {
		d.Want, d.Have = model.HiddenText, model.HiddenText
	}
	return d
}

// Unshown is a correct gap, which is no Difference: a distinct over its max, which its row
// therefore does not show, or a contribution that a row cannot make.
type Unshown struct {
	Derivation string `json:"derivation"`
	Row        string `json:"row"`
	Why        string `json:"cannotBeComputed"`
}

// Check counts one comparison and yields a Difference if the values differ.
func (v *Verification) Check(derivation string, row store.Ref, want, have value.Value, fix Fix) {
	v.Checked++
	if !value.Equal(want, have) {
		v.Differs(derivation, v.RowText(row), ValueText(want), ValueText(have), fix)
	}
}

// Built returns the runner of the generation that targets of an entity show, nil if that is
// the first one, which counts by positions.
func (v *Verification) Built(e *model.Entity) *Runner {
	if e == nil {
		return nil
	}
	if b, _ := v.Catalog.Builds.Of(e.Name); b.State.Shown() {
		return (&Runner{Model: v.Model, Store: v.Store}).In(b)
	}
	return nil
}

// Shows returns the tallies that rows of an entity show: those that are not pending.
func (v *Verification) Shows(e *model.Entity) []*model.Tally {
	return (&Runner{catalog: &v.Catalog}).Shows(e)
}

// Shown reports whether what has a name among the builds was built, and is shown.
func (v *Verification) Shown(name string) bool {
	shown, _ := v.Catalog.Builds.Of(name)
	return shown.State.Shown()
}

// Differs yields a Difference.
func (v *Verification) Differs(derivation, row, want, have string, fix Fix) {
	v.Yield(Difference{derivation, row, want, have, fix})
}

// Cannot reports a value that cannot be computed or derived.
func (v *Verification) Cannot(derivation string, row store.Ref, why string) {
	v.Unshown = append(v.Unshown, Unshown{derivation, v.RowText(row), v.Model.ShownText(why)})
}

// Get reads rows with strong consistency. Without refs it does no read.
func (v *Verification) Get(ctx context.Context, refs ...store.Ref) ([]value.Item, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	return v.Store.Get(ctx, refs)
}

// RowText returns a row in the form in which differences name rows.
func (v *Verification) RowText(r store.Ref) string { return RowText(v.Model, r) }

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
