package projectorcli

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/cli"
	"weir/internal/memory"
	"weir/internal/replay"
	"weir/internal/system"
)

// window is how much of the memory the rows of a window get: so many MB of every 256.
const window = 32 * memory.MB

// pieces is how many times as much the records of a window may take on disk, where they are sorted, and piecesIfRoomy where
// there is room: a record of a later window costs more, since it reads and writes again the rows that have landed.
const pieces, piecesIfRoomy = 64, 512

// worthSaying is how many bytes of recordings take so long that it is said why they are not
// replayed in bulk.
const worthSaying = 4 << 20

// inBulk replays the inputs in bulk if that is possible. It returns how many entries are in
// the store, and whether these are all; if not, the others are left to the caller.
// After an error, the records that had been read are landed, and landed counts them, so a second run finds those rows done.
func (c *replayCommand) inBulk(p *program, s *system.System, a *replay.Arrangement, r *replay.Replay, bad *talk) (landed int, whole bool, err error) {
	b, why, err := c.bulk(p.ctx, s, r)
	if err != nil {
		return 0, false, err
	}
	if why != "" {
		if a.Len() >= worthSaying {
			fmt.Fprintf(p.stderr, "not in bulk: %s\n", why)
		}
		return 0, false, nil
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	reading := cli.New(p.stderr, "records in bulk")
	defer reading.End()
	bad.out = reading
	var records int64
	for arranged, failed := range a.Batches() {
		if err = failed; err == nil {
			err = b.Batch(p.ctx, arranged.Entries, arranged.Table)
		}
		if err == nil {
			err = p.ctx.Err()
		}
		if err != nil {
			break
		}
		records += int64(len(arranged.Entries))
		reading.Set(records, 0)
	}
	if !errors.Is(err, replay.ErrLive) && p.ctx.Err() == nil {
		if last := b.Land(p.ctx); last != nil { // the records before the one that cannot be read
			err = last
		}
	}
	if errors.Is(err, replay.ErrLive) {
		fmt.Fprintf(reading, "from record %d on not in bulk: a record leads to a dead letter\n", b.Landed()+1)
		return b.Landed(), false, nil
	}
	return b.Landed(), true, err
}

// bulk returns the reason why the inputs cannot be replayed in bulk, or else the loader that does it.
// It writes nothing. why is a phrase for people; err means that it could not be found out.
func (c *replayCommand) bulk(ctx context.Context, s *system.System, r *replay.Replay) (b *replay.Bulk, why string, err error) {
	if c.Bulk == "never" {
		return nil, "--bulk=never", nil
	}
	if c.shared() {
		return nil, "the rows are not in a directory", nil
	}
	searched, err := s.Searched(ctx, s.Models[0])
	if err != nil {
		return nil, "", err
	}
	if searched {
		return nil, "the search indexes have documents, which follow the stream; --no-search leaves them to be made again", nil
	}
	memory := c.Memory.Share(window)
	return replay.New(ctx, r, replay.Size{Memory: int(memory), Disk: pieces * memory, Roomy: piecesIfRoomy * memory})
}
