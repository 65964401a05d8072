package runner

import (
	"context"
	"errors"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Kind is one kind of projection. Each is a package of its own below
// internal/projections, which holds all that is particular to the kind; the runner knows
// no kind. A runner is given the list of kinds (package kinds), in the order in which
// they apply a batch. A kind that has nothing to do for a method embeds Base.
type Kind interface {
	// Begin returns the kind's part of a batch, before any change of it is folded. It
	// does no I/O.
	Begin(m *model.Model, g *projections.Gathered) Part
	// Orders returns the decider where the order of changes of different rows matters to
	// the kind, or nil if it matters nowhere in the model.
	Orders(m *model.Model) Order
	// Documents returns the documents of a change, which are written after
	// the rows of its event. Documents is pure.
	Documents(m *model.Model, c *projections.Change) []search.Document
	// Limits notes effects of a row, the new image of c, that could never be derived: it
	// exceeds a limit of the store or of an index. Limits is pure.
	Limits(x *projections.Limits, c *projections.Change, from projections.Origin)
	// Shows reports whether Show makes rows of the entity show all that is derived on
	// them. It is pure.
	Shows(e *model.Entity) bool
	// Show makes a row show all that is derived on it. An error that wraps
	// store.ErrRefused says why the row cannot; it has a letter then (Runner.NoteShown).
	Show(ctx context.Context, r *Runner, target store.Ref) error
	// Letters returns the kinds of dead letters that Retry applies again.
	Letters() []deadletter.Kind
	// Retry applies again the change of a dead letter. The runner deletes the letter then, unless something was
	// refused, and so kept, once more.
	Retry(ctx context.Context, r *Runner, d *deadletter.Letter) (kept bool, err error)
	// Lists returns which rows of our own table are lists of the kind that may become jobs, by
	// the first word of their partition keys; "" for none.
	Lists() string
	// Serve serves rows of such a list. last says that no more follow. It may be repeated.
	Serve(ctx context.Context, r *Runner, job *owntable.Job, rows []value.Item, last bool) error
	// DerivedRows returns the rows of our own table that a row, the new image of c, leads to in a
	// generation, whose runner is r, as a builder puts them. name is the name of the build.
	// faults takes in the derivations that cannot use the row, and may be nil. Holds is pure otherwise.
	DerivedRows(r *Runner, name string, c *projections.Change, faults *projections.Faults) []DerivedRow
	// Audit compares such a row with the one that its source row leads to, nil for none. It
	// returns the write that puts it right, on condition that the row has not changed since
	// it was read; empty if there is nothing to do. mine is false if the row is another
	// kind's.
	Audit(ctx context.Context, r *Runner, have value.Item, want *DerivedRow) (w store.Write, mine bool, err error)
	// Fixes returns the derived rows of a row that are made in place, and those that such a row may be wrong in: all that a builder
	// has to compare. A row of the application is the new image of c; of a row of our own table, c has nothing else. Fixes
	// is pure.
	Fixes(m *model.Model, c *projections.Change) []Fix
}

// Part is the work of one batch for a kind. Fold is pure and is called for each change, in
// the order of the stream. The other methods do the work, each for all kinds in the order
// of the list before the next begins. After an error the batch is applied again from the
// beginning, so repeating any of them must be safe.
type Part interface {
	// Fold takes in the work of the i-th change of the batch.
	Fold(i int, c *projections.Change)
	// Record keeps the rows that later steps of any kind read from our own table.
	Record(ctx context.Context, w *Work) error
	// Apply writes the work of the batch.
	Apply(ctx context.Context, w *Work) error
	// Mend puts right rows that other writers have touched.
	Mend(ctx context.Context, w *Work) error
}

// Order cuts a run of changes into phases where the order of changes of different rows
// matters.
type Order interface {
	// BeginsPhase reports whether a change, which is the next in the run, begins a new phase.
	BeginsPhase(c *projections.Change) bool
	// ConcernsOrder reports whether the order of a change among the changes of other rows
	// matters, given the row's old and new entity.
	ConcernsOrder(was, is *model.Entity) bool
}

// Base is a kind without any work. Kinds embed it for the methods that they do not need.
type Base struct{}

// Begin returns a part that asks for nothing.
func (Base) Begin(*model.Model, *projections.Gathered) Part { return BasePart{} }

// Orders returns nil: the order of changes of different rows does not matter.
func (Base) Orders(*model.Model) Order { return nil }

// Documents returns no documents.
func (Base) Documents(*model.Model, *projections.Change) []search.Document { return nil }

// Limits notes nothing.
func (Base) Limits(*projections.Limits, *projections.Change, projections.Origin) {}

// Shows returns false: the runner shows the values of ledgers.
func (Base) Shows(*model.Entity) bool { return false }

// Show is never called, because Shows returns false.
func (Base) Show(context.Context, *Runner, store.Ref) error { return nil }

// showingKind returns the kind that shows all that is derived on rows of the entity, or nil if
// such rows show only their ledgers, also because a status is pending.
func (r *Runner) showingKind(e *model.Entity) Kind {
	if e == nil || slices.ContainsFunc(e.Recomputes(), r.IsPending) {
		return nil
	}
	return seq.Find(r.Kinds, func(k Kind) bool { return k.Shows(e) })
}

// Letters returns no kinds of dead letters.
func (Base) Letters() []deadletter.Kind { return nil }

// Retry returns deadletter.ErrNoRetry. It is never called, because there are no Letters.
func (Base) Retry(context.Context, *Runner, *deadletter.Letter) (bool, error) {
	return false, deadletter.ErrNoRetry
}

// Lists returns "".
func (Base) Lists() string { return "" }

// Serve is never called, because there are no Lists.
func (Base) Serve(context.Context, *Runner, *owntable.Job, []value.Item, bool) error { return ErrNoJob }

// DerivedRows returns no rows.
func (Base) DerivedRows(*Runner, string, *projections.Change, *projections.Faults) []DerivedRow {
	return nil
}

// Audit takes no row.
func (Base) Audit(context.Context, *Runner, value.Item, *DerivedRow) (w store.Write, mine bool, err error) {
	return store.Write{}, false, nil
}

// BasePart is a part that asks for nothing. Parts embed it for the methods that they do
// not need.
type BasePart struct{}

// Fold takes in nothing.
func (BasePart) Fold(int, *projections.Change) {}

// Record keeps nothing.
func (BasePart) Record(context.Context, *Work) error { return nil }

// Apply writes nothing.
func (BasePart) Apply(context.Context, *Work) error { return nil }

// Mend mends nothing.
func (BasePart) Mend(context.Context, *Work) error { return nil }

// errNoKinds reports a mistake in the program that created the runner: without kinds,
// nothing would be derived, without any error.
var errNoKinds = errors.New("the runner was made without kinds of projection")

// Fixes returns nothing.
func (Base) Fixes(*model.Model, *projections.Change) []Fix { return nil }
