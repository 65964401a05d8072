package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/opensearch-project/opensearch-go/v2/opensearchapi"
)

// A tombstone may be deleted this long after it was written. Old tombstones are looked
// for this often.
const (
	keepTombstones = 48 * time.Hour
	pruneEvery     = time.Hour
	maxPrune       = 5000 // at a time
)

// prune deletes old tombstones when that is due. A tombstone that was replaced
// meanwhile stays. Any number of processes may prune at the same time.
func (s *server) prune(ctx context.Context, sp *space, now time.Time) error {
	sp.mu.Lock()
	due := !now.Before(sp.nextPrune)
	if due {
		sp.nextPrune = now.Add(pruneEvery)
	}
	sp.mu.Unlock()
	if !due {
		return nil
	}
	body, err := json.Marshal(object{"query": object{"range": object{"x": object{"lt": hour(now.Add(-keepTombstones))}}}})
	if err != nil {
		return err
	}
	var got struct{ Deleted int }
	most := maxPrune
	err = s.once(ctx, &got, opensearchapi.DeleteByQueryRequest{
		Index: []string{sp.alias}, Body: bytes.NewReader(body), Conflicts: "proceed", MaxDocs: &most,
	})
	if err == nil && got.Deleted == maxPrune {
		sp.mu.Lock()
		sp.nextPrune = now
		sp.mu.Unlock()
	}
	return err
}
