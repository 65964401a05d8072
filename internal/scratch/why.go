// This file explains a derived value: it finds the records of a recording that made it so, or of the rows that there are
// those that count for it. It has the ordinary engine apply records to an empty store that is thrown away, one
// by one, and looks at the additions of each to the row and at the value after it. It knows no kind of projection.
//
// It reads the records twice. The first pass (Find) folds each of them, as a batch does, and notes which rows lead to the value. The
// second pass (Explain) applies the records of these rows alone. So memory and time grow with the records behind the value.

package scratch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/aggregate"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Why explains one attribute of one row. Call Find for each record of the first pass, then
// Choose, then Explain for each record of the second pass. Close it.
type Why struct {
	Target store.Ref
	Entity *model.Entity
	Attr   string
	// Later says that the records do not begin with the first: no Line has a Value.
	Later bool

	model *model.Model
	hides bool // the model hides the value: no Line says it

	at   Address
	seen struct{ it, another bool } // rows with the target's key
	also []*Why                     // other rows that may be meant

	target  string          // the row, as others name it
	counted string          // the attribute that ledgers have in place of Attr
	made    map[string]bool // the derivations that decide the value: true, and false of those that make the rows that these read
	shows   map[string]bool // the entities whose rows show the latter
	rows    map[string]bool // rows that have a part in it
	names   map[string]bool // and the other names that these ask about: see projections.Name

	options Options
	engine  *Engine
	begun   map[string]bool   // rows that the engine has met, if Later
	row     value.Item        // the target after the last record
	sums    value.Item        // the amounts that records have added to it
	adds    []projections.Add // the amounts of the last record
	asked   bool              // and whether it asks for another value
	read    bool              // its row exists, and the target follows it
}

// Line describes one record that contributed to the value.
type Line struct {
	Where    events.Location
	Shard    string // "" if the recording does not say
	Sequence string // "" if the record has none
	Time     time.Time
	Event    string
	Row      store.Ref // whose change it is
	Added    string    // its amounts
	Value    string    // the value after the record
}

// NewWhy returns a Why for an attribute of the row that target names (see Parse). Its errors are
// mistakes in target or attr, in words for the user who wrote them.
func NewWhy(m *model.Model, target, attr string) (*Why, error) {
	all, err := Parse(m, target)
	if err != nil {
		return nil, err
	}
	w, err := newWhyOf(m, all[0], attr)
	for i := 1; i < len(all) && err == nil; i++ {
		var also *Why
		also, err = newWhyOf(m, all[i], attr)
		w.also = append(w.also, also)
	}
	return w, err
}

// newWhyOf prepares an explanation of an attribute of a row.
func newWhyOf(m *model.Model, at Address, attr string) (*Why, error) {
	e := at.Entity
	if known := derivedAttributes(e); !slices.Contains(known, attr) && e.Attribute(attr) == nil {
		return nil, fmt.Errorf("%s has no attribute %q; derived on it: %s", e.Name, attr, cmp.Or(strings.Join(known, ", "), "nothing"))
	}
	w := &Why{
		at: at, Target: at.Row, Entity: e, Attr: attr, model: m, hides: m.HidesValuesOf(e.Name + "." + attr),
		target: owntable.RowText(at.Row), counted: attr, made: map[string]bool{}, shows: map[string]bool{}, rows: map[string]bool{}, names: map[string]bool{}, begun: map[string]bool{},
	}
	if e.Group != nil && attr == e.Name {
		w.counted = e.Group.Rows.Attr
	}
	all := m.Derivations()
	var read func(names []string)
	read = func(names []string) {
		for i := range all {
			if _, met := w.made[all[i].Name]; !met && slices.Contains(names, all[i].Name) {
				w.made[all[i].Name], w.shows[all[i].Into] = false, true
				read(all[i].After)
			}
		}
	}
	for i := range all {
		if all[i].Sets(e, w.counted) || all[i].Sets(e, attr) {
			read(all[i].After)
			w.made[all[i].Name] = true
		}
	}
	return w, nil
}

// derivedAttributes returns the attributes of an entity that weir writes.
func derivedAttributes(e *model.Entity) (names []string) {
	names = kinds.DerivedAttributes(e)
	slices.Sort(names)
	return slices.Compact(names)
}

// Rows yields the rows that a store has of a model's tables, as records that insert them. Of those that weir makes, nothing is
// derived: it makes them again.
func Rows(ctx context.Context, m *model.Model, db store.Store, yield func(e *events.Entry, table string) error) error {
	n := uint64(0)
	for _, t := range m.Tables {
		for row, err := range store.EachRow(ctx, db, store.Query{Table: t.Name}) {
			if err != nil {
				return fmt.Errorf("reading %s: %w", t.Name, err)
			}
			n++
			if e, ok := Insert(t, row, n); ok {
				if err := yield(&e, t.Name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Find processes a record of the first pass. It ignores bad entries.
func (w *Why) Find(e *events.Entry, table string) {
	for _, also := range w.also {
		also.Find(e, table)
	}
	for _, c := range replay.Images(w.model, e, table) {
		row := owntable.RowText(c.Row)
		for _, image := range []value.Item{c.Old, c.New} {
			if image != nil && row == w.target {
				is := w.at.Is(image)
				w.seen.it, w.seen.another = w.seen.it || is, w.seen.another || !is
			}
		}
		g, _ := runner.Fold(kinds.All(), w.model, []projections.Change{c})
		part := row == w.target || c.Was != nil && w.shows[c.Was.Name] || c.Is != nil && w.shows[c.Is.Name]
		if !part && !slices.ContainsFunc(w.askedRows(g), func(of string) bool { return of == "" || of == w.target }) {
			continue
		}
		w.rows[row] = true
		for _, n := range g.Names {
			if w.made[n.Derivation] {
				w.names[n.Of] = true
			}
		}
	}
}

// askedRows lists the rows, and the other names, about which changes ask the derivations behind the value. "" stands for any.
func (w *Why) askedRows(g *projections.Gathered) (of []string) {
	for _, t := range slices.Concat(g.Targets, g.Sets) {
		if t.Recompute || slices.ContainsFunc(t.Steps, func(s projections.Step) bool {
			return slices.ContainsFunc(s.Derivations(), func(name string) bool { return w.made[name] })
		}) {
			of = append(of, owntable.RowText(t.Row))
		}
	}
	for _, n := range g.Names {
		if w.made[n.Derivation] {
			of = append(of, n.Of)
		}
	}
	for _, a := range g.Asks {
		if direct, read := w.made[a.Derivation]; read && !direct {
			of = append(of, "") // it makes another row, and that asks
		}
	}
	return of
}

// Choose decides, after the first pass, which of the possible rows is explained, and where the second pass has its store. It
// returns an error if the recording contains several of them.
func (w *Why) Choose(o Options) error {
	var may []*Why
	for _, one := range append([]*Why{w}, w.also...) {
		if one.seen.another && !one.seen.it || len(one.rows) == 0 {
			continue
		}
		may = append(may, one)
	}
	if len(w.also) > 0 && len(may) > 1 {
		return fmt.Errorf("the values name several rows: %s, %s; write one of them so", may[0].Target, may[1].Target)
	}
	if len(may) > 0 {
		*w = *may[0]
	}
	w.options = o
	return nil
}

// Close removes the store.
func (w *Why) Close() error {
	if w.engine == nil {
		return nil
	}
	return w.engine.Close()
}

// Explain processes a record of the second pass. The records must come in the same order as
// in the first. ok is false for a record that did not contribute to the value.
func (w *Why) Explain(ctx context.Context, e *events.Entry, table string) (l Line, ok bool, err error) {
	c, err := (&replay.Replay{Model: w.model}).Change(e, table)
	if err != nil || !w.mayContribute(&c, e, table) {
		return l, false, nil
	}
	if row := owntable.RowText(c.Row); w.Later && !w.begun[row] {
		w.begun[row] = true
		if before, ok := Insert(c.Table, c.Old, 1); ok { // as the row was before the first record
			if err := w.applyRecord(ctx, &before, table); err != nil {
				return l, false, err
			}
		}
	}
	was := w.row
	w.read = c.New != nil && w.names[owntable.RowText(c.Row)]
	if err := w.applyRecord(ctx, e, table); err != nil {
		return l, false, err
	}
	if l.Added = w.describeAdded(was.Get(w.Attr)); l.Added == "" || w.row != nil && !w.at.Is(w.row) {
		return l, false, nil
	}
	rec := &e.Record
	l.Where, l.Shard, l.Time, l.Event, l.Row = e.Location, e.Shard, rec.Time, rec.Event(), c.Row
	if !rec.Position.IsZero() {
		l.Sequence = rec.Position.String()
	}
	if !w.Later {
		l.Value = w.formatValue()
	}
	if w.hides {
		l.Added, l.Value = model.HiddenText, model.HiddenText
	}
	return l, true, nil
}

// mayContribute reports whether a record may contribute to the value.
func (w *Why) mayContribute(c *projections.Change, e *events.Entry, table string) bool {
	if row := owntable.RowText(c.Row); w.rows[row] || w.names[row] {
		return true
	}
	if len(w.names) == 0 {
		return false
	}
	g, _ := runner.Fold(kinds.All(), w.model, replay.Images(w.model, e, table))
	return slices.ContainsFunc(w.askedRows(g), func(of string) bool { return w.names[of] })
}

// applyRecord has the engine apply a record, and reads the target afterwards.
func (w *Why) applyRecord(ctx context.Context, e *events.Entry, table string) (err error) {
	if w.engine == nil {
		w.options.Watch = w.watchBatch
		if w.engine, err = New(ctx, w.model, w.options); err != nil {
			w.engine = nil
			return err
		}
	}
	w.adds, w.asked = nil, false
	if err := w.engine.Step(ctx, e, table); err != nil {
		return err
	}
	for _, a := range projections.SumAdds(w.adds) {
		if sum, err := value.AddNumbers(w.sums.Get(a.Name), a.Value); err == nil { // not in 10^9 rows
			w.sums = w.sums.With(value.Attr{Name: a.Name, Value: sum})
		}
	}
	w.row, err = w.engine.Row(ctx, w.Target)
	return err
}

// watchBatch takes in the work of a batch of the engine.
func (w *Why) watchBatch(g *projections.Gathered) {
	for _, t := range slices.Concat(g.Targets, g.Sets) {
		if t.Entity == w.Entity && projections.SameRow(t.Row, w.Target) {
			w.adds = append(w.adds, seq.Flat(t.Steps, func(s projections.Step) []projections.Add { return s.Adds })...)
		}
	}
	w.asked = w.asked || slices.ContainsFunc(w.askedRows(g), func(of string) bool { return of == w.target || w.names[of] }) ||
		w.read && slices.ContainsFunc(g.Asks, func(a projections.Ask) bool { return w.made[a.Derivation] })
}

// describeAdded is the effect of the last record on the value, for people, "" for nothing: the amount that it added, or the value that it
// made of it.
func (w *Why) describeAdded(was value.Value) string {
	is := w.row.Get(w.Attr)
	switch counts := slices.ContainsFunc(w.Entity.Values, func(t *model.Tally) bool { return t.Attr == w.counted }); {
	case counts:
		return strings.Join(aggregate.Explain(w.counted, projections.SumAdds(w.adds)), ", ")
	case w.Later && len(w.made) > 0: // its old value depends on rows that are not known
		if w.asked {
			return "may change it"
		}
		return ""
	case value.Equal(was, is) && w.read && w.asked:
		return "is followed"
	case value.Equal(was, is):
		return ""
	case w.row == nil:
		return "the row goes"
	case is.IsMissing():
		return w.Attr + " is gone"
	}
	return w.Attr + " = " + runner.ValueText(is)
}

// formatValue returns the value after the last record, "" if there is none. A distinct over its max is said in words.
func (w *Why) formatValue() string {
	set := w.Entity.SetOf()
	switch {
	case set != nil && set.Attr == w.Attr:
		n := 0
		for _, a := range w.sums {
			if a.Value.Sign() > 0 {
				n++
			}
		}
		if n == 1 {
			return "1 member"
		}
		return fmt.Sprintf("%d members", n)
	case w.counted != w.Attr:
		return runner.ValueText(w.Entity.Group.RowsIn(w.sums))
	}
	shown, cannot := projections.PublishedValues(w.Entity.Values, owntable.SettledLedger(w.sums))
	for i := range cannot {
		if cannot[i].Tally.Attr == w.Attr {
			return cannot[i].String()
		}
	}
	is := w.row.Get(w.Attr)
	for _, a := range shown {
		if a.Name == w.Attr {
			is = a.Value
		}
	}
	return runner.ValueText(is)
}
