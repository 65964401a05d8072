package system_test

import (
	"fmt"

	"weir/internal/events"
	"weir/internal/value"
)

func join(text []byte, records [][]byte, with string) []byte {
	for i, r := range records {
		if i > 0 {
			text = append(text, with...)
		}
		text = append(text, r...)
	}
	return text
}

// lambdaRecord is a record as a Lambda event has it.
func lambdaRecord(r *events.Record) []byte {
	b := fmt.Appendf(nil, `{"eventName":%q,"eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:123456789012:table/%s/stream/2026-01-01T00:00:00.000",`,
		r.Event(), r.Table)
	if r.Expired {
		b = append(b, `"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},`...)
	}
	b = fmt.Appendf(b, `"dynamodb":{"ApproximateCreationDateTime":%d,"SequenceNumber":%q,"StreamViewType":"NEW_AND_OLD_IMAGES","Keys":`, r.Time.Unix(), r.Position)
	b = value.AppendTypedItem(b, r.Keys)
	for name, image := range map[string]value.Item{"OldImage": r.Old, "NewImage": r.New} {
		if image != nil {
			b = value.AppendTypedItem(append(b, `,"`+name+`":`...), image)
		}
	}
	return append(b, "}}"...)
}
