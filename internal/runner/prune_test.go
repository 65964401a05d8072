package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// TestLanesLeave says that the positions of shards that are over go out of the rows
// of ours that are written, of ledgers, sets and lists of followers, and that those
// of others stay.
func TestLanesLeave(t *testing.T) {
	for name, writes := range map[string][]string{
		"gallery": {`put gallery {"PK":"ALBUM#a","SK":"MEDIA#$i","EntityType":"AlbumMedia","albumId":"a","mediaId":"$i","addedAt":"2025-01-01T00:00:00Z"}`},
		"viewing": {`put viewing-history {"profileId":"p","sk":"IN_PROGRESS|$i","a.assetId":"$i","a.state":"IN_PROGRESS"}`},
		"watchlists": {
			`put worthwatch {"PK":"USER#u","SK":"SAVED#WATCHLIST#w","entityType":"USER_SAVED_WATCHLIST","savedAt":"2026-01-01T00:00:00Z"}`,
			`put worthwatch {"PK":"WATCHLIST#w","SK":"ITEM#MOVIE#$i","entityType":"WATCHLIST_ITEM","contentType":"MOVIE","contentId":"$i","addedAt":"2026-01-02T00:00:00Z"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := model.Load(name)
			failtest.On(t, err)
			h := newHarness(t, m)
			defer h.close()
			r := h.runner(nil)
			deliver := func(shardKey, i string) {
				from := len(h.records)
				for _, w := range writes {
					failtest.On(t, h.write(strings.ReplaceAll(w, "$i", i)))
				}
				h.pull()
				var changes []projections.Change
				for n := from; n < len(h.records); n++ {
					c, _ := projections.NewChange(h.records[n].table, &h.records[n].rec)
					changes = append(changes, c)
					h.done[n+1] = true
				}
				_, err := r.ApplyRows(t.Context(), runner.Batch{ShardKey: shardKey, Changes: changes})
				failtest.On(t, err)
			}
			for i, shardKey := range []string{"old of a run", "other of run", "new of a run"} {
				deliver(shardKey, string(rune('1'+i)))
			}
			if got := h.shardKeysOf(); !slices.Equal(got, []string{"new of a run", "old of a run", "other of run"}) {
				t.Errorf("shards %v", got)
			}
			r.MostPositions = 2
			r.Frontiers = func(_ context.Context, shardKeys []string) (out []runner.Frontier, _ error) {
				for _, key := range shardKeys {
					out = append(out, runner.Frontier{Gone: key == "old of a run" || key == "new of a run"})
				}
				return out, nil
			}
			deliver("new of a run", "4")
			if got := h.shardKeysOf(); !slices.Equal(got, []string{"new of a run", "other of run"}) {
				t.Errorf("shards %v", got)
			}
			failtest.On(t, h.settle(len(h.records)+1))
			if out := h.audit(); out != "" {
				t.Error(out)
			}
		})
	}
}

// shardKeysOf are the shards of which rows of ours have positions.
func (h *harness) shardKeysOf() (out []string) {
	for _, row := range h.scan("weir") {
		for _, a := range row {
			if shardKey, is := strings.CutPrefix(a.Name, "p:"); is && !slices.Contains(out, shardKey) {
				out = append(out, shardKey)
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestOldBatchesAreDropped says that a batch which was read too long ago applies
// nothing, by either clock: a position that would tell it for a repetition may be
// pruned.
func TestOldBatchesAreDropped(t *testing.T) {
	for _, name := range []string{"gallery", "viewing", "watchlists"} {
		m, err := model.Load(name)
		failtest.On(t, err)
		h := newHarness(t, m)
		defer h.close()
		for _, w := range []string{
			`put gallery {"PK":"ALBUM#a","SK":"MEDIA#1","EntityType":"AlbumMedia","albumId":"a","mediaId":"1","addedAt":"2025-01-01T00:00:00Z"}`,
			`put viewing-history {"profileId":"p","sk":"IN_PROGRESS|1","a.assetId":"1","a.state":"IN_PROGRESS"}`,
			`put worthwatch {"PK":"WATCHLIST#w","SK":"ITEM#MOVIE#1","entityType":"WATCHLIST_ITEM","contentType":"MOVIE","contentId":"1","addedAt":"2026-01-02T00:00:00Z"}`,
		} {
			if m.Table(strings.Fields(w)[1]) != nil {
				failtest.On(t, h.write(w))
			}
		}
		h.pull()
		var changes []projections.Change
		for i := range h.records {
			c, _ := projections.NewChange(h.records[i].table, &h.records[i].rec)
			changes = append(changes, c)
		}
		r, now := h.runner(nil), time.Now()
		r.Mono = func() time.Time { return now.Add(16 * time.Minute) }
		if _, err := r.ApplyRows(t.Context(), runner.Batch{ShardKey: "l", Changes: changes, Read: now}); err == nil {
			t.Errorf("%s: a batch of 16 minutes ago was applied", name)
		}
		for _, row := range h.scan("weir") {
			if k := row.Get("k").Text(); strings.HasPrefix(k, "ledger|") || strings.HasPrefix(k, "set|") || strings.HasPrefix(k, "feed|") {
				t.Errorf("%s: %s was written", name, k)
			}
		}
		slept := r.Mono // the clock that nobody sets stood still, the other one did not
		r.Mono = func() time.Time { return slept().Round(0) }
		if _, err := r.ApplyRows(t.Context(), runner.Batch{ShardKey: "l", Changes: changes, Read: now}); err == nil {
			t.Errorf("%s: a batch from before a sleep was applied", name)
		}
		r.Mono = nil
		_, err = r.ApplyRows(t.Context(), runner.Batch{ShardKey: "l", Changes: changes, Read: time.Now()})
		failtest.On(t, err)
	}
}

// TestForgetShard: the checkpoint of a shard is deleted, unless another process has moved it.
func TestForgetShard(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	h := newHarness(t, m)
	defer h.close()
	r := h.runner(nil)
	ctx := t.Context()
	checkpoint := owntable.Checkpoint("gallery", "gallery", "s")
	write := func(ops ...store.Op) {
		_, err := h.store.Write(ctx, []store.Write{{Ref: checkpoint.Ref, Ops: ops}})
		failtest.On(t, err)
	}
	write(store.Op{Kind: store.Set, Attr: "p", Value: events.PositionOf(7).Value()}, store.Op{Kind: store.Add, Attr: "applied", Value: value.OfInt(5)})
	if err := reader.ForgetShard(ctx, r, "gallery", "s"); !errors.Is(err, store.ErrCondition) {
		t.Errorf("a shard that is not finished: %v", err)
	}
	write(store.Op{Kind: store.Set, Attr: "d", Value: value.OfBool(true)})
	moved := &interrupted{Store: h.store, before: func() {
		write(store.Op{Kind: store.Set, Attr: "p", Value: events.PositionOf(8).Value()}, store.Op{Kind: store.Add, Attr: "applied", Value: value.OfInt(1)})
	}}
	r.Store = moved
	if err := reader.ForgetShard(ctx, r, "gallery", "s"); !errors.Is(err, store.ErrCondition) {
		t.Errorf("a checkpoint that was moved meanwhile: %v", err)
	}
	for range 2 { // the second time there is nothing left
		failtest.On(t, reader.ForgetShard(ctx, r, "gallery", "s"))
	}
	if rows, err := h.store.Get(ctx, []store.Ref{checkpoint.Ref}); err != nil || rows[0] != nil {
		t.Errorf("%v, %v", rows, err)
	}
}

// interrupted is a store in which something happens before the first transaction.
type interrupted struct {
	store.Store
	before func()
}

func (i *interrupted) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if f := i.before; f != nil {
		i.before = nil
		f()
	}
	return i.Store.Write(ctx, ws)
}
