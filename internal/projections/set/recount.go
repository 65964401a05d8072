package set

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// recount recounts the members of sets, and compares them with the nodes in our own table,
// and these with the rows that show them.
type recount struct {
	runner.BaseRecount
	*runner.Verification
	nodes string          // what the partition keys of nodes begin with
	sets  map[string]*set // by the text of the set's first row
}

// set is what is known of a set: from the recount, from its nodes, and from its rows.
type set struct {
	row    store.Ref
	entity *model.Entity
	want   map[string]value.Value // for each member, how many source rows name it
	nodes  map[string]*Node
	leaves map[string]value.Item // the rows, by the path of the node that they show
}

// Recount returns the kind's part in a verification.
func (Kind) Recount(v *runner.Verification) runner.Recount {
	return &recount{Verification: v, nodes: owntable.Nodes(v.Model.Name), sets: map[string]*set{}}
}

// set returns what is counted for the set of a name, and makes it when the set is first met.
func (v *recount) set(name string) *set {
	s := v.sets[name]
	if s == nil {
		s = &set{want: map[string]value.Value{}, nodes: map[string]*Node{}, leaves: map[string]value.Item{}}
		v.sets[name] = s
	}
	return s
}

// Add adds the members that a row contributes.
func (v *recount) Add(row *projections.Change, f *projections.Faults) {
	for _, a := range Fold(row, f) {
		s := v.set(owntable.RowText(a.Target))
		s.row, s.entity = a.Target, a.Entity
		m := strings.TrimPrefix(a.Field, owntable.Values(a.Entity.SetOf().Attr))
		if sum, err := value.AddNumbers(s.want[m], a.Amount); err == nil { // not in 10^9 rows
			s.want[m] = sum
		}
	}
}

// Compare notes the rows of sets.
// The rows are kept, so memory grows with the members of all sets.
func (v *recount) Compare(_ context.Context, rows []projections.Change) error {
	for i := range rows {
		f := &rows[i]
		if f.Is == nil || f.Is.SetOf() == nil {
			continue
		}
		root, path, ok := f.Is.LeafPath(f.Row.Key)
		if !ok {
			v.Differs(f.Is.SetOf().Name, v.RowText(f.Row), runner.Nothing, "a row that is none of a set's", nil)
			continue
		}
		s := v.set(owntable.RowText(store.Ref{Table: f.Row.Table, Key: root}))
		s.row, s.entity = store.Ref{Table: f.Row.Table, Key: root}, f.Is
		s.leaves[path] = f.New
	}
	return nil
}

// OwnRow notes a node of a set.
func (v *recount) OwnRow(_ context.Context, row value.Item) error {
	if name, ok := v.setOf(row.Get(owntable.Partition).Text()); ok {
		path := owntable.PathOf(row)
		v.set(name).nodes[path] = NodeFrom(path, row)
	}
	return nil
}

// setOf returns the name of the set whose nodes a partition of our own table holds. ok is
// false unless it is of the generation that rows show. It compares rows first: a set that no
// row shows and no row contributes to has an entity only in a generation.
func (v *recount) setOf(partition string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(partition, v.nodes); ok {
		if s := v.sets[name]; s != nil && s.entity != nil {
			return name, v.Built(s.entity) == nil
		}
		return name, !v.anyBuilt() && v.derives(name)
	}
	for _, b := range v.Catalog.Builds.Counting() {
		if name, ok = strings.CutPrefix(partition, owntable.Nodes(b.Ledgers(v.Model.Name))); ok {
			return name, b.State.Shown()
		}
	}
	return "", false
}

// derives reports whether the model can have a set of a name. Nodes of one that is retired stay, and
// nothing reads them.
func (v *recount) derives(name string) bool {
	row, told := owntable.RowOf(name)
	return slices.ContainsFunc(v.Model.Entities, func(e *model.Entity) bool {
		return e.SetOf() != nil && (!told || e.CanBe(row))
	})
}

// anyBuilt reports whether any set of the model was built.
func (v *recount) anyBuilt() bool {
	return slices.ContainsFunc(v.Model.Entities, func(e *model.Entity) bool { return e.SetOf() != nil && v.Built(e) != nil })
}

// End compares the rows of each set with its nodes, and the nodes with the recount. A set
// whose nodes hold nothing needs no rows.
func (v *recount) End(context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(v.sets)) {
		s := v.sets[name]
		v.tree(name, s)
		if s.entity != nil { // else no row says so and no row shows it
			v.rows(s)
		}
	}
	return nil
}

// rows compares the rows of a set with its nodes.
// The version on a row is not compared.
func (v *recount) rows(s *set) {
	for path, n := range s.nodes {
		row, attrs, there := LeafRow(s.entity, s.row, n)
		have, shown := s.leaves[path]
		delete(s.leaves, path)
		if there != shown {
			v.leaf(s, row, path, presence(there), presence(shown))
			continue
		}
		for _, a := range attrs {
			if a.Name != owntable.Version {
				v.leaf(s, row, path, a.Value, have.Get(a.Name))
			}
		}
	}
	for path := range s.leaves {
		row := store.Ref{Table: s.row.Table, Key: s.entity.LeafKey(s.row.Key, path)}
		v.leaf(s, row, path, presence(false), presence(true))
	}
}

// leaf compares what a row shows of the node with a path.
func (v *recount) leaf(s *set, row store.Ref, path string, want, have value.Value) {
	var fix runner.Fix = &LeafFix{Row: row, Entity: s.entity, Root: s.row, Path: path}
	if v.Built(s.entity) != nil {
		fix = nil // projector build puts it right
	}
	v.Check(s.entity.SetOf().Name, row, want, have, fix)
}

// presence says for people that a row exists; Missing that it does not.
func presence(there bool) value.Value {
	if there {
		return value.OfString("a row of the set")
	}
	return value.Value{}
}

// tree compares the counts in a set's tree with the recount. It also checks that a path leads
// to each node, and that each member is in the leaf of its hash.
func (v *recount) tree(name string, s *set) {
	what, row := "set", name
	var fix runner.Fix = &NodesFix{Name: name, Row: s.row, Entity: s.entity}
	if v.Built(s.entity) != nil {
		fix = nil // projector build puts it right
	}
	if s.entity != nil {
		what, row = s.entity.SetOf().Name, v.RowText(s.row)
	}
	differs := func(want, have string) { v.Differs(what, row, want, have, fix) }
	for path, n := range s.nodes {
		for i := range path {
			if up := s.nodes[path[:i]]; up == nil || !up.Inner {
				differs("no node "+path, "one that no way leads to")
			}
		}
		for _, below := range Below(path) {
			if n.Inner && s.nodes[below] == nil {
				differs("a node "+below, "none")
			}
		}
		for m, have := range n.Counts {
			v.Checked++
			want := s.want[m]
			delete(s.want, m)
			switch {
			case !strings.HasPrefix(MemberHash(m), path):
				differs(fmt.Sprintf("%q elsewhere", m), "it is in leaf "+path)
			case !value.Equal(want, have):
				differs(fmt.Sprintf("%q %s times", m, runner.ValueText(want)), runner.ValueText(have))
			}
		}
	}
	for m, want := range s.want {
		if want.Sign() != 0 {
			differs(fmt.Sprintf("%q %s times", m, runner.ValueText(want)), runner.Nothing)
		}
	}
}
