package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/owntable"
	"weir/internal/store"
)

// ErrBehind says that a record of a feed is older than those that an earlier command replayed.
var ErrBehind = errors.New("replay all files of a feed in one command, into tables or a directory of their own")

// FeedTime is up to when the records of a model's feeds were replayed, in µs.
type FeedTime struct{ before, newest int64 }

// Begin reads up to when earlier commands have replayed feeds.
func (r *Replay) Begin(ctx context.Context) error {
	r.Feeds = &FeedTime{}
	rows, err := r.readRows(ctx, []store.Ref{owntable.Forgotten(r.Model.Tables[0].Name)})
	if err != nil {
		return err
	}
	r.Feeds.before = owntable.ReplayedOf(rows[0]).Fed
	return nil
}

// End notes it of this command. A command that was broken off notes nothing: it goes on where it was.
func (r *Replay) End(ctx context.Context) error {
	if r.Feeds.newest <= r.Feeds.before {
		return nil
	}
	return r.writeAll(ctx, []store.Write{owntable.SetReplayed(r.Model.Tables[0].Name, owntable.Replayed{Fed: r.Feeds.newest})})
}

// checkFeedOrder takes a change that a feed sends, or whose row subscribes. It is an error if it is older than one that an earlier command
// has sent, since nothing says who followed then. Within a second the order of records with sequence numbers is free.
func (r *Replay) checkFeedOrder(e *entry) error {
	if r.Feeds == nil || e.Record.Export || e.Record.Time.IsZero() || !e.applied {
		return nil
	}
	at := markFrom(&e.Record)
	if at.compare(mark{time: r.Feeds.before}) < 0 {
		return fmt.Errorf("%s: %s: it is of %s, and feeds were replayed up to %s: %w", e.Location, e.ref,
			e.Record.Time.UTC().Format(time.RFC3339), time.UnixMicro(r.Feeds.before).UTC().Format(time.RFC3339), ErrBehind)
	}
	r.Feeds.newest = max(r.Feeds.newest, at.time)
	return nil
}
