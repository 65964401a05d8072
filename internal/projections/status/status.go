package status

import (
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Fact is a row of our own table: the report of one source row about the status of a
// target, as of Position. A nil Says withdraws it. Each source has its own fact, so the
// newest position wins in whatever order facts arrive. A caller that writes facts must
// recompute the targets afterwards.
type Fact struct {
	List, Name string // its place in our own table, see package owntable
	Says       value.Item
	Position   events.Position
	Source     store.Ref     // the row that reports it
	Entity     *model.Entity // the entity of the row that must be recomputed:
	Target     store.Ref     // this row or, if All is set,
	All        bool          // every target of the list
	Latest     *model.Latest // the derivation that the row takes part in; nil for the fact of a status
}

// Fold returns the facts that a change reports or withdraws: a row reports that a word of a status is reached, that it
// belongs to a group, or that its status depends on a group. A fact that the change
// leaves as it was is not written again.
func Fold(c *projections.Change, faults *projections.Faults) (out []Fact) {
	was, is := factsOf(c, c.Was, c.Old, faults, true), factsOf(c, c.Is, c.New, faults, false)
	for _, f := range was {
		if !slices.ContainsFunc(is, f.sameRow) {
			f.Says = nil
			out = append(out, f)
		}
	}
	for _, f := range is {
		if i := slices.IndexFunc(was, f.sameRow); i < 0 || !value.EqualItems(was[i].Says, f.Says) {
			out = append(out, f)
		}
	}
	return out
}

// faultOf is the subject of a fault of the fact: the name of its list, which is that of a status or a latest, or of
// a list of others.
func (f *Fact) faultOf() string {
	name, _ := owntable.CutFactList(f.List)
	return name
}

// changedDerivations are those that the fact may change.
func (f *Fact) changedDerivations() []string {
	all := f.Entity.Recomputes()
	if name := f.faultOf(); slices.Contains(all, name) {
		return []string{name}
	}
	return all
}

// memberRow returns the fact as our own table keeps it.
func (f *Fact) memberRow() owntable.Member {
	return owntable.Member{Name: f.Name, Position: f.Position, Says: f.Says}
}

// sameRow reports whether two facts are one row of the own table.
func (f *Fact) sameRow(g Fact) bool { return f.List == g.List && f.Name == g.Name }

// factsOf returns all facts that a row reports by itself. A fact that our own table cannot
// hold, or whose target cannot exist, is a fault.
// It is pure. A row that reports the same list of others in several stages reports it once. old says that the row is the one
// before a change, whose faults were told when it was written.
func factsOf(c *projections.Change, e *model.Entity, row value.Item, faults *projections.Faults, old bool) []Fact {
	if e == nil {
		return nil
	}
	var out []Fact
	add := func(f Fact, ok bool) {
		derivation := f.faultOf()
		ok = ok && (f.All || faults.IsReachableKey(derivation, f.Entity.Table, f.Target.Key, old))
		if f.Position, f.Source = c.Position, c.Row; ok && faults.FitsOwnTable(derivation, "what the row tells", f.Says.Size(), old) {
			out = append(out, f)
		}
	}
	for _, st := range e.Stages {
		add(reachedFact(c, st, row, faults, old))
	}
	for _, l := range e.LatestOf {
		add(takesPart(c, l, row, faults, old))
	}
	for _, o := range e.Others {
		if faults.IsUsable(&o.Input, row, old) {
			add(memberFact(o, row))
		}
	}
	for _, s := range e.Statuses {
		if !faults.IsUsable(&s.Input, row, old) {
			continue
		}
		for i, st := range s.Stages {
			if o := othersOf(st, row); o != nil && !slices.ContainsFunc(s.Stages[:i], func(b *model.Stage) bool { return b.List == st.List }) {
				add(goesBy(c, o, row))
			}
		}
	}
	return out
}

// reachedFact returns the fact that a row reaches a word, with the values that it sets there.
// A row that passes the where but names no target, or no element of a list, says nothing.
func reachedFact(c *projections.Change, st *model.Stage, row value.Item, faults *projections.Faults, old bool) (Fact, bool) {
	if !faults.IsUsable(&st.Input, row, old) {
		return Fact{}, false
	}
	target, ok := keyOf(st.Status.Target, st.To, row)
	f := Fact{List: FactsOf(st.Status, target), Name: owntable.ReachedFact(st.Word, owntable.RowText(c.Row)), Entity: st.Status.Target, Target: target}
	if st.List != nil {
		who := value.Scalar(st.Who.Stored(row))
		f.Name, ok = owntable.ReachedFact(st.Word, who), ok && who != ""
	}
	f.Says = value.Item{}
	for i := range st.Set {
		if v := st.Set[i].Expr.Field.Get(row); !v.IsMissing() {
			f.Says = f.Says.With(value.Attr{Name: st.Set[i].Name, Value: v})
		}
	}
	return f, ok
}

// keyOf is the row that a source row moves; ok is false if its key cannot be made.
func keyOf(e *model.Entity, to []model.Assign, row value.Item) (store.Ref, bool) {
	key, ok := e.KeyFrom(to, row)
	return store.Ref{Table: e.Table.Name, Key: key}, ok
}

// memberFact returns the fact that a row is a member of a group (`others` in the code).
func memberFact(o *model.Others, row value.Item) (Fact, bool) {
	who := o.Field.Stored(row)
	list, ok := membersOf(o, func(i int) value.Value { return o.Links[i].Stored(row) })
	return Fact{
		List: list, Name: owntable.GroupMember(value.Scalar(who)), Entity: o.On, All: true,
		Says: owntable.ToldMember(who),
	}, ok && value.Scalar(who) != ""
}

// goesBy returns the fact that a target without a list of its own depends on a group.
func goesBy(c *projections.Change, o *model.Others, row value.Item) (Fact, bool) {
	list, ok := OthersOf(o, row)
	return Fact{
		List: list, Name: owntable.TargetFact(owntable.RowText(c.Row)), Entity: o.On, Target: c.Row,
		Says: owntable.FactOfTarget(c.Row.Table, c.Table.Item(c.Row.Key)),
	}, ok
}

// TargetOf returns the row that a target's fact names.
func TargetOf(m *model.Model, told value.Item) (store.Ref, bool) {
	table, item := owntable.TargetOf(told)
	t := m.Table(table)
	if t == nil {
		return store.Ref{}, false
	}
	key, ok := t.KeyOf(item)
	return store.Ref{Table: t.Name, Key: key}, ok
}

// othersOf returns the group that replaces a stage's list on this row. It returns nil if
// the row has a list of its own, even an empty one, or a value that is none.
func othersOf(st *model.Stage, row value.Item) *model.Others {
	if st.List == nil {
		return nil
	}
	if k := row.Get(st.List.Name).Kind(); k != value.Missing && k != value.Null {
		return nil
	}
	return st.List.Others
}

// FactsOf returns the name of the list with the facts about a target's status.
func FactsOf(s *model.Status, target store.Ref) string { return owntable.FactsOf(s.Name, target) }

// OthersOf returns the name of the list with the members of the group that a row depends
// on.
func OthersOf(o *model.Others, row value.Item) (string, bool) {
	return membersOf(o, func(i int) value.Value { return projections.ScalarOf(&o.Key[i].Expr, row) })
}

// membersOf returns the name of the list of a group, given the values of its key. It
// returns false if one of them is missing.
func membersOf(o *model.Others, get func(i int) value.Value) (string, bool) {
	texts := make([]string, 0, len(o.Key))
	for i := range o.Key {
		text := value.Scalar(get(i))
		if text == "" {
			return "", false
		}
		texts = append(texts, text)
	}
	return owntable.FactList(o.Name, owntable.JoinTexts(texts)), true
}

// NeedsRecompute reports whether a change leaves a row that shows facts in a state that may not
// agree with the facts: the row is new, or the application changed something that the
// status depends on. weir's own writes raise the version and change nothing that the
// application wrote.
func NeedsRecompute(c *projections.Change) bool {
	if c.Is == nil || !c.Is.IsRecomputed() {
		return false
	}
	if c.Was != c.Is {
		return true
	}
	was, is := c.Old.Get(owntable.Version), c.New.Get(owntable.Version)
	if is.Kind() != value.Number {
		return true
	}
	if was.Kind() != value.Number {
		return false
	}
	switch d := value.Compare(is, was); {
	case d < 0:
		return true
	case d > 0:
		return !projections.SameWritten(c.Is, projections.OwnRow(c.Is, c.Old), projections.OwnRow(c.Is, c.New))
	}
	return slices.ContainsFunc(BasisAttributes(c.Is), func(name string) bool {
		return !value.Equal(c.Old.Get(name), c.New.Get(name))
	})
}

// BasisAttributes returns the attributes of a row that its statuses depend on, and those that weir
// writes for them and for the latest of rows.
func BasisAttributes(e *model.Entity) []string {
	out := []string{owntable.Own}
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, s := range e.Statuses {
		for _, name := range s.Attributes() {
			add(name)
		}
		for _, st := range s.Stages {
			if st.List == nil {
				continue
			}
			add(st.List.Name)
			if st.List.Others != nil {
				for i := range st.List.Others.Key {
					if f := st.List.Others.Key[i].Expr.Field; f != nil {
						for _, name := range f.Attrs() {
							add(name)
						}
					}
				}
			}
		}
	}
	for _, l := range e.Latest {
		for _, name := range l.Attributes() {
			add(name)
		}
	}
	return out
}
