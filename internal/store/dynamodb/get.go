package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// maxBatchGet is the maximum of keys in a BatchGetItem.
const maxBatchGet = 100

// Get reads rows with strong consistency, up to a hundred in a request.
// The result has a row for each ref, in their order, nil where there is none. A key that no row can have, such as an
// empty one, gives nil without a request.
func (s *Store) Get(ctx context.Context, refs []store.Ref) (_ []value.Item, err error) {
	ctx, end := s.opts.Observe.Begin(ctx, store.Call{Method: store.IsGet, Rows: len(refs)})
	defer func() { end(err) }()
	if err := s.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	g := getting{Store: s, rows: make(map[rowID]value.Item, len(refs))}
	parts, err := g.parts(refs)
	if err == nil {
		err = g.forEach(len(parts), func(i int) error { return g.getPart(ctx, parts[i]) })
	}
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	return seq.Map(refs, func(r store.Ref) value.Item { return g.rows[idOf(r.Table, r.Key)] }), nil
}

// getting is one call of Get.
type getting struct {
	*Store
	mu   sync.Mutex
	rows map[rowID]value.Item
}

// keys is one request: by table, the keys to read.
type keys = map[string]types.KeysAndAttributes

// parts returns the requests for the keys, with each key once.
// A key that no row can have, such as an empty text, is left out and counts as a row that does not
// exist. Reads are strongly consistent.
func (g *getting) parts(refs []store.Ref) (parts []keys, err error) {
	seen := make(map[rowID]bool, len(refs))
	n := maxBatchGet
	for i := range refs {
		t, err := g.table(refs[i].Table)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", refs[i], err)
		}
		key, err := requested(t, refs[i].Key)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", refs[i], err)
		}
		id := idOf(t.Name, refs[i].Key)
		if key == nil || seen[id] {
			continue
		}
		seen[id] = true
		if n == maxBatchGet {
			parts, n = append(parts, keys{}), 0
		}
		part := parts[len(parts)-1]
		of := part[t.Name]
		of.ConsistentRead = aws.Bool(true)
		of.Keys = append(of.Keys, key)
		part[t.Name] = of
		n++
	}
	return parts, nil
}

// requested is a key in the form of a request, nil for a key that no row can have.
func requested(t *store.Table, k store.Key) (key attributes, err error) {
	if err = t.CheckKey(k); err == nil {
		key, err = keyOf(t, k)
	}
	if errors.Is(err, store.ErrRefused) && t.IsKey(k) {
		return nil, nil
	}
	return key, err
}

// getPart reads the keys of a request, and asks again for those that did not fit into the
// answer.
func (g *getting) getPart(ctx context.Context, left keys) error {
	for len(left) > 0 {
		before := left
		err := g.sendUntilDone(ctx, soon, func(ctx context.Context) error {
			out, err := g.db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: left, ReturnConsumedCapacity: g.returnCapacity()})
			if err != nil {
				return err
			}
			g.noteConsumed(ctx, "BatchGetItem", false, out.ConsumedCapacity...)
			left = out.UnprocessedKeys
			got := 0
			for _, rows := range out.Responses {
				got += len(rows)
			}
			if err := g.addRows(out.Responses); err != nil {
				return err
			}
			if len(left) > 0 && got == 0 { // throttled, not full
				return errAgain
			}
			return nil
		})
		if err != nil {
			if known := named(err); known != nil {
				err = known
			}
			return store.FailedIn(err, slices.Collect(maps.Keys(before))...)
		}
	}
	return nil
}

// addRows adds the rows of an answer to the result. The service may return them in any
// order.
func (g *getting) addRows(responses map[string][]attributes) error {
	for name, rows := range responses {
		for _, m := range rows {
			row, err := rowOf(m)
			if err != nil {
				return fmt.Errorf("a row of %s: %w", name, err)
			}
			if k, ok := g.tables[name].KeyOf(row); ok {
				g.mu.Lock()
				g.rows[idOf(name, k)] = row
				g.mu.Unlock()
			}
		}
	}
	return nil
}
