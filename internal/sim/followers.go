package sim

import (
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// The followers that get a row for an event are the followers at one moment: the write that
// raises the counter of the list of followers. weir reads that counter before it writes a
// new follower's row in the list. The follower counts from that reading on, and it also
// leaves as of such a reading. So from the order of writes and deeds the truth can say for
// certain which followers must get a row and which must not. In between it depends on which
// process is first.

// crossing is the write of a row of weir's own table that raised one of its positions: the
// position up to which something was done.
type crossing struct {
	row, attr string
	old, now  events.Position
	at        int // how many writes the run had done by then
}

// noteCrossings notes changes of lists of followers.
func (w *world) noteCrossings(key store.Key, old, now value.Item) {
	if !w.tells || now == nil {
		return
	}
	kept := len(w.crossed)
	for _, a := range now {
		if a.Name != owntable.Position && !strings.HasPrefix(a.Name, owntable.PositionOf("")) {
			continue
		}
		if p, q := events.PositionFrom(old.Get(a.Name)), events.PositionFrom(a.Value); p.Compare(q) < 0 {
			w.crossed = append(w.crossed, crossing{key.Partition.Text() + "|" + key.Sort.Text(), a.Name, p, q, w.base.writes})
		}
	}
	w.base.undone(func() { w.crossed = w.crossed[:kept] })
}

// crossedAt is how many writes the run had done when a row passed an offset, 0 for never.
func (w *world) crossedAt(ref store.Ref, attr string, p events.Position) int {
	name := ref.Key.Partition.Text() + "|" + ref.Key.Sort.Text()
	for _, x := range w.crossed {
		if x.row == name && x.attr == attr && x.old.Compare(p) < 0 && p.Compare(x.now) <= 0 {
			return x.at
		}
	}
	return 0
}

// stay is a time during which a row follows: the row's changes in that time, and the one
// that ended it, nil if it still follows.
type stay struct {
	deeds []*deed
	end   *deed
}

// staysOf are all times during which rows follow the row that an event is about.
func (t *truth) staysOf(r *model.RowRule, image value.Item) (out []*stay) {
	open := map[*ownRow]*stay{}
	for _, f := range t.deeds {
		finds := f.table.Classify(f.is) == r.Subscribers.Of && t.isFollowedBy(r, image, f.is)
		s := open[f.ownRow]
		if finds && s == nil {
			s = &stay{}
			open[f.ownRow], out = s, append(out, s)
		}
		if finds {
			s.deeds = append(s.deeds, f)
		} else if s != nil {
			s.end = f
			delete(open, f.ownRow)
		}
	}
	return out
}

// tellFollowers adds the rows that followers get of a deed: want has the rows that must exist, may
// all that can exist.
func (t *truth) tellFollowers(r *model.RowRule, image value.Item, d *deed, want, may map[string]*known) {
	var by []string
	for i := range r.Subscribers.By {
		by = append(by, value.Scalar(t.evalExpr(&r.Subscribers.By[i].Expr, image, nil)))
	}
	if slices.Contains(by, "") {
		return
	}
	name := owntable.SubscriberList(r.Name+"<"+r.Source.Name, by)
	list := owntable.Subscribers(t.model.Name, name)
	key, at := owntable.ShardKey(d.table.Name, d.shard.ID), d.record.Position
	moment := t.crossedAt(list, owntable.PositionOf(key), at)
	if moment == 0 {
		t.addFailure(Lost, "history: %s of %s has no moment: no subscriber was told", r.Name, refName(store.Ref{Table: d.table.Name, Key: d.key}))
		return
	}
	for _, s := range t.staysOf(r, image) {
		first := s.deeds[0]
		row := owntable.Subscriber(list, store.Ref{Table: first.table.Name, Key: first.key})
		came := t.crossedAt(row, owntable.Position, first.record.Position)
		rows := map[string]*known{}
		same := true
		for _, f := range s.deeds {
			t.who = f.is
			if k, ok := t.makeRow(r, image, d); ok {
				same = same && (len(rows) == 0 || rows[k.name()] != nil && value.EqualItems(rows[k.name()].own, k.own))
				rows[k.name()] = k
			}
			t.who = nil
		}
		left := s.end != nil && t.crossedAt(row, owntable.Position, s.end.record.Position) < moment
		for name, k := range rows {
			if first.at < moment && !left {
				may[name] = k
			}
			if same && came > 0 && came < moment && (s.end == nil || s.end.at > moment) {
				want[name] = k
			}
		}
	}
}

// isFollowedBy reports whether a row follows the thing that an image is about.
func (t *truth) isFollowedBy(r *model.RowRule, image, follower value.Item) bool {
	for i := range r.Subscribers.By {
		m := &r.Subscribers.By[i]
		a, b := value.Scalar(m.Field.Get(follower)), value.Scalar(t.evalExpr(&m.Expr, image, nil))
		if a == "" || a != b {
			return false
		}
	}
	return true
}
