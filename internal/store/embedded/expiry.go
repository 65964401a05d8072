package embedded

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/store"
	"weir/internal/value"
)

// forgotten is how long past its time a row is still removed; DynamoDB takes an
// expiry that is longer ago for a mistake, and so do we.
const forgotten = 5 * 365 * 24 * time.Hour

// sweepPage is how many rows are looked at together.
const sweepPage = 256

// Sweep removes up to limit rows whose time to live was over at now, oldest first
// in each table, and says how many. Each is removed only if it is still so, and its
// stream record says Expired. A row that lives anew, or that DynamoDB would leave
// alone (no whole number, more than five years ago), stays; so does one that fails
// a condition that prepare adds. A crash leaves some removed.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int, prepare store.Prepare) (removed int, err error) {
	names, err := s.expiring(ctx)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	for _, name := range names {
		n, err := s.sweepTable(ctx, name, now, limit-removed, prepare)
		if removed += n; err != nil {
			return removed, fmt.Errorf("sweep: table %s: %w", name, err)
		}
	}
	return removed, nil
}

// expiring are the names of the tables that have a time to live, sorted.
func (s *Store) expiring(ctx context.Context) (names []string, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.gate.RUnlock()
	for name, tab := range s.tables {
		if tab.TTL != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (s *Store) sweepTable(ctx context.Context, name string, now time.Time, limit int, prepare store.Prepare) (removed int, err error) {
	var after []byte
	for removed < limit {
		var ws []store.Write
		if ws, after, err = s.expired(ctx, name, now, after, min(limit-removed, sweepPage)); err != nil || len(ws) == 0 {
			return removed, err
		}
		if prepare != nil {
			if err := prepare(ctx, ws); err != nil {
				return removed, err
			}
		}
		out, err := s.Write(ctx, ws)
		for i := range out {
			if out[i].Err == nil {
				removed++
			}
		}
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// expired are the removals of the next rows of a table whose time is over, above
// the expiry entry given, and the last entry that was looked at.
func (s *Store) expired(ctx context.Context, name string, now time.Time, above []byte, limit int) (ws []store.Write, last []byte, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer s.gate.RUnlock()
	tab, err := s.table(name)
	if err != nil {
		return nil, nil, err
	}
	ix := tab.indexes[len(tab.indexes)-1]
	base := appendSpace(nil, spaceIndex, ix.id)
	low := appendKeyValue(base[:len(base):len(base)], value.OfInt(now.Add(-forgotten).Unix()))
	high := appendKeyValue(base[:len(base):len(base)], value.OfInt(now.Unix()))
	if above != nil {
		low = append(above[:len(above):len(above)], 0) // the next key there can be
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: low, UpperBound: after(high)})
	if err != nil {
		return nil, nil, err
	}
	defer it.Close()
	for ok := it.First(); ok && len(ws) < limit; ok = it.Next() {
		at, rest, err := takeKey(it.Key()[len(base):], &ix.Key)
		if err != nil {
			return nil, nil, err
		}
		k, _, err := takeKey(rest, &tab.Key)
		if err != nil {
			return nil, nil, err
		}
		ws = append(ws, store.Write{
			Ref:    store.Ref{Table: tab.Name, Key: k},
			Delete: true,
			If:     store.Cond{{{Attr: tab.TTL, Is: store.Eq, Value: at.Partition}}},
			Origin: &store.Origin{Expired: true},
		})
		last = append(last[:0], it.Key()...)
	}
	return ws, last, it.Error()
}
