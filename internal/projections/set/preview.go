package set

import (
	"context"
	"maps"
	"slices"
	"strings"

	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// preview says which sets will have other members, whatever rows show them. Of too many members
// it says nothing.
type preview struct {
	runner.BasePreview
	*runner.Previewing
	name string // of the set, "" if it is not new or changed
	sets map[string]*previewed
	held int
}

// previewed are the members of one set.
type previewed struct {
	row   store.Ref
	is    map[string]bool
	count map[string]value.Value // how many source rows name a member
}

// Preview returns the kind's part in a dry run.
func (Kind) Preview(p *runner.Previewing) runner.Preview {
	v := &preview{Previewing: p, sets: map[string]*previewed{}}
	if p.Entity != nil && p.Entity.SetOf() != nil && p.Says.Tells(p.Entity.SetOf().Name) {
		v.name = p.Entity.SetOf().Name
	}
	return v
}

// set returns what is counted for a set, and makes it when the set is first met.
func (v *preview) set(row store.Ref) *previewed {
	name := owntable.RowText(row)
	s := v.sets[name]
	if s == nil {
		s = &previewed{row: row, is: map[string]bool{}, count: map[string]value.Value{}}
		v.sets[name] = s
	}
	return s
}

// full reports whether there are too many members.
func (v *preview) full() bool { return v.name == "" || v.held > runner.PreviewValues }

// Add takes in the members that a row contributes.
// Beyond runner.PreviewValues members nothing more is taken in, and nothing compared.
func (v *preview) Add(row *projections.Change) {
	if v.full() {
		return
	}
	begins := owntable.Values(v.Entity.SetOf().Attr)
	for _, a := range Fold(row, nil) {
		if a.Entity != v.Entity {
			continue
		}
		s, member := v.set(a.Target), strings.TrimPrefix(a.Field, begins)
		if sum, err := value.AddNumbers(s.count[member], a.Amount); err == nil { // not in 10^9 rows
			s.count[member] = sum
			v.held++
		}
	}
}

// Compare takes in the members that a row shows. A set may be spread over rows, so End compares.
func (v *preview) Compare(row *projections.Change) error {
	if v.full() || row.Is != v.Entity {
		return nil
	}
	root, _, ok := row.Is.LeafPath(row.Row.Key)
	if !ok {
		return nil
	}
	s := v.set(store.Ref{Table: row.Row.Table, Key: root})
	for _, el := range row.New.Get(v.Entity.SetOf().Attr).Elements() {
		s.is[value.Scalar(el.Value)] = true
		v.held++
	}
	return nil
}

// End compares the members of each set.
func (v *preview) End(context.Context) error {
	if v.full() {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(v.sets)) {
		s := v.sets[name]
		will := map[string]bool{}
		for m, n := range s.count {
			if n.Sign() > 0 {
				will[m] = true
			}
		}
		v.Row(v.name, s.row, v.shown(s.is), v.shown(will))
	}
	return nil
}

// shown returns members as one row would show them.
func (v *preview) shown(members map[string]bool) value.Value {
	return Shown(v.Entity.SetOf(), slices.Sorted(maps.Keys(members)))
}
