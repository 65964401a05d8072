package runner

import (
	"context"
	"errors"
	"time"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
)

// A process applies the search generation of its own model only. While processes with two
// models run, in a rolling deploy, each of them holds the leases of some shards, and the
// other's generation would stand still there. So a process with the other generation reads
// such a shard aside: from the stream, without the lease, for the search group only. It may,
// because documents take the newest position from any process, and because a checkpoint
// moves only from where the page was read.
//
// One of many processes does so. All of them see that the checkpoint stands still while that
// of the rows is ahead. The first that moves it goes on; the others see it move. If it stops,
// the checkpoint stands still again.

// asidePatience is how long a checkpoint must stand still.
const asidePatience = 5 * time.Second

// aside is what a consumer knows of a shard that a process with another search generation
// reads. nil knows of none.
type aside struct {
	at     events.Position // of our group, when it was last read
	since  time.Time       // since when the checkpoint has this position, by our reading
	ours   bool            // this process reads it
	behind bool            // there is something to apply
}

// reads reports whether this process is to read the shard.
func (a *aside) reads() bool { return a != nil && a.ours && a.behind }

// lookAside compares our checkpoint of a shard with that of the rows.
func (c *consumer) lookAside(ctx context.Context, shared Shared, at place, is owntable.CheckpointRow) error {
	if c.group == GroupRows || is.Done || !shared.Beside() {
		delete(c.asides, at)
		return nil
	}
	rows, known, err := c.Runner.saved(ctx, owntable.Checkpoint(c.Runner.Model.Name, GroupRows, at.table, at.shard).Ref)
	if err != nil {
		return err
	}
	now, a := c.Runner.Moment(), c.asides[at]
	if a == nil || !a.ours && a.at.Compare(is.At) != 0 {
		a = &aside{since: now}
		c.asides[at] = a
	}
	a.at = is.At
	if a.behind = known && (is.At.Compare(rows.At) < 0 || rows.Done); !a.behind {
		a.since = now
	}
	a.ours = a.ours || now.Sub(a.since) >= asidePatience
	return nil
}

// readAside reads a page from the stream itself. What the stream no longer has is found by
// the process that gets the lease, which names the gap.
func (c *consumer) readAside(ctx context.Context, a *aside, at place, after events.Position) (store.Records, error) {
	page, err := c.Runner.Store.Read(ctx, at.table, at.shard, after, c.pace.records)
	if errors.Is(err, store.ErrTrimmed) || errors.Is(err, store.ErrNoTable) {
		delete(c.asides, at)
		return page, ErrElsewhere
	}
	if len(page.Records) == 0 {
		a.behind = false // until the next look
	}
	return page, err
}
