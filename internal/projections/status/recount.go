package status

import (
	"cmp"
	"context"
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

// recount recounts the facts of all rows, and compares them and the statuses that they
// lead to. It is the Facts of the recount.
type recount struct {
	runner.BaseRecount
	*runner.Verification
	lists map[string]*list // by the name of the list
	over  map[string]over  // by the partition key of the ledger
	long  map[string]store.Ref
}

// over is a row with stages that cannot be computed.
type over struct {
	row store.Ref
	why string
}

// list holds the facts of one list.
type list struct {
	names []string // sorted once all are added
	told  map[string]value.Item
	seen  map[string]bool // stands in our table
}

// Recount returns the kind's part in a verification.
func (Kind) Recount(v *runner.Verification) runner.Recount {
	return &recount{Verification: v, lists: map[string]*list{}, over: map[string]over{}, long: map[string]store.Ref{}}
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
		l.told[f.Name] = f.Says
	}
}

// Added sorts the names of each list.
func (v *recount) Added() {
	for _, l := range v.lists {
		slices.Sort(l.names)
	}
}

// Each yields the facts of a list from memory, in the order of their names, until yield returns false. The
// facts are those that the source rows tell, whatever our own table has.
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

// First returns the first fact of a list.
func (v *recount) First(of string, _ *model.Latest) (value.Item, error) {
	if l := v.lists[of]; l != nil {
		return l.told[l.names[0]], nil
	}
	return nil, nil
}

// told returns the fact with a name on a list, nil for none.
func (v *recount) told(of, name string) value.Item {
	if l := v.lists[of]; l != nil {
		return l.told[name]
	}
	return nil
}

// Compare compares the statuses of rows with those that the recounted facts give.
// Where a build counts the row, the difference has no fix: projector build corrects it.
func (v *recount) Compare(_ context.Context, rows []projections.Change) error {
	for i := range rows {
		f := &rows[i]
		if f.Is == nil || !f.Is.IsRecomputed() {
			continue
		}
		want, many, err := Recompute(f.Is, f.Row, f.New, v)
		if err != nil {
			return err
		}
		for _, t := range many {
			v.Cannot(t.Status, f.Row, "cannot be computed: "+t.String())
		}
		v.noteOver(f.Is, f.Row, CannotCompute(many))
		var fix runner.Fix = &runner.ShownFix{Row: f.Row}
		if v.Built(f.Is) != nil {
			fix = nil // projector build puts it right
		}
		for _, s := range f.Is.Statuses {
			for _, name := range s.Attributes() {
				v.Check(s.Name+" "+name, f.Row, want.Get(name), f.New.Get(name), fix)
			}
		}
		for _, l := range f.Is.Latest {
			for i, name := range l.Attributes() {
				what := l.Name
				if i > 0 {
					what += " " + name
				}
				v.Check(what, f.Row, want.Get(name), f.New.Get(name), fix)
			}
		}
	}
	return nil
}

// noteOver notes which dead letter a row must have, "" for none, until its ledger is compared.
// A letter is checked when the ledger's row is met, or at the end if there is none.
func (v *recount) noteOver(e *model.Entity, row store.Ref, why string) {
	of := v.Model.Name
	if r := v.Built(e); r != nil {
		of = r.Model.Name
	}
	ledger := owntable.Ledger(of, row).Key.Partition.Text()
	if _, short := owntable.RowOf(owntable.RowText(row)); !short {
		v.long[ledger] = row
	}
	if why != "" {
		v.over[ledger] = over{row, why}
	}
}

// letter compares the dead letter about the statuses of a row with the one that it must have,
// given the row's ledger, nil for none, and its partition key.
func (v *recount) letter(partition string, ledger value.Item) {
	must, isOver := v.over[partition]
	in, ok := v.ledgersOf(partition)
	if !ok && !isOver {
		return
	}
	delete(v.over, partition)
	if !isOver {
		if must.row, ok = v.long[partition]; !ok {
			if must.row, ok = owntable.RowOf(strings.TrimPrefix(partition, owntable.Ledgers(in.Model.Name))); !ok {
				return
			}
		}
	}
	if t := v.Model.Table(must.row.Table); t == nil {
		return
	}
	if _, said := owntable.LedgerRow(ledger).Lacks(owntable.LacksStatuses); said != must.why {
		v.Differs("dead letter", v.RowText(must.row), cmp.Or(must.why, runner.Nothing), cmp.Or(said, runner.Nothing), &runner.ShownFix{Row: must.row})
	}
}

// ledgersOf returns the runner whose ledgers have partition keys such as this one, if targets show
// them. Beside a generation that was built, ledgers of earlier ones may be left.
func (v *recount) ledgersOf(partition string) (in *runner.Runner, ok bool) {
	in, ok = &runner.Runner{Model: v.Model, Store: v.Store}, true
	for _, b := range v.Catalog.Builds {
		if b.State.Shown() {
			if ok = false; strings.HasPrefix(partition, owntable.Ledgers(b.Ledgers(v.Model.Name))) {
				return in.In(b), true
			}
		}
	}
	return in, ok && strings.HasPrefix(partition, owntable.Ledgers(v.Model.Name)) || v.over[partition].why != ""
}

// OwnRow compares a fact with the recounted one, and what a ledger notes of statuses.
// Rows of other kinds are passed over.
func (v *recount) OwnRow(_ context.Context, row value.Item) error {
	v.letter(row.Get(owntable.Partition).Text(), row)
	of, name, ok := v.factOf(row)
	if !ok {
		return nil
	}
	v.Checked++
	want, have := v.told(of, name), owntable.FactFrom(row)
	if want != nil {
		v.lists[of].seen[name] = true
	}
	if !value.EqualItems(want, have.Says) {
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

// entityOf returns the entity whose rows a list of facts is for, nil if the model has none.
func entityOf(m *model.Model, list string) *model.Entity {
	name, _ := owntable.CutFactList(list)
	for _, l := range m.Latest {
		if l.Name == name {
			return l.Target
		}
	}
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

// End reports the recounted facts and ledgers that our own table lacks. It is called after all its rows
// were compared, so a fact that no row had is missing.
func (v *recount) End(context.Context) error {
	for _, partition := range slices.Sorted(maps.Keys(v.over)) {
		v.letter(partition, nil)
	}
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
