package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/store"
	"weir/internal/value"
)

// sweepRows is the number of rows that are checked together.
const sweepRows = 256

// Sweep deletes up to limit rows whose TTL had expired at now, the oldest first in each
// table, and returns how many. Another table begins each sweep, so that none waits for the end of another.
// Each row is deleted only if it is still expired at that moment, and its stream record says Expired. A row stays if it has a new expiry, if a
// condition that prepare adds fails, or if DynamoDB would leave it alone (its TTL
// attribute is no whole number, or is more than five years in the past). A crash leaves
// some of the rows deleted.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int, prepare store.Prepare) (removed int, err error) {
	if err := s.beginOperation(ctx); err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	s.gate.RUnlock()
	names, begin := s.expiring, int(s.sweeps.Add(1))
	for i := range names {
		name := names[(begin+i)%len(names)]
		for last := []byte(nil); removed < limit; {
			n, next, err := s.sweepPage(ctx, name, now, last, limit-removed, prepare)
			if removed += n; err != nil {
				return removed, fmt.Errorf("sweep: table %s: %w", name, err)
			}
			if last = next; next == nil {
				break
			}
		}
	}
	return removed, nil
}

// sweepPage deletes the next expired rows of a table, those above an entry of the expiry
// index, and returns the last entry that it looked at, nil if there are no more.
func (s *Store) sweepPage(ctx context.Context, name string, now time.Time, above []byte, limit int, prepare store.Prepare) (removed int, last []byte, err error) {
	ws, last, err := s.expiredRemovals(ctx, name, now, above, min(limit, sweepRows))
	if err != nil || len(ws) == 0 {
		return 0, nil, err
	}
	if prepare != nil {
		if err := prepare(ctx, ws); err != nil {
			return 0, nil, err
		}
	}
	out, err := s.Write(ctx, ws)
	for i := range out {
		if out[i].Err == nil {
			removed++
		}
	}
	return removed, last, err
}

// expiredRemovals returns the removals of a table's next expired rows, above the given entry of
// the expiry index, and the last entry that it looked at.
// The removals are on condition that the expiry is still the one that was read, so a row that got a new one stays.
func (s *Store) expiredRemovals(ctx context.Context, name string, now time.Time, above []byte, limit int) (ws []store.Write, last []byte, err error) {
	if err := s.beginOperation(ctx); err != nil {
		return nil, nil, err
	}
	defer s.gate.RUnlock()
	tab, err := s.tableNamed(name)
	if err != nil {
		return nil, nil, err
	}
	ix := tab.indexes[len(tab.indexes)-1]
	base := appendSpace(nil, spaceIndex, ix.id)
	first, latest := store.ExpiresBetween(now)
	low := appendKeyValue(base[:len(base):len(base)], value.OfInt(first))
	high := appendKeyValue(base[:len(base):len(base)], value.OfInt(latest))
	if above != nil {
		low = append(above[:len(above):len(above)], 0) // the next possible key
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: low, UpperBound: keyAfter(high)})
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
