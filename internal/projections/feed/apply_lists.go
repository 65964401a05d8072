package feed

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

// A list of subscribers is a partition of our own table: one
// row with the list's counter, and one row for each subscriber. Each notification gets a
// moment: a write to the counter row assigns the next number to it. The notification goes
// to every subscriber that joined at an earlier moment and has not left before this one.
// So the set of recipients does not depend on how often, how late or in how many pieces
// weir writes the notifications:
//
//   - A subscriber's row records the value of the counter, which is read before the row is
//     written. A subscription that is handled before the notification gets its moment is
//     included. One whose handling begins after the moment is not. If both are handled at the
//     same time, either may happen, but the subscriber gets at most one row.
//   - For each shard, the counter row keeps the position up to which changes have their moment
//     and, until all of their notifications are written, the moment of the last of them.
//   - A notification is a row with a key of its own for each subscriber. It carries the position
//     of the change, so writing it again changes nothing.
//
// A list longer than a page is written by a job (internal/runner/jobs.go), which keeps the moment.

// writeSubscriptions writes subscriptions: it adds subscribers to lists and removes them.
func (w *work) writeSubscriptions(ctx context.Context) error {
	pending := make([]*Subscription, len(w.subscriptions))
	for i := range w.subscriptions {
		pending[i] = &w.subscriptions[i]
	}
	for round := 0; len(pending) > 0; round++ {
		if round == store.MaxRounds {
			return fmt.Errorf("the subscribers in %s keep changing", pending[0].List)
		}
		again, err := w.subscribeOnce(ctx, pending)
		if err != nil {
			return err
		}
		pending = again
	}
	return nil
}

// subscribeOnce writes subscriptions once. It returns those whose rows another worker changed
// meanwhile; they must be tried again.
func (w *work) subscribeOnce(ctx context.Context, subscriptions []*Subscription) (again []*Subscription, err error) {
	refs := make([]store.Ref, 0, 2*len(subscriptions))
	for _, j := range subscriptions {
		list := owntable.Subscribers(w.Model.Name, j.List)
		refs = append(refs, list, owntable.Subscriber(list, j.Row))
	}
	rows, err := w.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	var ws []store.Write
	var of []*Subscription
	for i, j := range subscriptions {
		s := SubscriberFrom(rows[2*i+1])
		was := s.SubscriberRow
		if s.Take(j, owntable.ListFrom(rows[2*i]).Moment()) {
			ws, of = append(ws, w.WithSource(was.Replace(refs[2*i+1], s.SubscriberRow, w.OwnRowExpiry()), j.Row)), append(of, j)
		}
	}
	out, err := w.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	for i, j := range of {
		switch {
		case errors.Is(out[i].Err, store.ErrRefused):
			if err := w.keepUnlisted(ctx, j.List, j.Change, out[i].Err.Error()); err != nil {
				return nil, err
			}
		case out[i].Err != nil:
			again = append(again, j)
		}
	}
	return again, nil
}

// keepUnlisted keeps a dead letter for a change that a list of subscribers cannot take in,
// because the own table refuses the write. All other changes and lists go on.
func (w *work) keepUnlisted(ctx context.Context, list string, change int, reason string) error {
	w.CountKept(change)
	_, err := w.Letters().Keep(ctx, deadletter.Unusable(&w.Changes[change], w.ShardKey, list, reason))
	return err
}

// keepUnsendable keeps a dead letter for each notification of a list that can have no moment.
func (w *work) keepUnsendable(ctx context.Context, notifications []Notification, reason string) error {
	for i := range notifications {
		if err := w.keepUnlisted(ctx, notifications[i].List, notifications[i].Change, reason); err != nil {
			return err
		}
	}
	return nil
}

// sending holds the notifications that still have to go to one list.
type sending struct {
	list          store.Ref
	notifications []Notification // in the order of the stream
}

// writeNotifications writes the batch's notifications to each list.
func (w *work) writeNotifications(ctx context.Context) error {
	var pending []*sending
	at := map[string]*sending{}
	for _, t := range w.notifications {
		if at[t.List] == nil {
			at[t.List] = &sending{list: owntable.Subscribers(w.Model.Name, t.List)}
			pending = append(pending, at[t.List])
		}
		at[t.List].notifications = append(at[t.List].notifications, t)
	}
	for round := 0; len(pending) > 0; round++ {
		if round == store.MaxRounds {
			return fmt.Errorf("the moments of %s keep changing", pending[0].notifications[0].List)
		}
		if err := w.sendNext(ctx, pending); err != nil {
			return err
		}
		pending = slices.DeleteFunc(pending, func(t *sending) bool { return len(t.notifications) == 0 })
	}
	return nil
}

// sendNext writes, for each list, the next notifications that share a moment: first those
// that already have a moment, then the rest under a new one.
func (w *work) sendNext(ctx context.Context, pending []*sending) error {
	refs := make([]store.Ref, len(pending))
	for i, t := range pending {
		refs[i] = t.list
	}
	rows, err := w.Get(ctx, refs)
	if err != nil {
		return err
	}
	lists, positions, pruned := make([]owntable.ListRow, len(rows)), make([][]owntable.Applied, len(rows)), false
	for i, row := range rows {
		lists[i] = owntable.ListFrom(row)
		_, last, _ := lists[i].ShardProgress(w.ShardKey)
		positions[i], pruned = lists[i].Positions(), pruned || lists[i].Pruned() && last.IsZero() && !owntable.IsUnlogged(w.ShardKey)
	}
	var frontier events.Position
	if pruned {
		if frontier, err = w.ReadFrontier(ctx); err != nil {
			return err
		}
	}
	redundant, err := w.RedundantShards(ctx, positions)
	if err != nil {
		return err
	}
	var ws []store.Write
	var of []*sending
	for i, t := range pending {
		list := lists[i]
		first, last, moment := list.ShardProgress(w.ShardKey)
		n, _ := slices.BinarySearchFunc(t.notifications, first, func(x Notification, o events.Position) int { return x.Position.Compare(o) })
		if first.IsZero() {
			n = t.upTo(last)
		}
		t.notifications = t.notifications[max(n, t.upTo(frontier)):]
		switch again := t.upTo(last); {
		case len(t.notifications) == 0:
		case again > 0:
			if err := w.sendNotifications(ctx, t, again, moment, last); err != nil {
				return err
			}
		default:
			end := t.notifications[len(t.notifications)-1].Position
			ws, of = append(ws, list.BeginMoment(t.list, w.ShardKey, t.notifications[0].Position, end, redundant[i], w.Now(), w.PositionsExpiry())), append(of, t)
		}
	}
	if err := w.CheckAge(); err != nil {
		return err
	}
	out, err := w.Write(ctx, ws)
	if err != nil {
		return err
	}
	for i, t := range of {
		switch e := out[i].Err; {
		case errors.Is(e, store.ErrRefused):
			if err := w.keepUnsendable(ctx, t.notifications, e.Error()); err != nil {
				return err
			}
			t.notifications = nil
			continue
		case e != nil:
			continue // another worker took this moment; read again
		}
		if err := w.sendNotifications(ctx, t, len(t.notifications), owntable.ListFrom(out[i].Row).Moment(), t.notifications[len(t.notifications)-1].Position); err != nil {
			return err
		}
	}
	return nil
}

// upTo returns how many of the first notifications have an offset of at most o.
func (t *sending) upTo(o events.Position) int {
	n := 0
	for n < len(t.notifications) && t.notifications[n].Position.Compare(o) <= 0 {
		n++
	}
	return n
}

// sendNotifications writes the first n notifications, which share a moment. When all notifications of
// the moment are written, up to position last, it removes the moment from the counter
// row. Then a repeated batch does not restore a notification that its subscriber has
// deleted. The notifications of one moment may arrive in several pieces, so send does
// this only after the last. A crash before that leaves the moment, and the repeated batch
// writes the rows again.
func (w *work) sendNotifications(ctx context.Context, t *sending, n int, moment int64, last events.Position) error {
	any, some, jobs := false, t.notifications[:n], make([]owntable.Job, n)
	for i := range some {
		jobs[i] = some[i].sendingJob(t.list, moment)
	}
	err := w.FanOut(ctx, jobs, func(i int, rows []value.Item, last bool) error {
		done, err := sendPage(ctx, w.Runner, rows, &some[i], moment)
		if done.kept {
			w.CountKept(some[i].Change, some[i].Rule.Name)
		}
		any = any || done.any || !last
		return err
	})
	if err != nil {
		return err
	}
	whole := t.notifications[n-1].Position == last
	t.notifications = t.notifications[n:]
	if !whole || !any && !owntable.IsUnlogged(w.ShardKey) { // such changes do not come again
		return nil
	}
	_, err = w.Write(ctx, []store.Write{owntable.EndMoment(t.list, w.ShardKey, last)})
	return err
}

// sendingJob sends the notification to those on a list that get its moment. Each page may be read at any time after the
// moment was given: a subscriber that joins or leaves then gets, or misses, those of later moments only.
func (t *Notification) sendingJob(list store.Ref, moment int64) owntable.Job {
	job := owntable.EntriesJob(list)
	job.Rule, job.Source, job.Fields, job.Position, job.Moment = t.Rule.Name, t.Rule.Source.Name, t.Fields, t.Position, moment
	return job
}

// sent is the result for a page of subscribers: whether any of them is a recipient; and whether a row
// was refused.
type sent struct{ any, kept bool }

// sendPage writes the rows for a page of subscribers.
// A row of a later event stays, so a page may be sent again after a crash. Refused rows leave a dead
// letter each, and the others are written.
func sendPage(ctx context.Context, r *runner.Runner, rows []value.Item, t *Notification, moment int64) (done sent, err error) {
	var ws []store.Write
	var of []projections.Put
	for _, row := range rows {
		s := SubscriberFrom(row)
		if !s.Receives(moment) {
			continue
		}
		fields := s.Says
		if fields == nil {
			fields = s.Left
		}
		p, ok := t.RowFor(fields)
		switch {
		case !ok || runner.IsLapsed(r, &p):
		case p.Unclear != "":
			done.kept = true
			if err := keepRefused(ctx, r, deadletter.Image, t, &p, p.Unclear); err != nil {
				return done, err
			}
		default:
			ws, of = append(ws, notificationWrite(r, &p)), append(of, p)
		}
	}
	out, err := r.Write(ctx, ws)
	if err != nil {
		return done, err
	}
	for i := range out {
		if !errors.Is(out[i].Err, store.ErrRefused) {
			continue
		}
		done.kept = true
		if err := keepRefused(ctx, r, deadletter.Notification, t, &of[i], out[i].Err.Error()); err != nil {
			return done, err
		}
	}
	done.any = len(ws) > 0
	return done, nil
}

// notificationWrite returns the write of one subscriber's row. Its condition fails if the row
// already carries this position or a newer one.
func notificationWrite(r *runner.Runner, p *projections.Put) store.Write {
	t := r.Model.Table(p.Row.Table)
	wr := store.Write{Ref: p.Row, If: store.Cond{store.Below(owntable.Version, p.Position.Value())}}
	wr.Ops = append(t.AssignRow(p.Image), store.Assign(owntable.Version, p.Position.Value()))
	return wr
}

// keepRefused keeps a dead letter for a row that its table refused, or whose key does not tell
// which subscriber gets it. The other subscribers still get theirs.
func keepRefused(ctx context.Context, r *runner.Runner, kind deadletter.Kind, t *Notification, p *projections.Put, reason string) error {
	_, err := r.Letters().Keep(ctx, refusedLetter(r, kind, t.Rule.Name, p, reason))
	return err
}

// refusedLetter returns the dead letter of such a row.
func refusedLetter(r *runner.Runner, kind deadletter.Kind, rule string, p *projections.Put, reason string) deadletter.Letter {
	return deadletter.Letter{
		Kind: kind, Target: rule + " " + r.DescribeRow(p.Row), Row: p.Row, Reason: reason, Position: p.Position,
		Record: owntable.RecordItem(&events.Record{New: p.Image}),
	}
}

// Retry writes a subscriber's row that was refused before, or sends a notification that had no lists.
func (Kind) Retry(ctx context.Context, r *runner.Runner, d *deadletter.Letter) (kept bool, err error) {
	if d.Row.Table == "" {
		return false, resendUnsent(ctx, r, d)
	}
	out, err := r.Write(ctx, []store.Write{notificationWrite(r, &projections.Put{Row: d.Row, Image: d.ChangeRecord().New, Position: d.Position})})
	switch {
	case err != nil:
		return false, err
	case errors.Is(out[0].Err, store.ErrRefused):
		return false, fmt.Errorf("%s: %w", d.Target, out[0].Err)
	}
	return false, nil
}

// resendUnsent sends a notification that had no lists (keepUnsent) to those who are in its list now.
// It may be repeated: a subscriber who has the notification keeps it as it is.
func resendUnsent(ctx context.Context, r *runner.Runner, d *deadletter.Letter) error {
	c, err := d.Change(r.Model)
	if err != nil {
		return err
	}
	row, err := r.Catalog.Row(ctx)
	if err != nil {
		return err
	}
	for _, n := range FoldNotifications(&c, nil) {
		if n.List != d.Target {
			continue
		}
		lists := r.Model.Name
		if b, _ := row.Builds.Of(model.BuildSubscribers + n.Rule.Name); b.State.IsShown() {
			lists = b.Ledgers(r.Model.Name)
		} else if row.IsPending(n.Rule.Name) {
			return fmt.Errorf("%s: %s", d.Target, d.Reason)
		}
		list := owntable.Subscribers(lists, n.List)
		counter, err := r.GetRow(ctx, list)
		if err != nil {
			return err
		}
		moment := owntable.ListFrom(counter).Moment() + 1
		err = r.FanOut(ctx, []owntable.Job{n.sendingJob(list, moment)}, func(_ int, rows []value.Item, _ bool) error {
			_, err := sendPage(ctx, r, rows, &n, moment)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Lists returns lists of subscribers.
func (Kind) Lists() string { return owntable.KindSubscribers }

// Serve writes a notification for some subscribers. If the model no longer has the rule, there is none.
func (Kind) Serve(ctx context.Context, r *runner.Runner, job *owntable.Job, rows []value.Item, _ bool) error {
	rule := ruleOf(r.Model, job)
	if rule == nil {
		return nil
	}
	_, err := sendPage(ctx, r, rows, &Notification{Rule: rule, Fields: job.Fields, Position: job.Position}, job.Moment)
	return err
}

// ruleOf returns the rule of a job, or nil if the model no longer has it.
func ruleOf(m *model.Model, job *owntable.Job) *model.RowRule {
	return seq.Find(m.Rows, func(r *model.RowRule) bool {
		return r.Subscribers != nil && r.Name == job.Rule && r.Source.Name == job.Source
	})
}
