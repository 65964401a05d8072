package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/store"
	"weir/internal/value"
)

// forgotten is how long past its time a row is still removed; DynamoDB takes an
// expiry that is longer ago for a mistake, and so do we.
const forgotten = 5 * 365 * 24 * time.Hour

// Sweep removes up to limit rows whose time to live was over at now, oldest first,
// and says how many. Each is removed only if it is still so, and its stream record
// says Expired. A row that lives anew, or that DynamoDB would leave alone (no
// whole number, more than five years ago), stays. A crash leaves some removed.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (removed int, err error) {
	ws, err := s.expired(ctx, now, limit)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	out, err := s.Write(ctx, ws)
	for i := range out {
		if out[i].Err == nil {
			removed++
		}
	}
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	return removed, nil
}

func (s *Store) expired(ctx context.Context, now time.Time, limit int) (ws []store.Write, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.gate.RUnlock()
	for _, tab := range s.tables {
		if tab.TTL == "" || len(ws) >= limit {
			continue
		}
		if ws, err = s.expiredOf(tab, now, limit, ws); err != nil {
			return nil, fmt.Errorf("table %s: %w", tab.Name, err)
		}
	}
	return ws, nil
}

func (s *Store) expiredOf(tab *table, now time.Time, limit int, ws []store.Write) ([]store.Write, error) {
	ix := tab.indexes[len(tab.indexes)-1]
	base := appendSpace(nil, spaceIndex, ix.id)
	low := appendKeyValue(base[:len(base):len(base)], value.OfInt(now.Add(-forgotten).Unix()))
	high := appendKeyValue(base[:len(base):len(base)], value.OfInt(now.Unix()))
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: low, UpperBound: after(high)})
	if err != nil {
		return ws, err
	}
	defer it.Close()
	for ok := it.First(); ok && len(ws) < limit; ok = it.Next() {
		at, rest, err := takeKey(it.Key()[len(base):], &ix.Key)
		if err != nil {
			return ws, err
		}
		k, _, err := takeKey(rest, &tab.Key)
		if err != nil {
			return ws, err
		}
		ws = append(ws, store.Write{
			Ref:    store.Ref{Table: tab.Name, Key: k},
			Delete: true,
			If:     store.Cond{{{Attr: tab.TTL, Is: store.Eq, Value: at.Partition}}},
			Origin: &store.Origin{Expired: true},
		})
	}
	return ws, it.Error()
}
