package query

import (
	"weir/internal/owntable"
	"weir/internal/projections/set"
	"weir/internal/store"
	"weir/internal/value"
)

// getSets gets sets: for each row before, the one row that a set is to those who
// ask, made of the rows that hold it. An empty set is no row.
func (w *walk) getSets(depth int, from []found, resume []store.Cursor) (bool, error) {
	st := w.plan.steps[depth]
	for i, f := range from {
		if i > 0 && w.notePassed(from[i-1].at) {
			return false, nil
		}
		sc := w.scopeAfter(f.row)
		var row value.Item
		for _, key := range st.keysOf(st.lookupFor(sc)) {
			if row != nil || !st.Entity.Takes(key) {
				continue
			}
			var err error
			if row, err = w.gatherWhole(st, key); err != nil {
				return false, err
			}
		}
		if row == nil {
			continue
		}
		if more, err := w.descendFrom(depth+1, []found{{row, f.at}}, resume); !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// attempts is how often a set is read that changes its rows meanwhile. A row that
// was split has sixteen below it; where one is missing, they have become one since
// it was read, and the one holds their members now.
const attempts = 5

// gatherWhole gathers a set from its rows. It reads again if a leaf was split meanwhile, up to
// attempts times, and then returns the rows that it has: members may be missing that were moved while it
// read.
func (w *walk) gatherWhole(st *step, root store.Key) (value.Item, error) {
	for n := 1; ; n++ {
		g := gathered{step: st, root: root, members: map[string]value.Value{}, inner: map[string]bool{}, leaves: map[string]bool{}}
		if err := w.gatherSet(&g); err != nil {
			return nil, err
		}
		if g.isComplete() || n == attempts {
			return g.setRow(), nil
		}
	}
}

// gathered is the rows that were read of a set.
type gathered struct {
	*step
	root          store.Key
	members       map[string]value.Value
	inner, leaves map[string]bool // the paths of rows
}

// gatherSet reads all rows of a set, strongly as the store's queries are, but not at one moment.
// A split or merge meanwhile may show a member in two parts, or in none, for a moment; members are
// collected by value, so one is never given twice.
func (w *walk) gatherSet(g *gathered) error {
	e := g.Entity
	q := store.Query{Table: e.Table.Name, Partition: g.root.Partition, Sort: e.LeafRange(g.root)}
	for {
		page, err := w.readPage(w.ctx, q)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			g.addRow(row)
		}
		if page.Next == nil {
			return nil
		}
		q.After = page.Next
	}
}

// addRow takes a row of the partition into the set if it is one of its parts. Rows of other sets and
// of other entities are passed over.
func (g *gathered) addRow(row value.Item) {
	e := g.Entity
	key, ok := e.Table.KeyOf(row)
	if !ok {
		return
	}
	root, path, ok := e.LeafPath(key)
	if !ok || compareKeys(root, g.root) != 0 {
		return
	}
	if row.Has(owntable.InnerLeaf) {
		g.inner[path] = true
		return
	}
	g.leaves[path] = true
	if of := e.SetOf(); row.Get(of.Attr).Kind() == set.ValueKind(of) {
		for _, m := range row.Get(of.Attr).Elements() {
			g.members[m.Value.Text()] = m.Value
		}
	}
}

// isComplete reports whether every row that was split has all sixteen below it.
func (g *gathered) isComplete() bool {
	for path := range g.inner {
		for _, p := range set.PathsBelow(path) {
			if !g.inner[p] && !g.leaves[p] {
				return false
			}
		}
	}
	return true
}

// setRow is the set as one row, or nil if it has no members.
func (g *gathered) setRow() value.Item {
	if len(g.members) == 0 {
		return nil
	}
	elems := make([]value.Attr, 0, len(g.members))
	for _, v := range g.members {
		elems = append(elems, value.Attr{Value: v})
	}
	of := g.Entity.SetOf()
	v, _ := value.OfElements(set.ValueKind(of), elems)
	return g.Entity.Table.Item(g.root).With(value.Attr{Name: of.Attr, Value: v})
}
