package verify

import (
	"context"
	"strings"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// follows compares the stored value of each followed field, and the followers on its list,
// with the field's current value.
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

// members compares the stored value of a followed field, and each row on its list, with the field.
func (v *Verify) members(ctx context.Context, s projections.Spread) error {
	name := projections.FollowedField(s.Entity, s.Field)
	list := book.Followed(v.Model.Name, name, s.Source)
	q := store.Query{Table: book.TableName, Partition: list.Key.Partition}
	kept, gone := value.Value{}, false
	for {
		page, err := v.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, m := range page.Rows {
			if value.Equal(m.Get(book.Sort), list.Key.Sort) {
				kept, gone = m.Get(projections.FollowedValue), m.Has(projections.FollowedGone)
			} else if err := v.followed(ctx, s, name, list, m); err != nil {
				return err
			}
		}
		if page.Next == nil {
			break
		}
		q.After = page.Next
	}
	have := text(kept)
	if gone {
		have = goneText
	}
	v.followedAs(s.Entity, s.Field, s.Source, text(s.Value), have)
	return nil
}

func (v *Verify) followedAs(e *model.Entity, field string, source store.Ref, want, have string) {
	if want != have {
		v.differs(projections.FollowedField(e, field)+" as followed", rowText(v.Model, source), want, have, What{Kind: Followed, Row: source, Entity: e, Field: field})
	}
}

// goneText is printed in place of a followed value whose row does not exist.
const goneText = "the value of no row"

// place is what is known of a list of followers in the own table. The scan passes it from
// row to row of that list.
type place struct {
	list   string // the list's partition
	name   string // of the field followed
	exists bool   // the row followed exists; follows then checks its followers
	last   value.Value
	known  bool // the last value
}

// abandoned checks the followers of rows that do not exist: they must show nothing, or the
// last value. Call it with the rows of a list one after the other, the value first.
func (v *Verify) abandoned(ctx context.Context, at *place, row value.Item) error {
	if list := row.Get(book.Partition).Text(); at.list != list {
		*at = place{list: list}
		for _, f := range v.Model.Follows {
			if name := projections.FollowedField(f.Source, f.Field.Name); strings.HasPrefix(list, book.FollowedOf(v.Model.Name, name)) {
				at.name = name
			}
		}
	}
	if value.Equal(row.Get(book.Sort), book.Ref(at.list, "").Key.Sort) {
		return v.lastValue(ctx, at, row)
	}
	if at.exists {
		return nil
	}
	ref, attr, ok := projections.MemberOf(v.Model, row)
	if !ok {
		return nil
	}
	got, err := v.get(ctx, []store.Ref{ref})
	if err != nil || got[0].Get(book.Follows(attr)).Text() != book.Hash(at.list) {
		return err
	}
	want := value.Value{}
	if projections.KeepsLast(v.Model, v.Model.Table(ref.Table).Classify(got[0]), attr, at.list) {
		if want = at.last; !at.known && got[0].Has(book.FollowVersion(attr)) {
			return nil // it was given a value, and nothing says any more which was the last
		}
	}
	v.check(at.name+" followed", ref, want, got[0].Get(attr), What{Kind: Following, Row: ref, Field: attr, Of: book.Ref(at.list, "")})
	return nil
}

// lastValue looks up whether the row whose value is followed still exists.
func (v *Verify) lastValue(ctx context.Context, at *place, row value.Item) error {
	gone := row.Has(projections.FollowedGone)
	at.exists, at.last, at.known = !gone, row.Get(projections.FollowedValue), true
	source, _, ok := projections.MemberOf(v.Model, row)
	if !ok {
		return nil // kept before it said which row it is of: see lists
	}
	is, err := v.get(ctx, []store.Ref{source})
	if err != nil {
		return err
	}
	for _, f := range v.Model.Follows {
		if book.Followed(v.Model.Name, projections.FollowedField(f.Source, f.Field.Name), source).Key.Partition.Text() != at.list {
			continue
		}
		if at.exists = v.Model.Table(source.Table).Classify(is[0]) == f.Source; !at.exists && !gone {
			v.followedAs(f.Source, f.Field.Name, source, goneText, text(at.last))
		}
		return nil
	}
	return nil
}

// followed compares a row on the list of a followed field with that field. It skips a row
// that does not say that it follows it.
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

// lists checks that each row of history that follows a value is on the list of that value,
// as far as the row itself says which value that is. For a copy, its source says so: see
// links.
func (v *Verify) lists(ctx context.Context, rows []found) error {
	var fs []follower
	for i := range rows {
		if rows[i].Is == nil {
			continue
		}
		for _, rule := range rows[i].Is.MadeBy {
			for j := range rule.Fields {
				f := rule.Fields[j].Expr.Follow
				if f == nil || len(rule.Keep) == 0 || rule.Into.Attribute(f.Attr) == nil {
					continue
				}
				if of, ok := projections.FollowedBy(f, rows[i].New); ok {
					fs = append(fs, follower{rows[i].Row, rows[i].New, f, of})
				}
			}
		}
	}
	return v.places(ctx, fs)
}

// links compares what the attributes of a copy follow with what its rule says. It returns
// those that are right.
func (v *Verify) links(p *projections.Put, source store.Ref, row value.Item) (fs []follower) {
	for i := range p.Rule.Fields {
		f := p.Rule.Fields[i].Expr.Follow
		if f == nil || p.Rule.Into.Attribute(f.Attr) == nil {
			continue
		}
		have := row.Get(book.Follows(f.Attr)).Text()
		mark, want := "", followsNone
		for _, is := range p.Follows {
			if is.Follow == f {
				link := follower{p.Row, row, f, is.Of}
				mark, want = book.Hash(v.list(link).Key.Partition.Text()), v.followerText(is.Of)
				if have == mark {
					fs = append(fs, link)
				}
			}
		}
		if have != mark {
			name, is := projections.FollowedField(f.Source, f.Field.Name), "a follower of another row"
			if have == "" {
				is = followsNone
			}
			v.differs(name+" followed", rowText(v.Model, p.Row), want, is, What{Kind: Copy, Row: p.Row, Rule: p.Rule, Of: source})
		}
	}
	return fs
}

const followsNone = "a follower of no row"

func (v *Verify) followerText(of store.Ref) string { return "a follower of " + rowText(v.Model, of) }

// places checks that each follower is on the list of what it follows. A follower that is on
// no list gets no new value, not even if the row that it follows is created later.
func (v *Verify) places(ctx context.Context, fs []follower) error {
	var sources, members, values []store.Ref
	for _, f := range fs {
		sources, values = append(sources, f.of), append(values, v.list(f))
		members = append(members, book.Member(v.list(f), f.Attr, f.row))
	}
	source, err := v.get(ctx, sources)
	if err != nil {
		return err
	}
	member, err := v.get(ctx, members)
	if err != nil {
		return err
	}
	kept, err := v.get(ctx, values)
	if err != nil {
		return err
	}
	for i, f := range fs {
		gone := v.Model.Table(f.of.Table).Classify(source[i]) != f.Source
		if _, _, ok := projections.MemberOf(v.Model, kept[i]); gone && kept[i] != nil && !ok && !kept[i].Has(projections.FollowedGone) {
			v.followedAs(f.Source, f.Field.Name, f.of, goneText, text(kept[i].Get(projections.FollowedValue)))
		}
		list := v.list(f)
		if !projections.IsMember(v.Model, member[i], f.row, f.Attr) || f.image.Get(book.Follows(f.Attr)).Text() != book.Hash(list.Key.Partition.Text()) {
			name := projections.FollowedField(f.Source, f.Field.Name)
			v.differs(name+" followed", rowText(v.Model, f.row), v.followerText(f.of), "none", What{Kind: Linked, Row: f.row, Follow: f.Follow, Of: f.of})
		}
	}
	return nil
}

// follower is a row, an attribute of it that follows, and the row that it follows.
type follower struct {
	row   store.Ref
	image value.Item
	*model.Follow
	of store.Ref
}

// list refers to the list on which a follower must be.
func (v *Verify) list(f follower) store.Ref {
	return book.Followed(v.Model.Name, projections.FollowedField(f.Source, f.Field.Name), f.of)
}
