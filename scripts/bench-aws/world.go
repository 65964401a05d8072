package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/system"
	"weir/internal/value"
)

// concurrency is the number of concurrent requests where there is more than one, if nothing
// else is said.
const concurrency = 32

// world is a separate DynamoDB in which the tables exist, and the rows that the recording
// counts towards.
type world struct {
	model    *model.Model
	work     workload
	store    *dynamodb.Store
	client   *sdk.Client
	units    meter
	deployed []string
	atOnce   int // concurrent requests
}

// meter sums write units, and the store's requests by operation.
type meter struct {
	mu    sync.Mutex
	write float64
	calls map[string]int
}

func (m *meter) add(n float64) { m.mu.Lock(); m.write += n; m.mu.Unlock() }
func (m *meter) reset()        { m.mu.Lock(); m.write, m.calls = 0, map[string]int{}; m.mu.Unlock() }
func (m *meter) sum() float64  { m.mu.Lock(); defer m.mu.Unlock(); return m.write }

// countRequest counts a request of the store.
func (m *meter) countRequest(c dynamodb.Capacity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.write += c.Write
	if m.calls != nil {
		m.calls[c.Op]++
	}
}

// requestCounts returns the number of the store's requests since the reset, by operation.
func (m *meter) requestCounts() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.calls)
}

// markers is the table in which the marker handler remembers records.
var markers = store.Table{Name: "markers", Key: store.KeySchema{Partition: store.KeyAttr{Name: "id", Type: value.String}}}

func newWorld(ctx context.Context, m *model.Model, w workload, atOnce int) (*world, error) {
	cfg, err := dynamodb.Config(ctx)
	if err != nil {
		return nil, err
	}
	// DynamoDB Local keeps the tables of each access key apart.
	cfg.Credentials = credentials.NewStaticCredentialsProvider(rand.Text(), "x", "")
	wd := &world{model: m, work: w, atOnce: atOnce}
	wd.client = sdk.NewFromConfig(cfg, func(o *sdk.Options) { o.DisableValidateResponseChecksum = true })
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		return nil, err
	}
	tables = append(tables, markers)
	wd.store = dynamodb.Open(cfg, tables, dynamodb.Options{Concurrency: atOnce, Consumed: wd.units.countRequest})
	for _, t := range tables {
		if _, err := wd.store.Deploy(ctx, t.Name, true); err != nil {
			return nil, err
		}
		wd.deployed = append(wd.deployed, t.Name)
	}
	ws := make([]store.Write, len(w.rows))
	for i, row := range w.rows {
		ws[i] = store.Write{Ref: refOf(m, row), Put: row}
	}
	_, err = wd.store.Write(ctx, ws)
	return wd, err
}

func (wd *world) endWorld() {
	for _, name := range wd.deployed {
		_, _ = wd.client.DeleteTable(context.Background(), &sdk.DeleteTableInput{TableName: aws.String(name)})
	}
	wd.store.Close()
}

// recountTarget recounts and compares.
func (wd *world) recountTarget(ctx context.Context) error { return wd.checkIn(ctx, wd.store) }

func (wd *world) checkIn(ctx context.Context, db store.Store) error {
	want := make([]int64, len(wd.work.rows))
	for _, t := range wd.work.target {
		want[t]++
	}
	refs := make([]store.Ref, len(wd.work.rows))
	for i, row := range wd.work.rows {
		refs[i] = refOf(wd.model, row)
	}
	got, err := db.Get(ctx, refs)
	if err != nil {
		return err
	}
	for i := range got {
		if n, _ := got[i].Get(wd.work.attr).Int64(); n != want[i] {
			return fmt.Errorf("%v shows %d, should show %d", refs[i], n, want[i])
		}
	}
	return nil
}

// weirHandler returns a handler that calls the runner.
func (wd *world) weirHandler() handler {
	r := &runner.Runner{Kinds: kinds.All(), Model: wd.model, Store: wd.store, Now: time.Now, Mover: &ingest.Mover{Model: wd.model, Store: wd.store}}
	return func(ctx context.Context, first, last int) error {
		b := runner.Batch{ShardKey: owntable.ShardKey(wd.model.Tables[0].Name, "shard")}
		for i := first; i < last; i++ {
			c, ok := projections.NewChange(wd.model.Tables[0], &wd.work.records[i])
			if !ok {
				return fmt.Errorf("record %d has no key", i)
			}
			b.Changes = append(b.Changes, c)
		}
		_, err := r.ApplyRows(ctx, b)
		return err
	}
}

// targetKey returns the key of the row that record i counts towards.
func (wd *world) targetKey(i int) map[string]types.AttributeValue {
	row := wd.work.rows[wd.work.target[i]]
	return map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: row.Get("PK").Text()}, "SK": &types.AttributeValueMemberS{Value: row.Get("SK").Text()},
	}
}

var one = map[string]types.AttributeValue{":1": &types.AttributeValueMemberN{Value: "1"}}

func (wd *world) addRecord(ctx context.Context, i int) error {
	out, err := wd.client.UpdateItem(ctx, &sdk.UpdateItemInput{
		TableName: aws.String(wd.model.Tables[0].Name), Key: wd.targetKey(i), UpdateExpression: aws.String("ADD " + wd.work.attr + " :1"),
		ExpressionAttributeValues: one, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err == nil {
		wd.units.add(aws.ToFloat64(out.ConsumedCapacity.CapacityUnits))
	}
	return err
}

// plainHandler returns a handler that adds one for each record.
func (wd *world) plainHandler() handler {
	return func(ctx context.Context, first, last int) error {
		for i := first; i < last; i++ {
			if err := wd.addRecord(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
}

// plainAtOnce is plain with many concurrent requests.
func (wd *world) plainAtOnce() handler {
	return func(ctx context.Context, first, last int) error {
		next := make(chan int)
		errs := make(chan error, wd.atOnce)
		var wg sync.WaitGroup
		for range wd.atOnce {
			wg.Go(func() {
				for i := range next {
					if err := wd.addRecord(ctx, i); err != nil {
						select {
						case errs <- err:
						default:
						}
					}
				}
			})
		}
		for i := first; i < last; i++ {
			next <- i
		}
		close(next)
		wg.Wait()
		close(errs)
		return <-errs
	}
}

// markingHandler returns a handler that adds one and remembers the record in one transaction.
func (wd *world) markingHandler() handler {
	return func(ctx context.Context, first, last int) error {
		for i := first; i < last; i++ {
			out, err := wd.client.TransactWriteItems(ctx, &sdk.TransactWriteItemsInput{
				ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
				TransactItems: []types.TransactWriteItem{
					{Put: &types.Put{TableName: aws.String(markers.Name), ConditionExpression: aws.String("attribute_not_exists(id)"),
						Item: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: owntable.Hash(wd.work.records[i].Position.String())}}}},
					{Update: &types.Update{TableName: aws.String(wd.model.Tables[0].Name), Key: wd.targetKey(i),
						UpdateExpression: aws.String("ADD " + wd.work.attr + " :1"), ExpressionAttributeValues: one}},
				},
			})
			if err != nil {
				return err
			}
			for _, c := range out.ConsumedCapacity {
				wd.units.add(documentedUnits(aws.ToFloat64(c.CapacityUnits)))
			}
		}
		return nil
	}
}

// documentedUnits returns the units that DynamoDB bills for a write of a transaction, of up to 1 KB, for which DynamoDB
// Local has answered with so many units: 4 for the row and 4 for each of its index entries. By AWS's
// documentation, a row in a transaction is 2 and an entry is 1.
func documentedUnits(local float64) float64 { return 2 + (local/4 - 1) }
