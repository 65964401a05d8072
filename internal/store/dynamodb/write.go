package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/parallel"
	"weir/internal/store"
	"weir/internal/value"
)

// Write executes each write by itself. The error is that of the first write whose
// outcome is unknown. Writes that had not started by then were not sent.
func (s *Store) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if err := s.beginCall(ctx); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	c := call{Store: s, writes: ws, out: make([]store.Outcome, len(ws))}
	err := c.run(ctx)
	if err != nil {
		err = fmt.Errorf("write: %w", err)
	}
	return c.out, err
}

// call is one call of Write.
type call struct {
	*Store
	writes []store.Write
	out    []store.Outcome
}

// run executes the chains in parallel, and after an error begins no more of them.
// Chains that have begun are finished, so a caller that gets an error knows of each write with an
// outcome how it ended, and nothing of the others.
func (c *call) run(ctx context.Context) error {
	chains := c.groupByKey()
	return c.forEach(len(chains), func(i int) error { return c.do(ctx, chains[i]) })
}

// forEach calls do for each i below n, as many at a time as requests may run, and returns the first error, after which it
// begins no more.
func (s *Store) forEach(n int, do func(i int) error) error {
	var first atomic.Pointer[error]
	_ = parallel.Do(n, s.opts.Concurrency, func(i int) error {
		if first.Load() == nil {
			if err := do(i); err != nil {
				first.CompareAndSwap(nil, &err)
			}
		}
		return nil
	})
	if err := first.Load(); err != nil {
		return *err
	}
	return nil
}

// groupByKey validates each write and groups the writes by key.
// Writes of one key are one chain, in their order, as the contract promises of a call.
func (c *call) groupByKey() [][]int {
	at := make(map[rowID]int, len(c.writes))
	var out [][]int
	for i := range c.writes {
		w := &c.writes[i]
		if err := c.check(w); err != nil {
			c.out[i].Err = w.Failed(err)
			continue
		}
		id := idOf(w.Table, w.Key)
		if n, ok := at[id]; ok {
			out[n] = append(out[n], i)
			continue
		}
		at[id] = len(out)
		out = append(out, []int{i})
	}
	return out
}

// rowID is a row's table and key in a comparable form: equal keys have equal texts.
type rowID struct{ table, partition, sort string }

// idOf returns the row's id. Numbers have one text for each value, so 1 and 1.0 are one row.
func idOf(table string, k store.Key) rowID {
	return rowID{table, keyText(k.Partition), keyText(k.Sort)}
}

// keyText tells values of different types apart, also where their texts are equal.
func keyText(v value.Value) string { return v.Kind().Descriptor() + v.Text() }

// check refuses, without a request, a write that can never succeed.
func (c *call) check(w *store.Write) error {
	t, err := c.table(w.Table)
	if err != nil {
		return err
	}
	if w.Check {
		return fmt.Errorf("%w: a check outside a transaction", store.ErrRefused)
	}
	return checkWrite(t, w)
}

// checkWrite returns ErrRefused for a write that can never succeed. Every check needs
// only the write, not the row.
func checkWrite(t *store.Table, w *store.Write) error {
	if err := t.Validate(w); err != nil {
		return err
	}
	if w.Put != nil {
		if err := store.CheckSize(w.Put); err != nil {
			return err
		}
		return checkIndexes(t, w.Put)
	}
	var sets []value.Attr
	for i := range w.Ops {
		if w.Ops[i].Kind == store.Set {
			sets = append(sets, value.Attr{Name: w.Ops[i].Attr, Value: w.Ops[i].Value})
		}
	}
	return checkIndexes(t, value.NewItem(sets...))
}

// checkIndexes returns ErrRefused if an attribute to write has a wrong value for the
// key of an index.
func checkIndexes(t *store.Table, row value.Item) error {
	for i := range t.Indexes {
		ix := t.Indexes[i]
		if ix.Local {
			ix.Key.Partition = store.KeyAttr{} // the table's own, which was checked
		}
		if _, _, err := store.IndexEntry(&ix, row); err != nil {
			return err
		}
	}
	return nil
}

// do executes a chain. Its writes run one after the other; an unknown outcome
// ends it, and its later writes are not sent.
func (c *call) do(ctx context.Context, chain []int) error {
	for _, i := range chain {
		if err := c.one(ctx, i); err != nil {
			return c.writes[i].Failed(err)
		}
	}
	return nil
}

// one executes a write. It returns an error if the outcome is unknown; the Outcome has
// it, too.
func (c *call) one(ctx context.Context, i int) (err error) {
	ctx, end := c.opts.Observe.Begin(ctx, store.Call{Method: store.IsWrite, Of: c.writes[i : i+1], Out: c.out[i : i+1]})
	defer func() { end(err) }()
	w, out := &c.writes[i], &c.out[i]
	t := c.tables[w.Table]
	if err := c.writeOrigin(ctx, t, w); err != nil {
		out.Err = err
		return err
	}
	var row attributes
	if err := c.opts.Writes.Await(ctx, t.Name); err != nil {
		out.Err = err
		return err
	}
	err = c.persistRows(ctx, []rowID{idOf(w.Table, w.Key)}, whenAgain(w), func(ctx context.Context) (err error) {
		row, err = c.send(ctx, t, w)
		return err
	})
	known := named(err)
	if refusal := (*refusal)(nil); errors.As(err, &refusal) {
		known = refusal.error
	}
	switch {
	case err != nil && known == nil:
		out.Err = err
		return err
	case errors.Is(known, store.ErrCondition):
		row = standing(err)
		c.opts.Writes.Spent(ctx, t.Name, c.unitsOf(row)) // a write that does not happen costs as much as one that does
	}
	if known != nil {
		out.Err = w.Failed(known)
	}
	if !w.Return {
		return nil
	}
	if err == nil && w.Put != nil {
		out.Row = w.Put.Clone()
		return nil
	}
	if out.Row, err = rowOf(row); err != nil {
		out.Err = err
	}
	return err
}

// refusal marks a write for which no request could be made.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// whenAgain says when a write with an unknown outcome may be sent again. Without leave of
// the caller, it may be if executing it twice has the same effect and the same result as
// executing it once.
func whenAgain(w *store.Write) again {
	if w.Repeatable {
		return soon
	}
	if len(w.If) > 0 {
		return never
	}
	for i := range w.Ops {
		if w.Ops[i].Kind == store.Add {
			return never
		}
	}
	return later
}

// send sends one request. It returns the row after an update.
// It sends once. Whether it may be sent again is the caller's decision (retry.go).
func (s *Store) send(ctx context.Context, t *store.Table, w *store.Write) (attributes, error) {
	p, err := planWrite(t, w)
	if err != nil {
		return nil, &refusal{err}
	}
	capacity, failing := s.returnCapacity(), returnOnFailure(w)
	switch {
	case w.Put != nil:
		out, err := s.db.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &t.Name, Item: p.item, ConditionExpression: p.condition, ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values,
			ReturnConsumedCapacity: capacity, ReturnValuesOnConditionCheckFailure: failing,
		})
		if err == nil {
			s.consumedOne(ctx, "PutItem", true, out.ConsumedCapacity)
		}
		return nil, err
	case w.Delete:
		out, err := s.db.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &t.Name, Key: p.key, ConditionExpression: p.condition, ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values,
			ReturnConsumedCapacity: capacity, ReturnValuesOnConditionCheckFailure: failing,
		})
		if err == nil {
			s.consumedOne(ctx, "DeleteItem", true, out.ConsumedCapacity)
		}
		return nil, err
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: p.key, UpdateExpression: p.update, ConditionExpression: p.condition,
		ExpressionAttributeNames: p.names, ExpressionAttributeValues: p.values,
		ReturnConsumedCapacity: capacity, ReturnValuesOnConditionCheckFailure: failing,
	}
	if w.Return {
		in.ReturnValues = types.ReturnValueAllNew
	}
	out, err := s.db.UpdateItem(ctx, in)
	if err != nil {
		return nil, err
	}
	s.consumedOne(ctx, "UpdateItem", true, out.ConsumedCapacity)
	return out.Attributes, nil
}

// planned is a write in the SDK's form.
type planned struct {
	key, item         attributes
	update, condition *string
	names             map[string]string
	values            attributes
}

// planWrite puts a write into the SDK's form; its error wraps ErrRefused.
func planWrite(t *store.Table, w *store.Write) (p planned, err error) {
	if w.Put != nil {
		if p.item, err = toSDKItem(w.Put); err == nil {
			withOrigin(t, w, p.item)
		}
	} else {
		p.key, err = keyOf(t, w.Key)
	}
	if err != nil {
		return p, err
	}
	var x store.Placeholders
	if len(w.Ops) > 0 {
		p.update = textOf(x.Update(opsWithOrigin(t, w)))
	}
	p.condition = textOf(x.Condition(w.If))
	p.names, p.values, err = boundTo(&x)
	return p, err
}

// returnOnFailure asks for the row for which a condition failed.
func returnOnFailure(w *store.Write) types.ReturnValuesOnConditionCheckFailure {
	if w.Return {
		return types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return types.ReturnValuesOnConditionCheckFailureNone
}

// unitsOf is the cost of a write of a row of this size, without indexes; 1 if it is not known.
func (c *call) unitsOf(row attributes) float64 {
	item, err := rowOf(row)
	if err != nil || len(row) == 0 {
		return 1
	}
	return float64(store.WriteUnits(item.Size()))
}
