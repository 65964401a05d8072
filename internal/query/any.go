package query

import (
	"cmp"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// anyHolds reports whether one of the fields of which any will do is among the
// values asked for. Where none of them is asked for every row will do.
func (s *step) anyHolds(row value.Item, sc scope) bool {
	asked := false
	for i := range s.Any {
		b := &s.Any[i]
		want := s.fixedValue(b, sc)
		if want.IsMissing() {
			continue
		}
		asked = true
		have := b.Field.Elements(s.readField(b.Field, row))
		if slices.ContainsFunc(want.Elements(), func(e value.Attr) bool { return value.Asked(have, e.Value) }) {
			return true
		}
	}
	return !asked
}

// pick is how rows are found by keys that lists of values make: each name of the
// table's key is fixed, listed, or one of the few values that its field can have.
// It saves reading a whole partition for a few rows of it; the rows are the same either way.
type pick struct {
	bind  model.Bind          // the list
	enums map[string][]string // of the names that are left
}

// maxPicked is how many keys are made of lists; a longer one is looked for among
// all rows of the partition.
const maxPicked = 2 * maxListed

// newPick returns how a step's rows are found by the keys that a list makes, or nil if its keys
// are not all known and the rows of the partition have to be looked through.
func newPick(s *step) *pick {
	if len(s.Any) != 1 || s.Index != nil || s.Get || len(s.kinds) > 0 {
		return nil
	}
	p := &pick{bind: s.Any[0], enums: map[string][]string{}}
	found := false
	for _, k := range s.primary {
		if k.tmpl != nil && strings.Contains(k.tmpl.String(), "[") {
			return nil // a key may be with or without its tail
		}
		for _, name := range k.names() {
			a := s.Entity.Attribute(name)
			switch {
			case name == p.bind.Field.Name:
				found = true
			case s.Bound(name) != nil:
			case a != nil && len(a.Enum) > 0:
				p.enums[name] = a.Enum
			default:
				return nil
			}
		}
	}
	if !found {
		return nil
	}
	return p
}

// pickedKeys are the keys that the rows asked for can have, in order and each once; ok
// is false where the rows have to be read to be found.
func (s *step) pickedKeys(sc scope) (keys []store.Key, ok bool) {
	if s.pick == nil {
		return nil, false
	}
	list := s.fixedValue(&s.pick.bind, sc)
	if list.IsMissing() {
		return nil, false
	}
	fixed := s.lookupFor(sc)
	sets := seq.Map(list.Elements(), func(e value.Attr) map[string]value.Value {
		return map[string]value.Value{s.pick.bind.Field.Name: e.Value}
	})
	for name, enum := range s.pick.enums {
		if b := s.Bound(name); b != nil && !s.fixedValue(b, sc).IsMissing() {
			continue
		}
		var more []map[string]value.Value
		for _, m := range sets {
			for _, v := range enum {
				one := map[string]value.Value{name: value.OfString(v)}
				for k, have := range m {
					one[k] = have
				}
				more = append(more, one)
			}
		}
		if sets = more; len(sets) > maxPicked {
			return nil, false
		}
	}
	for _, m := range sets {
		keys = append(keys, s.keysOf(func(name string) value.Value {
			if v, ok := m[name]; ok {
				return v
			}
			return fixed(name)
		})...)
	}
	slices.SortFunc(keys, pickedOrder)
	keys = slices.CompactFunc(keys, func(a, b store.Key) bool { return compareKeys(a, b) == 0 })
	if s.Reverse {
		slices.Reverse(keys)
	}
	return keys, true
}

// pickedOrder is the order of the rows of one partition; of two where its key is spelled in
// two ways.
func pickedOrder(a, b store.Key) int {
	return cmp.Or(compareSorts(a.Sort, b.Sort), compareKeys(a, b))
}

// readPicked reads rows by the keys that lists make, and goes on from those there.
// Reading by keys costs a read for each key of the lists, and no scan of the partition; the units that a
// page may cost bound it as any other read.
func (w *walk) readPicked(depth int, f found, keys []store.Key, resume []store.Cursor) (bool, error) {
	st := w.plan.steps[depth]
	if len(resume) > 0 {
		at, before := slices.BinarySearchFunc(keys, resume[0].Key, func(k, to store.Key) int {
			if st.Reverse {
				k, to = to, k
			}
			return pickedOrder(k, to)
		})
		if more, err := w.resumeInside(depth, w.scopeAfter(f.row), f, resume); !more || err != nil {
			return false, err
		}
		if before {
			at++
		}
		keys = keys[at:]
	}
	for len(keys) > 0 {
		batch := keys[:min(maxBatch, len(keys))]
		rows, err := w.fetchRows(w.ctx, st, batch, func(int) scope { return w.scopeAfter(f.row) })
		if err != nil {
			return false, err
		}
		var there []found
		for i, row := range rows {
			if row != nil {
				there = append(there, found{row, behindRow(f.at, store.Cursor{Key: batch[i]})})
			}
		}
		if more, err := w.descendFrom(depth+1, there, nil); !more || err != nil {
			return false, err
		}
		if keys = keys[len(batch):]; len(keys) > 0 && w.notePassed(behindRow(f.at, store.Cursor{Key: batch[len(batch)-1]})) {
			return false, nil
		}
	}
	return true, nil
}
