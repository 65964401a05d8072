package dynamodb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/store"
)

// Transact executes all the writes or none. A token allows it to be sent again after an
// unknown outcome. After a conflict it is retried for as long as Options.Patience says.
// An error that wraps store.ErrCondition names the write that failed. Of any other error that does not come from the
// contract, the outcome is unknown.
func (s *Store) Transact(ctx context.Context, ws []store.Write) (err error) {
	ctx, end := s.opts.Observe.Begin(ctx, store.Call{Method: store.IsTransact, Of: ws})
	defer func() { end(err) }()
	if err := s.beginCall(ctx); err != nil {
		return fmt.Errorf("transact: %w", err)
	}
	items, of, err := s.transactItems(ws)
	if err == nil && len(items) > 0 {
		if err = s.announceAll(ctx, ws); err == nil {
			err = s.sendTransaction(ctx, items, of)
		}
	}
	return store.Wrap(err, "transact")
}

// announceAll announces the removals that have an origin. The announcements come before
// the transaction, because a transaction must not name a row twice.
func (s *Store) announceAll(ctx context.Context, ws []store.Write) error {
	for i := range ws {
		if err := s.writeOrigin(ctx, s.tables[ws[i].Table], &ws[i]); err != nil {
			return ws[i].Failed(err)
		}
	}
	return nil
}

// transactItems makes the items of the transaction. It leaves out checks without a
// condition, which always hold.
func (s *Store) transactItems(ws []store.Write) (items []types.TransactWriteItem, of []*store.Write, err error) {
	if len(ws) > store.MaxTransact {
		return nil, nil, fmt.Errorf("%w: %d writes, the limit is %d", store.ErrRefused, len(ws), store.MaxTransact)
	}
	seen := make(map[rowID]bool, len(ws))
	for i := range ws {
		w := &ws[i]
		t, err := s.table(w.Table)
		if err == nil {
			err = checkWrite(t, w)
		}
		id := idOf(w.Table, w.Key)
		if err == nil && seen[id] {
			err = fmt.Errorf("%w: a key occurs twice", store.ErrRefused)
		}
		seen[id] = true
		var item types.TransactWriteItem
		if err == nil {
			item, err = transactItem(t, w)
		}
		if err != nil {
			return nil, nil, w.Failed(err)
		}
		if w.Check && len(w.If) == 0 {
			continue
		}
		items, of = append(items, item), append(of, w)
	}
	return items, of, nil
}

// transactItem is a write in the form of the API. A write with Check only tests its condition.
// Returned rows are not asked for: a transaction says which write failed, not which row it found.
func transactItem(t *store.Table, w *store.Write) (item types.TransactWriteItem, err error) {
	p, err := planWrite(t, w)
	switch {
	case err != nil:
	case w.Check:
		item.ConditionCheck = &types.ConditionCheck{TableName: &t.Name, Key: p.key, ConditionExpression: p.condition,
			ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values}
	case w.Delete:
		item.Delete = &types.Delete{TableName: &t.Name, Key: p.key, ConditionExpression: p.condition,
			ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values}
	case w.Put != nil:
		item.Put = &types.Put{TableName: &t.Name, Item: p.item, ConditionExpression: p.condition,
			ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values}
	default:
		item.Update = &types.Update{TableName: &t.Name, Key: p.key, UpdateExpression: p.update, ConditionExpression: p.condition,
			ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values}
	}
	return item, err
}

// sendTransaction sends the transaction until its outcome is known. All tries share a token,
// so that it happens at most once. Only a cancelled transaction, which certainly did
// nothing, gets a new token, and only where all that had the token before were answered:
// a request whose answer was lost may arrive later, and must then not happen beside another.
// DynamoDB answers by the token alone only after the transaction has happened.
func (s *Store) sendTransaction(ctx context.Context, items []types.TransactWriteItem, of []*store.Write) error {
	var tables []string
	rows := make([]rowID, len(of))
	for i, w := range of {
		rows[i] = idOf(w.Table, w.Key)
		if !slices.Contains(tables, w.Table) {
			tables = append(tables, w.Table)
		}
	}
	if err := s.opts.Writes.Await(ctx, tables...); err != nil {
		return err
	}
	token, lost := rand.Text(), false
	var verdict error
	err := s.persistRows(ctx, rows, soon, func(ctx context.Context) error {
		out, err := s.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
			TransactItems: items, ClientRequestToken: aws.String(token), ReturnConsumedCapacity: s.returnCapacity(),
		})
		if err == nil {
			s.noteConsumed(ctx, "TransactWriteItems", true, atLeast(out.ConsumedCapacity, of)...)
			verdict = nil
			return nil
		}
		var cancelled *types.TransactionCanceledException
		if !errors.As(err, &cancelled) {
			lost = lost || judge(err) != nothing
			return err
		}
		for i, r := range cancelled.CancellationReasons {
			if i < len(rows) && throttles(aws.ToString(r.Code)) {
				s.noteThrottled(rows[i])
			}
		}
		for _, w := range of {
			s.opts.Writes.Spent(ctx, w.Table, transactUnits) // it is charged all the same
		}
		var again bool
		if verdict, again = reason(cancelled, of); again {
			if !lost {
				token = rand.Text()
			}
			return fmt.Errorf("%w: %w", errAgain, verdict)
		}
		return nil
	})
	switch {
	case err == nil:
		return verdict
	case errors.Is(err, errAgain):
		return verdict
	case named(err) != nil:
		return named(err)
	}
	return store.FailedIn(err, tables...)
}

// reason is why a transaction was cancelled. again says that other requests caused it,
// so that it may be sent again. A final reason comes before these.
func reason(c *types.TransactionCanceledException, of []*store.Write) (err error, again bool) {
	for i, r := range c.CancellationReasons {
		if i >= len(of) {
			break
		}
		said := aws.ToString(r.Message)
		switch code := aws.ToString(r.Code); code {
		case "None", "":
		case "ConditionalCheckFailed":
			return of[i].Failed(store.ErrCondition), false
		case "ValidationError", "ItemCollectionSizeLimitExceeded":
			return of[i].Failed(&serviceError{store.ErrRefused, said}), false
		case "TransactionConflict":
			err = of[i].Failed(&serviceError{store.ErrConflict, said})
		default: // throttled
			err = of[i].Failed(fmt.Errorf("%s: %s", code, said))
		}
	}
	if err == nil {
		err = fmt.Errorf("cancelled without a reason: %s", aws.ToString(c.Message))
	}
	return err, true
}

// transactUnits is the least cost of a write or a check in a transaction.
const transactUnits = 2

// atLeast raises the reported use of a transaction to the one that DynamoDB documents: two
// units for each write. DynamoDB Local answers 4 for a transaction of any size.
func atLeast(said []types.ConsumedCapacity, of []*store.Write) []types.ConsumedCapacity {
	least := map[string]float64{}
	for _, w := range of {
		least[w.Table] += transactUnits
	}
	for i := range said {
		c := &said[i]
		if units := least[aws.ToString(c.TableName)]; aws.ToFloat64(c.CapacityUnits) < units {
			c.CapacityUnits = &units
			if c.WriteCapacityUnits != nil {
				c.WriteCapacityUnits = &units
			}
		}
	}
	return said
}
