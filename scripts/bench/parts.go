package main

import (
	"fmt"

	"weir/internal/events"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/system"
)

// parts measures each stage of a replay without search by itself, one after the other. In a
// replay they overlap.
func (b *bench) parts() error {
	rec, err := b.recording(pick(b, 30_000, 100_000))
	if err != nil {
		return err
	}
	costs := map[string][]cost{}
	names := []string{"decoding alone", "core rows alone", "what comes of them alone"}
	for range 3 {
		r, err := b.open(rec.model, system.Options{NoSearch: true})
		if err != nil {
			return err
		}
		for i, part := range []func() error{
			func() error { return b.decodeFile(rec) },
			func() error { return b.writeCore(r, rec) },
			func() error { return b.follow(r) },
		} {
			c, err := measured(part)
			if err != nil {
				return err
			}
			costs[names[i]] = append(costs[names[i]], c)
		}
		if err := r.remove(); err != nil {
			return err
		}
	}
	for _, name := range names {
		c := costs[name]
		b.table.add(line{what: name, figure: fmt.Sprintf("%.1f µs a record, %.1f cpu µs", 1e6/rate(rec.records, c), cpuEach(rec.records, c))})
	}
	return nil
}

func (b *bench) decodeFile(rec recording) error {
	files, err := events.Open(rec.path)
	if err != nil {
		return err
	}
	for _, err := range files.Batches(b.ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

// writeCore decodes the recording and writes its rows. Nothing is derived meanwhile.
func (b *bench) writeCore(r *running, rec recording) error {
	return writeAll(b.ctx, &replay.Replay{Model: r.part.Model, Store: r.Store, Runner: r.part.Runner}, rec.path)
}

// follow applies the records in the streams.
func (b *bench) follow(r *running) error {
	f := runner.Follower{Runner: r.part.Runner}
	done := make(chan struct{})
	close(done)
	return f.CatchUp(b.ctx, done)
}
