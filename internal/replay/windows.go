package replay

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"weir/internal/deadletter"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
)

// covered is the time that an export or the records of one file of a stream cover, in µs. A full export covers everything up to its time.
type covered struct {
	file         string // of the records
	from, to     int64
	window, full bool // of an incremental or a full export
	timed        bool // the records have no sequence numbers
}

// CheckForms refuses records whose times another command has brought in another form: a change with a sequence number, and the same
// without one, are told to be one only in one command. So are, for a history, a row of an incremental export and the changes that it is of,
// if the export was replayed before them. The command before may be repeated.
// It notes first which times this command brings. Call it before anything is written.
func (r *Replay) CheckForms(ctx context.Context, a *Arrangement) error {
	for _, t := range r.Model.Tables {
		rows, err := r.readRows(ctx, []store.Ref{owntable.Forgotten(t.Name)})
		if err != nil {
			return err
		}
		is, timed := owntable.ReplayedOf(rows[0]), a.timedAlone[t]
		to := owntable.Replayed{Placed: is.Placed, Timed: is.Timed.With(timed), Windows: slices.Clone(is.Windows)}
		var placed, within owntable.Times
		brings := fnv.New64a()
		for _, c := range a.covered[t] {
			fmt.Fprintln(brings, c.from, c.to, c.window, c.full, c.timed)
			if c.window && slices.ContainsFunc(t.Entities, keepsHistory) {
				w := owntable.Times{From: c.from, To: c.to}
				if i := slices.IndexFunc(to.Windows, func(o owntable.Times) bool { return o.Both(w) != owntable.Times{} }); i >= 0 {
					to.Windows[i] = to.Windows[i].With(w)
				} else {
					to.Windows = append(to.Windows, w)
				}
			}
			if c.window || c.full {
				continue
			}
			if !c.timed {
				placed = placed.With(owntable.Times{From: c.from, To: c.to})
			}
			for _, w := range is.Windows {
				within = cmp.Or(within, w.Both(owntable.Times{From: c.from - minute, To: c.to + minute}))
			}
		}
		to.Placed, to.Last = is.Placed.With(placed), int64(brings.Sum64()>>1)
		forms, twice := "with sequence numbers and without", cmp.Or(timed.Both(is.Placed), placed.Both(is.Timed))
		if twice == (owntable.Times{}) {
			forms, twice = "in an incremental export, of which a history has entries, and in a stream", within
		}
		if twice != (owntable.Times{}) && to.Last != is.Last {
			return fmt.Errorf("table %s has records from %s to %s in two forms, %s, in two commands: nothing tells which of them are the same change. "+
				"Replay one form only, or both in one command into a new directory", t.Name, timeText(twice.From), timeText(twice.To), forms)
		}
		if err := r.writeAll(ctx, []store.Write{owntable.SetReplayed(t.Name, to)}); err != nil {
			return err
		}
	}
	return nil
}

// CheckWindows keeps a letter for each table of which nothing is known between earlier replays and the window of an
// incremental export, deletes letters about times that are covered now, and notes up to when tables are known, and their newest full
// exports. Call it when everything is written, before Gaps.
func (r *Replay) CheckWindows(ctx context.Context, a *Arrangement) error {
	var letters []deadletter.Letter
	err := r.Runner.EachDeadLetter(ctx, func(d deadletter.Letter) error {
		if r.isWindow(&d) {
			letters = append(letters, d)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range r.Model.Tables {
		some := a.covered[t]
		if len(some) == 0 {
			continue
		}
		slices.SortFunc(some, func(a, b covered) int { return cmp.Compare(a.from, b.from) })
		for i := range letters {
			if from, to, ok := windowOf(&letters[i], t); ok {
				if err := r.coverLetter(ctx, &letters[i], t, from, to, some); err != nil {
					return err
				}
			}
		}
		if err := r.noteKnownUpTo(ctx, t, some); err != nil {
			return err
		}
	}
	return nil
}

// isWindow reports whether a letter is about a time of a table of which nothing is known.
func (r *Replay) isWindow(d *deadletter.Letter) bool {
	return slices.ContainsFunc(r.Model.Tables, func(t *model.Table) bool { _, _, is := windowOf(d, t); return is })
}

// coverLetter deletes the letter about a time that is covered, or keeps one about the rest of it.
func (r *Replay) coverLetter(ctx context.Context, d *deadletter.Letter, t *model.Table, from, to int64, some []covered) error {
	at := from
	for _, c := range some {
		if c.from <= at+minute {
			at = max(at, c.to)
		}
	}
	if at == from {
		return nil
	}
	if at+minute < to {
		if err := r.keepWindow(ctx, t, at, to); err != nil {
			return err
		}
	}
	return r.Runner.Letters().Forget(ctx, d)
}

// noteKnownUpTo notes up to when a table is known, and keeps letters about the times between.
func (r *Replay) noteKnownUpTo(ctx context.Context, t *model.Table, some []covered) error {
	rows, err := r.readRows(ctx, []store.Ref{owntable.Forgotten(t.Name)})
	if err != nil {
		return err
	}
	is := owntable.ReplayedOf(rows[0])
	known, full := is.Known, is.Full
	for _, c := range some {
		if c.window && is.Known > 0 && is.Known+minute < c.from {
			if err := r.keepWindow(ctx, t, is.Known, c.from); err != nil {
				return err
			}
		}
		if is.Known = max(is.Known, c.to); c.full {
			is.Full = max(is.Full, c.to)
		}
	}
	if is.Known == known && is.Full == full {
		return nil
	}
	return r.writeAll(ctx, []store.Write{owntable.SetReplayed(t.Name, is)})
}

// keepWindow keeps the letter about a time of which nothing is known.
func (r *Replay) keepWindow(ctx context.Context, t *model.Table, from, to int64) error {
	begin, end := timeText(from), timeText(to)
	_, err := r.Runner.Letters().Keep(ctx, deadletter.Letter{
		Kind: deadletter.Gap, Target: windowTarget(t), Source: begin + " to " + end, Time: time.UnixMicro(to).UTC(),
		Reason: fmt.Sprintf("the window of an incremental export begins at %s, and the table is known up to %s: replay an export or a stream of the time between", end, begin),
	})
	return err
}

func windowTarget(t *model.Table) string { return "table " + t.Name }

func timeText(at int64) string { return time.UnixMicro(at).UTC().Format(time.RFC3339Nano) }

// windowOf reads a letter that keepWindow has made of a table.
func windowOf(d *deadletter.Letter, t *model.Table) (from, to int64, ok bool) {
	begin, end, is := strings.Cut(d.Source, " to ")
	f, err := time.Parse(time.RFC3339Nano, begin)
	e, failed := time.Parse(time.RFC3339Nano, end)
	return f.UnixMicro(), e.UnixMicro(), is && err == nil && failed == nil && d.Target == windowTarget(t)
}
