package storetest

import (
	"context"
	"errors"

	"weir/internal/store"
)

var lifeCases = []testCase{
	{"a cancelled context does nothing", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.ctx())
		cancel()
		if _, err := f.Get(ctx, []store.Ref{ref("a", "b")}); !errors.Is(err, context.Canceled) {
			f.Errorf("Get: %v", err)
		}
		if out, err := f.Write(ctx, []store.Write{put("a", "b")}); !errors.Is(err, context.Canceled) && (len(out) != 1 || !errors.Is(out[0].Err, context.Canceled)) {
			f.Errorf("Write: %v", err)
		}
		if err := f.Transact(ctx, []store.Write{put("a", "b")}); !errors.Is(err, context.Canceled) {
			f.Errorf("Transact: %v", err)
		}
		if _, err := f.Query(ctx, store.Query{Table: rows}); !errors.Is(err, context.Canceled) {
			f.Errorf("Query: %v", err)
		}
		f.is(ref("a", "b"), nil)
	}},
	{"sync is always possible", func(f *fixture) {
		for range 2 {
			if err := f.Sync(f.ctx()); err != nil {
				f.Fatal(err)
			}
			f.do(put("a", "b", "n", 1))
		}
	}},
	{"a closed store says so", func(f *fixture) {
		f.do(put("a", "b"))
		if err := f.Close(); err != nil {
			f.Fatal(err)
		}
		for name, call := range map[string]func() error{
			"Get":      func() error { _, err := f.Get(f.ctx(), []store.Ref{ref("a", "b")}); return err },
			"Query":    func() error { _, err := f.Query(f.ctx(), store.Query{Table: rows}); return err },
			"Write":    func() error { _, err := f.Write(f.ctx(), []store.Write{put("a", "c")}); return err },
			"Transact": func() error { return f.Transact(f.ctx(), []store.Write{put("a", "c")}) },
			"Shards":   func() error { _, err := f.Shards(f.ctx(), rows); return err },
			"Sync":     func() error { return f.Sync(f.ctx()) },
		} {
			if err := call(); !errors.Is(err, store.ErrClosed) {
				f.Errorf("%s: %v", name, err)
			}
		}
	}},
}
