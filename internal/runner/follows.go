package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
//
// That the row followed is gone is such a value too. What is kept of it expires when all
// followers know it, as a tombstone does: none of them needs it any more, and one that
// is made later shows nothing. A last value that some keep stays for as long as a row
// follows it, and as long as a tombstone after that.
//
// A member goes when its row follows another value, or is removed. Whoever enters a
// member looks after the row is written whether it still stands, so that one that was
// taken away before there was a row comes back.

// followed is what the values at hand are, by the text of their partition.
type followed map[string]kept

type kept struct {
	value    value.Value
	position events.Position
	gone     bool // there is no row with the field any more; the value is its last
}

func keptIn(row value.Item) kept {
	return kept{row.Get(valueAttr), events.PositionFrom(row.Get(book.Position)), row.Has(goneAttr)}
}

// shown is what a follower shows that keeps last values, or not.
func (k *kept) shown(keeps bool) value.Value {
	if k.gone && !keeps {
		return value.Value{}
	}
	return k.value
}

func (r *Runner) listOf(f projections.Following) store.Ref {
	return book.Followed(r.Model.Name, projections.FollowedField(f.Source, f.Field.Name), f.Of)
}

func (w *work) spreadRef(s *projections.Spread) store.Ref {
	return book.Followed(w.Model.Name, projections.FollowedField(s.Entity, s.Field), s.Source)
}

// Attributes of the rows in a followed value's partition. The table and the key of the
// value's row are those of the row followed.
const (
	valueAttr  = projections.FollowedValue // absent when the field is
	goneAttr   = projections.FollowedGone
	memberAttr = projections.MemberAttr
	tableAttr  = projections.MemberTable
	keyAttr    = projections.MemberKey
	cursorAttr = "c"    // of a job: the last member that was served
	listAttr   = "list" // of a job: the partition of the list
)

// valueWrite keeps a value, or that the row it is of is gone.
func (r *Runner) valueWrite(list, source store.Ref, v kept) store.Write {
	var gone value.Value
	if v.gone {
		gone = value.OfBool(true)
	}
	return store.Write{
		Ref: list, If: store.Cond{below(book.Position, v.position.Value())}, Return: true,
		Ops: []store.Op{
			set(book.Position, v.position.Value()), set(valueAttr, v.value), set(goneAttr, gone), set(book.Expiry, value.Value{}),
			set(tableAttr, value.OfString(source.Table)), set(keyAttr, value.OfMap(r.Model.Table(source.Table).Item(source.Key))),
		},
	}
}

// values keeps the new value of each spread. It returns for each whether the value
// stands as this batch has it, so that it must be spread (again).
func (w *work) values(ctx context.Context) ([]bool, error) {
	ws := make([]store.Write, len(w.Spreads))
	for i := range w.Spreads {
		s := &w.Spreads[i]
		ws[i] = w.valueWrite(w.spreadRef(s), s.Source, kept{s.Value, s.Position, s.Gone})
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

// member is a follower's place on the list of what it follows.
func (r *Runner) member(f projections.Following, row store.Ref) store.Write {
	return store.Write{Ref: book.Member(r.listOf(f), f.Attr, row), Ops: []store.Op{
		set(memberAttr, value.OfString(f.Attr)), set(tableAttr, value.OfString(row.Table)),
		set(keyAttr, value.OfMap(r.Model.Table(row.Table).Item(row.Key))),
	}}
}

// join enters the rows as members of what they follow.
func (w *work) join(ctx context.Context, puts []*projections.Put) error {
	var ws []store.Write
	for _, p := range puts {
		if p.Joined {
			continue
		}
		for _, f := range p.Follows {
			ws = append(ws, w.member(f, p.Row))
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
			ref := w.listOf(f)
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
		values[name] = keptIn(row)
	}
	return values, nil
}

// compare reads the values again, after the rows are written, and brings rows up
// to date that were written with an older one, or whose write had happened before. asks
// is the change that asks for it, where that is not each row's own.
func (w *work) compare(ctx context.Context, puts []*projections.Put, before followed, late map[*projections.Put]bool, asks events.Position) error {
	if len(before) == 0 && len(late) == 0 && !follows(puts) {
		return nil
	}
	if err := w.rejoin(ctx, puts); err != nil {
		return err
	}
	now, err := w.followed(ctx, puts)
	if err != nil {
		return err
	}
	var ws []store.Write
	var of []serving
	for _, p := range puts {
		for _, f := range p.Follows {
			list := w.listOf(f).Key.Partition.Text()
			v, ok := now[list]
			if ok && v.gone && f.Keep {
				if err := w.keepsValue(ctx, w.listOf(f)); err != nil {
					return err
				}
			}
			if ok && (late[p] || before[list].position != v.position) {
				ws = append(ws, w.serve(list, p.Row, f.Attr, v.position, v.shown(f.Keep)))
				of = append(of, serving{list, p.Row, f.Attr, asks})
				if asks.IsZero() {
					of[len(of)-1].at = p.Position
				}
			}
		}
	}
	return w.served(ctx, ws, of)
}

// rejoin enters those as members again that are none any more: somebody saw that a row
// followed nothing just before it was written.
func (w *work) rejoin(ctx context.Context, puts []*projections.Put) error {
	var ws []store.Write
	var refs []store.Ref
	for _, p := range puts {
		for _, f := range p.Follows {
			if m := w.member(f, p.Row); !p.Joined {
				ws, refs = append(ws, m), append(refs, m.Ref)
			}
		}
	}
	have, err := w.get(ctx, refs)
	if err != nil {
		return err
	}
	var missing []store.Write
	for i := range have {
		if have[i] == nil {
			missing = append(missing, ws[i])
		}
	}
	_, err = w.write(ctx, missing)
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
// by now, or shows a newer one.
func (r *Runner) serve(list string, row store.Ref, name string, at events.Position, v value.Value) store.Write {
	version := book.FollowVersion(name)
	return store.Write{
		Ref: row, If: store.Cond{{{Attr: book.Follows(name), Is: store.Eq, Value: listMark(list)}}, below(version, at.Value())},
		Ops: []store.Op{set(name, v), set(version, at.Value())},
	}
}

// serving is what a follower is given a value for.
type serving struct {
	list string
	row  store.Ref
	attr string
	at   events.Position // of the change that asked for it, which nobody may have at hand
}

// served does writes that serve followers. A row that refuses its value, for it has no
// room, keeps the older one, and that is kept: nothing waits for it.
func (w *work) served(ctx context.Context, ws []store.Write, of []serving) error {
	refused, err := w.serveAll(ctx, ws, of)
	for _, s := range refused {
		if i := slices.IndexFunc(w.Changes, func(c projections.Change) bool { return c.Position == s.at }); i >= 0 {
			w.kept[i] = true
		}
	}
	return err
}

func (r *Runner) serveAll(ctx context.Context, ws []store.Write, of []serving) (refused []serving, err error) {
	out, err := r.write(ctx, ws)
	if err != nil {
		return nil, err
	}
	var ds []Dead
	for i := range out {
		if errors.Is(out[i].Err, store.ErrRefused) {
			refused = append(refused, of[i])
			ds = append(ds, r.unserved(of[i], out[i].Err.Error()))
		}
	}
	return refused, r.keep(ctx, ds)
}

// unserved is the dead letter of a follower that refuses the value of a list.
func (r *Runner) unserved(s serving, reason string) Dead {
	return Dead{
		Kind: DeadFollow, Target: s.attr + " of " + r.describe(s.row), Row: s.row, Reason: reason, Source: s.list,
		Record: value.NewItem(attr(memberAttr, value.OfString(s.attr)), attr(listAttr, value.OfString(s.list))),
	}
}

// retryFollow gives a follower the value of now, if it still follows it.
func (r *Runner) retryFollow(ctx context.Context, d *Dead) error {
	name, list := d.Record.Get(memberAttr).Text(), d.Record.Get(listAttr).Text()
	rows, err := r.get(ctx, []store.Ref{book.Ref(list, ""), d.Row})
	if err != nil {
		return err
	}
	if t := r.Model.Table(d.Row.Table); t != nil && rows[0] != nil {
		v := keptIn(rows[0])
		wr := r.serve(list, d.Row, name, v.position, v.shown(projections.KeepsLast(r.Model, t.Classify(rows[1]), name, list)))
		wr.If[1] = notAbove(book.FollowVersion(name), v.position.Value())
		if _, err := r.did(ctx, wr); err != nil {
			return fmt.Errorf("%s: %w", d.Target, err)
		}
	}
	return r.Forget(ctx, d)
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
		list, v := w.spreadRef(s), kept{s.Value, s.Position, s.Gone}
		ws, of, last, err := w.members(ctx, list.Key.Partition, "", v)
		if err == nil {
			err = w.served(ctx, ws, of)
		}
		if err != nil {
			return err
		}
		if last != "" {
			err = w.startJob(ctx, list.Key.Partition.Text(), last, s.Position)
		} else {
			err = w.outlives(ctx, list, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// members are the writes that serve the members after a sort key. last is the last
// one's sort key, "" when there are no more.
func (r *Runner) members(ctx context.Context, list value.Value, after string, v kept) (ws []store.Write, of []serving, last string, err error) {
	page, err := r.Store.Query(ctx, store.Query{
		Table: book.TableName, Partition: list, Limit: membersAtOnce,
		Sort: store.Range{From: value.OfString(max("m", after+"\x00"))},
	})
	if err != nil {
		return nil, nil, "", err
	}
	for _, m := range page.Rows {
		if row, attr, ok := projections.MemberOf(r.Model, m); ok && attr != "" {
			of = append(of, serving{list.Text(), row, attr, v.position})
		}
	}
	keeps := make([]bool, len(of))
	if v.gone && !v.value.IsMissing() {
		if keeps, err = r.keepers(ctx, of); err != nil {
			return nil, nil, "", err
		}
	}
	for i, s := range of {
		ws = append(ws, r.serve(s.list, s.row, s.attr, v.position, v.shown(keeps[i])))
	}
	if page.Next != nil && len(page.Rows) > 0 {
		last = page.Rows[len(page.Rows)-1].Get(book.Sort).Text()
	}
	return ws, of, last, nil
}

// keepers says of followers whether they keep the last value, which the rows themselves
// tell: of an attribute of one name, those of one entity may and those of another not.
func (r *Runner) keepers(ctx context.Context, of []serving) ([]bool, error) {
	refs := make([]store.Ref, len(of))
	for i := range of {
		refs[i] = of[i].row
	}
	rows, err := r.get(ctx, refs)
	if err != nil {
		return nil, err
	}
	keeps := make([]bool, len(of))
	for i, s := range of {
		keeps[i] = projections.KeepsLast(r.Model, r.Model.Table(s.row.Table).Classify(rows[i]), s.attr, s.list)
	}
	return keeps, nil
}

// outlives has a value expire of which all followers know that its row is gone, unless
// it is one that some of them keep.
func (r *Runner) outlives(ctx context.Context, list store.Ref, v kept) error {
	switch {
	case !v.gone:
		return nil
	case !v.value.IsMissing():
		return r.unkept(ctx, list)
	}
	_, err := r.did(ctx, store.Write{
		Ref: list, If: store.Cond{{{Attr: goneAttr, Is: store.Exists}}, {{Attr: book.Position, Is: store.Eq, Value: v.position.Value()}}},
		Ops: []store.Op{set(book.Expiry, r.expiry())},
	})
	return err
}

// unkept has the last value of a row that is gone expire, if no row follows it. One that
// comes to keep it meanwhile counts that there (keepsValue), after it is a member.
func (r *Runner) unkept(ctx context.Context, list store.Ref) error {
	rows, err := r.get(ctx, []store.Ref{list})
	if err != nil || !rows[0].Has(goneAttr) || rows[0].Has(book.Expiry) {
		return err
	}
	page, err := r.Store.Query(ctx, store.Query{
		Table: book.TableName, Partition: list.Key.Partition, Limit: 1, Sort: store.Range{From: value.OfString("m")},
	})
	if err != nil || len(page.Rows) > 0 {
		return err
	}
	_, err = r.did(ctx, store.Write{
		Ref: list, Ops: []store.Op{set(book.Expiry, r.expiry())},
		If: store.Cond{
			{{Attr: goneAttr, Is: store.Exists}}, {store.AsRead(book.Position, rows[0].Get(book.Position))},
			{store.AsRead(book.Count, rows[0].Get(book.Count))},
		},
	})
	return err
}

// keepsValue has the last value of a row that is gone stay, for a row that keeps it. A
// count that cannot be added to, since another writer spoilt it, begins again.
func (r *Runner) keepsValue(ctx context.Context, list store.Ref) error {
	w := store.Write{
		Ref: list, If: store.Cond{{{Attr: goneAttr, Is: store.Exists}}},
		Ops: []store.Op{{Kind: store.Add, Attr: book.Count, Value: value.OfInt(1)}, set(book.Expiry, value.Value{})},
	}
	_, err := r.did(ctx, w)
	if errors.Is(err, store.ErrRefused) {
		w.Ops[0] = set(book.Count, value.OfInt(r.Now().UnixMicro()))
		_, err = r.did(ctx, w)
	}
	return err
}

// unfollow takes rows off the lists of what they follow no longer. One that follows it
// after all stays: it came back to it, or the change that says so was overtaken.
func (w *work) unfollow(ctx context.Context) error {
	refs := make([]store.Ref, len(w.Unfollows))
	for i, u := range w.Unfollows {
		refs[i] = book.Member(w.listOf(u.Following), u.Attr, u.Row)
	}
	members, err := w.get(ctx, refs)
	if err != nil {
		return err
	}
	for i, u := range w.Unfollows {
		list := w.listOf(u.Following)
		if members[i] != nil {
			err := w.Store.Transact(ctx, []store.Write{
				{Ref: u.Row, Check: true, If: store.Cond{{{Attr: book.Follows(u.Attr), Is: store.Ne, Value: listMark(list.Key.Partition.Text())}}}},
				{Ref: refs[i], Delete: true},
			})
			switch {
			case errors.Is(err, store.ErrCondition):
				continue
			case err != nil:
				return fmt.Errorf("%s follows %s no longer: %w", w.describe(u.Row), w.describe(u.Of), err)
			}
		}
		if projections.KeptLast(u.Source, u.Field) {
			if err := w.unkept(ctx, list); err != nil {
				return err
			}
		}
	}
	return nil
}
