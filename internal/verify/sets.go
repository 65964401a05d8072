package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// set is what is known of a set: from the recount, from its nodes, and from its rows.
type set struct {
	row    store.Ref
	entity *model.Entity
	want   map[string]value.Value // for each member, how many source rows name it
	nodes  map[string]*projections.Node
	leaves map[string]value.Item // the rows, by the path of the node that they show
}

func (v *Verify) set(name string) *set {
	s := v.sets[name]
	if s == nil {
		s = &set{want: map[string]value.Value{}, nodes: map[string]*projections.Node{}, leaves: map[string]value.Item{}}
		v.sets[name] = s
	}
	return s
}

// member adds the member that a source row contributes to a set.
func (v *Verify) member(a projections.Add) {
	s := v.set(book.RowText(a.Target))
	s.row, s.entity = a.Target, a.Entity
	m := strings.TrimPrefix(a.Field, book.Values(a.Entity.SetOf().Attr))
	if sum, err := value.AddNumbers(s.want[m], a.Amount); err == nil {
		s.want[m] = sum
	}
}

// leaf notes a row of a set.
func (v *Verify) leaf(f *found) {
	root, path, ok := f.Is.LeafPath(f.Row.Key)
	if !ok {
		v.differs(f.Is.SetOf().Name, rowText(v.Model, f.Row), "nothing", "a row that is none of a set's", What{})
		return
	}
	s := v.set(book.RowText(store.Ref{Table: f.Row.Table, Key: root}))
	s.row, s.entity = store.Ref{Table: f.Row.Table, Key: root}, f.Is
	s.leaves[path] = f.New
}

// node notes a node of a set's tree.
func (v *Verify) node(name string, row value.Item) {
	path := book.PathOf(row)
	v.set(name).nodes[path] = projections.NodeFrom(path, row)
}

// compareSets compares the rows of each set with its nodes, and the nodes with the recount.
// A set whose nodes hold nothing needs no rows.
func (v *Verify) compareSets() {
	for _, name := range slices.Sorted(maps.Keys(v.sets)) {
		s := v.sets[name]
		v.tree(name, s)
		if s.entity == nil { // no row says so and no row shows it
			continue
		}
		for path, n := range s.nodes {
			row, attrs, there := projections.LeafRow(s.entity, s.row, n)
			have, shown := s.leaves[path]
			delete(s.leaves, path)
			if there != shown {
				v.check(s.entity.SetOf().Name, row, presence(there), presence(shown), s.leafAt(row, path))
				continue
			}
			for _, a := range attrs {
				if a.Name == book.Version {
					continue
				}
				v.check(s.entity.SetOf().Name, row, a.Value, have.Get(a.Name), s.leafAt(row, path))
			}
		}
		for path := range s.leaves {
			row := store.Ref{Table: s.row.Table, Key: s.entity.LeafKey(s.row.Key, path)}
			v.check(s.entity.SetOf().Name, row, presence(false), presence(true), s.leafAt(row, path))
		}
	}
}

// leafAt returns the What of a row of the set.
func (s *set) leafAt(row store.Ref, path string) What {
	return What{Kind: Leaf, Row: row, Entity: s.entity, Of: s.row, Name: path}
}

func presence(there bool) value.Value {
	if there {
		return value.OfString("a row of the set")
	}
	return value.Value{}
}

// tree compares the counts in a set's tree with the recount. It also checks that a path leads
// to each node, and that each member is in the leaf of its hash.
func (v *Verify) tree(name string, s *set) {
	what, of := "set", What{Kind: Set, Name: name, Row: s.row, Entity: s.entity}
	if s.entity != nil {
		what, name = s.entity.SetOf().Name, rowText(v.Model, s.row)
	}
	differs := func(want, have string) { v.differs(what, name, want, have, of) }
	for path, n := range s.nodes {
		for i := range path {
			if up := s.nodes[path[:i]]; up == nil || !up.Inner {
				differs("no node "+path, "one that no way leads to")
			}
		}
		for _, below := range projections.Below(path) {
			if n.Inner && s.nodes[below] == nil {
				differs("a node "+below, "none")
			}
		}
		for m, have := range n.Counts {
			v.Checked++
			want := s.want[m]
			delete(s.want, m)
			switch {
			case !strings.HasPrefix(projections.MemberHash(m), path):
				differs(fmt.Sprintf("%q elsewhere", m), "it is in leaf "+path)
			case !value.Equal(want, have):
				differs(fmt.Sprintf("%q %s times", m, text(want)), text(have))
			}
		}
	}
	for m, want := range s.want {
		if want.Sign() != 0 {
			differs(fmt.Sprintf("%q %s times", m, text(want)), "nothing")
		}
	}
}
