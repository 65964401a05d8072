package reader

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/runner"
)

// A shard of which something was read has a position, and the stream says whether it still has the record after it. A shard of
// which nothing was read begins where the stream begins: that its first records have expired, nothing says. They cannot have, if
// all that was written until a time within the last 24 hours is known to be applied. That time is noted with the
// table, by a process that lists and reads all shards, and by a look at the stream where functions read (WatchStreams).

const (
	// unseenFor is how long nothing may be known before first records may have expired: 24 hours are certain
	// (Amazon DynamoDB, "Change data capture for DynamoDB Streams"), less than the margin of a late note.
	unseenFor = 23 * time.Hour
	// seenEvery is how often a process notes that shards are read.
	seenEvery = time.Hour
)

// noteSeen notes that this process lists the shards of a table, and reads those that it has. If none has for too long, and there
// are shards of which nothing was read, it keeps a dead letter first: after a crash in between, the next process keeps the same one.
func (r *Leased) noteSeen(ctx context.Context, table string, v *survey) error {
	now := r.run.Now()
	if at, known := r.seen[table]; known && now.Sub(at).Abs() < seenEvery {
		return nil
	}
	ref, kept, err := ReadStream(ctx, r.run, table)
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
	if _, err = r.run.WriteIf(ctx, kept.NoteCompleteUntil(ref, now, 0)); err == nil {
		r.seen[table] = now
	}
	return err
}

// neverRead returns the listed shards of a table of which nothing was read.
func (v *survey) neverRead(table string) (out []string) {
	for _, s := range v.listed[table] {
		if is := v.begun[shardName{table, s.ID}]; !is.read && !is.done {
			out = append(out, s.ID)
		}
	}
	return out
}

// cannotRead reports whether this process cannot take or read one of some shards.
func (r *Leased) cannotRead(table string, shards []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(shards, func(id string) bool {
		p := shardName{table, id}
		return r.still[fault{stepApply, p}] != ""
	})
}

// shardsNamed is how many shards a dead letter names.
const shardsNamed = 10

// maybeGap is the dead letter of shards whose first records may have expired: those of one time from which on nothing is known are
// one letter, also of several programs.
func maybeGap(table string, shards []string, from, to time.Time) deadletter.Letter {
	named := strings.Join(shards[:min(len(shards), shardsNamed)], ", ")
	if n := len(shards) - shardsNamed; n > 0 {
		named += fmt.Sprintf(" and %d more", n)
	}
	if len(shards) == 0 {
		named = "its shards, which cannot be read now,"
	}
	return deadletter.Letter{
		Kind: deadletter.Gap, Target: "stream of " + table, Position: events.Position{}, Time: to.UTC(),
		Source: "from " + from.UTC().Format(time.RFC3339) + " on",
		Reason: fmt.Sprintf(
			"records may be missing: for %[2]d hours, from %[3]s on, no process and no function is known to have read all shards of %[1]s, and a stream keeps its records for 24. Nothing shows that the end of %[4]s was read, or the first records, which may have expired. Run projector verify MODEL, which says what is wrong, or projector build MODEL --again (docs/guide/operations.md, After a gap)",
			table, int(to.Sub(from).Hours()), from.UTC().Format(time.RFC3339), named),
	}
}

// Watched is the findings of a look at one table.
type Watched struct {
	Table string
	// Lag is how old the oldest record is that is not applied, 24 hours if some have expired; Known is whether all shards show it.
	Lag   time.Duration
	Known bool
}

// WatchStreams looks at the streams of a model that functions read. A function sees only the records that Lambda hands to it, so it
// cannot know that its event source mapping is disabled, or is denied the stream, or has lost records; the shards and their checkpoints
// show it.
//
// It looks at all tables, and keeps a dead letter for records that have expired before they were applied, and for shards that
// may have lost some, as nothing is known of them for 23 hours: the same letter as long as that lasts. Then it notes until when
// all is applied. Any number of programs may look at the same time. A table at which it cannot look is not known, and the log
// says why; the error is that of weir's own table.
func WatchStreams(ctx context.Context, run *runner.Runner, log *slog.Logger) (all []Watched, err error) {
	places, err := ReadPlaces(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, t := range run.Model.Tables {
		is, err := watchTable(ctx, run, log, t.Name, places)
		if err != nil {
			return all, err
		}
		all = append(all, is)
	}
	return all, nil
}

// watchTable looks at one table.
func watchTable(ctx context.Context, run *runner.Runner, log *slog.Logger, table string, places []Place) (is Watched, err error) {
	s, err := LookAt(ctx, run, table, places)
	if err != nil {
		return is, err
	}
	is.Table, is.Known = table, s.Seconds != nil || len(s.trimmed) > 0
	for _, at := range s.trimmed {
		is.Lag = retention
		if err := keepGap(ctx, run, log, deadletter.ShardGap(table, at.Shard, at.At, "the stream has forgotten records after it that are not applied", run.Now())); err != nil {
			return is, err
		}
	}
	switch {
	case !is.Known:
		log.Warn("how far a stream is applied is not known", "model", run.Model.Name, "table", table, "error", s.Unknown)
	case s.Seconds != nil:
		is.Lag = time.Duration(*s.Seconds * float64(time.Second))
	}
	ref, kept, err := ReadStream(ctx, run, table)
	if err != nil {
		return is, err
	}
	now := run.Now()
	if !kept.Seen.IsZero() && now.Sub(kept.Seen) >= unseenFor && (len(s.unread) > 0 || !is.Known) {
		if err := keepGap(ctx, run, log, maybeGap(table, s.unread, kept.Seen, now)); err != nil {
			return is, err
		}
	}
	upTo := now.Add(-is.Lag)
	if s.assumed { // a record that was not seen is not older than its shard
		upTo = now.Add(-max(is.Lag, openFor))
	}
	if !is.Known || is.Lag >= old || upTo.Before(kept.Seen) || !slices.ContainsFunc(places, func(p Place) bool { return p.Table == table }) {
		upTo = kept.Seen // or nothing has read it yet
	}
	saw := kept.NoteCompleteUntil(ref, upTo, s.Open)
	if len(saw.Ops) == 0 {
		return is, nil
	}
	_, err = run.WriteIf(ctx, saw)
	return is, err
}

// retention is how long a stream keeps a record.
const retention = 24 * time.Hour

// CompleteUntil returns until when nothing of a table can be lost, zero if no program has read or watched its stream yet; and whether that
// is so long ago that a program has to look. It reads one row.
func CompleteUntil(ctx context.Context, run *runner.Runner, table string) (at time.Time, overdue bool, err error) {
	_, kept, err := ReadStream(ctx, run, table)
	return kept.Seen, !kept.Seen.IsZero() && run.Now().Sub(kept.Seen) >= unseenFor-time.Hour, err
}
