// Package why explains a derived value: it finds the records of a recording that produced
// it. It applies the records as a replay would, but only for one row, with the same
// projections, and it writes nothing.
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

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/replay"
	"weir/internal/store"
	"weir/internal/value"
)

// Why explains one attribute of one row. Call Find for each record of the first pass, then
// Choose, then Explain for each record of the second pass.
type Why struct {
	Target store.Ref
	Entity *model.Entity
	Attr   string

	at   Address
	seen struct{ it, another bool } // rows with the target's key
	also []*Why                     // other rows that may be meant
	keys map[string]*model.Template // for each of names, the template of the key that holds it

	names   map[string]value.Value // what the target's key is made of, by field
	rows    replay.Rows
	sources map[string]bool            // rows that have a part in it
	follows map[string]bool            // rows of which the attribute follows a field
	lists   map[string]bool            // of others, that the target goes by
	others  map[string]map[string]bool // rows that are one of the others of a list
	book    value.Item
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

func explains(m *model.Model, at Address, attr string) (*Why, error) {
	e, key := at.Entity, at.Row.Key
	if known := derived(e); !slices.Contains(known, attr) && e.Attribute(attr) == nil {
		return nil, fmt.Errorf("%s has no attribute %q; derived on it: %s", e.Name, attr, cmp.Or(strings.Join(known, ", "), "nothing"))
	}
	w := &Why{
		at: at, keys: map[string]*model.Template{}, Target: store.Ref{Table: e.Table.Name, Key: key}, Entity: e, Attr: attr,
		names: map[string]value.Value{}, sources: map[string]bool{}, follows: map[string]bool{},
		lists: map[string]bool{}, others: map[string]map[string]bool{}, rows: replay.Rows{Model: m},
	}
	row := e.Table.Item(key)
	for _, k := range e.PrimaryKey() {
		for _, n := range k.Template.Names() {
			w.names[n], w.keys[n] = e.Field(n).Get(row), k.Template
		}
	}
	return w, nil
}

// derived returns the attributes of an entity that weir writes.
func derived(e *model.Entity) (names []string) {
	for _, t := range e.Values {
		names = append(names, t.Attr)
	}
	for _, s := range e.Steps {
		names = append(names, s.Attributes()...)
	}
	for _, r := range e.MadeBy {
		for i := range r.Fields {
			names = append(names, r.Fields[i].Name)
		}
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
	for _, c := range []*projections.Change{old, new} {
		if c == nil {
			continue
		}
		w.look(c)
		if len(w.parts(c)) > 0 || c.Row.Table == w.Target.Table && projections.SameRow(c.Row, w.Target) {
			w.sources[book.RowText(c.Row)] = true
		}
		w.other(c)
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
	for _, p := range projections.Fold(c).Puts {
		if p.Image != nil && projections.SameRow(p.Row, w.Target) {
			is(p.Image)
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

// other remembers a row for which the target's status may have to wait. It remembers such
// rows of every list, because only a later record may say which list the target uses.
func (w *Why) other(c *projections.Change) {
	if !w.isStep() {
		return
	}
	for _, f := range projections.Fold(c).Facts {
		if f.All {
			if w.others[f.List] == nil {
				w.others[f.List] = map[string]bool{}
			}
			w.others[f.List][book.RowText(c.Row)] = true
		}
	}
}

// behind reports whether a row may contribute to the value at any time.
func (w *Why) behind(row string) bool {
	if w.sources[row] || w.follows[row] {
		return true
	}
	for list := range w.lists {
		if w.others[list][row] {
			return true
		}
	}
	return false
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
	if !w.behind(book.RowText(one.Row)) {
		return l, false
	}
	c, ok, err := w.rows.Take(e, table)
	if err != nil || !ok {
		return l, false
	}
	parts := w.parts(&c)
	if len(parts) == 0 {
		return l, false
	}
	rec := &e.Record
	l = Line{Where: e.Location, Shard: e.Shard, Time: rec.Time, Event: event(&c), Row: c.Row, Value: w.value(&c)}
	if !rec.Position.IsZero() {
		l.Sequence = rec.Position.String()
	}
	l.Added = strings.Join(parts, ", ")
	return l, true
}

func event(c *projections.Change) string {
	switch {
	case c.New == nil:
		return "REMOVE"
	case c.Old == nil:
		return "INSERT"
	}
	return "MODIFY"
}
