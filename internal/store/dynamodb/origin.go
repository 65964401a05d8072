package dynamodb

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// A record of DynamoDB's stream has images and no room for anything else. So an origin
// is carried in the images, in attributes that this package removes before a caller
// sees them. A put or an update leaves the origin in the row. A removal is announced by
// an update that puts the origin into the row first. That update's own record carries
// nothing else and is left out of Read. A crash between the update and the removal
// leaves an announcement in the row; the next write with an origin removes it.
const (
	originAttr  = "weir.@origin"
	removedAttr = "weir.@removed"
)

// originBytes is the length of an encoded origin. A value of another length is none.
const originBytes = 1 + len(events.Position{}) + 8

// encodeOrigin encodes who wrote a row and at which position, in originBytes bytes: a flag for
// an expired row, the position, and microseconds since 1970. The layout is stored in users'
// rows, so it can only change with a new name of the attribute.
func encodeOrigin(o *store.Origin) []byte {
	b := make([]byte, 1, originBytes)
	if o.Expired {
		b[0] = 1
	}
	b = append(b, o.Position[:]...)
	return binary.BigEndian.AppendUint64(b, uint64(o.Time.UnixMicro()))
}

// decodeOrigin is nil for an attribute that encodeOrigin did not make.
func decodeOrigin(v streams.AttributeValue) *store.Origin {
	b, ok := v.(*streams.AttributeValueMemberB)
	if !ok || len(b.Value) != originBytes {
		return nil
	}
	o := &store.Origin{Expired: b.Value[0] == 1}
	n := copy(o.Position[:], b.Value[1:])
	o.Time = time.UnixMicro(int64(binary.BigEndian.Uint64(b.Value[1+n:]))).UTC()
	return o
}

// withOrigin adds a put's origin to its row, if the table has a stream.
func withOrigin(t *store.Table, w *store.Write, item attributes) {
	if w.Origin != nil && w.Put != nil && t.Stream {
		item[originAttr] = &types.AttributeValueMemberB{Value: encodeOrigin(w.Origin)}
	}
}

// opsWithOrigin returns an update's operations with its origin.
func opsWithOrigin(t *store.Table, w *store.Write) []store.Op {
	if w.Origin == nil || !t.Stream {
		return w.Ops
	}
	return append(slices.Clone(w.Ops),
		store.Op{Kind: store.Set, Attr: originAttr, Value: value.OfBinary(string(encodeOrigin(w.Origin)))},
		store.Op{Kind: store.Remove, Attr: removedAttr})
}

// writeOrigin writes the origin of the removal that follows.
// A removal that fails after it leaves the announcement in the row, which derives nothing: readers drop it.
func (s *Store) writeOrigin(ctx context.Context, t *store.Table, w *store.Write) error {
	if w.Origin == nil || !w.Delete || !t.Stream {
		return nil
	}
	key, err := keyOf(t, w.Key)
	if err != nil {
		return err
	}
	if err := s.opts.Writes.Await(ctx, t.Name); err != nil {
		return err
	}
	err = s.persistRows(ctx, []rowID{idOf(w.Table, w.Key)}, later, func(ctx context.Context) error {
		out, err := s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &t.Name, Key: key, UpdateExpression: aws.String("SET #o=:o"), ConditionExpression: aws.String("attribute_exists(#k)"),
			ExpressionAttributeNames:  map[string]string{"#o": removedAttr, "#k": t.Key.Partition.Name},
			ExpressionAttributeValues: attributes{":o": &types.AttributeValueMemberB{Value: encodeOrigin(w.Origin)}},
			ReturnConsumedCapacity:    s.returnCapacity(),
		})
		if err == nil {
			s.consumedOne(ctx, "UpdateItem", true, out.ConsumedCapacity)
		}
		return err
	})
	if named(err) != nil { // the row does not exist, or has no room
		return nil
	}
	return err
}

// originOf removes the origin from a record's images. The origin belongs to the record
// if this change put it into the row.
func originOf(r *streams.StreamRecord) (o *store.Origin) {
	made, before := r.NewImage[originAttr], r.OldImage[originAttr]
	switch {
	case r.NewImage == nil:
		o = decodeOrigin(r.OldImage[removedAttr])
	case !sameBytes(made, before):
		o = decodeOrigin(made)
	}
	for _, image := range []map[string]streams.AttributeValue{r.NewImage, r.OldImage} {
		delete(image, originAttr)
		delete(image, removedAttr)
	}
	return o
}

// sameBytes reports whether both are binary values with the same bytes.
func sameBytes(a, b streams.AttributeValue) bool {
	x, ok := a.(*streams.AttributeValueMemberB)
	y, also := b.(*streams.AttributeValueMemberB)
	return ok && also && string(x.Value) == string(y.Value)
}
