package dynamodb

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/store"
	"weir/internal/value"
)

// Limits of BatchWriteItem.
const (
	maxBatchWrite      = 25
	maxBatchWriteBytes = 16 << 20
)

// batches puts writes into tasks that share requests: puts and deletes without a
// condition and without Return, each the only write to its key.
// The order of tasks carries no promise: they run side by side.
func (c *call) batches(tasks []task) []task {
	out := tasks[:0:0]
	var batch []int
	size := 0
	flush := func() {
		switch len(batch) {
		case 0:
		case 1:
			out = append(out, task{chain: batch})
		default:
			out = append(out, task{batch: batch})
		}
		batch, size = nil, 0
	}
	for _, t := range tasks {
		w := &c.writes[t.chain[0]]
		if len(t.chain) > 1 || len(w.If) > 0 || len(w.Ops) > 0 || w.Return || w.Origin != nil {
			out = append(out, t)
			continue
		}
		n := w.Put.Size()
		if len(batch) == maxBatchWrite || size+n > maxBatchWriteBytes/2 { // JSON takes more
			flush()
		}
		batch, size = append(batch, t.chain[0]), size+n
	}
	flush()
	return out
}

// writeBatch sends writes in one request, and sends again what the service left out. If
// the service refuses the request, each write is sent by itself to find out which one
// is at fault. Such writes may then be done twice.
// What became of each write is in c.out; the error is one that ends the whole call.
func (c *call) writeBatch(ctx context.Context, batch []int) error {
	left := map[string][]types.WriteRequest{}
	for _, i := range batch {
		w := &c.writes[i]
		r, err := writeRequest(c.tables[w.Table], w)
		if err != nil {
			c.out[i].Err = w.Failed(err)
			continue
		}
		left[w.Table] = append(left[w.Table], r)
	}
	if len(left) == 0 {
		return nil
	}
	tables := slices.Sorted(maps.Keys(left))
	if err := c.opts.Writes.Await(ctx, tables...); err != nil {
		return err
	}
	err := c.observed(ctx, batch, func(ctx context.Context) error {
		out, err := c.db.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: left, ReturnConsumedCapacity: c.returnCapacity()})
		if err != nil {
			return err
		}
		c.consumed(ctx, "BatchWriteItem", true, out.ConsumedCapacity...)
		if left = out.UnprocessedItems; len(left) > 0 {
			return errAgain
		}
		return nil
	})
	switch {
	case err == nil:
		return nil
	case named(err) == nil:
		return store.FailedIn(err, tables...)
	}
	for _, i := range batch {
		if c.out[i].Err != nil {
			continue
		}
		if err := c.one(ctx, i); err != nil {
			return c.writes[i].Failed(err)
		}
	}
	return nil
}

// observed sends a request for some writes until it is done, and tells the Observer of it.
func (c *call) observed(ctx context.Context, batch []int, send func(context.Context) error) (err error) {
	if c.opts.Observe != nil {
		of := make([]store.Write, len(batch))
		for i, n := range batch {
			of[i] = c.writes[n]
		}
		var end func(error)
		ctx, end = c.opts.Observe(ctx, store.Call{Method: store.IsWrite, Of: of})
		defer func() { end(err) }()
	}
	return c.persist(ctx, later, send)
}

// writeRequest is a write as a part of BatchWriteItem, which takes whole puts and deletes alone.
func writeRequest(t *store.Table, w *store.Write) (types.WriteRequest, error) {
	p, err := plan(t, w)
	if err != nil {
		return types.WriteRequest{}, err
	}
	if w.Delete {
		return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: p.key}}, nil
	}
	return types.WriteRequest{PutRequest: &types.PutRequest{Item: p.item}}, nil
}

// rowID is a row's table and key in a comparable form: equal keys have equal texts.
type rowID struct{ table, partition, sort string }

// idOf returns the row's id. Numbers have one text for each value, so 1 and 1.0 are one row.
func idOf(table string, k store.Key) rowID {
	return rowID{table, keyText(k.Partition), keyText(k.Sort)}
}

// keyText tells values of different types apart, also where their texts are equal.
func keyText(v value.Value) string { return v.Kind().Descriptor() + v.Text() }
