package projections

import (
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Gathered lists the work of a batch of changes that is no single kind's: target rows,
// each of which the runner writes once for the whole batch, and faults.
type Gathered struct {
	Targets []*Target
	Faults  []Fault
	FaultOf []int     // the index of the change that each fault comes from
	Gone    []*Target // rows that have ledgers and that the batch removes
	Touched []bool    // whether each change asks for anything; set by NoteTouched
	Asks    []Ask     // of which derivations, in the order of the changes
	Sets    []*Target // whose members are counted beside their rows, and in no ledger
	Names   []Name    // other derivations that changes ask about

	targets map[string]*Target // by row
}

// Ask says that a change asks something of a derivation.
type Ask struct {
	Change     int // index into the batch
	Derivation string
}

// Name is the question of a change to a derivation, where that is no Target: a row that a rule makes or that such a row follows, by its
// text, or a list of our own table. It is "" where the change does not tell.
type Name struct{ Derivation, Of string }

// NoteDerivation notes the question of a change to a derivation.
func (g *Gathered) NoteDerivation(derivation, of string) {
	g.Names = append(g.Names, Name{derivation, of})
}

// NoteTouched notes that the i-th change asks for something, of a derivation unless that is empty. Changes must come in
// their order.
func (g *Gathered) NoteTouched(i int, derivation string) {
	g.Touched[i] = true
	if derivation == "" {
		return
	}
	for n := len(g.Asks) - 1; n >= 0 && g.Asks[n].Change == i; n-- {
		if g.Asks[n].Derivation == derivation {
			return
		}
	}
	g.Asks = append(g.Asks, Ask{i, derivation})
}

// Target is a target row: a row that shows derived values.
type Target struct {
	Row    store.Ref
	Entity *model.Entity
	Steps  []Step // the amounts that the batch adds to its ledger, in the order of the stream
	// Check says that the batch contains a change of the target row itself, after which
	// the row may not show the values of its ledger. Image is the row after that change.
	Check bool
	Image value.Item
	// Recompute says that the row's values must be computed again from more than its
	// ledger.
	Recompute bool
	Asked     []int // the changes that ask for the recompute
}

// Step is the amounts that one change adds to a target's ledger.
type Step struct {
	Change   int // index into the batch
	Position events.Position
	Adds     []Add
}

// Derivations are the derivations that the step counts for.
func (s *Step) Derivations() (out []string) {
	return seq.Map(s.Adds, func(a Add) string { return a.Of })
}

// TotalAmounts sums the steps. It returns an amount for each accumulator, in the order in which
// the accumulators first appear.
func (t *Target) TotalAmounts() []value.Attr {
	return SumAdds(seq.Flat(t.Steps, func(s Step) []Add { return s.Adds }))
}

// SumAdds adds up the amounts for each accumulator and leaves out those that come to 0. The
// order of adds makes no difference to the amounts.
func SumAdds(adds []Add) []value.Attr {
	var out []value.Attr
	at := make(map[string]int, 4)
	for _, a := range adds {
		i, ok := at[a.Field]
		if ok {
			if sum, err := value.AddNumbers(out[i].Value, a.Amount); err == nil {
				out[i].Value = sum
				continue
			} // else it would take 10^9 rows: the store refuses two adds to one accumulator
		}
		at[a.Field] = len(out)
		out = append(out, value.Attr{Name: a.Field, Value: a.Amount})
	}
	return slices.DeleteFunc(out, func(a value.Attr) bool { return a.Value.Sign() == 0 })
}

// NewGathered returns the work of a batch of so many changes before any is folded.
func NewGathered(changes int) *Gathered {
	return &Gathered{
		Touched: make([]bool, changes),
		targets: map[string]*Target{},
	}
}

// CheckRow takes in, after all kinds have, the effect of the i-th change on its own row: that
// the row may not show the values of its ledger.
func (g *Gathered) CheckRow(i int, c *Change) {
	t := g.targets[owntable.RowText(c.Row)]
	switch asked := t != nil && t.Recompute && t.Asked[len(t.Asked)-1] == i; {
	case asked: // a recompute shows everything that the row has
	case NeedsLedger(c):
		e := c.Is
		if c.Was != nil && c.Was.Group != nil {
			e = c.Was
		}
		t = g.TargetOf(c.Row, e)
		t.Check, t.Image = true, c.New
		g.NoteTouched(i, "")
	case t != nil && t.Check:
		t.Image = c.New
		t.Check = c.Is == t.Entity || t.Entity.Group != nil
	}
	if c.Is != nil {
		return
	}
	for _, e := range c.Table.Entities {
		if e.Group == nil && (len(e.Values) > 0 || e.IsRecomputed()) && (e == c.Was || c.New == nil && c.MayBe(e)) {
			g.Gone = append(g.Gone, &Target{Row: c.Row, Entity: e})
		}
	}
}

// AddFaults takes in why derivations cannot use the i-th change.
func (g *Gathered) AddFaults(i int, faults []Fault) {
	for _, f := range faults {
		g.Faults, g.FaultOf = append(g.Faults, f), append(g.FaultOf, i)
		g.NoteTouched(i, f.Derivation)
	}
}

// AskRecompute asks for a recompute of a row's values, on behalf of the i-th change.
func (g *Gathered) AskRecompute(i int, row store.Ref, e *model.Entity) {
	t := g.TargetOf(row, e)
	t.Recompute, t.Asked = true, append(t.Asked, i)
}

// TargetOf returns the batch's Target of a row and creates it if necessary.
func (g *Gathered) TargetOf(row store.Ref, e *model.Entity) *Target {
	name := owntable.RowText(row)
	t := g.targets[name]
	if t == nil {
		t = &Target{Row: row, Entity: e}
		g.targets[name] = t
		g.Targets = append(g.Targets, t)
	}
	return t
}

// DropTargets removes targets. One that is asked for again afterwards is a new one.
func (g *Gathered) DropTargets(drop func(*Target) bool) {
	g.Targets = slices.DeleteFunc(g.Targets, func(t *Target) bool {
		gone := drop(t)
		if gone {
			delete(g.targets, owntable.RowText(t.Row))
		}
		return gone
	})
}

// AddStep adds an amount of c, which is the i-th change. Changes must come in the order of
// their offsets.
func (t *Target) AddStep(i int, c *Change, a Add) {
	if n := len(t.Steps); n == 0 || t.Steps[n-1].Change != i {
		t.Steps = append(t.Steps, Step{Change: i, Position: c.Position})
	}
	s := &t.Steps[len(t.Steps)-1]
	s.Adds = append(s.Adds, a)
}

// NeedsLedger reports whether a change of a target row leaves the row in a state that may
// not agree with its ledger: the row is new, or another writer changed the values that weir had
// published. weir's own writes raise the version and change only published values. A row of
// a group may also be gone.
func NeedsLedger(c *Change) bool {
	if c.Was != c.Is && c.Was != nil && c.Was.Group != nil {
		return true
	}
	if c.Is == nil || !Publishes(c.Is) {
		return false
	}
	if c.Was != c.Is {
		return true
	}
	was, is := c.Old.Get(owntable.Version), c.New.Get(owntable.Version)
	switch {
	case is.Kind() != value.Number:
		return true
	case was.Kind() != value.Number:
		return false
	}
	switch d := value.Compare(is, was); {
	case d < 0:
		return true
	case d > 0:
		return !SameWritten(c.Is, c.Old, c.New)
	case c.Is.Group != nil:
		return !value.EqualItems(c.Old, c.New)
	}
	return slices.ContainsFunc(c.Is.Values, func(t *model.Tally) bool { return !t.Hidden && !value.Equal(c.Old.Get(t.Attr), c.New.Get(t.Attr)) })
}

// SameWritten reports whether two images are equal apart from the values that weir derives on rows
// of the entity.
func SameWritten(e *model.Entity, a, b value.Item) bool {
	next := func(it value.Item) value.Item {
		for len(it) > 0 && (owntable.IsOurs(it[0].Name) || IsDerived(e, it[0].Name)) {
			it = it[1:]
		}
		return it
	}
	a, b = next(a), next(b)
	for len(a) > 0 && len(b) > 0 {
		if a[0].Name != b[0].Name || !value.Equal(a[0].Value, b[0].Value) {
			return false
		}
		a, b = next(a[1:]), next(b[1:])
	}
	return len(a) == len(b)
}

// Publishes reports whether rows of the entity show a tally, or are there because of one.
func Publishes(e *model.Entity) bool {
	if e.Group != nil {
		return true
	}
	return slices.ContainsFunc(e.Values, func(t *model.Tally) bool { return t.Shows() })
}
