package lambda

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// By shard, a ledger holds a position for each shard that it counts
// from, and a stream makes new shards for ever. So that positions can be removed from
// ledgers, one row of the model (owntable.OpenShardsRow) lists the shards from which records may
// still come.
//
// An invocation that applies a shard for the first time enters the shard in the row. An
// invocation that lists shards enters all shards that exist. A shard is removed once its
// shard has been missing for 25 hours, and from two lists: DynamoDB lists a shard for a
// day after its end, and no record of it comes after that. So a shard that a ledger has
// and the row has not is over.
const (
	listEvery = time.Hour
	shardLife = 25 * time.Hour
)

// openShards is what a process knows of that row.
type openShards struct {
	row    owntable.OpenShardsRow
	listed int64           // when this process last checked whether to list shards
	over   map[string]bool // shards found to be over in this invocation
}

func (l *openShards) missing(key string) (since int64, known bool) {
	since, known = l.row.Missing[key]
	return since, known
}

func (h *Handler) openRef() store.Ref { return owntable.OpenShards(h.Runner.Model.Name) }

// enter makes sure that the row has the shard. It also lists shards when that is due.
func (h *Handler) enter(ctx context.Context, key string) error {
	h.open.over = map[string]bool{}
	if since, known := h.open.missing(key); !known || since != 0 {
		if err := h.enterShard(ctx, key); err != nil {
			return err
		}
	}
	now := h.Runner.Now().Unix()
	if now-h.open.listed < int64(listEvery/time.Second) {
		return nil
	}
	h.open.listed = now
	if err := h.list(ctx, now); err != nil && ctx.Err() == nil {
		slog.Warn("listing shards; until that can be done, positions of shards that are over stay in ledgers", "error", err)
	}
	return ctx.Err()
}

// enterShard enters a shard. If the row has no room for it, no invocation may trust the
// row until shards have been listed twice again.
func (h *Handler) enterShard(ctx context.Context, key string) error {
	row, err := h.update(ctx, owntable.EnterShard(h.openRef(), key))
	if errors.Is(err, store.ErrRefused) {
		row, err = h.update(ctx, owntable.DoubtOpenShards(h.openRef()))
	}
	if errors.Is(err, store.ErrRefused) {
		err = errors.Join(err, h.readOpen(ctx))
	}
	if err == nil {
		h.open.row, _ = owntable.DecodeOpenShards(row) // list reports a row that cannot be read
	}
	return err
}

func (h *Handler) update(ctx context.Context, w store.Write) (value.Item, error) {
	w.Repeatable = true
	out, err := h.Runner.Store.Write(ctx, []store.Write{w})
	if err != nil {
		return nil, err
	}
	return out[0].Row, out[0].Err
}

// list lists the shards of all streams of the model, unless another invocation has done
// so within the hour, and writes the row that results.
func (h *Handler) list(ctx context.Context, now int64) error {
	if err := h.readOpen(ctx); err != nil {
		return err
	}
	if now-h.open.row.Listed < int64(listEvery/time.Second) {
		return nil
	}
	there := map[string]bool{}
	for _, t := range h.Runner.Model.Tables {
		shards, err := h.Runner.Store.Shards(ctx, t.Name)
		if err != nil {
			return err
		}
		for _, s := range shards {
			there[runner.ShardKey(t.Name, s.ID)] = true
		}
	}
	w := h.open.row.Becomes(h.openRef(), listed(h.open.row, there, now))
	out, err := h.Runner.Store.Write(ctx, []store.Write{w})
	if err == nil {
		err = out[0].Err
	}
	if errors.Is(err, store.ErrCondition) { // another invocation wrote the row; try next time
		return nil
	}
	if err == nil {
		h.open.row, err = owntable.DecodeOpenShards(w.Put)
	}
	return err
}

// listed is the row after shards were listed. Listed shards are entered. Other
// shards are missing from now on; those missing for long enough are removed.
func listed(row owntable.OpenShardsRow, there map[string]bool, now int64) owntable.OpenShardsRow {
	next := owntable.OpenShardsRow{Missing: map[string]int64{}, Listed: now, Lists: row.Lists + 1}
	for key := range there {
		next.Missing[key] = 0
	}
	for key, since := range row.Missing {
		switch {
		case there[key]:
		case since == 0:
			next.Missing[key] = now
		case now-since < int64(shardLife/time.Second):
			next.Missing[key] = since
		}
	}
	return next
}

func (h *Handler) readOpen(ctx context.Context) error {
	row, err := h.Runner.GetRow(ctx, h.openRef())
	if err == nil {
		h.open.row, err = owntable.DecodeOpenShards(row)
	}
	return err
}

// retired reports whether a shard that was found in a ledger is over. If the shard is not
// known here, retired reads the row again, because the invocation that wrote the ledger
// entered the shard before. If the row cannot be decoded, no shard is over; list reports
// that.
func (h *Handler) retired(ctx context.Context, key string) (bool, error) {
	if h.open.over[key] {
		return true, nil
	}
	if _, known := h.open.missing(key); known {
		return false, nil
	}
	if err := h.readOpen(ctx); err != nil && !errors.Is(err, owntable.ErrRow) {
		return false, err
	}
	_, known := h.open.missing(key)
	if known || h.open.row.Lists < 2 {
		return false, nil
	}
	h.open.over[key] = true
	return true, nil
}
