package build

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// An estimate reads all that a build reads, so it can also tell what rows will show. It holds
// the ledgers of as many targets as previewTargets and previewValues allow, and compares the
// rows of these alone. Of copies it compares all. Of what else is derived it tells nothing: a
// followed attribute, for one, differs from a list that the build has yet to make.

const (
	previewTargets = 20_000  // ledgers at a time
	previewValues  = 400_000 // accumulators in them, which distinct values have many of
)

// Preview is what a build will change of one derivation.
type Preview struct {
	Derivation string `json:"derivation"`
	// Rows is how many rows were compared, of a count, sum, mean or distinct.
	Rows   int64     `json:"rows,omitempty"`
	Differ int64     `json:"differ"`         // rows that will show another value
	Some   []Example `json:"some,omitempty"` // of these, the first ones by their keys
}

// Example is what a row shows of a derivation, and what it will show, as verify prints values.
type Example struct {
	Row  string `json:"row"`
	Is   string `json:"is"`
	Will string `json:"will"`
}

// preview collects what builds will change. Segments use it at the same time.
type preview struct {
	most int // examples of a derivation

	mu      sync.Mutex
	model   *model.Model
	entity  *model.Entity                     // of the targets, nil for what has no ledgers
	by      map[string]*Preview               // by derivation: those that are new or changed
	ledgers map[string]map[string]value.Value // by target: accumulators
	values  int
	full    bool                 // some targets have no ledger here
	unknown map[string]bool      // targets that had a ledger that became too large
	made    map[string]store.Ref // targets of a group, with a ledger here, that have no row yet
}

// of begins with another build: its derivations that are new or changed, and the entity of its
// targets.
func (p *preview) of(names []string, e *model.Entity) {
	if p == nil {
		return
	}
	p.rest()
	p.made = map[string]store.Ref{}
	for _, d := range p.model.Derivations() {
		if slices.Contains(names, d.Name) && p.tells(d) {
			p.by[d.Name] = &Preview{Derivation: d.Name}
		}
	}
	if p.entity = e; e != nil && e.SetOf() != nil {
		p.entity = nil
	}
	p.ledgers, p.unknown, p.values, p.full = map[string]map[string]value.Value{}, map[string]bool{}, 0, false
}

// tells reports whether a preview tells what rows will show of a derivation.
func (p *preview) tells(d model.Derivation) bool {
	for _, t := range p.model.Tallies {
		if t.Name == d.Name && t.Group != nil && t == t.Group.Rows {
			return true
		}
		if t.Name == d.Name {
			return t.Shows() && !t.IsSet()
		}
	}
	return d.Kind == "copy"
}

// adds counts what a row adds to a target.
func (p *preview) adds(c projections.Contribution) {
	if p == nil || p.entity == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name := owntable.RowText(c.Target)
	was, met := p.ledgers[name]
	switch room := len(p.ledgers) < previewTargets && p.values < previewValues; {
	case p.unknown[name]:
	case !met && !room:
		p.full = true
	case met && !room && len(was) > previewValues/previewTargets:
		delete(p.ledgers, name)
		p.values, p.unknown[name] = p.values-len(was), true
	default:
		if !met {
			was = map[string]value.Value{}
			p.ledgers[name] = was
			if p.entity.Group != nil {
				p.made[name] = c.Target
			}
		}
		p.values -= len(was)
		for _, a := range c.Amounts {
			sum, err := value.AddNumbers(was[a.Name], a.Value)
			switch {
			case err != nil: // not in 10^15 rows
			case sum.Sign() == 0:
				delete(was, a.Name)
			default:
				was[a.Name] = sum
			}
		}
		p.values += len(was)
	}
}

// compares compares what a target shows with what its ledger will make it show.
func (p *preview) compares(target store.Ref, row value.Item) {
	if p == nil || p.entity == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name := owntable.RowText(target)
	_, met := p.ledgers[name]
	delete(p.made, name)
	if p.unknown[name] || !met && p.full {
		return
	}
	p.compare(name, target, row)
}

// compare compares a row, nil for none, with what it will show. The lock is held.
func (p *preview) compare(name string, target store.Ref, row value.Item) {
	var ledger []value.Attr
	for name, n := range p.ledgers[name] {
		ledger = append(ledger, value.Attr{Name: name, Value: n})
	}
	want, _ := projections.Published(p.entity.Values, value.NewItem(ledger...))
	if g := p.entity.Group; g != nil {
		will, _ := projections.Summary(g, p.entity.Values, target.Key, value.NewItem(ledger...))
		for i := range want {
			want[i].Value = will.Get(want[i].Name)
		}
		if to := p.by[g.Rows.Name]; to != nil {
			to.Rows++
			if (row == nil) != (will == nil) {
				p.example(to, Example{runner.RowText(p.model, target), rowText(row), rowText(will)})
			}
		}
	}
	for _, a := range want {
		if to := p.by[p.entity.Name+"."+a.Name]; to != nil {
			to.Rows++
			if have := row.Get(a.Name); !value.Equal(have, a.Value) {
				p.example(to, Example{runner.RowText(p.model, target), runner.ValueText(have), runner.ValueText(a.Value)})
			}
		}
	}
}

func rowText(row value.Item) string {
	if row == nil {
		return runner.Nothing
	}
	return runner.ValueText(value.OfMap(row.Filter(func(name string) bool { return !owntable.IsOurs(name) })))
}

// rest compares the rows of groups that a build will make.
func (p *preview) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.made)) {
		if !p.unknown[name] {
			p.compare(name, p.made[name], nil)
		}
	}
	p.made = nil
}

// differs takes in a difference of a copy.
func (p *preview) differs(d runner.Difference) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if to := p.by[d.Derivation]; to != nil {
		p.example(to, Example{d.Row, d.Have, d.Want})
	}
}

func (p *preview) example(to *Preview, x Example) {
	at, _ := slices.BinarySearchFunc(to.Some, x, func(a, b Example) int { return cmp.Compare(a.Row, b.Row) })
	to.Differ++
	if at < p.most {
		to.Some = slices.Insert(to.Some, at, x)
		to.Some = to.Some[:min(len(to.Some), p.most)]
	}
}

// Previews returns what the last estimate says of derivations that are new or changed, or of
// all that are built again: counts, sums, means, distinct values and copies.
func (b *Builder) Previews() (out []Preview) {
	if b.preview == nil {
		return nil
	}
	b.preview.rest()
	for _, name := range slices.Sorted(maps.Keys(b.preview.by)) {
		out = append(out, *b.preview.by[name])
	}
	return out
}
