package projections

import (
	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Join enters a row in a list of subscribers (`followers` in the code), as of Position.
// If Gone is set, it removes the row from the list.
type Join struct {
	List     string     // see book.List
	Row      store.Ref  // the subscriber
	Fields   value.Item // what the rows made for the subscriber take from it, by field name
	Gone     bool
	Position events.Position
}

// Tell makes a row (a notification) for each subscriber in a list. The subscribers are
// those at the moment at which the runner handles the Tell.
type Tell struct {
	Change   int // index into the batch
	List     string
	Rule     *model.RowRule
	Fields   value.Item // of the rows made, except those that come from the subscriber
	Position events.Position
}

// foldJoins folds subscriptions: a subscriber contributes its place in the list that its
// fields name.
func foldJoins(c *Change, e *Effects) {
	if c.Was != nil {
		for _, rule := range c.Was.Told {
			was, ok := e.joinOf(rule, c.Was, c.Row, c.Old, true)
			if is, has := JoinOf(rule, c.Is, c.Row, c.New); ok && (!has || was.List != is.List) {
				was.Gone, was.Fields, was.Position = true, nil, c.Position
				e.Joins = append(e.Joins, was)
			}
		}
	}
	if c.Is == nil {
		return
	}
	for _, rule := range c.Is.Told {
		was, had := JoinOf(rule, c.Was, c.Row, c.Old)
		is, has := e.joinOf(rule, c.Is, c.Row, c.New, false)
		if has && !(had && was.List == is.List && value.EqualItems(was.Fields, is.Fields)) {
			is.Position = c.Position
			e.Joins = append(e.Joins, is)
		}
	}
}

// joinOf is JoinOf, and notes a fault if what the rule takes from the row is too large
// for a row of our own table.
func (e *Effects) joinOf(rule *model.RowRule, of *model.Entity, ref store.Ref, row value.Item, old bool) (Join, bool) {
	j, ok := placeOf(rule, of, ref, row)
	return j, ok && e.faults.Holds(rule.Name, "what it takes of a follower", j.Fields.Size(), old)
}

// JoinOf returns the place that a row of entity e has in a list of subscribers under a
// rule. ok is false if the rule does not select the row, or if what the rule takes from
// it is too large for a row of our own table.
func JoinOf(rule *model.RowRule, e *model.Entity, ref store.Ref, row value.Item) (Join, bool) {
	j, ok := placeOf(rule, e, ref, row)
	return j, ok && j.Fields.Size() <= MaxHeld
}

// placeOf is JoinOf without the limit on size.
func placeOf(rule *model.RowRule, e *model.Entity, ref store.Ref, row value.Item) (_ Join, ok bool) {
	if e != rule.Each.Of || row == nil {
		return Join{}, false
	}
	j := Join{Row: ref}
	if j.List, ok = list(rule, func(m *model.Match) value.Value { return m.Field.Get(row) }); !ok {
		return j, false
	}
	var attrs []value.Attr
	for i := range rule.Fields {
		if f := &rule.Fields[i]; f.Expr.Each != nil {
			attrs = append(attrs, inKeys(f.Name, f.Expr.Each, row)...)
		}
	}
	j.Fields = value.NewItem(attrs...)
	return j, true
}

// rawName begins the name of the attribute that holds a field's text as it stands in a
// key, where that differs from the field's value. No field name begins with it.
const rawName = "%"

// inKeys returns a field's value, and its text in the row's key where the two differ.
func inKeys(name string, f *model.Field, row value.Item) []value.Attr {
	v, raw := f.Get(row), f.Raw(row)
	if value.Equal(v, raw) {
		raw = value.Value{}
	}
	return []value.Attr{{Name: name, Value: v}, {Name: rawName + name, Value: raw}}
}

// list returns the name of the list of the subscribers whose fields have these values.
// Two values are the same here if they are the same in a key. ok is false if a value is
// missing.
func list(rule *model.RowRule, val func(*model.Match) value.Value) (string, bool) {
	var by []string
	for i := range rule.Each.By {
		s := value.Scalar(val(&rule.Each.By[i]))
		if s == "" {
			return "", false
		}
		by = append(by, s)
	}
	return book.List(rule.Name+"<"+rule.Source.Name, by), true
}

// foldTell adds the notifications that a history rule asks for, if its row passes the
// rule's tests and names a list of subscribers.
func foldTell(c *Change, rule *model.RowRule, row value.Item, e *Effects) {
	if !model.Holds(rule.Where, row) {
		return
	}
	to, ok := list(rule, func(m *model.Match) value.Value { return ScalarOf(&m.Expr, row) })
	if !ok {
		return
	}
	var attrs []value.Attr
	for i := range rule.Fields {
		if f := &rule.Fields[i]; f.Expr.Each == nil {
			if attrs = append(attrs, value.Attr{Name: f.Name, Value: evaluate(c, &f.Expr, row)}); f.Expr.Field != nil {
				attrs = append(attrs, inKeys(f.Name, f.Expr.Field, row)...)
			}
		}
	}
	e.Tells = append(e.Tells, Tell{List: to, Rule: rule, Fields: value.NewItem(attrs...), Position: c.Position})
}

// For returns the row that a subscriber gets. ok is false if the row would have no key.
func (t *Tell) For(follower value.Item) (Put, bool) {
	get := func(f *model.Assign, name string) value.Value {
		if f.Expr.Each != nil {
			return follower.Get(name)
		}
		return t.Fields.Get(name)
	}
	p, ok := build(t.Rule, func(f *model.Assign) value.Value { return get(f, f.Name) }, func(f *model.Assign) value.Value {
		if raw := get(f, rawName+f.Name); !raw.IsMissing() {
			return raw
		}
		return get(f, f.Name)
	})
	p.Position = t.Position
	return p, ok
}

// Order cuts a run of changes into phases where the order of subscriptions and
// notifications matters. Within a phase, no list gets a notification and also changes its
// subscribers. The zero Order is at the beginning of a run.
type Order struct {
	joined, told map[string]bool
}

// Begins reports whether the given change, which is the next in the run, begins a new
// phase.
func (o *Order) Begins(c *Change) bool {
	if !InOrder(c.Was, c.Is) {
		return false
	}
	e := Fold(c)
	begins := touches(e.Joins, o.told, Join.list) || touches(e.Tells, o.joined, Tell.list)
	if begins || o.told == nil {
		o.joined, o.told = map[string]bool{}, map[string]bool{}
	}
	note(e.Joins, o.joined, Join.list)
	note(e.Tells, o.told, Tell.list)
	return begins
}

// Phases returns the phase of each change, counted from 0.
func Phases(changes []*Change) []int {
	out := make([]int, len(changes))
	var o Order
	phase := 0
	for i, c := range changes {
		if o.Begins(c) {
			phase++
		}
		out[i] = phase
	}
	return out
}

// InOrder reports whether the order of a change among the changes of other rows matters,
// given the row's old and new entity: the row may be a subscriber, or may send
// notifications.
func InOrder(was, is *model.Entity) bool {
	for _, e := range [...]*model.Entity{was, is} {
		if e == nil {
			continue
		}
		if len(e.Told) > 0 {
			return true
		}
		for _, r := range e.Rules {
			if r.Each != nil {
				return true
			}
		}
	}
	return false
}

func (j Join) list() string { return j.List }
func (t Tell) list() string { return t.List }

func touches[T any](effects []T, lists map[string]bool, list func(T) string) bool {
	for _, e := range effects {
		if lists[list(e)] {
			return true
		}
	}
	return false
}

func note[T any](effects []T, lists map[string]bool, list func(T) string) {
	for _, e := range effects {
		lists[list(e)] = true
	}
}
