package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
)

// A shard of which something was read has a position, and the stream says whether it still has what comes after it. A shard of
// which nothing was read begins where the stream begins: that its first records have expired, nothing says. They cannot have, if
// a process has listed and read the shards within the time for which a stream keeps its records. So processes note when they do.

const (
	// unseenFor is how long shards may go unread before first records may have expired: 24 hours are certain
	// (Amazon DynamoDB, "Change data capture for DynamoDB Streams"), less than what is noted late.
	unseenFor = 23 * time.Hour
	// seenEvery is how often it is noted that shards are read.
	seenEvery = time.Hour
)

// noteSeen notes that this process lists the shards of a table, and reads those that it has. If none has for too long, and there
// are shards of which nothing was read, it keeps a dead letter first: after a crash in between, the next process keeps the same one.
func (r *Reader) noteSeen(ctx context.Context, table string, v *survey) error {
	now := r.run.Now()
	if at, known := r.seen[table]; known && now.Sub(at).Abs() < seenEvery {
		return nil
	}
	ref, kept, err := r.run.StreamKept(ctx, table)
	if err != nil {
		return err
	}
	switch unread := v.neverRead(table); {
	case len(unread) == 0 || kept.Seen.IsZero():
	case now.Sub(kept.Seen) >= unseenFor:
		if err := r.keepGap(ctx, maybeGap(table, unread, kept.Seen, now)); err != nil {
			return err
		}
	case r.cannotRead(table, unread):
		return nil
	}
	out, err := r.run.Store.Write(ctx, []store.Write{kept.Saw(ref, now)})
	if err = unlessCondition(out, err); err == nil {
		r.seen[table] = now
	}
	return err
}

// neverRead returns the listed shards of a table of which no group has read anything.
func (v *survey) neverRead(table string) (out []string) {
	for _, s := range v.listed[table] {
		if is := v.begun[place{table, s.ID}]; !is.read && !is.done {
			out = append(out, s.ID)
		}
	}
	return out
}

// cannotRead reports whether this process cannot take or read one of some shards.
func (r *Reader) cannotRead(table string, shards []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(shards, func(id string) bool {
		p := place{table, id}
		return r.still[fault{runner.GroupRows, p}] != ""
	})
}

// shardsNamed is how many shards a dead letter names.
const shardsNamed = 10

// maybeGap is the dead letter of shards whose first records may have expired. It is the same whichever process makes it.
func maybeGap(table string, shards []string, from, to time.Time) runner.Dead {
	named := strings.Join(shards[:min(len(shards), shardsNamed)], ", ")
	if n := len(shards) - shardsNamed; n > 0 {
		named += fmt.Sprintf(" and %d more", n)
	}
	return runner.Dead{
		Kind: runner.DeadGap, Target: "stream of " + table, Position: events.Position{}, Time: to.UTC(),
		Source: "from " + from.UTC().Format(time.RFC3339) + " on",
		Reason: fmt.Sprintf(
			"records may be missing: for %[2]d hours, from %[3]s on, no process could list and read all shards of %[1]s, and a stream keeps its records for 24. Nothing was read before of %[4]s, whose first records may have expired. Run projector verify MODEL, which says what is wrong, or projector build MODEL --again (docs/guide/operations.md, After a gap)",
			table, int(to.Sub(from).Hours()), from.UTC().Format(time.RFC3339), named),
	}
}
