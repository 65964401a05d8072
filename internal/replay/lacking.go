package replay

import (
	"context"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// RemoveLacking removes rows that the newest full export of their table does not have, and returns how many. All rows of the
// exports must be written. A row goes only if a replay wrote it, by a change whose time is known and older than the export;
// rows that weir makes stay, and rows that had expired at the time of the export, until their removal is seen.
// It is safe to repeat, and a crash leaves some of the rows.
func (r *Replay) RemoveLacking(ctx context.Context, a *Arrangement, exports []*events.Export) (n int, err error) {
	newest := map[*model.Table]*events.Export{}
	for _, x := range exports {
		if t := a.Table(x); t != nil && x.Full && (newest[t] == nil || newest[t].To.Before(x.To)) {
			newest[t] = x
		}
	}
	for _, t := range r.Model.Tables {
		x := newest[t]
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
				if key, ok := t.KeyOf(row); ok && isLacking(t, row, x.To) {
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

// isLacking reports whether a row is one that an export of a time has unless it was removed.
func isLacking(t *model.Table, row value.Item, at time.Time) bool {
	k := knownOf(row)
	if !k.ever || k.time() == 0 || k.time() >= at.UnixMicro() || strip(t, row).ours {
		return false
	}
	expires := row.Get(t.TTL)
	if t.TTL == "" || expires.Kind() != value.Number {
		return true
	}
	c, err := value.NumberFrom(expires.Text())
	return err != nil || value.Compare(c, value.OfInt(at.Unix())) > 0
}
