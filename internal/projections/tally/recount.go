package tally

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// recount recounts the ledgers of targets, and compares them and what targets show.
type recount struct {
	runner.BaseRecount
	*runner.Verification
	ledgers string             // what the partition keys of ledgers begin with
	expect  map[string]*target // by the partition key of the ledger
}

// target is what a row's ledger must hold. Values that are 0 may be missing.
type target struct {
	row    store.Ref
	entity *model.Entity
	sums   map[string]value.Value
	values map[string]*held // of distincts, by name (owntable.Held)
	met    bool             // of a group: its row was compared
	done   bool             // its ledger was compared
}

// held is how many rows have a value.
type held struct {
	rows value.Value
	met  bool // the row that counts them was compared
}

// Recount returns the kind's part in a verification.
func (Kind) Recount(v *runner.Verification) runner.Recount {
	return &recount{Verification: v, ledgers: owntable.Ledgers(v.Model.Name), expect: map[string]*target{}}
}

// Add adds what a row counts for its targets.
func (v *recount) Add(row *projections.Change, f *projections.Faults) {
	for _, a := range Fold(row, f) {
		if v.Catalog.Pending(projections.TallyOf(a.Entity, a.Field)) {
			continue
		}
		name := v.ledger(a.Entity, a.Target)
		t := v.expect[name]
		if t == nil {
			t = &target{row: a.Target, entity: a.Entity, sums: map[string]value.Value{}, values: map[string]*held{}}
			v.expect[name] = t
		}
		if owntable.IsHeld(a.Field) {
			t.hold(a.Field, a.Amount)
			continue
		}
		if sum, err := value.AddNumbers(t.sums[a.Field], a.Amount); err == nil { // not in 10^9 rows
			t.sums[a.Field] = sum
		}
	}
}

// hold adds to how many rows have a value.
func (t *target) hold(name string, amount value.Value) {
	is := t.values[name]
	if is == nil {
		is = &held{}
		t.values[name] = is
	}
	if sum, err := value.AddNumbers(is.rows, amount); err == nil { // not in 10^9 rows
		is.rows = sum
	}
}

// ledger returns the partition key of a target's ledger.
func (v *recount) ledger(e *model.Entity, target store.Ref) string {
	model := v.Model.Name
	if r := v.Built(e); r != nil {
		model = r.Model.Name
	}
	return owntable.Ledger(model, target).Key.Partition.Text()
}

// generation reports whether a partition is a ledger that targets show. Of a built entity,
// ledgers of earlier generations may be left; without a recount it is not known of which
// entity a ledger of the first generation is.
func (v *recount) generation(partition string) bool {
	built := false
	for _, b := range v.Catalog.Builds {
		if b.State.Shown() {
			if built = true; strings.HasPrefix(partition, owntable.Ledgers(b.Ledgers(v.Model.Name))) {
				return true
			}
		}
	}
	return strings.HasPrefix(partition, v.ledgers) && (!built || v.expect[partition] != nil)
}

// Compare compares the tallies that target rows show with their recounted ledgers. It is called when all
// source rows were added. A value that cannot be computed is said to be so, and is no difference.
func (v *recount) Compare(_ context.Context, rows []projections.Change) error {
	for i := range rows {
		f := &rows[i]
		if f.Is == nil || f.Is.SetOf() != nil || len(f.Is.Values) == 0 {
			continue
		}
		if f.Is.Group != nil {
			v.compareSummary(f)
			continue
		}
		want, cannot := projections.Published(v.Shows(f.Is), v.expect[v.ledger(f.Is, f.Row)].ledger())
		for i := range cannot {
			v.Cannot(cannot[i].Tally.Name, f.Row, cannot[i].String())
		}
		for _, a := range want {
			v.Check(f.Is.Name+"."+a.Name, f.Row, a.Value, f.New.Get(a.Name), &runner.ShownFix{Row: f.Row})
		}
	}
	return nil
}

// compareSummary compares the row of a group with the recounted ledger.
func (v *recount) compareSummary(f *projections.Change) {
	g := f.Is.Group
	if v.Catalog.Pending(g.Rows.Name) {
		return
	}
	t := v.expect[v.ledger(f.Is, f.Row)]
	if t != nil {
		t.met = true
	}
	fix, shows := &runner.ShownFix{Row: f.Row}, v.Shows(f.Is)
	row, there := projections.Summary(g, shows, f.Row.Key, t.ledger())
	if !there {
		v.Check(g.Rows.Name, f.Row, value.Value{}, value.OfMap(f.New.Filter(func(name string) bool { return !owntable.IsOurs(name) })), fix)
		return
	}
	values, cannot := projections.Published(shows, t.ledger())
	for i := range cannot {
		v.Cannot(cannot[i].Tally.Name, f.Row, cannot[i].String())
	}
	for _, a := range values {
		v.Check(f.Is.Name+"."+a.Name, f.Row, a.Value, f.New.Get(a.Name), fix)
	}
	made := row.Filter(func(name string) bool { return !projections.IsDerived(f.Is, name) })
	v.Check(g.Rows.Name, f.Row, value.OfMap(made), value.OfMap(f.New.Filter(made.Has)), fix)
}

// missing reports a group that has source rows, and no row of its own.
func (v *recount) missing(t *target) {
	if t.met || t.entity.Group == nil || v.Catalog.Pending(t.entity.Group.Rows.Name) {
		return
	}
	if row, there := projections.Summary(t.entity.Group, v.Shows(t.entity), t.row.Key, t.ledger()); there {
		v.Check(t.entity.Group.Rows.Name, t.row, value.OfMap(row), value.Value{}, &runner.ShownFix{Row: t.row})
	}
}

// ledger returns the recounted ledger of a target, nil for none.
func (t *target) ledger() value.Item {
	if t == nil {
		return nil
	}
	attrs := make([]value.Attr, 0, len(t.sums)+len(t.values))
	for name, n := range t.sums {
		attrs = append(attrs, value.Attr{Name: name, Value: n})
	}
	for name, is := range t.values {
		attrs = append(attrs, value.Attr{Name: name, Value: is.rows})
	}
	return owntable.Settled(attrs)
}

// OwnRow compares a ledger with the recounted one, or the row of a value.
func (v *recount) OwnRow(_ context.Context, row value.Item) error {
	name := row.Get(owntable.Partition).Text()
	if owntable.Kind(name) == owntable.KindValue {
		if ledger := owntable.LedgerOfValues(name); v.generation(ledger) {
			v.compareValue(ledger, row)
		}
		return nil
	}
	if !v.generation(name) {
		return nil
	}
	v.compare(name, row)
	switch t := v.expect[name]; {
	case t != nil && len(t.values) > 0: // whose rows are to come, or have come
		t.done = true
	default:
		delete(v.expect, name)
	}
	return nil
}

// End compares the ledgers that do not exist, and the values that no row counts.
func (v *recount) End(context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(v.expect)) {
		t := v.expect[name]
		for _, value := range slices.Sorted(maps.Keys(t.values)) {
			if is := t.values[value]; !is.met {
				v.differsIn(name, t.entity, value, runner.ValueText(is.rows), runner.Nothing)
			}
		}
		if t.done {
			continue
		}
		v.compare(name, value.Item{})
	}
	return nil
}

// compareValue compares the row of a value with the rows that have it.
func (v *recount) compareValue(ledger string, row value.Item) {
	v.Checked++
	name, have := owntable.ValueIn(row)
	want, of := value.Value{}, (*model.Entity)(nil)
	if t := v.expect[ledger]; t != nil {
		of = t.entity
		if is := t.values[name]; is != nil && owntable.ValueAt(owntable.LedgerAt(ledger), name).Key.Sort.Text() == row.Get(owntable.Sort).Text() {
			want, is.met = is.rows, true
		}
	}
	if !value.Equal(want, have) {
		v.differsIn(ledger, of, name, runner.ValueText(want), runner.ValueText(have))
	}
}

// differsIn yields a difference of an accumulator of a ledger, or of the row of a value, unless it
// is left from what is retired or pending. of is nil if no row counts for the ledger.
func (v *recount) differsIn(ledger string, of *model.Entity, accumulator, want, have string) {
	if v.left(of, ledger, accumulator) {
		return
	}
	row := strings.TrimPrefix(ledger, v.ledgers)
	if t := v.expect[ledger]; t != nil {
		row = v.RowText(t.row)
	}
	v.Differs("ledger "+accumulator, row, want, have, v.fix(ledger))
}

// fix returns what corrects a ledger and its values.
func (v *recount) fix(name string) runner.Fix {
	if strings.HasPrefix(name, v.ledgers) {
		return &LedgerFix{Name: name}
	}
	return v.built(name)
}

// compare compares a ledger with the recounted one, also if its target does not exist. name
// is its partition key; is is empty if the ledger does not exist. It also compares the dead
// letter about what cannot be shown.
func (v *recount) compare(name string, is value.Item) {
	v.Checked++
	row, want, of := strings.TrimPrefix(name, v.ledgers), value.Item(nil), target{}
	if t := v.expect[name]; t != nil {
		row, want, of = v.RowText(t.row), t.ledger(), *t
		v.missing(t)
	}
	why := projections.CannotShow(v.Shows(of.entity), want)
	for _, field := range accumulators(want, is) {
		is, be := runner.ValueText(is.Get(field)), runner.ValueText(want.Get(field))
		if be == runner.Nothing {
			be = "0"
		}
		if be != is && (be != "0" || is != runner.Nothing) {
			v.differsIn(name, of.entity, field, be, is)
		}
	}
	if _, reason := owntable.LedgerRow(is).Lacks(owntable.LacksTallies); reason != why {
		v.Differs("dead letter", row, cmp.Or(why, runner.Nothing), cmp.Or(reason, runner.Nothing), v.fix(name))
	}
}

// built returns the fix of a ledger that a build made: that of any ledger if it has handed
// over and has no marks any more.
func (v *recount) built(name string) runner.Fix {
	for _, b := range v.Catalog.Builds {
		if strings.HasPrefix(name, owntable.Ledgers(b.Ledgers(v.Model.Name))) && !b.HandOver.Over.IsZero() {
			return &LedgerFix{Name: name, in: &b}
		}
	}
	return &builtFix{LedgerFix{Name: name}}
}

// left reports whether an accumulator is left from a tally that is retired, or being built
// by another definition. The entity is nil if no row counts for the ledger with this partition key.
func (v *recount) left(e *model.Entity, ledger, accumulator string) bool {
	if name := projections.TallyOf(e, accumulator); name != "" {
		return v.Catalog.Pending(name)
	}
	for _, other := range v.Model.Entities {
		if e == nil && projections.TallyOf(other, accumulator) != "" && catalog.CanBe(other, owntable.TextOfLedger(ledger)) {
			return false
		}
	}
	for name, d := range v.Catalog.Derivations {
		entity, attr, value := strings.Cut(name, ".")
		if !value {
			attr = owntable.Grouped
		}
		if d.State == owntable.Retired && (e == nil || e.Name == entity) && projections.Accumulates(attr, accumulator) {
			return true
		}
	}
	return false
}

// accumulators returns the sorted names of the accumulators of some ledgers.
func accumulators(ledgers ...value.Item) (fields []string) {
	for _, l := range ledgers {
		for _, a := range l {
			if owntable.IsSum(a.Name) {
				fields = append(fields, a.Name)
			}
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}
