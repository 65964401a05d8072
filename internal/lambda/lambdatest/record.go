package lambdatest

import (
	"encoding/json"
	"fmt"

	"weir/internal/events"
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
