package follow

import (
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Unfollow says that an attribute of a row followed a field of another row and no longer
// does, unless a newer change says otherwise.
type Unfollow struct {
	Row store.Ref
	projections.Following
}

// Value gives a field's value to every row that follows the field, as of Position. A
// Missing Value removes the attribute. Gone says that the source row no longer exists;
// Value is then its last value, for the followers that keep the last value.
type Value struct {
	// Source is the row whose field is followed.
	Source   store.Ref
	Entity   *model.Entity
	Field    string
	Value    value.Value
	Gone     bool
	Position events.Position
}

// Fold returns the values that a change sets for the rows that follow them: a row
// contributes the fields that have followers. A row that was deleted, or that no longer
// belongs to its entity, contributes that it is gone, with the last value where a follower
// keeps that.
func Fold(c *projections.Change, f *projections.Faults) (out []Value) {
	if c.Was != nil && c.Was != c.Is {
		for _, field := range followedOf(c.Was) {
			v := value.Value{}
			if KeptLast(c.Was, field) {
				v = followedValue(f, c.Was, field, c.Old, true)
			}
			out = append(out, Value{Source: c.Row, Entity: c.Was, Field: field.Name, Value: v, Gone: true, Position: c.Position})
		}
	}
	if c.Is == nil {
		return out
	}
	for _, field := range followedOf(c.Is) {
		if c.Was == c.Is && value.Equal(field.Get(c.New), field.Get(c.Old)) {
			continue
		}
		v := followedValue(f, c.Is, field, c.New, false)
		out = append(out, Value{Source: c.Row, Entity: c.Is, Field: field.Name, Value: v, Position: c.Position})
	}
	return out
}

// ValueOf returns the value that a row gives to those that follow a field of it.
func ValueOf(e *model.Entity, field *model.Field, row value.Item) value.Value {
	return followedValue(nil, e, field, row, false)
}

// followedValue returns a field's value for the rows that follow it. If the value has another type than
// declared, or is too large for our own table, it notes a fault and returns Missing.
func followedValue(f *projections.Faults, of *model.Entity, field *model.Field, row value.Item, old bool) value.Value {
	in := model.Input{Derivation: FieldName(of, field.Name) + " followed", Fields: []*model.Field{field}}
	v := field.Get(row)
	if !f.IsUsable(&in, row, old) || !f.FitsOwnTable(in.Derivation, field.Name, value.Item{{Value: v}}.Size(), old) {
		return value.Value{}
	}
	return v
}

// followedOf returns the fields of an entity that other rows follow, each once.
func followedOf(e *model.Entity) (fields []*model.Field) {
	for _, f := range e.Follow {
		if !slices.ContainsFunc(fields, func(have *model.Field) bool { return have.Name == f.Field.Name }) {
			fields = append(fields, f.Field)
		}
	}
	return fields
}

// LeftLinks returns the links that end because a history row was deleted. Package copies knows
// those that end with a copy.
func LeftLinks(c *projections.Change) (out []Unfollow) {
	if c.Was == nil || c.Is == c.Was {
		return nil
	}
	for _, rule := range c.Was.MadeBy {
		for i := range rule.Fields {
			f := rule.Fields[i].Expr.Follow
			if f == nil || len(rule.Keep) == 0 {
				continue
			}
			if of, ok := FollowedBy(f, c.Old); ok {
				out = append(out, Unfollow{c.Row, projections.Following{Follow: f, Of: of}})
			}
		}
	}
	return out
}

// KeptLast reports whether some follower of the field keeps the field's last value after
// the source row is gone.
func KeptLast(e *model.Entity, field *model.Field) bool {
	return slices.ContainsFunc(e.Follow, func(f *model.Follow) bool { return f.Keep && f.Field.Name == field.Name })
}

// KeepsLast reports whether rows of entity e keep the last value that their attribute
// follows. list is the partition that holds the value in our own table.
func KeepsLast(m *model.Model, e *model.Entity, attr, list string) bool {
	return slices.ContainsFunc(m.Follows, func(f *model.Follow) bool {
		return f.Keep && f.Into == e && f.Attr == attr && strings.HasPrefix(list, owntable.FollowedOf(m.Name, FieldName(f.Source, f.Field.Name)))
	})
}

// FieldName returns the name of a followed field, as it is used in keys of our own
// table.
func FieldName(e *model.Entity, field string) string { return e.Name + "." + field }

// followerOf decodes a follower's entry: it returns the row that follows, and the name of
// its attribute. ok is false if the entry does not name them.
func followerOf(m *model.Model, entry value.Item) (row store.Ref, attr string, ok bool) {
	f := owntable.FollowerFrom(entry)
	row, ok = projections.RowOf(m, f.Row)
	return row, f.Attr, ok
}

// isFollower reports whether an entry belongs to this row and attribute.
func isFollower(m *model.Model, entry value.Item, row store.Ref, attr string) bool {
	of, name, ok := followerOf(m, entry)
	return ok && name == attr && projections.SameRow(of, row)
}

// FollowedBy returns the row whose field an attribute of this row follows. It reads the
// key out of the row itself. ok is false if the row does not contain the whole key, or if
// another rule made the row. A row of the application follows nothing by a value of another type than declared.
func FollowedBy(f *model.Follow, row value.Item) (of store.Ref, ok bool) {
	if f.Rule == nil {
		key, ok := f.Followed(row)
		return store.Ref{Table: f.Source.Table.Name, Key: key}, ok && f.Input.Uses(row) && f.Source.Table.CheckKey(key) == nil
	}
	for i := range f.Rule.Fields {
		made := &f.Rule.Fields[i]
		have := f.Rule.Into.Field(made.Name).Stored(row)
		if !made.Expr.Const.IsMissing() && !have.IsMissing() && value.Scalar(have) != value.Scalar(made.Expr.Const) {
			return of, false
		}
	}
	key, ok := f.KeyBy(func(by *model.Field, _ *model.Template) value.Value {
		return projections.TakenField(f.Rule, by.Name, row)
	})
	return store.Ref{Table: f.Source.Table.Name, Key: key}, ok
}
