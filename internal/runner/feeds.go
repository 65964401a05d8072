package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A list of followers is a partition of our table: a row that counts its moments,
// and a row for each follower. What is told to a list has a moment, which one write
// gives it, and is told to everybody who has come since an earlier one and has not
// left before it. So who is told does not depend on how often, how late or in how
// many pieces the telling is done:
//
//   - who begins to follow counts from the reading of the counter that comes before
//     his row is written: handled before what is told is, he is told; begun to be
//     handled after the moment, he is not; handled at the same time, either, but once;
//   - the counter's row has, for each lane, the position up to which things have
//     their moment, and the moment of the last of them, until all of it is told;
//   - what is told is a row with a key of its own for each follower, which carries
//     the position of what it tells: told again, it is there already.
//
// A list longer than a page is a job (jobs.go), which keeps the moment.

// Attributes of the row that counts a list's moments, beside book.Count and the
// positions of lanes.
const (
	firstAttr  = "f:" // +LANE: the first of what is being told; absent when all is told
	momentAttr = "w:" // +LANE: its moment
)

// joins enters and takes out followers.
func (w *work) joins(ctx context.Context) error {
	pending := make([]*projections.Join, len(w.Joins))
	for i := range w.Joins {
		pending[i] = &w.Joins[i]
	}
	for round := 0; len(pending) > 0; round++ {
		if round == maxRounds {
			return fmt.Errorf("the followers in %s do not come to rest", pending[0].List)
		}
		again, err := w.follow(ctx, pending)
		if err != nil {
			return err
		}
		pending = again
	}
	return nil
}

func (w *work) follow(ctx context.Context, joins []*projections.Join) (again []*projections.Join, err error) {
	refs := make([]store.Ref, 0, 2*len(joins))
	for _, j := range joins {
		list := book.Followers(w.Model.Name, j.List)
		refs = append(refs, list, book.Follower(list, j.Row))
	}
	rows, err := w.get(ctx, refs)
	if err != nil {
		return nil, err
	}
	var ws []store.Write
	var of []*projections.Join
	for i, j := range joins {
		moment, _ := rows[2*i].Get(book.Count).Int64()
		f := projections.FollowerFrom(rows[2*i+1])
		was := f.Position
		if f.Take(j, moment) {
			ws, of = append(ws, w.followerWrite(refs[2*i+1], f, was)), append(of, j)
		}
	}
	out, err := w.write(ctx, ws)
	if err != nil {
		return nil, err
	}
	for i, j := range of {
		switch {
		case errors.Is(out[i].Err, store.ErrRefused):
			return nil, out[i].Err
		case out[i].Err != nil:
			again = append(again, j)
		}
	}
	return again, nil
}

func (w *work) followerWrite(ref store.Ref, f *projections.Follower, was events.Position) store.Write {
	attrs := append(book.RefItem(ref), f.Attrs()...)
	if !f.Here() {
		attrs = append(attrs, attr(book.Expiry, w.expiry()))
	}
	return store.Write{Ref: ref, Put: value.NewItem(attrs...), If: store.Cond{{unmoved(was)}}}
}

// telling is what is told to one list.
type telling struct {
	list  store.Ref
	tells []projections.Tell // in the order of the stream
}

// tells tells each list what there is to tell.
func (w *work) tells(ctx context.Context) error {
	if w.ByItem {
		return w.tellsMarked(ctx)
	}
	var pending []*telling
	at := map[string]*telling{}
	for _, t := range w.Tells {
		if at[t.List] == nil {
			at[t.List] = &telling{list: book.Followers(w.Model.Name, t.List)}
			pending = append(pending, at[t.List])
		}
		at[t.List].tells = append(at[t.List].tells, t)
	}
	for round := 0; len(pending) > 0; round++ {
		if round == maxRounds {
			return fmt.Errorf("the moments of %s do not come to rest", pending[0].tells[0].List)
		}
		if err := w.tellNext(ctx, pending); err != nil {
			return err
		}
		pending = slices.DeleteFunc(pending, func(t *telling) bool { return len(t.tells) == 0 })
	}
	return nil
}

// tellNext tells each list the next of what has one moment: first what has had it
// before, then the rest.
func (w *work) tellNext(ctx context.Context, pending []*telling) error {
	refs := make([]store.Ref, len(pending))
	for i, t := range pending {
		refs[i] = t.list
	}
	rows, err := w.get(ctx, refs)
	if err != nil {
		return err
	}
	var ws []store.Write
	var of []*telling
	for i, t := range pending {
		row := rows[i]
		first, last := events.PositionFrom(row.Get(firstAttr+w.Lane)), events.PositionFrom(row.Get(book.Lane(w.Lane)))
		n, _ := slices.BinarySearchFunc(t.tells, first, func(x projections.Tell, p events.Position) int { return x.Position.Compare(p) })
		if first.IsZero() {
			n = t.upTo(last)
		}
		t.tells = t.tells[n:]
		switch again := t.upTo(last); {
		case len(t.tells) == 0:
		case again > 0:
			moment, _ := row.Get(momentAttr + w.Lane).Int64()
			if err := w.tell(ctx, t, again, moment, last); err != nil {
				return err
			}
		default:
			wr, err := w.momentWrite(ctx, t, row)
			if err != nil {
				return err
			}
			ws, of = append(ws, wr), append(of, t)
		}
	}
	if err := w.fresh(); err != nil {
		return err
	}
	out, err := w.write(ctx, ws)
	if err != nil {
		return err
	}
	for i, t := range of {
		if out[i].Err != nil {
			continue // somebody else took this moment; look again
		}
		moment, _ := out[i].Row.Get(book.Count).Int64()
		if err := w.tell(ctx, t, len(t.tells), moment, t.tells[len(t.tells)-1].Position); err != nil {
			return err
		}
	}
	return nil
}

// upTo is how many of the first are not above a position.
func (t *telling) upTo(p events.Position) int {
	n := 0
	for n < len(t.tells) && t.tells[n].Position.Compare(p) <= 0 {
		n++
	}
	return n
}

// momentWrite gives all that is left to tell the next moment. Lanes that nothing
// comes from any more go out of the row, unless something of theirs is still being
// told.
func (w *work) momentWrite(ctx context.Context, t *telling, row value.Item) (store.Write, error) {
	n, _ := row.Get(book.Count).Int64()
	wr := store.Write{
		Ref: t.list, Return: true, If: store.Cond{{store.AsRead(book.Count, row.Get(book.Count))}},
		Ops: []store.Op{
			set(book.Count, value.OfInt(n+1)), set(momentAttr+w.Lane, value.OfInt(n+1)),
			set(firstAttr+w.Lane, t.tells[0].Position.Value()), set(book.Lane(w.Lane), t.tells[len(t.tells)-1].Position.Value()),
		},
	}
	lanes, err := w.retired(ctx, row)
	for _, lane := range lanes {
		if !row.Has(firstAttr + lane) {
			wr.Ops = append(wr.Ops, store.Op{Kind: store.Remove, Attr: book.Lane(lane)})
		}
	}
	return wr, err
}

// tell tells the list the first n of what there is, which have the moment. What was
// told to somebody is noted to be over, so that it is not told again to one who has
// thrown it away meanwhile; but not before all that has the moment is told, up to last,
// which may come in pieces.
func (w *work) tell(ctx context.Context, t *telling, n int, moment int64, last events.Position) error {
	told := false
	for i := range t.tells[:n] {
		any, err := w.tellOne(ctx, t.list, &t.tells[i], moment)
		if err != nil {
			return err
		}
		told = told || any
	}
	whole := t.tells[n-1].Position == last
	t.tells = t.tells[n:]
	if !told || !whole {
		return nil
	}
	_, err := w.write(ctx, []store.Write{{
		Ref: t.list, If: store.Cond{{{Attr: book.Lane(w.Lane), Is: store.Eq, Value: last.Value()}}},
		Ops: []store.Op{{Kind: store.Remove, Attr: firstAttr + w.Lane}, {Kind: store.Remove, Attr: momentAttr + w.Lane}},
	}})
	return err
}

// tellOne tells a list one thing, a long one by a job. any is false where nobody
// was told.
func (w *work) tellOne(ctx context.Context, list store.Ref, t *projections.Tell, moment int64) (any bool, err error) {
	page, err := w.tellPage(ctx, list.Key.Partition, "", t, moment)
	if err == nil && page.last != "" {
		err = w.startTelling(ctx, list, page.last, t, moment)
	}
	w.kept[t.Change] = w.kept[t.Change] || page.kept
	return page.any || page.last != "", err
}

// told is what became of a page of followers: the sort key of the last, "" when
// there are no more; whether anybody was told, and whether a row was refused.
type told struct {
	last      string
	any, kept bool
}

// tellPage tells the followers after a sort key.
func (r *Runner) tellPage(ctx context.Context, list value.Value, after string, t *projections.Tell, moment int64) (done told, err error) {
	page, err := r.Store.Query(ctx, store.Query{
		Table: book.TableName, Partition: list, Limit: membersAtOnce,
		Sort: store.Range{From: value.OfString(max("m", after+"\x00"))},
	})
	if err != nil {
		return done, err
	}
	var ws []store.Write
	var of []projections.Put
	for _, row := range page.Rows {
		f := projections.FollowerFrom(row)
		if !f.Followed(moment) {
			continue
		}
		if p, ok := t.For(f.Fields); ok {
			ws, of = append(ws, r.tellWrite(&p)), append(of, p)
		}
	}
	out, err := r.write(ctx, ws)
	if err != nil {
		return done, err
	}
	for i := range out {
		if !errors.Is(out[i].Err, store.ErrRefused) {
			continue
		}
		done.kept = true
		if err := r.keepTold(ctx, t, &of[i], out[i].Err.Error()); err != nil {
			return done, err
		}
	}
	if done.any = len(ws) > 0; page.Next != nil && len(page.Rows) > 0 {
		done.last = page.Rows[len(page.Rows)-1].Get(book.Sort).Text()
	}
	return done, nil
}

func (r *Runner) tellWrite(p *projections.Put) store.Write {
	t := r.Model.Table(p.Row.Table)
	wr := store.Write{Ref: p.Row, If: store.Cond{below(book.Version, p.Position.Value())}}
	for _, a := range p.Image {
		if a.Name != t.Key.Partition.Name && a.Name != t.Key.Sort.Name {
			wr.Ops = append(wr.Ops, set(a.Name, a.Value))
		}
	}
	wr.Ops = append(wr.Ops, set(book.Version, p.Position.Value()))
	return wr
}

// keepTold keeps a row that its table refuses; the others are told.
func (r *Runner) keepTold(ctx context.Context, t *projections.Tell, p *projections.Put, reason string) error {
	_, err := r.KeepDead(ctx, Dead{
		Kind: DeadTold, Target: t.Rule.Name + " " + r.describe(p.Row), Row: p.Row, Reason: reason, Position: p.Position,
		Record: value.NewItem(attr("new", value.OfMap(p.Image))),
	})
	return err
}

// retryTold writes a row for a follower that was refused.
func (r *Runner) retryTold(ctx context.Context, d *Dead) error {
	out, err := r.write(ctx, []store.Write{r.tellWrite(&projections.Put{Row: d.Row, Image: d.Record.Get("new").Item(), Position: d.Position})})
	switch {
	case err != nil:
		return err
	case errors.Is(out[0].Err, store.ErrRefused):
		return fmt.Errorf("%s: %w", d.Target, out[0].Err)
	}
	return r.Forget(ctx, d)
}

// Attributes of the job that tells a long list.
const (
	tellRule   = "rule"
	tellSource = "of"
	tellFields = "f"
)

// startTelling leaves the rest of a list to a job. What is too large to be kept in
// one is told at once.
func (w *work) startTelling(ctx context.Context, list store.Ref, cursor string, t *projections.Tell, moment int64) error {
	out, err := w.write(ctx, []store.Write{{
		Ref: book.Job(w.Model.Name, tellName(list.Key.Partition.Text(), t.Position)), If: book.NotThere(),
		Ops: []store.Op{
			set(tellRule, value.OfString(t.Rule.Name)), set(tellSource, value.OfString(t.Rule.Source.Name)), set(tellFields, value.OfMap(t.Fields)),
			set(listAttr, list.Key.Partition), set(cursorAttr, value.OfString(cursor)),
			set(book.Position, t.Position.Value()), set(book.Count, value.OfInt(moment)),
		},
	}})
	if err != nil || !errors.Is(out[0].Err, store.ErrRefused) {
		return err
	}
	for page := (told{last: cursor}); page.last != ""; {
		if page, err = w.tellPage(ctx, list.Key.Partition, page.last, t, moment); err != nil {
			return err
		}
	}
	return nil
}

func tellName(list string, p events.Position) string { return "tell|" + list + "|" + p.String() }

// tellOn does a step of such a job. Of a rule that the model does not have any more
// there is nothing to tell.
func (r *Runner) tellOn(ctx context.Context, job value.Item) (more bool, err error) {
	list, position := job.Get(listAttr), events.PositionFrom(job.Get(book.Position))
	w := store.Write{
		Ref: book.Job(r.Model.Name, tellName(list.Text(), position)),
		If:  store.Cond{{{Attr: cursorAttr, Is: store.Eq, Value: job.Get(cursorAttr)}}},
	}
	var page told
	if rule := r.ruleOf(job); rule != nil {
		t := projections.Tell{Rule: rule, Fields: job.Get(tellFields).Item(), Position: position}
		moment, _ := job.Get(book.Count).Int64()
		if page, err = r.tellPage(ctx, list, job.Get(cursorAttr).Text(), &t, moment); err != nil {
			return true, err
		}
	}
	if page.last == "" {
		w.Delete = true
	} else {
		w.Ops = []store.Op{set(cursorAttr, value.OfString(page.last))}
	}
	_, err = r.write(ctx, []store.Write{w})
	return page.last != "", err
}

func (r *Runner) ruleOf(job value.Item) *model.RowRule {
	for _, rule := range r.Model.Rows {
		if rule.Each != nil && rule.Name == job.Get(tellRule).Text() && rule.Source.Name == job.Get(tellSource).Text() {
			return rule
		}
	}
	return nil
}
