package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// A followed value is kept in our own table, with the position of the change that set it.
// Its partition also holds a member row for each row that follows it. weir spreads a
// value only after it has kept the value, and a row reads the value only after the row is
// entered as a member. So of a new value and a new member, at least one sees the other. A
// follower carries the position of the value that it shows, and an older value never
// replaces a newer one.
//
// That the followed row is gone is kept as a value too. It expires once all followers
// know it, like a tombstone: no follower needs it any more, and one that is made later
// shows nothing. A last value that some followers keep stays for as long as a row follows
// it, and for the life of a tombstone after that.
//
// A member row is deleted when its row follows another value or is deleted. A worker that
// enters a member checks, after it has written the row, that the member row still exists,
// and restores it if another worker deleted it before the row existed.

// Values holds the values that were read, by the text of their partition.
type Values map[string]kept

// kept is a followed value as our own table keeps it.
type kept struct {
	value    value.Value
	position events.Position
	gone     bool // the row with the field no longer exists; the value is its last
}

func keptIn(row value.Item) kept {
	return kept{row.Get(valueAttr), events.PositionFrom(row.Get(owntable.Position)), row.Has(GoneAttr)}
}

// shown returns the value that a follower shows; keeps says whether it keeps last values.
func (k *kept) shown(keeps bool) value.Value {
	if k.gone && !keeps {
		return value.Value{}
	}
	return k.value
}

func listOf(r *runner.Runner, f projections.Following) store.Ref {
	return owntable.Followed(r.Model.Name, FieldName(f.Source, f.Field.Name), f.Of)
}

func (w *Work) listOfValue(s *Value) store.Ref {
	return owntable.Followed(w.Model.Name, FieldName(s.Entity, s.Field), s.Source)
}

// valueWrite returns the write that keeps a value, or the fact that its row is gone.
func valueWrite(r *runner.Runner, list, source store.Ref, v kept) store.Write {
	var gone value.Value
	if v.gone {
		gone = value.OfBool(true)
	}
	return store.Write{
		Ref: list, If: store.Cond{runner.Below(owntable.Position, v.position.Value())}, Return: true,
		Ops: []store.Op{
			runner.Set(owntable.Position, v.position.Value()), runner.Set(valueAttr, v.value), runner.Set(GoneAttr, gone), runner.Set(owntable.Expiry, value.Value{}),
			runner.Set(tableAttr, value.OfString(source.Table)), runner.Set(keyAttr, value.OfMap(r.Model.Table(source.Table).Item(source.Key))),
		},
	}
}

// KeepValues keeps the new value of each spread. For each it reports whether our own table
// now holds this batch's value, so that it must be spread, perhaps again.
func (w *Work) KeepValues(ctx context.Context) ([]bool, error) {
	ws := make([]store.Write, len(w.Gathered.Values))
	for i := range w.Gathered.Values {
		s := &w.Gathered.Values[i]
		ws[i] = valueWrite(w.Runner, w.listOfValue(s), s.Source, kept{s.Value, s.Position, s.Gone})
	}
	out, err := w.Write(ctx, ws)
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
			stands[i] = events.PositionFrom(out[i].Row.Get(owntable.Position)) == w.Gathered.Values[i].Position
		}
	}
	return stands, nil
}

// member returns the write of a follower's member row in the list of what it follows.
func member(r *runner.Runner, f projections.Following, row store.Ref) store.Write {
	return store.Write{Ref: owntable.Member(listOf(r, f), f.Attr, row), Ops: []store.Op{
		runner.Set(followerAttr, value.OfString(f.Attr)), runner.Set(tableAttr, value.OfString(row.Table)),
		runner.Set(keyAttr, value.OfMap(r.Model.Table(row.Table).Item(row.Key))),
	}}
}

// Enter enters the rows as members of what they follow.
func (w *Work) Enter(ctx context.Context, puts []*projections.Put) error {
	var ws []store.Write
	for _, p := range puts {
		if p.Joined {
			continue
		}
		for _, f := range p.Follows {
			ws = append(ws, member(w.Runner, f, p.Row))
		}
	}
	_, err := w.Write(ctx, ws)
	return err
}

// Current reads the values that the rows follow.
func (w *Work) Current(ctx context.Context, puts []*projections.Put) (Values, error) {
	values := Values{}
	var refs []store.Ref
	for _, p := range puts {
		for _, f := range p.Follows {
			ref := listOf(w.Runner, f)
			if _, have := values[ref.Key.Partition.Text()]; !have {
				values[ref.Key.Partition.Text()] = kept{}
				refs = append(refs, ref)
			}
		}
	}
	rows, err := w.Get(ctx, refs)
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

// Compare reads the values again after the rows are written. It updates rows that were
// written with an older value, and the rows in late, whose write had happened before.
// asks is the position of the change that asked for this; if it is zero, each row's own
// position is used.
func (w *Work) Compare(ctx context.Context, puts []*projections.Put, before Values, late map[*projections.Put]bool, asks events.Position) error {
	if len(before) == 0 && len(late) == 0 && !follows(puts) {
		return nil
	}
	if err := w.rejoin(ctx, puts); err != nil {
		return err
	}
	now, err := w.Current(ctx, puts)
	if err != nil {
		return err
	}
	var ws []store.Write
	var of []serving
	counted := map[string]bool{} // lists whose last value is kept for these rows
	for _, p := range puts {
		for _, f := range p.Follows {
			ref := listOf(w.Runner, f)
			list := ref.Key.Partition.Text()
			v, ok := now[list]
			if ok && v.gone && f.Keep && !counted[list] {
				if err := keepsValue(ctx, w.Runner, ref); err != nil {
					return err
				}
				counted[list] = true
			}
			if ok && (late[p] || before[list].position != v.position) {
				ws = append(ws, serve(w.Runner, list, p.Row, f.Attr, v.position, v.shown(f.Keep)))
				of = append(of, serving{list, p.Row, f.Attr, asks})
				if asks.IsZero() {
					of[len(of)-1].at = p.Position
				}
			}
		}
	}
	return w.served(ctx, ws, of)
}

// rejoin restores member rows that are gone again: another worker saw, just before this
// row was written, that the row followed nothing, and deleted them.
func (w *Work) rejoin(ctx context.Context, puts []*projections.Put) error {
	var ws []store.Write
	var refs []store.Ref
	for _, p := range puts {
		for _, f := range p.Follows {
			if m := member(w.Runner, f, p.Row); !p.Joined {
				ws, refs = append(ws, m), append(refs, m.Ref)
			}
		}
	}
	have, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	var missing []store.Write
	for i := range have {
		if have[i] == nil {
			missing = append(missing, ws[i])
		}
	}
	_, err = w.Write(ctx, missing)
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

// serve returns the write that gives a row the value of a list, unless the row does not
// exist, follows another value by now, or shows a newer one.
func serve(r *runner.Runner, list string, row store.Ref, name string, at events.Position, v value.Value) store.Write {
	version := owntable.FollowVersion(name)
	return store.Write{
		Ref: row, If: store.Cond{{{Attr: owntable.Follows(name), Is: store.Eq, Value: listMark(list)}}, runner.Below(version, at.Value())},
		Ops: []store.Op{runner.Set(name, v), runner.Set(version, at.Value())},
	}
}

// serving names the follower and the list for which a write is meant.
type serving struct {
	list string
	row  store.Ref
	attr string
	at   events.Position // of the change that asked for it, which may not be in this batch
}

// served does writes that update followers. A row that has no room for its value keeps
// the older one, and a dead letter records that; no other row waits for it.
func (w *Work) served(ctx context.Context, ws []store.Write, of []serving) error {
	refused, err := serveAll(ctx, w.Runner, ws, of)
	for _, s := range refused {
		if i := slices.IndexFunc(w.Changes, func(c projections.Change) bool { return c.Position == s.at }); i >= 0 {
			w.Kept(i)
		}
	}
	return err
}

// serveAll does writes that update followers, and keeps dead letters for those that the
// table refuses. It returns the refused ones.
func serveAll(ctx context.Context, r *runner.Runner, ws []store.Write, of []serving) (refused []serving, err error) {
	out, err := r.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	var ds []runner.Dead
	for i := range out {
		if errors.Is(out[i].Err, store.ErrRefused) {
			refused = append(refused, of[i])
			ds = append(ds, unserved(r, of[i], out[i].Err.Error()))
		}
	}
	return refused, r.KeepAll(ctx, ds)
}

// unserved returns the dead letter for a follower that refused the value of a list.
func unserved(r *runner.Runner, s serving, reason string) runner.Dead {
	return runner.Dead{
		Kind: runner.DeadFollow, Target: s.attr + " of " + r.Describe(s.row), Row: s.row, Reason: reason, Source: s.list,
		Record: value.NewItem(runner.Attr(followerAttr, value.OfString(s.attr)), runner.Attr(runner.JobList, value.OfString(s.list))),
	}
}

// Retry gives a follower the current value, if the follower still follows it.
func (Kind) Retry(ctx context.Context, r *runner.Runner, d *runner.Dead) error {
	name, list := d.Record.Get(followerAttr).Text(), d.Record.Get(runner.JobList).Text()
	rows, err := r.Get(ctx, []store.Ref{owntable.Ref(list, ""), d.Row})
	if err != nil {
		return err
	}
	if t := r.Model.Table(d.Row.Table); t != nil && rows[0] != nil {
		v := keptIn(rows[0])
		wr := serve(r, list, d.Row, name, v.position, v.shown(KeepsLast(r.Model, t.Classify(rows[1]), name, list)))
		wr.If[1] = runner.NotAbove(owntable.FollowVersion(name), v.position.Value())
		if _, err := r.Did(ctx, wr); err != nil {
			return fmt.Errorf("%s: %w", d.Target, err)
		}
	}
	return r.Forget(ctx, d)
}

// listMark returns the mark by which a follower names the list that it is on.
func listMark(list string) value.Value { return value.OfString(owntable.Hash(list)) }

// Spread gives each value that must be spread to the rows that follow it.
func (w *Work) Spread(ctx context.Context, stands []bool) error {
	for i := range w.Gathered.Values {
		if !stands[i] {
			continue
		}
		s := &w.Gathered.Values[i]
		list, v := w.listOfValue(s), kept{s.Value, s.Position, s.Gone}
		ws, of, last, err := members(ctx, w.Runner, list.Key.Partition, "", v)
		if err == nil {
			err = w.served(ctx, ws, of)
		}
		if err != nil {
			return err
		}
		if last != "" {
			err = startJob(ctx, w.Runner, list.Key.Partition.Text(), last, s.Position)
		} else {
			err = outlives(ctx, w.Runner, list, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// members returns the writes that update the members after a sort key. last is the sort
// key of the last one, or "" if there are no more.
func members(ctx context.Context, r *runner.Runner, list value.Value, after string, v kept) (ws []store.Write, of []serving, last string, err error) {
	page, err := r.Store.Query(ctx, store.Query{
		Table: owntable.TableName, Partition: list, Limit: runner.PageOfList,
		Sort: store.Range{From: value.OfString(max("m", after+"\x00"))},
	})
	if err != nil {
		return nil, nil, "", err
	}
	for _, m := range page.Rows {
		if row, attr, ok := FollowerOf(r.Model, m); ok && attr != "" {
			of = append(of, serving{list.Text(), row, attr, v.position})
		}
	}
	keeps := make([]bool, len(of))
	if v.gone && !v.value.IsMissing() {
		if keeps, err = keepers(ctx, r, of); err != nil {
			return nil, nil, "", err
		}
	}
	for i, s := range of {
		ws = append(ws, serve(r, s.list, s.row, s.attr, v.position, v.shown(keeps[i])))
	}
	if page.Next != nil && len(page.Rows) > 0 {
		last = page.Rows[len(page.Rows)-1].Get(owntable.Sort).Text()
	}
	return ws, of, last, nil
}

// keepers reports for each follower whether it keeps the last value. It must read the
// rows: attributes of the same name may keep it on rows of one entity and not on rows of
// another.
func keepers(ctx context.Context, r *runner.Runner, of []serving) ([]bool, error) {
	refs := make([]store.Ref, len(of))
	for i := range of {
		refs[i] = of[i].row
	}
	rows, err := r.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	keeps := make([]bool, len(of))
	for i, s := range of {
		keeps[i] = KeepsLast(r.Model, r.Model.Table(s.row.Table).Classify(rows[i]), s.attr, s.list)
	}
	return keeps, nil
}

// outlives sets the TTL of a value whose row is gone, once all followers know that. A
// last value that followers keep stays (see unkept).
func outlives(ctx context.Context, r *runner.Runner, list store.Ref, v kept) error {
	switch {
	case !v.gone:
		return nil
	case !v.value.IsMissing():
		return unkept(ctx, r, list)
	}
	_, err := r.Did(ctx, store.Write{
		Ref: list, If: store.Cond{{{Attr: GoneAttr, Is: store.Exists}}, {{Attr: owntable.Position, Is: store.Eq, Value: v.position.Value()}}},
		Ops: []store.Op{runner.Set(owntable.Expiry, r.Expiry())},
	})
	return err
}

// unkept sets the TTL of the last value of a row that is gone, if no row follows it. A
// row that begins to keep the value meanwhile raises the count beside it (keepsValue)
// after it is a member, and the condition of the write fails.
func unkept(ctx context.Context, r *runner.Runner, list store.Ref) error {
	rows, err := r.Get(ctx, []store.Ref{list})
	if err != nil || !rows[0].Has(GoneAttr) || rows[0].Has(owntable.Expiry) {
		return err
	}
	page, err := r.Store.Query(ctx, store.Query{
		Table: owntable.TableName, Partition: list.Key.Partition, Limit: 1, Sort: store.Range{From: value.OfString("m")},
	})
	if err != nil || len(page.Rows) > 0 {
		return err
	}
	_, err = r.Did(ctx, store.Write{
		Ref: list, Ops: []store.Op{runner.Set(owntable.Expiry, r.Expiry())},
		If: store.Cond{
			{{Attr: GoneAttr, Is: store.Exists}}, {store.AsRead(owntable.Position, rows[0].Get(owntable.Position))},
			{store.AsRead(owntable.Count, rows[0].Get(owntable.Count))},
		},
	})
	return err
}

// keepsValue removes the TTL from the last value of a row that is gone, for rows that keep
// the value and are members of its list by now. If another writer spoilt the count, so that nothing can be added to
// it, the count begins again.
func keepsValue(ctx context.Context, r *runner.Runner, list store.Ref) error {
	w := store.Write{
		Ref: list, If: store.Cond{{{Attr: GoneAttr, Is: store.Exists}}},
		Ops: []store.Op{{Kind: store.Add, Attr: owntable.Count, Value: value.OfInt(1)}, runner.Set(owntable.Expiry, value.Value{})},
	}
	_, err := r.Did(ctx, w)
	if errors.Is(err, store.ErrRefused) {
		w.Ops[0] = runner.Set(owntable.Count, value.OfInt(r.Now().UnixMicro()))
		_, err = r.Did(ctx, w)
	}
	return err
}

// Leave removes rows from the lists of what they no longer follow. A row that follows
// the value after all keeps its place: it came back to the value, or a newer change was
// applied before this one.
func (w *Work) Leave(ctx context.Context) error {
	refs := make([]store.Ref, len(w.Left))
	for i, u := range w.Left {
		refs[i] = owntable.Member(listOf(w.Runner, u.Following), u.Attr, u.Row)
	}
	members, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i, u := range w.Left {
		list := listOf(w.Runner, u.Following)
		if members[i] != nil {
			err := w.Store.Transact(ctx, []store.Write{
				{Ref: u.Row, Check: true, If: store.Cond{{{Attr: owntable.Follows(u.Attr), Is: store.Ne, Value: listMark(list.Key.Partition.Text())}}}},
				{Ref: refs[i], Delete: true},
			})
			switch {
			case errors.Is(err, store.ErrCondition):
				continue
			case err != nil:
				return fmt.Errorf("%s follows %s no longer: %w", w.Describe(u.Row), w.Describe(u.Of), err)
			}
		}
		if KeptLast(u.Source, u.Field) {
			if err := unkept(ctx, w.Runner, list); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ops returns the operations that give an attribute the value that it follows, and
// record on the row which value that is. They replace whatever the attribute showed,
// which may be another row's value.
func (w *Work) Ops(p *projections.Put, follow *model.Follow, values Values) []store.Op {
	var of, at value.Value
	var v kept
	for _, f := range p.Follows {
		if f.Follow == follow {
			list := listOf(w.Runner, f).Key.Partition.Text()
			of = listMark(list)
			if known, ok := values[list]; ok {
				v, at = known, known.position.Value()
			}
		}
	}
	return []store.Op{runner.Set(follow.Attr, v.shown(follow.Keep)), runner.Set(owntable.FollowVersion(follow.Attr), at), runner.Set(owntable.Follows(follow.Attr), of)}
}
