package tally

import (
	"context"
	"maps"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// preview says what rows will show of their ledgers. It holds the ledgers of as many targets as
// runner.PreviewTargets and PreviewValues allow, and compares the rows of these alone.
type preview struct {
	*runner.Previewing
	tells   map[string]bool                   // by attribute: what is new or changed
	rows    bool                              // the rows of a group are
	ledgers map[string]map[string]value.Value // by target: accumulators
	values  int
	full    bool                 // some targets have no ledger here
	unknown map[string]bool      // targets that had a ledger that became too large
	made    map[string]store.Ref // targets of a group, with a ledger here, that have no row yet
}

// Preview returns the kind's part in a dry run.
func (Kind) Preview(p *runner.Previewing) runner.Preview {
	v := &preview{
		Previewing: p, tells: map[string]bool{}, ledgers: map[string]map[string]value.Value{},
		unknown: map[string]bool{}, made: map[string]store.Ref{},
	}
	if p.Entity == nil || p.Entity.SetOf() != nil {
		return v
	}
	for _, t := range p.Entity.Values {
		v.tells[t.Attr] = t.Shows() && p.Says.Tells(t.Name)
	}
	if g := p.Entity.Group; g != nil {
		v.rows = p.Says.Tells(g.Rows.Name)
	}
	return v
}

// Add takes in what a row adds to its targets.
func (v *preview) Add(row *projections.Change) {
	if len(v.tells) == 0 && !v.rows {
		return
	}
	cs, _ := Contributions(v.Entity.Values, row.Is, row.New)
	for _, c := range cs {
		v.add(c)
	}
}

// add counts a contribution in the ledger of its target. Memory is bounded: beyond
// PreviewTargets ledgers or PreviewValues accumulators a new target is left out and the preview
// is marked as full, and a ledger that alone takes more than its share is forgotten and no
// longer compared.
func (v *preview) add(c projections.Contribution) {
	name := owntable.RowText(c.Target)
	was, met := v.ledgers[name]
	switch room := len(v.ledgers) < runner.PreviewTargets && v.values < runner.PreviewValues; {
	case v.unknown[name]:
	case !met && !room:
		v.full = true
	case met && !room && len(was) > runner.PreviewValues/runner.PreviewTargets:
		delete(v.ledgers, name)
		v.values, v.unknown[name] = v.values-len(was), true
	default:
		if !met {
			was = map[string]value.Value{}
			v.ledgers[name] = was
			if v.Entity.Group != nil {
				v.made[name] = c.Target
			}
		}
		v.values -= len(was)
		for _, a := range c.Amounts {
			sum, err := value.AddNumbers(was[a.Name], a.Value)
			switch {
			case err != nil: // not in 10^9 rows
			case sum.Sign() == 0:
				delete(was, a.Name)
			default:
				was[a.Name] = sum
			}
		}
		v.values += len(was)
	}
}

// Compare compares what a target shows with what its ledger will make it show.
func (v *preview) Compare(row *projections.Change) error {
	if v.Entity == nil || row.Is != v.Entity || len(v.tells) == 0 && !v.rows {
		return nil
	}
	name := owntable.RowText(row.Row)
	_, met := v.ledgers[name]
	delete(v.made, name)
	if !v.unknown[name] && (met || !v.full) {
		v.compare(name, row.Row, row.New)
	}
	return nil
}

// compare compares a row, nil for none, with what it will show.
func (v *preview) compare(name string, target store.Ref, row value.Item) {
	var ledger []value.Attr
	for name, n := range v.ledgers[name] {
		ledger = append(ledger, value.Attr{Name: name, Value: n})
	}
	comes := owntable.Settled(ledger)
	want, _ := projections.Published(v.Entity.Values, comes)
	if g := v.Entity.Group; g != nil {
		will, _ := projections.Summary(g, v.Entity.Values, target.Key, comes)
		for i := range want {
			want[i].Value = will.Get(want[i].Name)
		}
		if v.rows {
			v.summary(g, target, row, will)
		}
	}
	for _, a := range want {
		if v.tells[a.Name] {
			v.Row(v.Entity.Name+"."+a.Name, target, row.Get(a.Name), a.Value)
		}
	}
}

// summary says whether a row of a group will come or go.
func (v *preview) summary(g *model.Group, target store.Ref, row, will value.Item) {
	v.Says.Compared(g.Rows.Name)
	if (row == nil) != (will == nil) {
		v.Says.Differs(g.Rows.Name, runner.RowText(v.Model, target), rowText(row), rowText(will))
	}
}

// rowText shows a row to people without weir's bookkeeping.
func rowText(row value.Item) string {
	if row == nil {
		return runner.Nothing
	}
	return runner.ValueText(value.OfMap(row.Filter(func(name string) bool { return !owntable.IsOurs(name) })))
}

// End compares the rows of groups that the build will make.
func (v *preview) End(context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(v.made)) {
		if !v.unknown[name] {
			v.compare(name, v.made[name], nil)
		}
	}
	return nil
}
