// Package why explains a derived value: it finds the records of a recording that produced
// it. It applies the records as a replay would, but only for one row, with the same
// projections, and it writes nothing. Each projection kind explains its part
// (runner.Explanation); this package knows none of them.
//
// Without a recording it explains the value by the rows that there are (Rows): what each adds now.
//
// It reads the recording twice. The first pass (Find) finds the rows that contribute to the
// value at any time. The second pass (Explain) follows only these rows through all their
// changes. So its memory grows with the number of rows behind the value, not with the length
// of the recording.
package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// Why explains one attribute of one row. Call Find for each record of the first pass, then
// Choose, then Explain for each record of the second pass.
type Why struct {
	Target store.Ref
	Entity *model.Entity
	Attr   string
	// Later says that the records do not begin with the first: no Line has a Value.
	Later bool

	hides bool // the model hides what it shows: no Line says it

	at   Address
	seen struct{ it, another bool } // rows with the target's key
	also []*Why                     // other rows that may be meant

	rows    replay.Rows
	sources map[string]bool // rows that have a part in it
	kinds   []runner.Explanation
}

// Line describes one record that contributed to the value.
type Line struct {
	Where    events.Location
	Shard    string // "" if the recording does not say
	Sequence string // "" if the record has none
	Time     time.Time
	Event    string
	Row      store.Ref // whose change it is
	Added    string    // what it added
	Value    string    // the value after the record
}

// New returns a Why for an attribute of the row that target names (see Parse). Its errors are
// mistakes in target or attr, in words for the user who wrote them.
func New(m *model.Model, target, attr string) (*Why, error) {
	all, err := Parse(m, target)
	if err != nil {
		return nil, err
	}
	w, err := explains(m, all[0], attr)
	for i := 1; i < len(all) && err == nil; i++ {
		var also *Why
		also, err = explains(m, all[i], attr)
		w.also = append(w.also, also)
	}
	return w, err
}

// explains prepares an explanation of an attribute of a row. Every kind is asked about it,
// since several may write one row.
func explains(m *model.Model, at Address, attr string) (*Why, error) {
	e, key := at.Entity, at.Row.Key
	if known := derived(e); !slices.Contains(known, attr) && e.Attribute(attr) == nil {
		return nil, fmt.Errorf("%s has no attribute %q; derived on it: %s", e.Name, attr, cmp.Or(strings.Join(known, ", "), "nothing"))
	}
	w := &Why{at: at, Target: store.Ref{Table: e.Table.Name, Key: key}, Entity: e, Attr: attr, hides: m.HidesValuesOf(e.Name + "." + attr), sources: map[string]bool{}, rows: replay.Rows{Model: m}}
	for _, k := range kinds.All() {
		w.kinds = append(w.kinds, k.Explain(&runner.Asked{Row: w.Target, Entity: e, Attr: attr}))
	}
	return w, nil
}

// derived returns the attributes of an entity that weir writes.
func derived(e *model.Entity) (names []string) {
	for _, k := range kinds.All() {
		names = append(names, k.Derives(e)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Find processes a record of the first pass. It ignores bad entries.
func (w *Why) Find(e *events.Entry, table string) {
	for _, also := range w.also {
		also.Find(e, table)
	}
	if e.Bad != nil {
		return
	}
	old, new, err := w.rows.Images(e, table)
	if err != nil {
		return
	}
	changes := []*projections.Change{old, new}
	if old != nil && new != nil { // history may keep only modifications
		both := *new
		both.Was, both.Old = old.Was, old.Old
		changes = append(changes, &both)
	}
	for _, c := range changes {
		if c != nil {
			w.find(c)
		}
	}
}

// FindRow is Find for a row that there is, as the change that inserting it would be.
func (w *Why) FindRow(c *projections.Change) {
	for _, also := range w.also {
		also.FindRow(c)
	}
	w.find(c)
}

// find notes whether a change has a part in the value.
func (w *Why) find(c *projections.Change) {
	w.look(c)
	if len(w.parts(c)) > 0 || c.Row.Table == w.Target.Table && projections.SameRow(c.Row, w.Target) {
		w.sources[owntable.RowText(c.Row)] = true
	}
}

// look notes whether a row with the target's key is the target or another row.
func (w *Why) look(c *projections.Change) {
	is := func(row value.Item) {
		if w.seen.it = w.seen.it || w.at.Is(row); !w.at.Is(row) {
			w.seen.another = true
		}
	}
	for _, row := range []value.Item{c.Old, c.New} {
		if row != nil && projections.SameRow(c.Row, w.Target) {
			is(row)
		}
	}
	for _, k := range w.kinds {
		for _, image := range k.Made(c) {
			is(image)
		}
	}
}

// Choose decides, after the first pass, which of the possible rows is explained. It returns
// an error if the recording contains several of them.
func (w *Why) Choose() error {
	var may []*Why
	for _, one := range append([]*Why{w}, w.also...) {
		if one.seen.another && !one.seen.it || len(one.sources) == 0 {
			continue
		}
		may = append(may, one)
	}
	switch {
	case len(w.also) == 0 || len(may) == 0:
		return nil
	case len(may) > 1:
		return fmt.Errorf("the values name several rows: %s, %s; write one of them so", may[0].Target, may[1].Target)
	}
	*w = *may[0]
	return nil
}

// MadeOf names something derived that the value is made of, "" for nothing: what changed it is
// not in a recording of a table that weir did not write.
func (w *Why) MadeOf() (of string) {
	for _, k := range w.kinds {
		of = cmp.Or(of, k.MadeOf())
	}
	return of
}

// parts says, for people, what a change adds to the value.
func (w *Why) parts(c *projections.Change) (out []string) {
	for _, k := range w.kinds {
		out = append(out, k.Parts(c)...)
	}
	if projections.SameRow(c.Row, w.Target) && !w.Entity.Derived && !projections.IsDerived(w.Entity, w.Attr) { // what the application wrote
		if was, is := projections.Uncovered(c.Old).Get(w.Attr), projections.Uncovered(c.New).Get(w.Attr); !value.Equal(was, is) {
			out = append(out, w.Attr+" = "+runner.ValueText(is))
		}
	}
	return out
}

// behind reports whether a row may contribute to the value at any time.
func (w *Why) behind(row string) bool {
	return w.sources[row] || slices.ContainsFunc(w.kinds, func(k runner.Explanation) bool { return k.Behind(row) })
}

// value returns the attribute's value after a change, "" if the records so far do not
// determine it.
func (w *Why) value(c *projections.Change) (text string) {
	for _, k := range w.kinds {
		text = cmp.Or(text, k.Value(c))
	}
	return text
}

// Explain processes a record of the second pass. The records must come in the same order as
// in the first. ok is false for a record that did not contribute to the value.
func (w *Why) Explain(e *events.Entry, table string) (l Line, ok bool) {
	if e.Bad != nil {
		return l, false
	}
	old, new, err := w.rows.Images(e, table)
	if err != nil {
		return l, false
	}
	one := new
	if one == nil {
		one = old
	}
	if one == nil {
		return l, false
	}
	if !w.behind(owntable.RowText(one.Row)) {
		return l, false
	}
	c, ok, err := w.rows.Take(e, table)
	if err != nil || !ok {
		return l, false
	}
	rec := &e.Record
	l = Line{Where: e.Location, Shard: e.Shard, Time: rec.Time, Event: event(&c)}
	if !rec.Position.IsZero() {
		l.Sequence = rec.Position.String()
	}
	ok = w.explain(&l, &c)
	return l, ok
}

// ExplainRow is Explain for a row that there is. The value is what the rows until then come to.
func (w *Why) ExplainRow(c *projections.Change) (l Line, ok bool) {
	ok = w.behind(owntable.RowText(c.Row)) && w.explain(&l, c)
	return l, ok
}

// explain says in a line what a change of a row behind the value adds, and the value after it. It is false if it adds nothing.
func (w *Why) explain(l *Line, c *projections.Change) bool {
	parts := w.parts(c)
	if len(parts) == 0 {
		return false
	}
	if l.Row = c.Row; !w.Later {
		l.Value = w.value(c)
	}
	if l.Added = strings.Join(parts, ", "); w.hides {
		l.Added, l.Value = model.HiddenText, model.HiddenText
	}
	return true
}

// event names a change as DynamoDB's records do, by its images.
func event(c *projections.Change) string {
	switch {
	case c.New == nil:
		return "REMOVE"
	case c.Old == nil:
		return "INSERT"
	}
	return "MODIFY"
}
