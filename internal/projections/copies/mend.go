package copies

import (
	"iter"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Mend is a copy that may differ from the row that weir wrote: another writer changed or deleted
// it, or a worker that was delayed brought it back after weir had removed it.
type Mend struct {
	Change *projections.Change
	Entity *model.Entity
	Ours   events.Position // the position of our last write of the row; zero if unknown
	// Back says that the row exists and carries our mark, so that only a tombstone can
	// show that it should not exist.
	Back bool
}

// needsMending checks a change of a copy, a row that only weir writes. weir's own writes
// raise the position that the row carries, or change the row that it follows; any other change
// needs mending.
func needsMending(c *projections.Change) (Mend, bool) {
	e := c.Is
	if e == nil {
		e = c.Was
	}
	if e == nil || !isCopy(e) {
		return Mend{}, false
	}
	was, is := c.Old.Get(owntable.Version), c.New.Get(owntable.Version)
	m := Mend{Change: c, Entity: e, Ours: events.PositionFrom(was)}
	switch {
	case c.New == nil:
		return m, true
	case is.Kind() != value.Binary:
		return m, true
	case c.Old == nil:
		m.Ours, m.Back = events.PositionFrom(is), true
		return m, true
	case was.Kind() != value.Binary || value.Compare(is, was) > 0:
		return Mend{}, false
	case value.Compare(is, was) < 0:
		return m, true
	}
	return m, !value.EqualItems(ruleWritten(e, c.Old), ruleWritten(e, c.New)) || followedOverwritten(e, c)
}

// followedOverwritten reports whether another writer changed an attribute that follows a
// value. weir raises the attribute's version whenever it changes the attribute.
func followedOverwritten(e *model.Entity, c *projections.Change) bool {
	for _, r := range e.MadeBy {
		for i := range r.Fields {
			f := r.Fields[i].Expr.Follow
			if f == nil {
				continue
			}
			version := owntable.FollowVersion(f.Attr)
			was, is := events.PositionFrom(c.Old.Get(version)), events.PositionFrom(c.New.Get(version))
			if d := is.Compare(was); d < 0 || d == 0 && !value.Equal(c.Old.Get(f.Attr), c.New.Get(f.Attr)) {
				return true
			}
		}
	}
	return false
}

// isCopy reports whether some rule makes rows of the entity as copies, not as history.
func isCopy(e *model.Entity) bool {
	return slices.ContainsFunc(e.MadeBy, func(r *model.RowRule) bool { return len(r.Keep) == 0 })
}

// ruleWritten returns the attributes that the copy's rule writes: the row without those that follow
// other rows.
func ruleWritten(e *model.Entity, row value.Item) value.Item {
	return row.Filter(func(name string) bool {
		if owntable.IsOurs(name) {
			return false
		}
		for _, r := range e.MadeBy {
			for i := range r.Fields {
				if r.Fields[i].Name == name && r.Fields[i].Expr.Follow != nil {
					return false
				}
			}
		}
		return true
	})
}

// Makers yields the rules that may have made a row as a copy, each with the row that it made it from, which the row's key says. A rule
// whose constants the key does not have made other rows; where no rule has them, an older definition made the row, and all
// rules are yielded.
func Makers(e *model.Entity, row value.Item) iter.Seq2[*model.RowRule, store.Ref] {
	return func(yield func(*model.RowRule, store.Ref) bool) {
		rules := e.MadeBy
		if len(rules) > 1 {
			if fit := seq.Where(rules, func(r *model.RowRule) bool { return hasConstants(r, row) }); len(fit) > 0 {
				rules = fit
			}
		}
		for _, rule := range rules {
			if len(rule.Keep) > 0 {
				continue
			}
			key, ok := rule.Source.Key(func(name string) value.Value { return projections.TakenField(rule, name, row) })
			if ok && !yield(rule, store.Ref{Table: rule.Source.Table.Name, Key: key}) {
				return
			}
		}
	}
}

// hasConstants reports whether the key of a row has the constants that a rule puts into keys.
func hasConstants(rule *model.RowRule, row value.Item) bool {
	for name, text := range rule.KeyConstants() {
		if value.Scalar(rule.Into.Field(name).Get(row)) != text {
			return false
		}
	}
	return true
}
