package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// A followed value is kept in our own table, with the position of the change that set it.
// Its partition also holds an entry for each row that follows it. weir gives a value to
// the followers only after it has kept the value, and a row reads the value only after its
// entry is written. So of a new value and a new follower, at least one sees the other. A
// follower carries the position of the value that it shows, and an older value never
// replaces a newer one.
//
// That the followed row is gone is kept as a value too. It expires once all followers
// know it, like a tombstone: no follower needs it any more, and one that is made later
// shows nothing. A last value that some followers keep stays for as long as a row follows
// it, and for the life of a tombstone after that.
//
// An entry is deleted when its row follows another value or is deleted. A worker that
// enters a follower checks, after it has written the row, that the entry still exists, and
// restores it if another worker deleted it before the row existed.

// Values holds the values that were read, by the text of their partition.
type Values map[string]kept

// kept is a followed value as our own table keeps it.
type kept struct{ owntable.FollowedRow }

// keptIn is the followed value in a row of the own table; a nil row is one that was never kept.
func keptIn(row value.Item) kept { return kept{owntable.FollowedFrom(row)} }

// shownValue returns the value that a follower shows; keeps says whether it keeps last values.
func (k *kept) shownValue(keeps bool) value.Value {
	if k.Gone && !keeps {
		return value.Value{}
	}
	return k.Value
}

// listOf is the row of a followed value; its followers are in the same partition of the own table.
func listOf(m *model.Model, f projections.Following) store.Ref {
	return owntable.Followed(m.Name, FieldName(f.Source, f.Field.Name), f.Of)
}

// AllKept reports whether there is a value, or that its row is gone, of all that a row follows.
func (v Values) AllKept(r *runner.Runner, p *projections.Put) bool {
	return !slices.ContainsFunc(p.Follows, func(f projections.Following) bool {
		_, ok := v[listOf(r.Model, f).Key.Partition.Text()]
		return !ok
	})
}

// listOfValue is listOf for a value that a batch has changed.
func (w *Work) listOfValue(s *Value) store.Ref {
	return owntable.Followed(w.Model.Name, FieldName(s.Entity, s.Field), s.Source)
}

// keptValue returns a value as our own table keeps it.
func (w *Work) keptValue(s *Value) kept {
	return kept{owntable.FollowedRow{Value: s.Value, Position: s.Position, Gone: s.Gone, Row: projections.KeyedRowOf(w.Model, s.Source)}}
}

// KeepValues keeps the batch's values. For each it reports whether our own table now holds
// it, so that its followers must be updated, perhaps again.
func (w *Work) KeepValues(ctx context.Context) ([]bool, error) {
	ws := make([]store.Write, len(w.Gathered.Values))
	for i := range w.Gathered.Values {
		s := &w.Gathered.Values[i]
		ws[i] = w.keptValue(s).Keep(w.listOfValue(s))
	}
	out, err := w.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	stands := make([]bool, len(out))
	var above []*Value
	for i := range out {
		switch {
		case errors.Is(out[i].Err, store.ErrRefused):
			return nil, out[i].Err
		case out[i].Err == nil:
			stands[i] = true
		default:
			s, is := &w.Gathered.Values[i], keptIn(out[i].Row)
			stands[i] = is.Position == s.Position
			if is.Position.Compare(s.Position) > 0 && (is.Gone != s.Gone || !value.Equal(is.Value, s.Value)) {
				above = append(above, s)
			}
		}
	}
	return stands, w.keepNewest(ctx, above)
}

// entryWrite returns the write of a follower's entry on the list of its row.
func entryWrite(r *runner.Runner, f projections.Following, row store.Ref) store.Write {
	return owntable.FollowerRow{Row: projections.KeyedRowOf(r.Model, row), Attr: f.Attr}.Write(owntable.Follower(listOf(r.Model, f), f.Attr, row))
}

// EnterLists enters the rows on the lists of the rows that they follow. It comes before the rows are written: an entry
// without a row is harmless and is taken off later, a row without an entry would never get a new value.
func (w *Work) EnterLists(ctx context.Context, puts []*projections.Put) error {
	var ws []store.Write
	for _, p := range puts {
		if p.Entered {
			continue
		}
		ws = append(ws, seq.Map(p.Follows, func(f projections.Following) store.Write { return entryWrite(w.Runner, f, p.Row) })...)
	}
	_, err := w.Write(ctx, ws)
	return err
}

// ReadValues reads the values that the rows follow, each list once. A value that does not exist yet is not in the
// result. A value may change at once; CompareAgain finds the rows for which it did.
func (w *Work) ReadValues(ctx context.Context, puts []*projections.Put) (Values, error) {
	values := Values{}
	var refs []store.Ref
	for _, p := range puts {
		for _, f := range p.Follows {
			ref := listOf(w.Model, f)
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

// CompareAgain reads the values again after the rows are written. It updates rows that were
// written with an older value, and the rows in late, whose write had happened before.
// asks is the position of the change that asked for this; if it is zero, each row's own
// position is used.
func (w *Work) CompareAgain(ctx context.Context, puts []*projections.Put, before Values, late map[*projections.Put]bool, asks events.Position) error {
	if len(before) == 0 && len(late) == 0 && !followsAnything(puts) {
		return nil
	}
	if err := w.restoreEntries(ctx, puts); err != nil {
		return err
	}
	now, err := w.ReadValues(ctx, puts)
	if err != nil {
		return err
	}
	var ws []store.Write
	var of []serving
	counted := map[string]bool{} // lists whose last value is kept for these rows
	for _, p := range puts {
		for _, f := range p.Follows {
			ref := listOf(w.Model, f)
			list := ref.Key.Partition.Text()
			v, ok := now[list]
			if ok && v.Gone && f.Keep && !counted[list] {
				if err := keepsValue(ctx, w.Runner, ref); err != nil {
					return err
				}
				counted[list] = true
			}
			if ok && (late[p] || before[list].Position != v.Position) {
				ws = append(ws, serveWrite(list, p.Row, f.Attr, v.Position, v.shownValue(f.Keep)))
				of = append(of, serving{list, p.Row, f.Attr, asks})
				if asks.IsZero() {
					of[len(of)-1].at = p.Position
				}
			}
		}
	}
	return w.serveFollowers(ctx, ws, of)
}

// restoreEntries restores entries that are gone again: another worker saw, just before this row
// was written, that the row followed nothing, and deleted them.
func (w *Work) restoreEntries(ctx context.Context, puts []*projections.Put) error {
	var ws []store.Write
	var refs []store.Ref
	for _, p := range puts {
		for _, f := range p.Follows {
			if m := entryWrite(w.Runner, f, p.Row); !p.Entered {
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

// followsAnything reports whether one of the rows follows anything.
func followsAnything(puts []*projections.Put) bool {
	return slices.ContainsFunc(puts, func(p *projections.Put) bool { return len(p.Follows) > 0 })
}

// serveWrite returns the write that gives a row the value of a list, unless the row does not
// exist, follows another value by now, or shows a newer one.
func serveWrite(list string, row store.Ref, name string, at events.Position, v value.Value) store.Write {
	version := owntable.FollowVersion(name)
	return store.Write{
		Ref: row, If: store.Cond{{{Attr: owntable.FollowsAttr(name), Is: store.Eq, Value: listMark(list)}}, store.Below(version, at.Value())},
		Ops: []store.Op{store.Assign(name, v), store.Assign(version, at.Value())},
	}
}

// serving names the follower and the list for which a write is meant.
type serving struct {
	list string
	row  store.Ref
	attr string
	at   events.Position // of the change that asked for it, which may not be in this batch
}

// serveFollowers does writes that update followers. A row that has no room for its value keeps
// the older one, and a dead letter records that; no other row waits for it.
func (w *Work) serveFollowers(ctx context.Context, ws []store.Write, of []serving) error {
	refused, err := serveAll(ctx, w.Runner, ws, of)
	for _, s := range refused {
		w.keptAt(s.at)
	}
	return err
}

// keptAt counts the change at a position as one of which something is kept as a dead letter, if it is of this batch.
func (w *Work) keptAt(at events.Position) {
	if i := slices.IndexFunc(w.Changes, func(c projections.Change) bool { return c.Position == at }); i >= 0 {
		w.CountKept(i)
	}
}

// serveAll does writes that update followers, and keeps dead letters for those that the
// table refuses. It returns the refused ones.
func serveAll(ctx context.Context, r *runner.Runner, ws []store.Write, of []serving) (refused []serving, err error) {
	for i := range ws {
		ws[i].Return = true
	}
	out, err := r.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	again, some, err := loweredWrites(ctx, r, out, of)
	if err != nil {
		return nil, err
	}
	more, err := r.Write(ctx, again)
	if err != nil {
		return nil, err
	}
	out, of = append(out, more...), append(slices.Clip(of), some...)
	var ds []deadletter.Letter
	for i := range out {
		if errors.Is(out[i].Err, store.ErrRefused) {
			refused = append(refused, of[i])
			ds = append(ds, unservedLetter(r, of[i], out[i].Err.Error()))
		}
	}
	return refused, r.Letters().KeepAll(ctx, ds)
}

// unservedLetter returns the dead letter for a follower that refused the value of a list.
func unservedLetter(r *runner.Runner, s serving, reason string) deadletter.Letter {
	return deadletter.Letter{
		Kind: deadletter.Follow, Target: s.attr + " of " + r.DescribeRow(s.row), Row: s.row, Reason: reason, Source: s.list,
		Record: owntable.UnservedRecord(s.attr, s.list),
	}
}

// Retry gives a follower the current value, if the follower still follows it.
func (Kind) Retry(ctx context.Context, r *runner.Runner, d *deadletter.Letter) (kept bool, err error) {
	name, list := owntable.UnservedFrom(d.Record)
	rows, err := r.Get(ctx, []store.Ref{owntable.FollowedList(list), d.Row})
	if err != nil {
		return false, err
	}
	t := r.Model.Table(d.Row.Table)
	if t == nil {
		return false, nil
	}
	if e := t.Classify(rows[1]); e != nil && slices.ContainsFunc(e.Follows, func(f *model.Follow) bool { return f.Attr == name }) {
		return correctionWork(r).SettleRows(ctx, []Unsettled{{Row: d.Row}})
	}
	if rows[0] != nil {
		v := keptIn(rows[0])
		wr := serveWrite(list, d.Row, name, v.Position, v.shownValue(KeepsLast(r.Model, t.Classify(rows[1]), name, list)))
		wr.If[1] = store.NotAbove(owntable.FollowVersion(name), v.Position.Value())
		if _, err := r.WriteIf(ctx, wr); err != nil {
			return false, fmt.Errorf("%s: %w", d.Target, err)
		}
	}
	return false, nil
}

// listMark returns the mark by which a follower names the list that it is on.
func listMark(list string) value.Value { return value.OfString(owntable.Hash(list)) }

// UpdateFollowers gives the values that stand to the rows that follow them: as many as one
// step can, and a job goes on with a longer list.
func (w *Work) UpdateFollowers(ctx context.Context, stands []bool) error {
	for i := range w.Gathered.Values {
		if !stands[i] {
			continue
		}
		s := &w.Gathered.Values[i]
		list, v := w.listOfValue(s), w.keptValue(s)
		job := owntable.EntriesJob(list)
		job.Position = s.Position
		err := w.FanOut(ctx, []owntable.Job{job}, func(_ int, rows []value.Item, last bool) error {
			ws, of, err := updateWrites(ctx, w.Runner, job.List, rows, v)
			if err == nil {
				err = w.serveFollowers(ctx, ws, of)
			}
			if err == nil && last {
				err = expireValue(ctx, w.Runner, list, v)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// updateWrites returns the writes that update some followers of a list.
func updateWrites(ctx context.Context, r *runner.Runner, list string, entries []value.Item, v kept) (ws []store.Write, of []serving, err error) {
	for _, m := range entries {
		if row, attr, ok := followerOf(r.Model, m); ok && attr != "" {
			of = append(of, serving{list, row, attr, v.Position})
		}
	}
	keeps := make([]bool, len(of))
	if v.Gone && !v.Value.IsMissing() {
		if keeps, err = keepLast(ctx, r, of); err != nil {
			return nil, nil, err
		}
	}
	for i, s := range of {
		ws = append(ws, serveWrite(s.list, s.row, s.attr, v.Position, v.shownValue(keeps[i])))
	}
	return ws, of, nil
}

// keepLast reports for each follower whether it keeps the last value. It must read the
// rows: attributes of the same name may keep it on rows of one entity and not on rows of
// another.
func keepLast(ctx context.Context, r *runner.Runner, of []serving) ([]bool, error) {
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

// expireValue sets the TTL of a value whose row is gone, once all followers know that. A
// last value that followers keep stays (see unkept).
func expireValue(ctx context.Context, r *runner.Runner, list store.Ref, v kept) error {
	if !v.Gone {
		return nil
	}
	if !v.Value.IsMissing() {
		return expireUnfollowed(ctx, r, list)
	}
	_, err := r.WriteIf(ctx, owntable.ExpireGone(list, v.Position, r.OwnRowExpiry()))
	return err
}

// expireUnfollowed sets the TTL of the last value of a row that is gone, if no row follows it. A
// row that begins to keep the value meanwhile raises the count beside it (keepsValue)
// after it is on the list, and the condition of the write fails.
func expireUnfollowed(ctx context.Context, r *runner.Runner, list store.Ref) error {
	row, err := r.GetRow(ctx, list)
	if err != nil {
		return err
	}
	is := owntable.FollowedFrom(row)
	if !is.Gone || is.Expires {
		return nil
	}
	followers := owntable.EntriesJob(list)
	page, err := r.Store.Query(ctx, followers.Page(1))
	if err != nil || len(page.Rows) > 0 {
		return err
	}
	_, err = r.WriteIf(ctx, is.ExpireLast(list, r.OwnRowExpiry()))
	return err
}

// keepsValue removes the TTL from the last value of a row that is gone, for rows that keep
// the value and are on its list by now. If another writer spoilt the count, so that nothing
// can be added to it, the count begins again.
func keepsValue(ctx context.Context, r *runner.Runner, list store.Ref) error {
	_, err := r.WriteIf(ctx, owntable.KeepLast(list))
	if errors.Is(err, store.ErrRefused) {
		_, err = r.WriteIf(ctx, owntable.KeepLastFrom(list, r.Now().UnixMicro()))
	}
	return err
}

// LeaveLists removes rows from the lists of values that they no longer follow. A row that follows
// the value after all keeps its place: it came back to the value, or a newer change was
// applied before this one.
func (w *Work) LeaveLists(ctx context.Context) error {
	refs := make([]store.Ref, len(w.Left))
	for i, u := range w.Left {
		refs[i] = owntable.Follower(listOf(w.Model, u.Following), u.Attr, u.Row)
	}
	entries, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i, u := range w.Left {
		list := listOf(w.Model, u.Following)
		if entries[i] != nil {
			err := w.Store.Transact(ctx, takeOff(u.Row, u.Attr, list.Key.Partition.Text()))
			switch {
			case errors.Is(err, store.ErrCondition):
				continue
			case err != nil:
				return fmt.Errorf("%s follows %s no longer: %w", w.DescribeRow(u.Row), w.DescribeRow(u.Of), err)
			}
		}
		if KeptLast(u.Source, u.Field) {
			if err := expireUnfollowed(ctx, w.Runner, list); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOff returns the writes, of one transaction, that take a row off a list unless it follows the value.
func takeOff(row store.Ref, attr, list string) []store.Write {
	return []store.Write{
		{Ref: row, Check: true, If: store.Cond{{{Attr: owntable.FollowsAttr(attr), Is: store.Ne, Value: listMark(list)}}}},
		{Ref: owntable.Follower(owntable.FollowedList(list), attr, row), Delete: true},
	}
}

// FollowOps returns the operations that give an attribute the value that it follows, and
// record on the row which value that is. They replace whatever the attribute showed,
// which may be another row's value.
func (w *Work) FollowOps(p *projections.Put, follow *model.Follow, values Values) []store.Op {
	var of, at value.Value
	var v kept
	for _, f := range p.Follows {
		if f.Follow == follow {
			list := listOf(w.Model, f).Key.Partition.Text()
			of = listMark(list)
			if known, ok := values[list]; ok {
				v, at = known, known.Position.Value()
			}
		}
	}
	return []store.Op{store.Assign(follow.Attr, v.shownValue(follow.Keep)), store.Assign(owntable.FollowVersion(follow.Attr), at), store.Assign(owntable.FollowsAttr(follow.Attr), of)}
}
