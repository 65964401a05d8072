package status

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/value"
)

// recount recounts the facts of all rows, and compares them and the statuses that they
// lead to. It is the Facts of the recount.
type recount struct {
	runner.BaseRecount
	*runner.Verification
	lists map[string]*list // by the name of the list
}

// list holds the facts of one list.
type list struct {
	names []string // sorted once all are added
	told  map[string]value.Item
	seen  map[string]bool // stands in our table
}

// Recount returns the kind's part in a verification.
func (Kind) Recount(v *runner.Verification) runner.Recount {
	return &recount{Verification: v, lists: map[string]*list{}}
}

// Add adds the facts that a row reports. A later fact with the same list and name replaces
// the earlier one.
func (v *recount) Add(row *projections.Change, faults *projections.Faults) {
	for _, f := range Fold(row, faults) {
		l := v.lists[f.List]
		if l == nil {
			l = &list{told: map[string]value.Item{}, seen: map[string]bool{}}
			v.lists[f.List] = l
		}
		if _, twice := l.told[f.Name]; !twice {
			l.names = append(l.names, f.Name)
		}
		l.told[f.Name] = f.Told
	}
}

// Added sorts the names of each list.
func (v *recount) Added() {
	for _, l := range v.lists {
		slices.Sort(l.names)
	}
}

// Each yields the facts of a list from memory.
func (v *recount) Each(of string, part Names, yield func(string, value.Item) bool) error {
	l := v.lists[of]
	if l == nil {
		return nil
	}
	from, _ := slices.BinarySearch(l.names, max(part.Begins, part.From))
	for _, name := range l.names[from:] {
		if !strings.HasPrefix(name, part.Begins) || !yield(name, l.told[name]) {
			break
		}
	}
	return nil
}

// Get returns the facts of a list with the given names.
func (v *recount) Get(of string, names []string) ([]value.Item, error) {
	out := make([]value.Item, len(names))
	for i, name := range names {
		out[i] = v.told(of, name)
	}
	return out, nil
}

// told returns the fact with a name on a list, nil for none.
func (v *recount) told(of, name string) value.Item {
	if l := v.lists[of]; l != nil {
		return l.told[name]
	}
	return nil
}

// Compare compares the statuses of rows with those that the recounted facts give.
func (v *recount) Compare(_ context.Context, rows []projections.Change) error {
	for i := range rows {
		f := &rows[i]
		if f.Is == nil || len(f.Is.Statuses) == 0 {
			continue
		}
		want, err := Recompute(f.Is, f.Row, f.New, v)
		var many *TooMany
		if errors.As(err, &many) {
			v.Differs(many.Status, v.RowText(f.Row), err.Error(), "parked", nil)
			continue
		}
		if err != nil {
			return err
		}
		var fix runner.Fix = &runner.ShownFix{Row: f.Row}
		if v.Built(f.Is) != nil {
			fix = nil // projector build puts it right
		}
		for _, s := range f.Is.Statuses {
			for _, name := range s.Attributes() {
				v.Check(s.Name+" "+name, f.Row, want.Get(name), f.New.Get(name), fix)
			}
		}
	}
	return nil
}

// OwnRow compares a fact with the recounted one.
func (v *recount) OwnRow(_ context.Context, row value.Item) error {
	of, name, ok := v.factOf(row)
	if !ok {
		return nil
	}
	v.Checked++
	want, have := v.told(of, name), owntable.FactFrom(row)
	if want != nil {
		v.lists[of].seen[name] = true
	}
	if !value.EqualItems(want, have.Told) {
		v.differs(of, name, want, have.Raw)
	}
	return nil
}

// differs reports a fact; want is nil if there must be none.
func (v *recount) differs(of, name string, want value.Item, have value.Value) {
	told := value.Value{}
	if want != nil {
		told = value.OfMap(want)
	}
	var fix runner.Fix = &FactFix{List: of, Name: name}
	if v.Built(entityOf(v.Model, of)) != nil {
		fix = nil // projector build puts it right
	}
	v.Differs("fact", of+" "+name, runner.ValueText(told), runner.ValueText(have), fix)
}

// factOf returns the list and the name of the fact that a row of our own table is. ok is
// false unless it is of the generation that rows show. Facts of a status that is retired stay,
// and nothing reads them, until what is shown beside it is built again.
func (v *recount) factOf(row value.Item) (list, name string, ok bool) {
	if list, name, ok = owntable.FactOf(v.Model.Name, row); ok {
		e := entityOf(v.Model, list)
		return list, name, e != nil && v.Built(e) == nil
	}
	for _, b := range v.Catalog.Builds.Counting() {
		if list, name, ok = owntable.FactOf(b.Ledgers(v.Model.Name), row); ok {
			return list, name, b.State.Shown() && entityOf(v.Model, list) != nil
		}
	}
	return "", "", false
}

// entityOf returns the entity whose status a list of facts is of, nil if the model has no
// such status.
func entityOf(m *model.Model, list string) *model.Entity {
	name, _, _ := strings.Cut(list, "|")
	for _, s := range m.Statuses {
		if s.Name == name {
			return s.Target
		}
		for _, st := range s.Stages {
			if st.List != nil && st.List.Others != nil && st.List.Others.Name == name {
				return st.List.Others.On
			}
		}
	}
	return nil
}

// End reports the recounted facts that our own table lacks.
func (v *recount) End(context.Context) error {
	for _, of := range slices.Sorted(maps.Keys(v.lists)) {
		l := v.lists[of]
		for _, name := range l.names {
			if !l.seen[name] {
				v.differs(of, name, l.told[name], value.Value{})
			}
		}
	}
	return nil
}
