package lambda

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir/internal/book"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// By shard, a ledger (`book` in the code) holds a position for each lane that it counts
// from, and a stream makes new shards for ever. So that positions can be removed from
// ledgers, one row of the model (book.LanesRow) lists the lanes from which records may
// still come.
//
// An invocation that applies a lane for the first time enters the lane in the row. An
// invocation that lists shards enters all shards that exist. A lane is removed once its
// shard has been missing for 25 hours, and from two lists: DynamoDB lists a shard for a
// day after its end, and no record of it comes after that. So a lane that a ledger has
// and the row has not is over.
const (
	listEvery = time.Hour
	laneLife  = 25 * time.Hour
)

// lanes is what a process knows of that row.
type lanes struct {
	row    book.LanesRow
	listed int64           // when this process last checked whether to list shards
	over   map[string]bool // lanes found to be over in this invocation
}

func (l *lanes) missing(lane string) (since int64, known bool) {
	since, known = l.row.Missing[lane]
	return since, known
}

func (h *Handler) lanesRef() store.Ref { return book.Lanes(h.Runner.Model.Name) }

// enter makes sure that the row has the lane. It also lists shards when that is due.
func (h *Handler) enter(ctx context.Context, lane string) error {
	h.lanes.over = map[string]bool{}
	if since, known := h.lanes.missing(lane); !known || since != 0 {
		if err := h.enterLane(ctx, lane); err != nil {
			return err
		}
	}
	now := h.Runner.Now().Unix()
	if now-h.lanes.listed < int64(listEvery/time.Second) {
		return nil
	}
	h.lanes.listed = now
	if err := h.list(ctx, now); err != nil && ctx.Err() == nil {
		slog.Warn("listing shards; until that can be done, positions of shards that are over stay in books", "error", err)
	}
	return ctx.Err()
}

// enterLane enters a lane. If the row has no room for it, no invocation may trust the
// row until shards have been listed twice again.
func (h *Handler) enterLane(ctx context.Context, lane string) error {
	row, err := h.update(ctx, book.EnterLane(h.lanesRef(), lane))
	if errors.Is(err, store.ErrRefused) {
		row, err = h.update(ctx, book.DoubtLanes(h.lanesRef()))
	}
	if errors.Is(err, store.ErrRefused) {
		err = errors.Join(err, h.readLanes(ctx))
	}
	if err == nil {
		h.lanes.row, _ = book.DecodeLanes(row) // list reports a row that cannot be read
	}
	return err
}

func (h *Handler) update(ctx context.Context, w store.Write) (value.Item, error) {
	out, err := h.Runner.Store.Write(ctx, []store.Write{w})
	if err != nil {
		return nil, err
	}
	return out[0].Row, out[0].Err
}

// list lists the shards of all streams of the model, unless another invocation has done
// so within the hour, and writes the row that results.
func (h *Handler) list(ctx context.Context, now int64) error {
	if err := h.readLanes(ctx); err != nil {
		return err
	}
	if now-h.lanes.row.Listed < int64(listEvery/time.Second) {
		return nil
	}
	there := map[string]bool{}
	for _, t := range h.Runner.Model.Tables {
		shards, err := h.Runner.Store.Shards(ctx, t.Name)
		if err != nil {
			return err
		}
		for _, s := range shards {
			there[runner.Lane(t.Name, s.ID)] = true
		}
	}
	w := h.lanes.row.Becomes(h.lanesRef(), listed(h.lanes.row, there, now))
	out, err := h.Runner.Store.Write(ctx, []store.Write{w})
	if err == nil {
		err = out[0].Err
	}
	if errors.Is(err, store.ErrCondition) { // another invocation wrote the row; try next time
		return nil
	}
	if err == nil {
		h.lanes.row, err = book.DecodeLanes(w.Put)
	}
	return err
}

// listed is the row after shards were listed. Lanes of listed shards are entered. Other
// lanes are missing from now on; those missing for long enough are removed.
func listed(row book.LanesRow, there map[string]bool, now int64) book.LanesRow {
	next := book.LanesRow{Missing: map[string]int64{}, Listed: now, Lists: row.Lists + 1}
	for lane := range there {
		next.Missing[lane] = 0
	}
	for lane, since := range row.Missing {
		switch {
		case there[lane]:
		case since == 0:
			next.Missing[lane] = now
		case now-since < int64(laneLife/time.Second):
			next.Missing[lane] = since
		}
	}
	return next
}

func (h *Handler) readLanes(ctx context.Context) error {
	rows, err := h.Runner.Store.Get(ctx, []store.Ref{h.lanesRef()})
	if err == nil {
		h.lanes.row, err = book.DecodeLanes(rows[0])
	}
	return err
}

// retired reports whether a lane that was found in a ledger is over. If the lane is not
// known here, retired reads the row again, because the invocation that wrote the ledger
// entered the lane before. If the row cannot be decoded, no lane is over; list reports
// that.
func (h *Handler) retired(ctx context.Context, lane string) (bool, error) {
	if h.lanes.over[lane] {
		return true, nil
	}
	if _, known := h.lanes.missing(lane); known {
		return false, nil
	}
	if err := h.readLanes(ctx); err != nil && !errors.Is(err, book.ErrRow) {
		return false, err
	}
	_, known := h.lanes.missing(lane)
	if known || h.lanes.row.Lists < 2 {
		return false, nil
	}
	h.lanes.over[lane] = true
	return true, nil
}
