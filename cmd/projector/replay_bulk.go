package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"weir/internal/bulk"
	"weir/internal/events"
	"weir/internal/memory"
	"weir/internal/progress"
	"weir/internal/replay"
	"weir/internal/system"
)

// window is how much of the memory the rows of a window get: so many MB of every 256.
const window = 32 * memory.MB

// pieces is how many times as much the records of a window may take on disk, where they are sorted, and piecesIfRoomy where
// there is room: a record of a later window costs more, since it reads and writes again what has landed.
const pieces, piecesIfRoomy = 64, 512

// worthSaying is how many bytes of recordings take so long that it is said why they are not
// replayed in bulk.
const worthSaying = 4 << 20

// sizeOf is the size of the inputs' files.
// What cannot be looked up counts as nothing.
func sizeOf(inputs []input) (n int64) {
	for _, in := range inputs {
		for _, path := range in.paths {
			if info, err := os.Stat(path); err == nil {
				n += info.Size()
			}
		}
	}
	return n
}

// inBulk replays the inputs in bulk if that is possible. It returns how many entries are in
// the store, and whether these are all; if not, the others are left to the caller.
// After an error, what had been read is landed, and landed counts it, so a second run finds those rows done.
func (c *replayCommand) inBulk(p *program, s *system.System, inputs []input, r *replay.Replay, gaps, bad *talk) (landed int, whole bool, err error) {
	b, why, err := c.bulk(p.ctx, s, inputs, r)
	if err != nil {
		return 0, false, err
	}
	if why != "" {
		if sizeOf(inputs) >= worthSaying {
			fmt.Fprintf(p.stderr, "not in bulk: %s\n", why)
		}
		return 0, false, nil
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	reading := progress.New(p.stderr, "records in bulk")
	defer reading.End()
	gaps.out, bad.out = reading, reading
	next := func(entries []events.Entry, table string) error { return b.Batch(p.ctx, entries, table) }
	err = eachBatch(p.ctx, reading, inputs, &r.Names, next)
	if !errors.Is(err, bulk.ErrLive) && p.ctx.Err() == nil {
		if last := b.Land(p.ctx); last != nil { // what was read before what cannot be read
			err = last
		}
	}
	if errors.Is(err, bulk.ErrLive) {
		fmt.Fprintf(reading, "from record %d on not in bulk: a record leads to a dead letter\n", b.Landed()+1)
		return b.Landed(), false, nil
	}
	return b.Landed(), true, err
}

// bulk returns the reason why the inputs cannot be replayed in bulk, or else what does it.
// It writes nothing. why is a phrase for people; err means that it could not be found out.
func (c *replayCommand) bulk(ctx context.Context, s *system.System, inputs []input, r *replay.Replay) (b *bulk.Bulk, why string, err error) {
	if c.Bulk == "never" {
		return nil, "--bulk=never", nil
	}
	for _, in := range inputs {
		for _, path := range in.paths {
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
				return nil, path + " cannot be read twice", nil
			}
		}
	}
	if c.shared() {
		return nil, "the rows are not in a directory", nil
	}
	searched, err := s.Searched(ctx, r.Model)
	if err != nil {
		return nil, "", err
	}
	if searched {
		return nil, "the search indexes have documents, which follow the stream; --no-search leaves them to be made again", nil
	}
	memory := c.Memory.Share(window)
	return bulk.New(ctx, r, bulk.Size{Memory: int(memory), Disk: pieces * memory, Roomy: piecesIfRoomy * memory})
}
