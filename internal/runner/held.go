package runner

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Some kinds keep one row of our own table for the report of a source row: a fact, a subscriber.
// It carries the position of the newest change that said it, or took it back. In a
// generation it also names its source row. A builder puts such a row only where there is
// none, not even one that takes it back, so nothing older than a change replaces the report that the
// change made.

// DerivedRow is a row of our own table that a source row leads to, in a generation.
type DerivedRow struct {
	Ref store.Ref
	Row value.Item // as a builder puts it
}

// DerivedRowOf returns the row that a write makes where there is none, with its source row.
func (r *Runner) DerivedRowOf(w store.Write, source store.Ref) DerivedRow {
	row := append(owntable.RefItem(w.Ref), r.SourceAttrs(source)...)
	row = append(row, seq.Map(w.Ops, func(op store.Op) value.Attr { return value.Attr{Name: op.Attr, Value: op.Value} })...)
	return DerivedRow{w.Ref, value.NewItem(row...)}
}

// isGeneration reports whether this is the runner of a generation that was built.
func (r *Runner) isGeneration() bool { return r.base > 0 }

// WithSource makes the write of a row of a generation name its source row.
func (r *Runner) WithSource(w store.Write, source store.Ref) store.Write {
	switch attrs := r.SourceAttrs(source); {
	case w.Put != nil:
		w.Put = w.Put.With(attrs...)
	default:
		w.Ops = append(w.Ops, store.AssignAll(attrs)...)
	}
	return w
}

// SourceAttrs returns the attributes by which a row of a generation names its source row.
func (r *Runner) SourceAttrs(source store.Ref) []value.Attr {
	if t := r.Model.Table(source.Table); t != nil && r.isGeneration() {
		return owntable.SourceAttrs(source, t.Item(source.Key))
	}
	return nil
}

// heldAtOnce bounds a transaction that puts such rows, and its bytes.
const (
	heldAtOnce = 90
	heldBytes  = 2 << 20
)

// PutHeld puts those rows that do not exist. guard is part of each transaction. The error
// wraps ErrLost if a guard no longer holds.
func (r *Runner) PutHeld(ctx context.Context, hs []DerivedRow, guard ...store.Write) error {
	var refs []store.Ref
	var rows []value.Item
	at, size := map[string]int{}, 0
	for i := range hs {
		h := &hs[i]
		name := h.Ref.Key.Partition.Text() + "\x00" + h.Ref.Key.Sort.Text()
		if n, twice := at[name]; twice {
			rows[n] = h.Row
		} else {
			at[name] = len(refs)
			refs, rows = append(refs, h.Ref), append(rows, h.Row)
		}
		if size += h.Row.Size(); len(refs) < heldAtOnce && size < heldBytes && i+1 < len(hs) {
			continue
		}
		if err := r.putHeld(ctx, refs, rows, guard); err != nil {
			return err
		}
		refs, rows, at, size = nil, nil, map[string]int{}, 0
	}
	return nil
}

// putHeld writes rows of our own table where there is none yet, all in one transaction under
// guard, and leaves those that exist. It reads again after a conflict, and gives up with an
// error after contributeTries.
func (r *Runner) putHeld(ctx context.Context, refs []store.Ref, rows []value.Item, guard []store.Write) error {
	for range contributeTries {
		have, err := r.Get(ctx, refs)
		if err != nil {
			return err
		}
		ws := guard[:len(guard):len(guard)]
		for i := range refs {
			if have[i] == nil {
				ws = append(ws, store.Write{Ref: refs[i], Put: rows[i], If: owntable.NotThere()})
			}
		}
		if len(ws) == len(guard) {
			return nil
		}
		done, err := TransactionOutcome(r.Store.Transact(ctx, ws))
		if done || err != nil {
			return err
		}
		if err := r.CheckGuard(ctx, guard); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s changes all the time", refs[0])
}

// ErrLost says that another builder has taken over.
var ErrLost = errors.New("another builder has taken over")

// CheckGuard returns ErrLost if the condition of a guard no longer holds. Call it when a
// transaction with the guard has failed, before trying again: it tells whose condition it was.
func (r *Runner) CheckGuard(ctx context.Context, guard []store.Write) error {
	for _, g := range guard {
		row, err := r.GetRow(ctx, g.Ref)
		if err != nil {
			return err
		}
		if !g.If.Holds(row) {
			return ErrLost
		}
	}
	return nil
}

// DerivedRows returns the rows that a source row leads to in a generation, whose runner this is.
// name is the name of the build. unfit says which of its derivations cannot use the row.
func (r *Runner) DerivedRows(name string, c *projections.Change) (hs []DerivedRow, unfit []projections.Fault) {
	var faults projections.Faults
	hs = seq.Flat(r.Kinds, func(k Kind) []DerivedRow { return k.DerivedRows(r, name, c, &faults) })
	return hs, seq.Where(faults.NewFaults(), func(f projections.Fault) bool { return r.Model.Builds()[f.Derivation] == name })
}

// AuditHeld compares a row of our own table with the row that its source row leads to, which
// is read after it, and puts it right. differs reports whether there was anything to do. A
// row that has changed since it was read is left: the change is newer.
func (r *Runner) AuditHeld(ctx context.Context, name string, have value.Item, guard ...store.Write) (differs bool, err error) {
	source, is, err := r.sourceOf(ctx, have)
	if err != nil || source.Table == "" {
		return false, err
	}
	ref := owntable.Ref(have.Get(owntable.Partition).Text(), have.Get(owntable.Sort).Text())
	t := r.Model.Table(source.Table)
	c := projections.Change{Table: t, Row: source, Is: t.Classify(is), New: is}
	for _, k := range r.Kinds {
		var want *DerivedRow
		for _, h := range k.DerivedRows(r, name, &c, nil) {
			if projections.SameRow(h.Ref, ref) {
				want = &h
			}
		}
		w, mine, err := k.Audit(ctx, r, have, want)
		if err != nil {
			return false, err
		}
		if !mine || w.Ref.Table == "" {
			continue
		}
		done, err := TransactionOutcome(r.Store.Transact(ctx, append(guard[:len(guard):len(guard)], w)))
		if !done && err == nil {
			err = r.CheckGuard(ctx, guard)
		}
		return true, err
	}
	return false, nil
}

var errSource = errors.New("a row of a build is of a source row that the model cannot have; run projector build MODEL again")

// sourceOf returns the source row that a row of a generation names, and reads it. The table is "" if it
// names none.
func (r *Runner) sourceOf(ctx context.Context, have value.Item) (store.Ref, value.Item, error) {
	table, key := owntable.SourceOf(have)
	if table == "" {
		return store.Ref{}, nil, nil
	}
	t := r.Model.Table(table)
	if t == nil {
		return store.Ref{}, nil, errSource
	}
	k, ok := t.KeyOf(key)
	if !ok {
		return store.Ref{}, nil, errSource
	}
	ref := store.Ref{Table: table, Key: k}
	row, err := r.GetRow(ctx, ref)
	return ref, row, err
}
