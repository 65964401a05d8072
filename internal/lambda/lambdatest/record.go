package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// Record is a record of a table's stream as Lambda has it in an event.
func Record(table string, r *events.Record) json.RawMessage {
	b := fmt.Appendf(nil, `{"eventID":"e%s","eventName":%q,"eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/%s/stream/2026","dynamodb":{"SequenceNumber":%q,"ApproximateCreationDateTime":%d`,
		r.Position, r.Event(), table, r.Position, r.Time.Unix())
	images := []value.Item{r.Keys, r.Old, r.New}
	for i, name := range []string{"Keys", "OldImage", "NewImage"} {
		if images[i] != nil {
			b = value.AppendTypedItem(fmt.Appendf(b, ",%q:", name), images[i])
		}
	}
	return append(b, "}}"...)
}

// Unrecorded is a store whose streams have nothing of shards that they do not list, so that a test may make them up: nothing
// comes before an event there.
type Unrecorded struct{ store.Store }

// Read shows a record behind those of all events.
func (s Unrecorded) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	page, err := s.Store.Read(ctx, table, shard, after, limit)
	if errors.Is(err, store.ErrNoTable) {
		return store.Records{Records: []events.Record{{Position: events.PositionOf(1 << 62)}}}, nil
	}
	return page, err
}
