package verify

import (
	"context"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// follows compares what our table keeps of each followed field, and those on its
// list, with the field as it is.
func (v *Verify) follows(ctx context.Context, rows []found) error {
	for i := range rows {
		f := &rows[i]
		e := projections.Fold(&f.Change)
		for _, s := range e.Spreads {
			if err := v.members(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *Verify) members(ctx context.Context, s projections.Spread) error {
	name := projections.FollowedField(s.Entity, s.Field)
	list := book.Followed(v.Model.Name, name, s.Source)
	q := store.Query{Table: book.TableName, Partition: list.Key.Partition}
	kept := value.Value{}
	for {
		page, err := v.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, m := range page.Rows {
			if value.Equal(m.Get(book.Sort), list.Key.Sort) {
				kept = m.Get(book.Told)
			} else if err := v.followed(ctx, s, name, list, m); err != nil {
				return err
			}
		}
		if page.Next == nil {
			break
		}
		q.After = page.Next
	}
	if !value.Equal(kept, s.Value) {
		v.differs(name+" as followed", rowText(v.Model, s.Source), text(s.Value), text(kept), What{Kind: Followed, Row: s.Source, Entity: s.Entity, Field: s.Field})
	}
	return nil
}

// followed compares a row that is on the list of a followed field, as long as it
// says that it follows it.
func (v *Verify) followed(ctx context.Context, s projections.Spread, name string, list store.Ref, member value.Item) error {
	ref, attr, ok := projections.MemberOf(v.Model, member)
	if !ok {
		return nil // whose place it is has none, which lists says
	}
	got, err := v.get(ctx, []store.Ref{ref})
	if err != nil {
		return err
	}
	if got[0].Get(book.Follows(attr)).Text() == book.Hash(list.Key.Partition.Text()) {
		v.check(name+" followed", ref, s.Value, got[0].Get(attr), What{Kind: Following, Row: ref, Field: attr, Of: list})
	}
	return nil
}

// lists looks for each row that follows on the list of what it follows, as far as
// the row itself says what that is. One that is on no list hears of no new value.
func (v *Verify) lists(ctx context.Context, rows []found) error {
	var fs []follower
	for i := range rows {
		if rows[i].Is == nil {
			continue
		}
		for _, rule := range rows[i].Is.MadeBy {
			for j := range rule.Fields {
				f := rule.Fields[j].Expr.Follow
				if f == nil || rule.Into.Attribute(f.Attr) == nil {
					continue
				}
				if of, ok := projections.FollowedBy(f, rows[i].New); ok {
					fs = append(fs, follower{&rows[i], f, of})
				}
			}
		}
	}
	var sources, members []store.Ref
	for _, f := range fs {
		sources = append(sources, f.of)
		members = append(members, book.Member(v.list(f), f.Attr, f.Row))
	}
	source, err := v.get(ctx, sources)
	if err != nil {
		return err
	}
	member, err := v.get(ctx, members)
	if err != nil {
		return err
	}
	for i, f := range fs {
		if source[i] == nil || v.Model.Table(f.of.Table).Classify(source[i]) != f.Source {
			continue // it keeps the last value
		}
		list := v.list(f)
		if !projections.IsMember(v.Model, member[i], f.Row, f.Attr) || f.New.Get(book.Follows(f.Attr)).Text() != book.Hash(list.Key.Partition.Text()) {
			name := projections.FollowedField(f.Source, f.Field.Name)
			v.differs(name+" followed", rowText(v.Model, f.Row), "a follower of "+rowText(v.Model, f.of), "none", What{Kind: Linked, Row: f.Row, Follow: f.Follow, Of: f.of})
		}
	}
	return nil
}

// follower is a row, an attribute of it that follows, and the row that it follows.
type follower struct {
	*found
	*model.Follow
	of store.Ref
}

func (v *Verify) list(f follower) store.Ref {
	return book.Followed(v.Model.Name, projections.FollowedField(f.Source, f.Field.Name), f.of)
}
