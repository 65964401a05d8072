package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"weir/internal/deadletter"
	"weir/internal/projections/document"
	"weir/internal/reader"
)

// A schedule invokes the function each minute. That does two things that no event can: it finds out that no events come, and goes on with
// work that is left where none do. A schedule that fails loses nothing: an event that comes after a day without a look looks first.

// Tick is the findings of a scheduled invocation.
type Tick struct {
	Tables []reader.Watched // empty if it did not look
	// Letters is how many dead letters are open, by the table of their row, "" if they have none; mostLetters at the most. It says
	// something only if they were Counted.
	Letters map[string]int
	Counted bool
	Why     error // why something is not known, or not done
}

const (
	// lookEvery is how often a scheduled invocation looks at the streams: DynamoDB answers two readers of a shard without
	// throttling.
	lookEvery = 5 * time.Minute
	// overdueEvery is how often an event asks when a program has looked last.
	overdueEvery = time.Hour
	mostLetters  = 1000
	// catchUpTime is how long documents that are pending are written: the next minute goes on.
	catchUpTime = 40 * time.Second
)

// scheduled is an event of EventBridge, which a rule with a schedule sends.
type scheduled struct {
	Kind string `json:"detail-type"`
	Time time.Time
}

// isTick reports whether an event is that of a schedule.
func isTick(payload []byte) (s scheduled, is bool) {
	err := json.Unmarshal(payload, &s)
	return s, err == nil && s.Kind == "Scheduled Event"
}

// runTick looks at the streams in each fifth minute, and works on long lists. An error fails the invocation, so that its alarm tells.
func (h *Handler) runTick(ctx context.Context, s scheduled) ([]byte, error) {
	ctx, cancel := inTime(ctx)
	defer cancel()
	var t Tick
	if s.Time.Truncate(lookEvery).Equal(s.Time.Truncate(time.Minute)) {
		t.Tables, t.Why = reader.WatchStreams(ctx, h.Runner, h.Log)
		t.Why = errors.Join(t.Why, h.countLetters(ctx, &t))
	}
	err := h.Runner.Start(ctx) // unless this program is not the one that derives
	if err == nil {
		w := work{}
		catching, stop := context.WithTimeout(ctx, catchUpTime)
		n, late := document.CatchUp(catching, h.Runner)
		if stop(); n > 0 && errors.Is(late, context.DeadlineExceeded) && ctx.Err() == nil {
			late = nil // the next minute goes on
		}
		err = errors.Join(late, h.workOnJobs(ctx, &w), w.waits)
	}
	t.Why = errors.Join(t.Why, err)
	if h.Ticked != nil {
		h.Ticked(t)
	}
	return []byte("{}"), t.Why
}

// countLetters counts the open dead letters.
func (h *Handler) countLetters(ctx context.Context, t *Tick) error {
	t.Letters = map[string]int{}
	n, enough := 0, errors.New("there are more")
	err := h.Runner.EachDeadLetter(ctx, func(d deadletter.Letter) error {
		t.Letters[d.Row.Table]++
		if n++; n == mostLetters {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		err = nil
	}
	t.Counted = err == nil
	return err
}

// watched says of a table's stream whether a program has read or watched it before, as an event asked at a time.
type watched struct {
	asked time.Time
	is    bool
}

// lookIfOverdue looks at the streams before an event is applied if no program has for almost a day. It asks once an hour.
func (h *Handler) lookIfOverdue(ctx context.Context, table string) error {
	now := h.Runner.Now()
	if of, asked := h.watched[table]; asked && now.Sub(of.asked).Abs() < overdueEvery {
		return nil
	}
	since, overdue, err := reader.CompleteUntil(ctx, h.Runner, table)
	if err == nil && overdue {
		_, err = reader.WatchStreams(ctx, h.Runner, h.Log)
	}
	if err == nil {
		h.watched[table] = watched{now, !since.IsZero()}
	}
	return err
}
