package projections

import (
	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Join makes a row a follower in a list, as of Position, or, when it is Gone, one
// no longer.
type Join struct {
	List     string     // see book.List
	Row      store.Ref  // the follower
	Fields   value.Item // what rows made for it take from it, by their names
	Gone     bool
	Position events.Position
}

// Tell makes a row for each follower in a list, as of the moment when it is
// handled.
type Tell struct {
	Change   int // index into the batch
	List     string
	Rule     *model.RowRule
	Fields   value.Item // of the rows made, but for those that come from the follower
	Position events.Position
}

// foldJoins: a follower contributes its place in the list where it can be found.
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

// joinOf is JoinOf; where weir cannot hold what the rule takes of the row, that is a
// fault.
func (e *Effects) joinOf(rule *model.RowRule, of *model.Entity, ref store.Ref, row value.Item, old bool) (Join, bool) {
	j, ok := placeOf(rule, of, ref, row)
	return j, ok && e.holds(rule.Name, "what it takes of a follower", j.Fields.Size(), old)
}

// JoinOf is the place of a row of the entity among those that a rule finds; ok is
// false when it finds none such, or weir cannot hold what it takes of the row.
func JoinOf(rule *model.RowRule, e *model.Entity, ref store.Ref, row value.Item) (Join, bool) {
	j, ok := placeOf(rule, e, ref, row)
	return j, ok && j.Fields.Size() <= maxHeld
}

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

// rawName begins the name under which it is kept what a key has for a field, where
// that is not the field's value. No field's name begins so.
const rawName = "%"

// inKeys is a field of a row, and what the row's key has for it.
func inKeys(name string, f *model.Field, row value.Item) []value.Attr {
	v, raw := f.Get(row), f.Raw(row)
	if value.Equal(v, raw) {
		raw = value.Value{}
	}
	return []value.Attr{{Name: name, Value: v}, {Name: rawName + name, Value: raw}}
}

// list is the list of the followers whose fields have these values, which are the
// same where they are so in a key.
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

func foldTell(c *Change, rule *model.RowRule, row value.Item, e *Effects) {
	if !model.Holds(rule.Where, row) {
		return
	}
	to, ok := list(rule, func(m *model.Match) value.Value { return scalarOf(&m.Expr, row) })
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

// For is the row that a follower gets; ok is false where it has no key.
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

// Order cuts a run of changes where it matters what comes first, following or being
// told: within a phase no list is told something that also changes. The zero Order
// is at the beginning of a run.
type Order struct {
	joined, told map[string]bool
}

// Begins reports whether a phase ends before the change that comes next.
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

// Phases answers the phase of each change, counted from 0.
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

// InOrder reports whether the order of a change among those of other rows matters,
// by what its row was and is: it may be of a follower, or tell followers.
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
