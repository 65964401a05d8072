package lambda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// lane is how far the events of a shard have come: the state that the newest of them
// brought, and every state that an invocation for it may have answered. An event may
// be invoked for more than once, in parts, and by instances that should be over.
type lane struct {
	row  value.Item // as it stands in our table
	from string
	ends []string
}

// Attributes of a lane's row, beside its expiry.
const (
	laneFrom = "from"
	laneEnds = book.Position
)

// maxEnds is how many answers are remembered: more than invocations for one event
// come to.
const maxEnds = 64

func laneOf(row value.Item) lane {
	l := lane{row: row, from: row.Get(laneFrom).Text()}
	for _, e := range row.Get(laneEnds).Elements() {
		l.ends = append(l.ends, e.Value.Text())
	}
	return l
}

// follows reports whether an event that brings this state can be the same again or
// the next one. At the start of a window there is no state and nothing to tell by.
func (l *lane) follows(state string) bool {
	return state == "" || l.row == nil || state == l.from || slices.Contains(l.ends, state)
}

// moved is the lane after an invocation for an event that follows has come to an
// end.
func (l *lane) moved(state, end string) lane {
	out := lane{row: l.row, from: l.from, ends: slices.Clone(l.ends)}
	switch newer := l.isAbove(end); {
	case state == "" && l.from != "": // a new window; the same again of the old one may still come
		out.from, out.ends = state, append(out.ends, l.from)
	case newer && state != l.from || l.row == nil:
		out.from, out.ends = state, nil
	}
	if !slices.Contains(out.ends, end) {
		out.ends = append(out.ends, end)
	}
	out.ends = out.ends[max(0, len(out.ends)-maxEnds):]
	return out
}

// isAbove reports whether a position is above all that were answered.
func (l *lane) isAbove(end string) bool {
	p, _ := events.ParsePosition(end)
	return !slices.ContainsFunc(l.ends, func(e string) bool {
		q, _ := events.ParsePosition(e)
		return q.Compare(p) >= 0
	})
}

func (h *Handler) laneRef(w *work) store.Ref {
	return book.Ref(partition(h.Runner.Model), w.table+"|"+w.shard)
}

func (h *Handler) readLane(ctx context.Context, w *work) (lane, error) {
	rows, err := h.Runner.Store.Get(ctx, []store.Ref{h.laneRef(w)})
	if err != nil {
		return lane{}, err
	}
	return laneOf(rows[0]), nil
}

// laneTries is how often others may move a lane while we do.
const laneTries = 10

// move notes where the shard's lane is. It forgets within two days of the shard's
// end.
func (h *Handler) move(ctx context.Context, w *work, state, end string) error {
	for range laneTries {
		if !w.lane.follows(state) {
			return nil // others are beyond it
		}
		next := w.lane.moved(state, end)
		row := h.laneRow(w, &next)
		out, err := h.Runner.Store.Write(ctx, []store.Write{{Ref: h.laneRef(w), Put: row, If: unmoved(w.lane.row), Return: true}})
		if err == nil {
			err = out[0].Err
		}
		switch {
		case err == nil:
			w.lane = laneOf(row)
			return nil
		case !errors.Is(err, store.ErrCondition):
			return err
		}
		w.lane = laneOf(out[0].Row)
	}
	return fmt.Errorf("shard %s of %s is moved by others as often as it is tried", w.shard, w.table)
}

func (h *Handler) laneRow(w *work, l *lane) value.Item {
	own := book.Table()
	ends := make([]value.Value, len(l.ends))
	for i, e := range l.ends {
		ends[i] = value.OfString(e)
	}
	return own.Item(h.laneRef(w).Key).With(
		value.Attr{Name: laneFrom, Value: value.OfString(l.from)},
		value.Attr{Name: laneEnds, Value: value.OfList(ends...)},
		value.Attr{Name: book.Expiry, Value: value.OfInt(h.Runner.Now().Add(48 * time.Hour).Unix())})
}

// unmoved holds while the lane's row is the one that was read.
func unmoved(row value.Item) store.Cond {
	if row == nil {
		return store.Cond{{{Attr: book.Partition, Is: store.Absent}}}
	}
	return store.Cond{
		{{Attr: laneFrom, Is: store.Eq, Value: row.Get(laneFrom)}},
		{{Attr: laneEnds, Is: store.Eq, Value: row.Get(laneEnds)}},
	}
}
