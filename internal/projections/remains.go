package projections

import (
	"slices"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// Remains is what a derivation leaves on rows of an entity once nothing derives it any more. The
// zero Remains is nothing.
type Remains struct {
	// Makes reports whether a row can be one that it has made; nil for a derivation that makes none.
	// Only weir makes rows of such an entity.
	Makes func(row value.Item) bool
	// Told says that the key of each row that it has made, or shows something on, has a constant, by
	// which Makes and Within tell it.
	Told bool
	// Within reports whether a row can be one of those that have Attrs; nil for all rows of the entity.
	Within func(row value.Item) bool
	Attrs  []string // attributes that only weir writes, with what it notes beside them
	Over   []string // attributes in which weir shows another value than the application wrote
}

// With adds what another derivation leaves on the same rows, whatever their Within says. The result
// shares no memory with either that a caller may change.
func (r Remains) With(o Remains) Remains {
	makes := r.Makes
	if o.Makes != nil {
		makes = func(row value.Item) bool { return r.Made(row) || o.Makes(row) }
	}
	return Remains{Makes: makes, Attrs: slices.Concat(r.Attrs, o.Attrs), Over: slices.Concat(r.Over, o.Over)}
}

// Made reports whether a row, as a whole, can be of it.
func (r Remains) Made(row value.Item) bool { return r.Makes != nil && r.Makes(row) }

// On reports whether a row has anything of it that is weir's. An attribute on a row without a
// Version is another program's: weir has never shown a value there, or the application has put the row again.
func (r Remains) On(row value.Item) bool {
	return row.Has(owntable.Version) && (r.Made(row) || slices.ContainsFunc(r.Attrs, row.Has)) || slices.ContainsFunc(r.Over, func(name string) bool {
		_, _, noted := owntable.Covered(row, name)
		return noted
	})
}

// Remove returns the write that takes it from a row: rows are deleted, attributes removed, and what
// the application wrote below a status comes back. version says that the row keeps its Version, since
// something else is shown on it. The condition is that all of this is as it was read. ok is false
// if there is nothing to do.
func (r Remains) Remove(at store.Ref, row value.Item, version bool) (w store.Write, ok bool) {
	if !r.On(row) {
		return w, false
	}
	w = store.Write{Ref: at, If: store.Cond{{store.AsRead(owntable.Version, row.Get(owntable.Version))}}}
	if r.Made(row) {
		w.Delete = true
		return w, true
	}
	names := r.restore(&w, row)
	if row.Has(owntable.Version) {
		for _, name := range r.Attrs {
			if row.Has(name) {
				names = append(names, name)
				w.Ops = append(w.Ops, store.Op{Kind: store.Remove, Attr: name})
			}
		}
		if !version {
			w.Ops = append(w.Ops, store.Op{Kind: store.Remove, Attr: owntable.Version})
		}
	}
	for _, name := range names {
		w.If = append(w.If, []store.Test{store.AsRead(name, row.Get(name))})
	}
	return w, true
}

// restore adds what gives an application its own values back, and returns the attributes that it
// depends on. A value that the application has written over the shown one stays, and only the note
// of what is below it goes. Notes of other statuses on the row stay.
func (r Remains) restore(w *store.Write, row value.Item) (names []string) {
	gone := map[string]bool{}
	for _, name := range r.Over {
		own, shown, noted := owntable.Covered(row, name)
		if !noted || gone[name] {
			continue
		}
		gone[name], names = true, append(names, name)
		if value.Equal(shown, row.Get(name)) {
			w.Ops = append(w.Ops, store.Assign(name, own))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	notes := row.Get(owntable.Own).Item().Filter(func(name string) bool { return !gone[name] })
	if len(notes) == 0 {
		w.Ops = append(w.Ops, store.Op{Kind: store.Remove, Attr: owntable.Own})
	} else {
		w.Ops = append(w.Ops, store.Assign(owntable.Own, value.OfMap(notes)))
	}
	return append(names, owntable.Own)
}
