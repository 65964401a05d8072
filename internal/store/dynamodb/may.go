package dynamodb

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streams "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"weir/internal/doctor"
	"weir/internal/store"
	"weir/internal/value"
)

// nowhere is the partition key of a row that does not exist: dry calls name it.
const nowhere = "weir: a row that does not exist"

// May asks whether the caller may do an action on a table or on its stream. A call that names a row names that of the
// partition key row, or, if row is "", one that does not exist.
// It makes a call that changes nothing: a write has a condition that no row can meet. It costs one unit at most, and
// creates no record in the stream.
func (s *Store) May(ctx context.Context, action, table, row string) doctor.Fact[bool] {
	if err := s.beginCall(ctx); err != nil {
		return doctor.Not[bool]("a call that is not interrupted")
	}
	t, err := s.table(table)
	if err != nil {
		return doctor.Not[bool]("a table of the model: " + err.Error())
	}
	call := s.dry(t, row)[strings.TrimPrefix(action, "dynamodb:")]
	if call == nil {
		return doctor.Not[bool]("another way to ask: no call of it changes nothing")
	}
	err = s.sendUntilDone(ctx, later, call)
	var cancelled *types.TransactionCanceledException
	var before *beforeError
	var unmet *types.ConditionalCheckFailedException
	switch {
	case err == nil, errors.As(err, &cancelled), errors.As(err, &unmet):
		return doctor.Known(true)
	case errors.As(err, &before):
		for inner := before; errors.As(inner.err, &inner); {
			before = inner
		}
		return doctor.Not[bool](Needs(before.action, before.err))
	case errors.Is(err, errNoStream):
		return doctor.Not[bool](errNoStream.Error())
	case Denied(err):
		return doctor.Known(false)
	}
	return doctor.Not[bool](Needs(action, err))
}

// dry are the calls that change nothing, by the name of the operation.
// A refusal by the condition is an answer: the action is allowed. The calls are sent by their
// caller.
func (s *Store) dry(t *store.Table, row string) map[string]func(context.Context) error {
	key, never, names := missing(t), aws.String("attribute_exists(#k) AND attribute_not_exists(#k)"), map[string]string{"#k": t.Key.Partition.Name}
	if row != "" {
		key[t.Key.Partition.Name] = &types.AttributeValueMemberS{Value: row}
	}
	calls := map[string]func(context.Context) error{
		"DescribeTable": callOnce(s.db.DescribeTable, &dynamodb.DescribeTableInput{TableName: &t.Name}),
		"BatchGetItem":  callOnce(s.db.BatchGetItem, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{t.Name: {Keys: []attributes{key}}}}),
		"PutItem":       callOnce(s.db.PutItem, &dynamodb.PutItemInput{TableName: &t.Name, Item: key, ConditionExpression: never, ExpressionAttributeNames: names}),
		"UpdateItem":    callOnce(s.db.UpdateItem, &dynamodb.UpdateItemInput{TableName: &t.Name, Key: key, ConditionExpression: never, ExpressionAttributeNames: names}),
		"DeleteItem":    callOnce(s.db.DeleteItem, &dynamodb.DeleteItemInput{TableName: &t.Name, Key: key, ConditionExpression: never, ExpressionAttributeNames: names}),
		"ConditionCheckItem": callOnce(s.db.TransactWriteItems, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{
			ConditionCheck: &types.ConditionCheck{TableName: &t.Name, Key: key, ConditionExpression: never, ExpressionAttributeNames: names}}}}),
		"Scan": callOnce(s.db.Scan, &dynamodb.ScanInput{TableName: &t.Name, Limit: aws.Int32(1)}),
		"Query": callOnce(s.db.Query, &dynamodb.QueryInput{TableName: &t.Name, Limit: aws.Int32(1), KeyConditionExpression: aws.String("#k = :k"),
			ExpressionAttributeNames: names, ExpressionAttributeValues: attributes{":k": no(t.Key.Partition)}}),
	}
	if !t.Stream {
		return calls
	}
	return s.dryStream(t, calls)
}

// callOnce makes one call, and leaves its answer.
func callOnce[In, Out, Options any](call func(context.Context, *In, ...func(*Options)) (*Out, error), in *In) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := call(ctx, in)
		return err
	}
}

// dryStream adds the calls on a table's stream. They read at most one record, of the first shard.
// Each can be made by itself: a call that needs another one before it reports which one failed (beforeError). None of them
// changes anything.
func (s *Store) dryStream(t *store.Table, calls map[string]func(context.Context) error) map[string]func(context.Context) error {
	shardOf := func(ctx context.Context) (arn, shard *string, err error) {
		found, err := s.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.Name})
		switch {
		case err != nil:
			return nil, nil, &beforeError{"dynamodb:DescribeTable", err}
		case found.Table.LatestStreamArn == nil:
			return nil, nil, errNoStream
		}
		arn = found.Table.LatestStreamArn
		out, err := s.streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: arn, Limit: aws.Int32(1)})
		if err == nil && len(out.StreamDescription.Shards) > 0 {
			shard = out.StreamDescription.Shards[0].ShardId
		}
		return arn, shard, err
	}
	iterator := func(ctx context.Context) (*string, error) {
		arn, shard, err := shardOf(ctx)
		switch {
		case err != nil:
			return nil, &beforeError{"dynamodb:DescribeStream", err}
		case shard == nil:
			return nil, errNoStream
		}
		out, err := s.streams.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shard, ShardIteratorType: streams.ShardIteratorTypeTrimHorizon})
		if err != nil {
			return nil, err
		}
		return out.ShardIterator, nil
	}
	calls["ListStreams"] = callOnce(s.streams.ListStreams, &dynamodbstreams.ListStreamsInput{TableName: &t.Name})
	calls["DescribeStream"] = func(ctx context.Context) error { _, _, err := shardOf(ctx); return err }
	calls["GetShardIterator"] = func(ctx context.Context) error { _, err := iterator(ctx); return err }
	calls["GetRecords"] = func(ctx context.Context) error {
		it, err := iterator(ctx)
		if err != nil {
			return &beforeError{"dynamodb:GetShardIterator", err}
		}
		_, err = s.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: it, Limit: aws.Int32(1)})
		return err
	}
	return calls
}

// beforeError is that of a call which another one needs: it says nothing of the other one.
type beforeError struct {
	action string
	err    error
}

func (e *beforeError) Error() string { return e.err.Error() }
func (e *beforeError) Unwrap() error { return e.err }

var errNoStream = errors.New("a stream of the table")

// missing is the key of a row that does not exist.
func missing(t *store.Table) attributes {
	key := attributes{t.Key.Partition.Name: no(t.Key.Partition)}
	if t.Key.Sort.Name != "" {
		key[t.Key.Sort.Name] = no(t.Key.Sort)
	}
	return key
}

// no is a value of an attribute's type that rows do not have.
func no(k store.KeyAttr) types.AttributeValue {
	switch k.Type {
	case value.Number:
		return &types.AttributeValueMemberN{Value: "-9.99E+125"}
	case value.Binary:
		return &types.AttributeValueMemberB{Value: []byte(nowhere)}
	}
	return &types.AttributeValueMemberS{Value: nowhere}
}
