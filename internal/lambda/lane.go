package lambda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// lane is how far the events of a shard have come: a state that the mapping brought,
// and the answers that invocations have come to. An event may be invoked for more
// than once, in parts, and by instances that should be over.
type lane struct {
	row     value.Item // as it stands in our table
	from    string
	answers []reply
}

// reply is that an invocation for an event that brought a state may have answered
// with another.
type reply struct{ state, end string }

// Attributes of a lane's row, beside its expiry.
const (
	laneFrom    = "from"
	laneAnswers = book.Position
)

// maxAnswers is how many answers are remembered: more than invocations for one event
// come to.
const maxAnswers = 64

func laneOf(row value.Item) lane {
	l := lane{row: row, from: row.Get(laneFrom).Text()}
	for _, e := range row.Get(laneAnswers).Elements() {
		state, end, _ := strings.Cut(e.Value.Text(), replySign)
		l.answers = append(l.answers, reply{state, end})
	}
	return l
}

// replySign stands between the two states of a reply; no position has it.
const replySign = ">"

// follows reports whether an event that brings this state can be the same again or
// the next one. At the start of a window there is no state and nothing to tell by.
func (l *lane) follows(state string) bool {
	return state == "" || l.row == nil || state == l.from || slices.Contains(l.ends(), state)
}

// ends are the states that were answered.
func (l *lane) ends() (out []string) {
	for _, a := range l.answers {
		if !slices.Contains(out, a.end) {
			out = append(out, a.end)
		}
	}
	return out
}

// moved is the lane after an invocation for an event that follows has come to an
// end.
func (l *lane) moved(state, end string) lane {
	out := lane{row: l.row, from: l.from, answers: slices.Clone(l.answers)}
	switch newer := l.isAbove(end); {
	case state == "" && l.from != "": // a new window; the same again of the old one may still come
		out.from = state
		out.add(reply{state, l.from})
	case newer && state != l.from || l.row == nil:
		out.from, out.answers = state, l.since(state)
	}
	out.add(reply{state, end})
	out.answers = out.answers[max(0, len(out.answers)-maxAnswers):]
	return out
}

func (l *lane) add(r reply) {
	if !slices.Contains(l.answers, r) {
		l.answers = append(l.answers, r)
	}
}

// since are the answers by which the mapping may have come on from a state: the one
// who says that it was there may be late.
func (l *lane) since(state string) (out []reply) {
	from := []string{state}
	for _, a := range l.answers { // an answer stands behind that to which it led
		if slices.Contains(from, a.state) {
			out, from = append(out, a), append(from, a.end)
		}
	}
	return out
}

// isAbove reports whether a position is above all that were answered.
func (l *lane) isAbove(end string) bool {
	p, _ := events.ParsePosition(end)
	return !slices.ContainsFunc(l.answers, func(a reply) bool {
		q, _ := events.ParsePosition(a.end)
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
	answers := make([]value.Value, len(l.answers))
	for i, a := range l.answers {
		answers[i] = value.OfString(a.state + replySign + a.end)
	}
	return own.Item(h.laneRef(w).Key).With(
		value.Attr{Name: laneFrom, Value: value.OfString(l.from)},
		value.Attr{Name: laneAnswers, Value: value.OfList(answers...)},
		value.Attr{Name: book.Expiry, Value: value.OfInt(h.Runner.Now().Add(48 * time.Hour).Unix())})
}

// unmoved holds while the lane's row is the one that was read.
func unmoved(row value.Item) store.Cond {
	if row == nil {
		return store.Cond{{{Attr: book.Partition, Is: store.Absent}}}
	}
	return store.Cond{
		{{Attr: laneFrom, Is: store.Eq, Value: row.Get(laneFrom)}},
		{{Attr: laneAnswers, Is: store.Eq, Value: row.Get(laneAnswers)}},
	}
}
