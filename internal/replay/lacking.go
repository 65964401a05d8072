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
// where this one brings something older. Rows go that are older than From: a record within a minute of an export is in its
// command. Call it before CheckWindows.
func (r *Replay) Lacking(ctx context.Context, a *Arrangement) (map[*model.Table]*events.Export, error) {
	newest := map[*model.Table]*events.Export{}
	for _, x := range a.whole {
		if t := a.tables[x]; x.Full && (newest[t] == nil || newest[t].To.Before(x.To)) {
			is := *x
			is.From, newest[t] = x.To, &is
		}
	}
	for t, some := range a.covered {
		rows, err := r.readRows(ctx, []store.Ref{owntable.Forgotten(t.Name)})
		if err != nil {
			return nil, err
		}
		at := owntable.ReplayedOf(rows[0]).Full
		older := func(c covered) bool { return !c.full && c.from < at-minute || c.to < at-minute }
		if x := newest[t]; slices.ContainsFunc(some, older) && (x == nil || x.To.UnixMicro() < at) {
			newest[t] = &events.Export{Name: "a full export before", Full: true, From: time.UnixMicro(at - minute), To: time.UnixMicro(at).UTC()}
		}
	}
	return newest, nil
}

// RemoveLacking removes rows that full exports (Lacking) do not have. All rows of the
// exports must be written. A row goes only if a replay wrote it, by a change whose time is known and older than the export;
// rows that weir makes stay, and rows that had expired at the time of the export, until their removal is seen.
// It is safe to repeat, and a crash leaves some of the rows.
func (r *Replay) RemoveLacking(ctx context.Context, exports map[*model.Table]*events.Export) error {
	for _, t := range r.Model.Tables {
		x := exports[t]
		if x == nil {
			continue
		}
		for rows, err := range store.Pages(ctx, r.Store, store.Query{Table: t.Name}) {
			if err != nil {
				return err
			}
			var entries []events.Entry
			for _, row := range rows {
				k := knownOf(row)
				if key, ok := t.KeyOf(row); ok && k.ever && k.newestTime() < x.From.UnixMicro() {
					entries = append(entries, lackingEntry(t, key, x))
				}
			}
			for some := range slices.Chunk(entries, batchEntries) {
				if err := r.Batch(ctx, some, t.Name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lackingEntry says that a full export does not have a row.
func lackingEntry(t *model.Table, key store.Key, x *events.Export) events.Entry {
	return events.Entry{
		Record: events.Record{Table: t.Name, Keys: t.Item(key), Time: x.To, Export: true}, Export: x, Location: events.Location{File: x.Name, Line: 1}, Note: noteLacking,
	}
}

// rowStays reports whether a row stays though an export does not have it: weir makes it, or it had expired.
func (l *link) rowStays(t *model.Table, row value.Item) bool {
	expires := row.Get(t.TTL)
	return l.note == noteLacking &&
		(stripDerived(t, row).ours || expires.Kind() == value.Number && value.Compare(expires, value.OfInt(l.time/1e6)) <= 0)
}
