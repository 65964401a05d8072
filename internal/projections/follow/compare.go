package follow

import (
	"context"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// compares compares the values that our own table keeps of followed fields with the fields,
// what rows show of them, and the lists of the rows that follow them. It keeps nothing.
type compares struct{ *runner.Comparison }

// Compares returns the kind's part in a comparison.
func (Kind) Compares(v *runner.Comparison) runner.Compares { return &compares{v} }

// Compare compares the value that is kept of each followed field with the field, and looks
// for each row of history on the list of the value that it follows, as far as the row itself
// says which value that is. For a copy, its source says so: see Links.
func (v *compares) Compare(ctx context.Context, rows []projections.Change) error {
	var values []Value
	var lists []store.Ref
	var links []Link
	for i := range rows {
		for _, s := range Fold(&rows[i], nil) {
			values, lists = append(values, s), append(lists, owntable.Followed(v.Model.Name, FieldName(s.Entity, s.Field), s.Source))
		}
		links = append(links, ofHistory(&rows[i])...)
	}
	kept, err := v.Get(ctx, lists...)
	if err != nil {
		return err
	}
	for i, s := range values {
		if is := owntable.FollowedFrom(kept[i]); is.Gone || !value.Equal(is.Value, s.Value) {
			v.Fix(&ValueFix{Source: s.Source, Entity: s.Entity, Field: s.Field})
		}
	}
	return Places(ctx, v.Comparison, links)
}

// ofHistory returns the links that a row of history names.
func ofHistory(c *projections.Change) (links []Link) {
	if c.Is == nil {
		return nil
	}
	for _, rule := range c.Is.MadeBy {
		for i := range rule.Fields {
			f := rule.Fields[i].Expr.Follow
			if f == nil || len(rule.Keep) == 0 || rule.Into.Attribute(f.Attr) == nil {
				continue
			}
			if of, ok := FollowedBy(f, c.New); ok {
				links = append(links, Link{c.Row, c.New, projections.Following{Follow: f, Of: of}})
			}
		}
	}
	return links
}

// Link is an attribute of a row, and the row whose field it follows.
type Link struct {
	row   store.Ref
	image value.Item
	projections.Following
}

// Links returns the links of a copy by its rule. same is false if the row says otherwise.
func Links(m *model.Model, p *projections.Put, row value.Item) (links []Link, same bool) {
	same = true
	for i := range p.Rule.Fields {
		f := p.Rule.Fields[i].Expr.Follow
		if f == nil || p.Rule.Into.Attribute(f.Attr) == nil {
			continue
		}
		mark := value.Value{}
		for _, is := range p.Follows {
			if is.Follow == f {
				mark = listMark(listOf(m, is).Key.Partition.Text())
				links = append(links, Link{p.Row, row, is})
			}
		}
		same = same && value.Equal(mark, row.Get(owntable.Follows(f.Attr)))
	}
	return links, same
}

// Places checks that each follower is on the list of what it follows. A follower that is on
// no list gets no new value, not even if the row that it follows is created later.
func Places(ctx context.Context, v *runner.Comparison, links []Link) error {
	var entries []store.Ref
	for _, l := range links {
		entries = append(entries, owntable.Follower(listOf(v.Model, l.Following), l.Attr, l.row))
	}
	entry, err := v.Get(ctx, entries...)
	if err != nil {
		return err
	}
	for i, l := range links {
		if !isFollower(v.Model, entry[i], l.row, l.Attr) || !onList(l.image, l.Attr, entries[i].Key.Partition.Text()) {
			v.Fix(&LinkFix{Row: l.row, Following: l.Following})
		}
	}
	return nil
}

// onList reports whether a row says that its attribute follows the value of a list.
func onList(row value.Item, attr, list string) bool {
	return value.Equal(row.Get(owntable.Follows(attr)), listMark(list))
}

// OwnRows compares rows on lists of followers with what the lists keep, and looks for values
// whose row does not exist. It skips a row that does not say that it follows the list, and an
// entry that names no row: the row is then on no list, which Places finds.
func (v *compares) OwnRows(ctx context.Context, rows []value.Item) error {
	var followers, lists, sources []store.Ref
	var attrs []string
	var values []*ValueFix // of rows that may exist no more
	for _, row := range rows {
		list := row.Get(owntable.Partition).Text()
		if f := v.followed(list); f == nil {
			continue
		} else if is := owntable.FollowedFrom(row); !owntable.IsEntry(row.Get(owntable.Sort).Text()) {
			if source, ok := v.sourceOf(f, list, is.Row); ok && !is.Gone {
				values, sources = append(values, &ValueFix{Source: source, Entity: f.Source, Field: f.Field.Name}), append(sources, source)
			}
		} else if ref, attr, ok := followerOf(v.Model, row); ok {
			followers, attrs, lists = append(followers, ref), append(attrs, attr), append(lists, owntable.FollowedList(list))
		}
	}
	are, err := v.Get(ctx, sources...)
	if err != nil {
		return err
	}
	gone := map[string]bool{} // lists that will keep that their row is gone
	for i, f := range values {
		if v.Model.Table(f.Source.Table).Classify(are[i]) != f.Entity {
			v.Fix(f)
			gone[f.list(v.Model).Key.Partition.Text()] = true
		}
	}
	kept, err := v.Get(ctx, lists...)
	if err != nil {
		return err
	}
	shown, err := v.Get(ctx, followers...)
	if err != nil {
		return err
	}
	for i, row := range shown {
		list, keeps := lists[i].Key.Partition.Text(), keptIn(kept[i])
		keeps.Gone = keeps.Gone || gone[list]
		if onList(row, attrs[i], list) && isStale(v.Model, followers[i], row, attrs[i], list, keeps) {
			v.Fix(&FollowerFix{Row: followers[i], Attr: attrs[i], List: lists[i]})
		}
	}
	return nil
}

// followed returns a follow of the field whose values a list has, nil if it is no list of followers.
func (v *compares) followed(list string) *model.Follow {
	for _, f := range v.Model.Follows {
		if strings.HasPrefix(list, owntable.FollowedOf(v.Model.Name, FieldName(f.Source, f.Field.Name))) {
			return f
		}
	}
	return nil
}

// sourceOf returns the row whose field a list keeps, by the name of the list, or if that is a hash, by what stands there.
func (v *compares) sourceOf(f *model.Follow, list string, is owntable.KeyedRow) (store.Ref, bool) {
	text := strings.TrimPrefix(list, owntable.FollowedOf(v.Model.Name, FieldName(f.Source, f.Field.Name)))
	if row, ok := owntable.RowOf(text); ok {
		return row, v.Model.Table(row.Table) != nil
	}
	return projections.RowOf(v.Model, is)
}

// isStale reports whether an attribute of a row shows something else than the list that it is on keeps. If nothing is kept
// there, a row that keeps last values may show the last one.
func isStale(m *model.Model, at store.Ref, row value.Item, attr, list string, v kept) bool {
	keeps := KeepsLast(m, m.Table(at.Table).Classify(row), attr, list)
	if !v.There() && keeps && row.Has(owntable.FollowVersion(attr)) {
		return false
	}
	return !value.Equal(v.shown(keeps), row.Get(attr))
}
