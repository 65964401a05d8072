package replay

import (
	"context"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// Lacking is the full exports that say which rows their tables do not have: the newest of the command, or of a command before it
// where this one brings something older. Rows go that are older than From: what is recorded within a minute of an export is in its
// command. Call it before CheckWindows.
func (r *Replay) Lacking(ctx context.Context, a *Arrangement, exports []*events.Export) (map[*model.Table]*events.Export, error) {
	newest := map[*model.Table]*events.Export{}
	for _, x := range exports {
		if t := a.Table(x); t != nil && x.Full && (newest[t] == nil || newest[t].To.Before(x.To)) {
			is := *x
			is.From, newest[t] = x.To, &is
		}
	}
	for t, oldest := range a.oldest {
		rows, err := r.get(ctx, []store.Ref{owntable.Forgotten(t.Name)})
		if err != nil {
			return nil, err
		}
		at := owntable.ReplayedOf(rows[0]).Full
		if x := newest[t]; oldest < at-minute && (x == nil || x.To.UnixMicro() < at) {
			newest[t] = &events.Export{Name: "a full export before", Full: true, From: time.UnixMicro(at - minute), To: time.UnixMicro(at).UTC()}
		}
	}
	return newest, nil
}

// RemoveLacking removes rows that full exports (Lacking) do not have, and returns how many. All rows of the
// exports must be written. A row goes only if a replay wrote it, by a change whose time is known and older than the export;
// rows that weir makes stay, and rows that had expired at the time of the export, until their removal is seen.
// It is safe to repeat, and a crash leaves some of the rows.
func (r *Replay) RemoveLacking(ctx context.Context, exports map[*model.Table]*events.Export) (n int, err error) {
	for _, t := range r.Model.Tables {
		x := exports[t]
		if x == nil {
			continue
		}
		before := r.Summary
		for rows, err := range store.Pages(ctx, r.Store, store.Query{Table: t.Name}) {
			if err != nil {
				return n, err
			}
			var entries []events.Entry
			for _, row := range rows {
				if key, ok := t.KeyOf(row); ok && isLacking(t, row, x) {
					entries = append(entries, events.Entry{
						Record: events.Record{Table: t.Name, Keys: t.Item(key), Time: x.To, Export: true}, Export: x, Location: events.Location{File: x.Name, Line: 1},
					})
				}
			}
			for some := range slices.Chunk(entries, batchEntries) {
				if err := r.Batch(ctx, some, t.Name); err != nil {
					return n, err
				}
			}
		}
		n += r.Summary.Applied - before.Applied
		r.Summary.Applied, r.Summary.Skipped = before.Applied, before.Skipped // they are no records
	}
	return n, nil
}

// isLacking reports whether a row is one that an export has unless it was removed.
func isLacking(t *model.Table, row value.Item, x *events.Export) bool {
	k := knownOf(row)
	if !k.ever || k.time() == 0 || k.time() >= x.From.UnixMicro() || strip(t, row).ours {
		return false
	}
	expires := row.Get(t.TTL)
	if t.TTL == "" || expires.Kind() != value.Number {
		return true
	}
	c, err := value.NumberFrom(expires.Text())
	return err != nil || value.Compare(c, value.OfInt(x.To.Unix())) > 0
}
