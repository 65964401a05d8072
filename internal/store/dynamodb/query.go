package dynamodb

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"weir/internal/store"
	"weir/internal/value"
)

// Query reads one page of a Query, or of a Scan if no partition is given. On the table
// and on its local indexes the read is strongly consistent. A page may be empty and
// have a Next. A range longer than any key is an error.
func (s *Store) Query(ctx context.Context, q store.Query) (store.Page, error) {
	ctx, end := s.opts.Observe.Begin(ctx, store.Call{Method: store.IsQuery, Table: q.Table})
	page, err := s.queryPage(ctx, &q)
	end(err)
	return page, store.Wrap(err, "query %s %s", q.Table, q.Index)
}

// queryPage reads one page. The page may be empty and have a next key: DynamoDB counts its limits
// before it filters.
func (s *Store) queryPage(ctx context.Context, q *store.Query) (page store.Page, err error) {
	if err := s.beginCall(ctx); err != nil {
		return page, err
	}
	t, err := s.table(q.Table)
	if err != nil {
		return page, err
	}
	keys, err := t.CheckQuery(q)
	if err != nil || empty(q) {
		return page, err
	}
	start, err := startKey(t, keys, q)
	if err != nil {
		return page, err
	}
	var rows []attributes
	var last attributes
	if q.Partition.IsMissing() {
		rows, last, err = s.scanPage(ctx, t, q, start)
	} else {
		rows, last, err = s.keyQuery(ctx, t, keys, q, start)
	}
	if err != nil {
		if known := named(err); known != nil {
			err = known
		}
		return page, err
	}
	if page.Rows, err = rowsOf(rows); err != nil {
		return store.Page{}, err
	}
	if page.Next, err = nextOf(t, keys, q, last); err != nil {
		return store.Page{}, err
	}
	dropBeyond(&page, keys, q)
	return page, nil
}

// empty reports whether no key can match the query: DynamoDB refuses such queries.
func empty(q *store.Query) bool {
	isEmpty := func(v value.Value) bool {
		return (v.Kind() == value.String || v.Kind() == value.Binary) && v.Text() == ""
	}
	r := &q.Sort
	return isEmpty(q.Partition) || isEmpty(r.Equal) || isEmpty(r.Below) ||
		!r.From.IsMissing() && !r.Below.IsMissing() && value.Compare(r.From, r.Below) >= 0
}

// dropBeyond removes from a page the rows that are not below the range's end. BETWEEN is the
// only range with two ends in a key condition, and it includes its upper end.
func dropBeyond(page *store.Page, keys *store.KeySchema, q *store.Query) {
	if q.Sort.Below.IsMissing() || q.Sort.From.IsMissing() {
		return
	}
	kept := page.Rows[:0]
	for _, row := range page.Rows {
		if value.Compare(row.Get(keys.Sort.Name), q.Sort.Below) < 0 {
			kept = append(kept, row)
		} else if !q.Reverse {
			page.Next = nil // only rows beyond the end follow
		}
	}
	page.Rows = kept
}

// scanPage reads one page of a table or index, or of a segment. Throttles and lost connections are
// retried within the store's patience; reading again is always safe.
// last is the key to continue after, empty at the end.
func (s *Store) scanPage(ctx context.Context, t *store.Table, q *store.Query, start attributes) (rows []attributes, last attributes, err error) {
	in := &dynamodb.ScanInput{TableName: &t.Name, IndexName: indexName(q), ConsistentRead: strong(t, q), ExclusiveStartKey: start,
		Limit: limit(q), ReturnConsumedCapacity: s.returnCapacity()}
	if q.Segments > 0 {
		in.Segment, in.TotalSegments = aws.Int32(int32(q.Segment)), aws.Int32(int32(q.Segments))
	}
	out, err := asked(ctx, s, soon, s.db.Scan, in)
	if err != nil {
		return nil, nil, err
	}
	s.consumedOne(ctx, "Scan", false, out.ConsumedCapacity)
	return out.Items, out.LastEvaluatedKey, nil
}

// keyQuery reads one page of one partition, with retries like scanPage.
func (s *Store) keyQuery(ctx context.Context, t *store.Table, keys *store.KeySchema, q *store.Query, start attributes) (rows []attributes, last attributes, err error) {
	var x store.Placeholders
	condition := x.KeyCondition(keys, q)
	names, values, err := boundTo(&x)
	if err != nil {
		return nil, nil, err
	}
	in := &dynamodb.QueryInput{TableName: &t.Name, IndexName: indexName(q), ConsistentRead: strong(t, q), ExclusiveStartKey: start,
		Limit: limit(q), ScanIndexForward: aws.Bool(!q.Reverse), ReturnConsumedCapacity: s.returnCapacity(),
		KeyConditionExpression: &condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values}
	out, err := asked(ctx, s, soon, s.db.Query, in)
	if err != nil {
		return nil, nil, err
	}
	s.consumedOne(ctx, "Query", false, out.ConsumedCapacity)
	return out.Items, out.LastEvaluatedKey, nil
}

// indexName, limit and strong are parts of a request. A read of a global index is never strong: DynamoDB refuses it.
func indexName(q *store.Query) *string {
	if q.Index == "" {
		return nil
	}
	return &q.Index
}

// limit is the most rows of a request, nil for as many as DynamoDB gives (1 MB).
func limit(q *store.Query) *int32 {
	if q.Limit <= 0 {
		return nil
	}
	return aws.Int32(int32(min(q.Limit, 1<<30)))
}

// strong reports whether the read is strongly consistent: it is of the table and of local indexes.
// Global indexes cannot be read so (DynamoDB, read consistency).
func strong(t *store.Table, q *store.Query) *bool {
	return aws.Bool(q.Index == "" || t.Index(q.Index).Local)
}

// startKey is the cursor as an ExclusiveStartKey: the row's key, and the index's.
// DynamoDB takes any key that fits, also that of a row that is gone.
func startKey(t *store.Table, keys *store.KeySchema, q *store.Query) (attributes, error) {
	if q.After == nil {
		return nil, nil
	}
	it := t.Item(q.After.Key)
	if q.Index != "" {
		it = it.With(value.Attr{Name: keys.Partition.Name, Value: q.After.Entry.Partition})
		if keys.Sort.Name != "" {
			it = it.With(value.Attr{Name: keys.Sort.Name, Value: q.After.Entry.Sort})
		}
	}
	return toSDKItem(it)
}

// nextOf is the cursor after a LastEvaluatedKey, nil if that is empty.
func nextOf(t *store.Table, keys *store.KeySchema, q *store.Query, last attributes) (*store.Cursor, error) {
	if len(last) == 0 {
		return nil, nil
	}
	it, err := rowOf(last)
	if err != nil {
		return nil, err
	}
	k, ok := t.KeyOf(it)
	if !ok {
		return nil, fmt.Errorf("the service's cursor is not a key of the table")
	}
	c := &store.Cursor{Key: k}
	if q.Index != "" {
		c.Entry.Partition = it.Get(keys.Partition.Name)
		if keys.Sort.Name != "" {
			c.Entry.Sort = it.Get(keys.Sort.Name)
		}
	}
	return c, nil
}

// rowsOf decodes the rows of an answer, in its order.
func rowsOf(ms []attributes) ([]value.Item, error) {
	var out []value.Item
	for _, m := range ms {
		row, err := rowOf(m)
		if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}
