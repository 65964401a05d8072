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
// what rows show of them, and the lists of the rows that follow them.
type compares struct {
	*runner.Comparison
	followed string // what the partition keys of lists begin with
	at       scanned
}

// scanned is what the scan of our own table knows of the list of followers that it is at.
// A list begins with the row that keeps the value.
type scanned struct {
	list   string // the list's partition
	name   string // of the field followed
	exists bool   // the row followed exists; Compare then checks its followers
	last   value.Value
	known  bool // the last value
}

// Compares returns the kind's part in a comparison.
func (Kind) Compares(v *runner.Comparison) runner.Compares {
	return &compares{Comparison: v, followed: owntable.FollowedIn(v.Model.Name)}
}

// Compare compares the lists that history is on, and the kept value of each followed field
// and the followers on its list with the field's current value.
func (v *compares) Compare(ctx context.Context, rows []projections.Change) error {
	if err := v.lists(ctx, rows); err != nil {
		return err
	}
	for i := range rows {
		values := Fold(&rows[i], nil)
		for j := range values {
			if err := v.value(ctx, &values[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// value compares the kept value of a followed field, and each row on its list, with the
// field.
func (v *compares) value(ctx context.Context, s *Value) error {
	list := owntable.Followed(v.Model.Name, FieldName(s.Entity, s.Field), s.Source)
	q := store.Query{Table: owntable.TableName, Partition: list.Key.Partition}
	var kept owntable.FollowedRow
	for rows, err := range store.Pages(ctx, v.Store, q) {
		if err != nil {
			return err
		}
		var entries []value.Item
		for _, row := range rows {
			if value.Equal(row.Get(owntable.Sort), list.Key.Sort) {
				kept = owntable.FollowedFrom(row)
			} else {
				entries = append(entries, row)
			}
		}
		if err := v.followers(ctx, s, list, entries); err != nil {
			return err
		}
	}
	have := runner.ValueText(kept.Value)
	if kept.Gone {
		have = goneText
	}
	keptAs(v.Comparison, s.Entity, s.Field, s.Source, runner.ValueText(s.Value), have)
	return nil
}

// keptAs compares the kept value of a field.
func keptAs(v *runner.Comparison, e *model.Entity, field string, source store.Ref, want, have string) {
	if want != have {
		fix := &ValueFix{Source: source, Entity: e, Field: field}
		v.Differs(FieldName(e, field)+" as followed", v.RowText(source), want, have, fix)
	}
}

// goneText is printed in place of a followed value whose row does not exist.
const goneText = "the value of no row"

// followers compares rows on the list of a followed field with that field. It skips a row
// that does not say that it follows it, and an entry that names no row: the row is then on
// no list, which Places says.
func (v *compares) followers(ctx context.Context, s *Value, list store.Ref, entries []value.Item) error {
	var refs []store.Ref
	var attrs []string
	for _, entry := range entries {
		if ref, attr, ok := followerOf(v.Model, entry); ok {
			refs, attrs = append(refs, ref), append(attrs, attr)
		}
	}
	rows, err := v.Get(ctx, refs...)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if onList(row, attrs[i], list) {
			v.shows(FieldName(s.Entity, s.Field), refs[i], attrs[i], list, s.Value, row)
		}
	}
	return nil
}

// onList reports whether a row says that its attribute follows the value of a list.
func onList(row value.Item, attr string, list store.Ref) bool {
	return row.Get(owntable.Follows(attr)).Text() == owntable.Hash(list.Key.Partition.Text())
}

// shows compares the followed value that a row shows.
func (v *compares) shows(name string, row store.Ref, attr string, list store.Ref, want value.Value, have value.Item) {
	v.Check(name+" followed", row, want, have.Get(attr), &FollowerFix{Row: row, Attr: attr, List: list})
}

// OwnRow checks the followers of rows that do not exist: they must show nothing, or the
// last value. The rows of a list come one after the other, the value first.
func (v *compares) OwnRow(ctx context.Context, row value.Item) error {
	name := row.Get(owntable.Partition).Text()
	if !strings.HasPrefix(name, v.followed) {
		return nil
	}
	if v.at.list != name {
		v.at = scanned{list: name}
		for _, f := range v.Model.Follows {
			if field := FieldName(f.Source, f.Field.Name); strings.HasPrefix(name, owntable.FollowedOf(v.Model.Name, field)) {
				v.at.name = field
			}
		}
	}
	list := owntable.FollowedList(name)
	if value.Equal(row.Get(owntable.Sort), list.Key.Sort) {
		return v.lastValue(ctx, row)
	}
	if v.at.exists {
		return nil
	}
	ref, attr, ok := followerOf(v.Model, row)
	if !ok {
		return nil
	}
	got, err := v.Get(ctx, ref)
	if err != nil || !onList(got[0], attr, list) {
		return err
	}
	want := value.Value{}
	if KeepsLast(v.Model, v.Model.Table(ref.Table).Classify(got[0]), attr, name) {
		if want = v.at.last; !v.at.known && got[0].Has(owntable.FollowVersion(attr)) {
			return nil // it was given a value, and nothing says any more which was the last
		}
	}
	v.shows(v.at.name, ref, attr, list, want, got[0])
	return nil
}

// lastValue looks up whether the row whose value is kept still exists.
func (v *compares) lastValue(ctx context.Context, row value.Item) error {
	is := owntable.FollowedFrom(row)
	v.at.exists, v.at.last, v.at.known = !is.Gone, is.Value, true
	source, ok := projections.RowOf(v.Model, is.Row)
	if !ok {
		return nil // it does not say which row it is of; its followers do: see Places
	}
	now, err := v.Get(ctx, source)
	if err != nil {
		return err
	}
	for _, f := range v.Model.Follows {
		if owntable.Followed(v.Model.Name, FieldName(f.Source, f.Field.Name), source).Key.Partition.Text() != v.at.list {
			continue
		}
		if v.at.exists = v.Model.Table(source.Table).Classify(now[0]) == f.Source; !v.at.exists && !is.Gone {
			keptAs(v.Comparison, f.Source, f.Field.Name, source, goneText, runner.ValueText(v.at.last))
		}
		return nil
	}
	return nil
}

// lists checks that each row of history that follows a value is on the list of that value,
// as far as the row itself says which value that is. For a copy, its source says so: see
// Links.
func (v *compares) lists(ctx context.Context, rows []projections.Change) error {
	var fs []Follower
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
				if of, ok := FollowedBy(f, rows[i].New); ok {
					fs = append(fs, newFollower(v.Model, rows[i].Row, rows[i].New, f, of))
				}
			}
		}
	}
	return Places(ctx, v.Comparison, fs)
}

// Follower is a row, an attribute of it that follows, and the row that it follows.
type Follower struct {
	row   store.Ref
	image value.Item
	*model.Follow
	of   store.Ref
	name string    // of the followed field
	list store.Ref // on which it must be
}

// newFollower is what a row should be a follower of, and where the own table has its place on the
// list.
func newFollower(m *model.Model, row store.Ref, image value.Item, f *model.Follow, of store.Ref) Follower {
	name := FieldName(f.Source, f.Field.Name)
	return Follower{row, image, f, of, name, owntable.Followed(m.Name, name, of)}
}

// Links compares what the attributes of a copy follow with what its rule says. It returns
// those that are right.
func Links(v *runner.Comparison, p *projections.Put, row value.Item, fix runner.Fix) (fs []Follower) {
	for i := range p.Rule.Fields {
		f := p.Rule.Fields[i].Expr.Follow
		if f == nil || p.Rule.Into.Attribute(f.Attr) == nil {
			continue
		}
		have := row.Get(owntable.Follows(f.Attr)).Text()
		mark, want := "", followsNone
		for _, is := range p.Follows {
			if is.Follow == f {
				link := newFollower(v.Model, p.Row, row, f, is.Of)
				mark, want = owntable.Hash(link.list.Key.Partition.Text()), followsText(v, is.Of)
				if have == mark {
					fs = append(fs, link)
				}
			}
		}
		if have != mark {
			name, is := FieldName(f.Source, f.Field.Name), "a follower of another row"
			if have == "" {
				is = followsNone
			}
			v.Differs(name+" followed", v.RowText(p.Row), want, is, fix)
		}
	}
	return fs
}

const followsNone = "a follower of no row"

// followsText says for people which row is followed.
func followsText(v *runner.Comparison, of store.Ref) string {
	return "a follower of " + v.RowText(of)
}

// Places checks that each follower is on the list of what it follows. A follower that is on
// no list gets no new value, not even if the row that it follows is created later.
func Places(ctx context.Context, v *runner.Comparison, fs []Follower) error {
	var entries, values []store.Ref
	for _, f := range fs {
		entries, values = append(entries, owntable.Follower(f.list, f.Attr, f.row)), append(values, f.list)
	}
	entry, err := v.Get(ctx, entries...)
	if err != nil {
		return err
	}
	kept, err := v.Get(ctx, values...)
	if err != nil {
		return err
	}
	for i, f := range fs {
		if err := unnamed(ctx, v, f, kept[i]); err != nil {
			return err
		}
		if !isFollower(v.Model, entry[i], f.row, f.Attr) || !onList(f.image, f.Attr, f.list) {
			v.Differs(f.name+" followed", v.RowText(f.row), followsText(v, f.of), "none", &LinkFix{Row: f.row, Follow: f.Follow, Of: f.of})
		}
	}
	return nil
}

// unnamed compares a kept value that does not say which row it is of, and that lastValue
// therefore cannot compare: its row must exist.
func unnamed(ctx context.Context, v *runner.Comparison, f Follower, row value.Item) error {
	kept := owntable.FollowedFrom(row)
	if _, ok := projections.RowOf(v.Model, kept.Row); ok || row == nil || kept.Gone {
		return nil
	}
	source, err := v.Get(ctx, f.of)
	if err == nil && v.Model.Table(f.of.Table).Classify(source[0]) != f.Source {
		keptAs(v, f.Source, f.Field.Name, f.of, goneText, runner.ValueText(kept.Value))
	}
	return err
}
