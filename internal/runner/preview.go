package runner

import (
	"context"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Preview is one kind's part in a dry run of one build: it says what rows will show of what is
// new or changed. Add is called for each source row of the build, then Compare for each row on
// which it is shown, then End. Calls come one at a time.
type Preview interface {
	// Add takes in a source row, as the change that inserting it would be.
	Add(row *projections.Change)
	// Compare compares what a row shows with what it will show.
	Compare(row *projections.Change) error
	// End says what no row has told.
	End(ctx context.Context) error
}

// BasePreview says nothing.
type BasePreview struct{}

// Add takes in nothing.
func (BasePreview) Add(*projections.Change) {}

// Compare compares nothing.
func (BasePreview) Compare(*projections.Change) error { return nil }

// End says nothing.
func (BasePreview) End(context.Context) error { return nil }

// Previewing is what previews of a build read from and report to.
type Previewing struct {
	*Runner               // sees the catalog as it is
	Build   string        // the build's name
	Entity  *model.Entity // on whose rows it is shown, nil for subscribers and what is built in place
	Says    PreviewSays
}

// PreviewSays takes in what previews say.
type PreviewSays interface {
	// Tells reports whether a derivation is new or changed, or built again, so that a preview
	// should say what becomes of it. From then on the dry run has an entry for it.
	Tells(derivation string) bool
	// Compared says that a row was compared.
	Compared(derivation string)
	// Differs says that a row will show something else, in the words of verify.
	Differs(derivation, row, is, will string)
}

// What a preview holds at most. Beyond, it says nothing of some rows, and never something wrong.
const (
	PreviewTargets = 20_000  // targets at a time
	PreviewValues  = 400_000 // values of them, which distinct values and sets have many of
)

// Row says what a row shows, and what it will show, where that differs.
func (p *Previewing) Row(derivation string, row store.Ref, is, will value.Value) {
	p.Says.Compared(derivation)
	if !value.Equal(is, will) {
		p.Says.Differs(derivation, RowText(p.Model, row), ValueText(is), ValueText(will))
	}
}
