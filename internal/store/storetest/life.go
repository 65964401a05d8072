package storetest

import (
	"context"
	"errors"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/store"
)

var lifeCases = []testCase{
	{"sync is always possible", func(f *fixture) {
		for range 2 {
			failtest.On(f, f.Sync(f.ctx()))
			f.do(put("a", "b", "n", 1))
		}
	}},
	{"a closed store says so", func(f *fixture) {
		f.do(put("a", "b"))
		shards, err := f.Shards(f.ctx(), rows)
		failtest.On(f, err)
		for range 2 {
			failtest.On(f, f.Close())
		}
		for name, call := range f.calls(f.ctx(), shards[0].ID) {
			if err := call(); !errors.Is(err, store.ErrClosed) {
				f.Errorf("%s: %v", name, err)
			}
		}
		if _, err := f.Changed(rows); !errors.Is(err, store.ErrClosed) {
			f.Errorf("Changed: %v", err)
		}
	}},
	{"each call ends with its context", func(f *fixture) {
		shards, err := f.Shards(f.ctx(), rows)
		failtest.On(f, err)
		ctx, cancel := context.WithCancel(f.ctx())
		cancel()
		for name, call := range f.calls(ctx, shards[0].ID) {
			if err := call(); !errors.Is(err, context.Canceled) {
				f.Errorf("%s: %v", name, err)
			}
		}
		f.is(ref("a", "c"), nil)
	}},
}

// calls are all calls that a context can end.
func (f *fixture) calls(ctx context.Context, shard string) map[string]func() error {
	return map[string]func() error{
		"Get":   func() error { _, err := f.Get(ctx, []store.Ref{ref("a", "b")}); return err },
		"Query": func() error { _, err := f.Query(ctx, store.Query{Table: rows}); return err },
		"Write": func() error {
			out, err := f.Write(ctx, []store.Write{put("a", "c")})
			if err == nil {
				err = out[0].Err
			}
			return err
		},
		"Transact":  func() error { return f.Transact(ctx, []store.Write{put("a", "c")}) },
		"Shards":    func() error { _, err := f.Shards(ctx, rows); return err },
		"Read":      func() error { _, err := f.Read(ctx, rows, shard, events.Position{}, 1); return err },
		"Trim":      func() error { return f.Trim(ctx, rows, shard, events.Position{}) },
		"Horizon":   func() error { _, err := f.Horizon(ctx, rows, shard); return err },
		"Streams":   func() error { _, err := f.Streams(ctx, rows); return err },
		"Continues": func() error { _, err := f.Continues(ctx, rows, "1", "2"); return err },
		"Identity":  func() error { _, err := f.Identity(ctx, rows); return err },
		"Sweep":     func() error { _, err := f.Sweep(ctx, time.Now(), 1, nil); return err },
		"Sync":      func() error { return f.Sync(ctx) },
	}
}
