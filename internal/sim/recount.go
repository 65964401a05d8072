package sim

import (
	"context"
	"slices"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
	"weir/internal/verify"
)

// recount has verify look: it must find nothing, and then what is spoilt.
func (w *world) recount() {
	if len(w.kept()) > 0 { // of what is kept it says so
		return
	}
	if found := w.verify(); len(found) > 0 {
		w.fail(Reordered, "verify: it finds %+v, where all is well", found[0])
		return
	}
	d := newDice(w.seed, "spoil", 0)
	for range 3 {
		what, mend := w.spoil(d)
		if what == "" {
			continue
		}
		w.counted["spoilt"]++
		if len(w.verify()) == 0 {
			w.fail(Lost, "verify: it finds nothing wrong with %s", what)
		}
		mend()
	}
}

func (w *world) verify() (found []verify.Difference) {
	v := verify.Verify{Model: w.model, Store: w.base}
	if len(w.model.Searches) > 0 {
		v.Index = w.index
	}
	err := v.Run(context.Background(), func(d verify.Difference) { found = append(found, d) })
	if err != nil {
		w.fail(Stuck, "verify: %v", err)
	}
	return found
}

// spoil makes one derived value wrong behind everybody's back.
func (w *world) spoil(d *dice) (what string, mend func()) {
	type choice struct {
		what string
		do   func() (undo func())
	}
	var all []choice
	put := func(t *table, k store.Key, row value.Item) func() func() {
		return func() func() {
			old := t.get(k)
			t.put(k, row)
			return func() { t.put(k, old) }
		}
	}
	for _, mt := range w.model.Tables {
		t := w.base.tables[mt.Name]
		t.each(func(k store.Key, row value.Item) {
			e := mt.Classify(row)
			if e == nil {
				return
			}
			name := refName(store.Ref{Table: t.Name, Key: k})
			for _, y := range e.Values {
				switch {
				case y.Hidden:
				case y.Kind == model.Set:
					if row.Has(y.Attr) {
						all = append(all, choice{"a part of the set in " + name, put(t, k, nil)})
					}
				default:
					all = append(all, choice{y.Attr + " of " + name, put(t, k, row.With(value.Attr{Name: y.Attr, Value: value.OfInt(77)}))})
				}
			}
			if e.Derived && e.SetOf() == nil && !history(e) {
				all = append(all, choice{"the row " + name, put(t, k, nil)})
			}
		})
	}
	t := w.base.tables[book.TableName]
	t.each(func(k store.Key, row value.Item) {
		for _, a := range row {
			if len(a.Name) > 2 && a.Name[:2] == "a:" {
				all = append(all, choice{a.Name + " in " + k.Partition.Text(), put(t, k, row.With(value.Attr{Name: a.Name, Value: value.OfInt(77)}))})
			}
		}
	})
	var names []string
	for name, doc := range w.index.docs {
		if !doc.Deleted {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, choice{"the document " + name, func() func() {
			was := w.index.docs[name]
			w.index.docs[name] = search.Document{Index: was.Index, ID: was.ID, Position: was.Position, Deleted: true}
			return func() { w.index.docs[name] = was }
		}})
	}
	if len(all) == 0 {
		return "", nil
	}
	c := pick(d, all)
	return c.what, c.do()
}
