package runner

import (
	"context"
	"errors"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A value that rows follow is kept in our table, with the position of the change
// that set it, in the partition that also holds a member for each row that follows
// it. A value spreads after it is kept; a row reads the value after it is a
// member. So of a new value and a new member at least one sees the other. A row
// carries the position of the value it shows, and a newer one is never replaced.

// followed is what the values at hand are, by the text of their partition.
type followed map[string]kept

type kept struct {
	value    value.Value
	position events.Position
}

func followedText(m string, f projections.Following) string {
	return book.Followed(m, projections.FollowedField(f.Source, f.Field.Name), f.Of).Key.Partition.Text()
}

func (w *work) spreadRef(s *projections.Spread) store.Ref {
	return book.Followed(w.Model.Name, projections.FollowedField(s.Entity, s.Field), s.Source)
}

// Attributes of the rows in a followed value's partition.
const (
	valueAttr  = "v" // the value; absent when the field is
	memberAttr = projections.MemberAttr
	tableAttr  = projections.MemberTable
	keyAttr    = projections.MemberKey
	cursorAttr = "c"    // of a job: the last member that was served
	listAttr   = "list" // of a job: the partition of the list
)

// values keeps the new value of each spread. It returns for each whether the value
// stands as this batch has it, so that it must be spread (again).
func (w *work) values(ctx context.Context) ([]bool, error) {
	ws := make([]store.Write, len(w.Spreads))
	for i := range w.Spreads {
		s := &w.Spreads[i]
		ws[i] = store.Write{
			Ref: w.spreadRef(s), If: store.Cond{below(book.Position, s.Position.Value())}, Return: true,
			Ops: []store.Op{set(book.Position, s.Position.Value()), set(valueAttr, s.Value)},
		}
	}
	out, err := w.write(ctx, ws)
	if err != nil {
		return nil, err
	}
	stands := make([]bool, len(out))
	for i := range out {
		switch {
		case errors.Is(out[i].Err, store.ErrRefused):
			return nil, out[i].Err
		case out[i].Err == nil:
			stands[i] = true
		default:
			stands[i] = events.PositionFrom(out[i].Row.Get(book.Position)) == w.Spreads[i].Position
		}
	}
	return stands, nil
}

// join enters the rows as members of what they follow.
func (w *work) join(ctx context.Context, puts []*projections.Put) error {
	var ws []store.Write
	for _, p := range puts {
		if p.Joined {
			continue
		}
		for _, f := range p.Follows {
			list := book.Followed(w.Model.Name, projections.FollowedField(f.Source, f.Field.Name), f.Of)
			ws = append(ws, store.Write{Ref: book.Member(list, f.Attr, p.Row), Ops: []store.Op{
				set(memberAttr, value.OfString(f.Attr)), set(tableAttr, value.OfString(p.Row.Table)),
				set(keyAttr, value.OfMap(w.Model.Table(p.Row.Table).Item(p.Row.Key))),
			}})
		}
	}
	_, err := w.write(ctx, ws)
	return err
}

// followed reads the values that the rows follow.
func (w *work) followed(ctx context.Context, puts []*projections.Put) (followed, error) {
	values := followed{}
	var refs []store.Ref
	for _, p := range puts {
		for _, f := range p.Follows {
			ref := book.Followed(w.Model.Name, projections.FollowedField(f.Source, f.Field.Name), f.Of)
			if _, have := values[ref.Key.Partition.Text()]; !have {
				values[ref.Key.Partition.Text()] = kept{}
				refs = append(refs, ref)
			}
		}
	}
	rows, err := w.get(ctx, refs)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		name := refs[i].Key.Partition.Text()
		if row == nil {
			delete(values, name)
			continue
		}
		values[name] = kept{row.Get(valueAttr), events.PositionFrom(row.Get(book.Position))}
	}
	return values, nil
}

// compare reads the values again, after the rows are written, and brings rows up
// to date that were written with an older one, or whose write had happened before.
func (w *work) compare(ctx context.Context, puts []*projections.Put, before followed, late map[*projections.Put]bool) error {
	if len(before) == 0 && len(late) == 0 && !follows(puts) {
		return nil
	}
	now, err := w.followed(ctx, puts)
	if err != nil {
		return err
	}
	var ws []store.Write
	for _, p := range puts {
		for _, f := range p.Follows {
			name := followedText(w.Model.Name, f)
			if v, ok := now[name]; ok && (late[p] || before[name].position != v.position) {
				ws = append(ws, w.serve(name, p.Row, f.Attr, v))
			}
		}
	}
	_, err = w.write(ctx, ws)
	return err
}

func follows(puts []*projections.Put) bool {
	for _, p := range puts {
		if len(p.Follows) > 0 {
			return true
		}
	}
	return false
}

// serve gives a row the value of a list, unless it is not there, follows another
// by now (memberships are never taken back), or shows a newer one.
func (r *Runner) serve(list string, row store.Ref, name string, v kept) store.Write {
	version := book.FollowVersion(name)
	return store.Write{
		Ref: row, If: store.Cond{{{Attr: book.Follows(name), Is: store.Eq, Value: listMark(list)}}, below(version, v.position.Value())},
		Ops: []store.Op{set(name, v.value), set(version, v.position.Value())},
	}
}

// listMark is how a row that follows names the list that it is on.
func listMark(list string) value.Value { return value.OfString(book.Hash(list)) }

// membersAtOnce is how many followers are served in a step. A longer list becomes
// a job, so that other targets need not wait for it.
const membersAtOnce = 200

// spread gives the values that stand to those who follow them.
func (w *work) spread(ctx context.Context, stands []bool) error {
	for i := range w.Spreads {
		if !stands[i] {
			continue
		}
		s := &w.Spreads[i]
		list := w.spreadRef(s)
		last, err := w.serveMembers(ctx, list.Key.Partition, "", kept{s.Value, s.Position})
		if err != nil {
			return err
		}
		if last != "" {
			if err := w.startJob(ctx, list.Key.Partition.Text(), last, s.Position); err != nil {
				return err
			}
		}
	}
	return nil
}

// serveMembers serves the members after a sort key. It returns the last one's sort
// key, "" when there are no more.
func (r *Runner) serveMembers(ctx context.Context, list value.Value, after string, v kept) (last string, err error) {
	page, err := r.Store.Query(ctx, store.Query{
		Table: book.TableName, Partition: list, Limit: membersAtOnce,
		Sort: store.Range{From: value.OfString(max("m", after+"\x00"))},
	})
	if err != nil {
		return "", err
	}
	var ws []store.Write
	for _, m := range page.Rows {
		if row, attr, ok := projections.MemberOf(r.Model, m); ok && attr != "" {
			ws = append(ws, r.serve(list.Text(), row, attr, v))
		}
	}
	if _, err := r.write(ctx, ws); err != nil || page.Next == nil || len(page.Rows) == 0 {
		return "", err
	}
	return page.Rows[len(page.Rows)-1].Get(book.Sort).Text(), nil
}
