package status

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/lambda"
	"weir/internal/lambda/lambdatest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// lagging returns what status says of lags.
func (c *clocked) lagging() string {
	c.Helper()
	st, err := Of(c.Context(), c.System, c.Models[0])
	failtest.On(c, err)
	var out strings.Builder
	for _, t := range st.Tables {
		if t.Lag != nil {
			fmt.Fprintln(&out, strings.TrimSpace(lagLine(t.Lag)))
		}
	}
	for i := range st.Derivations {
		if d := &st.Derivations[i]; d.applied() {
			fmt.Fprint(&out, d.Name, endLine(d.Lag))
		}
	}
	return out.String()
}

// lags fails the test if status says something else.
func (c *clocked) lags(want string) {
	c.Helper()
	if is := c.lagging(); is != want {
		c.Errorf("status says\n%s\nwant\n%s", is, want)
	}
}

// read makes a reader the one that the catalog has.
func (c *clocked) read(by catalog.Reader) {
	c.Helper()
	_, err := c.Models[0].Runner.Catalog.Change(c.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		pin := was.Tables["Shop"]
		pin.Reader = string(by)
		was.Tables = map[string]owntable.Pin{"Shop": pin}
		return was, nil
	})
	failtest.On(c, err)
}

// TestLag: the lag is the age of the oldest record behind a checkpoint, in whichever shard it is, and 0
// only where the stream shows that there is none.
func TestLag(t *testing.T) {
	c := openClocked(t, shop)
	c.lags("")
	failtest.On(t, c.Models[0].Runner.Start(t.Context()))
	c.lags("all applied, 2 shards\nCustomer.orderCount") // no program has read the stream, which is empty
	c.orders(0, 20)
	c.at = c.at.Add(time.Minute)
	c.lags("1m0s behind, in 2 of 2 shards\nCustomer.orderCount; 1m0s behind")
	c.apply()
	c.lags("all applied, 2 shards\nCustomer.orderCount")
	c.at = c.at.Add(time.Hour)
	c.orders(20, 21)
	c.at = c.at.Add(90 * time.Second)
	c.lags("1m30s behind, in 1 of 2 shards\nCustomer.orderCount; 1m30s behind")
	c.orders(21, 40)
	c.lags("1m30s behind, in 2 of 2 shards\nCustomer.orderCount; 1m30s behind")
	c.apply()
	c.lags("all applied, 2 shards\nCustomer.orderCount")
}

// TestLagUnknown: what is not known is not 0, and says what tells it.
func TestLagUnknown(t *testing.T) {
	const after = "\nCustomer.orderCount; lag unknown"
	c := openClocked(t, shop)
	c.orders(0, 20)
	c.apply()
	part := c.Models[0]
	plain := part.Runner
	over := func(s store.Store) {
		r := *plain
		r.Store, part.Runner = s, &r
	}
	over(&failing{Store: c.Store, err: fmt.Errorf("shard 1 after 7: %w", store.ErrTrimmed)})
	if is := c.lagging(); !strings.Contains(is, "lag unknown: shard 1 after 7") || !strings.HasSuffix(is, after) {
		t.Error(is)
	}
	over(&without{Store: c.Store})
	if is := c.lagging(); !strings.Contains(is, "lag unknown: the stream no longer lists shard") || !strings.HasSuffix(is, after) {
		t.Error(is)
	}
	part.Runner = plain

	shards, err := c.Store.Shards(t.Context(), "Shop")
	failtest.On(t, err)
	at := owntable.Checkpoint("shop", "Shop", shards[0].ID).Ref
	c.put(store.Write{Ref: at, Ops: []store.Op{{Kind: store.Set, Attr: owntable.Position, Value: value.OfInt(1)}}})
	if is := c.lagging(); !strings.Contains(is, "lag unknown: a row of weir's own table cannot be read: in table weir, row \"check|shop\"") || !strings.HasSuffix(is, after) {
		t.Error(is)
	}
}

// put does a write.
func (c *clocked) put(w store.Write) {
	c.Helper()
	if out, err := c.Store.Write(c.Context(), []store.Write{w}); err != nil || out[0].Err != nil {
		c.Fatal(err, out)
	}
}

// failing is a store whose streams cannot be read.
type failing struct {
	store.Store
	err error
}

func (f *failing) Read(context.Context, string, string, events.Position, int) (store.Records, error) {
	return store.Records{}, f.err
}

// without is a store whose streams have lost a shard.
type without struct{ store.Store }

func (w *without) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	all, err := w.Store.Shards(ctx, table)
	return all[1:], err
}

// hollow is a store whose streams, as those of DynamoDB may, answer with empty pages before the next record.
type hollow struct {
	store.Store
	empty atomic.Int64 // pages that are left to be empty
}

func (h *hollow) Tip() store.Tip { return store.Tip{Lag: time.Second} }

func (h *hollow) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	if h.empty.Add(-1) >= 0 {
		return store.Records{}, nil
	}
	return h.Store.Read(ctx, table, shard, after, limit)
}

// TestLagBehindEmptyPages: an empty page does not say that there are no more records.
func TestLagBehindEmptyPages(t *testing.T) {
	c := openClocked(t, shop)
	c.orders(0, 20)
	c.apply()
	r := *c.Models[0].Runner
	h := &hollow{Store: c.Store}
	h.empty.Store(2)
	r.Store = h
	c.Models[0].Runner = &r
	c.orders(20, 40)
	c.at = c.at.Add(time.Minute)
	c.lags("1m0s behind, in 2 of 2 shards\nCustomer.orderCount; 1m0s behind")
}

// TestLagOfAFunction: a function notes how far it is, and of an event that it has not finished
// the records that it has applied do not count.
func TestLagOfAFunction(t *testing.T) {
	c := openClocked(t, shop)
	failtest.On(t, c.Models[0].Runner.Start(t.Context()))
	c.read(catalog.Shard)
	c.orders(0, 20)
	c.at = c.at.Add(time.Minute)
	c.lags("1m0s behind, in 2 of 2 shards\nCustomer.orderCount; 1m0s behind")
	for range 10 {
		c.invoke()
	}
	c.lags("all applied, 2 shards\nCustomer.orderCount")
	c.orders(40, 60)
	c.at = c.at.Add(time.Second)
	c.lags("1s behind, in 2 of 2 shards\nCustomer.orderCount; 1s behind")
	for range 10 {
		c.invoke()
	}
	c.lags("all applied, 2 shards\nCustomer.orderCount")

	shards, err := c.Store.Shards(t.Context(), "Shop")
	failtest.On(t, err)
	at := owntable.Checkpoint("shop", "Shop", shards[0].ID)
	row, err := store.GetRow(t.Context(), c.Store, at.Ref)
	failtest.On(t, err)
	is, err := owntable.DecodeFunctionShard(row)
	failtest.On(t, err)
	half := is // an invocation has begun with the second half of the records, and applied none of them
	all, err := c.Store.Read(t.Context(), "Shop", shards[0].ID, events.Position{}, 1000)
	failtest.On(t, err)
	half.At = all.Records[len(all.Records)-2].Position
	c.put(is.Becomes(at, half, c.at.Add(time.Hour)))
	c.at = c.at.Add(time.Second)
	if got := c.lagging(); !strings.HasPrefix(got, "2s behind, in 1 of 2 shards") && !strings.HasPrefix(got, "1s behind, in 1 of 2 shards") {
		t.Error(got)
	}
}

// invoke gives a function what its shards have behind what it has applied.
func (c *clocked) invoke() {
	c.Helper()
	run := c.Models[0].Runner
	h := lambda.New(run, func(context.Context) error { return nil })
	shards, err := c.Store.Shards(c.Context(), "Shop")
	failtest.On(c, err)
	for _, s := range shards {
		place, err := reader.ReadPlace(c.Context(), run, "Shop", s.ID)
		failtest.On(c, err)
		page, err := c.Store.Read(c.Context(), "Shop", s.ID, place.At, 100)
		failtest.On(c, err)
		var records []json.RawMessage
		for i := range page.Records {
			records = append(records, lambdatest.Record("Shop", &page.Records[i]))
		}
		if len(records) == 0 {
			continue
		}
		event, err := json.Marshal(map[string]any{
			"Records": records, "shardId": s.ID, "state": map[string]any{}, "window": map[string]any{"start": "2026-01-02T03:00:00Z", "end": "2026-01-02T03:05:00Z"},
		})
		failtest.On(c, err)
		if reply, err := h.Invoke(c.Context(), event); err != nil || strings.Contains(string(reply), "itemIdentifier") {
			c.Fatal(string(reply), err)
		}
	}
}

// costs counts what a status asks of a store.
type costs struct {
	store.Store
	records, queries atomic.Int64
}

func (c *costs) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	page, err := c.Store.Read(ctx, table, shard, after, limit)
	c.records.Add(int64(len(page.Records)))
	return page, err
}

func (c *costs) Query(ctx context.Context, q store.Query) (store.Page, error) {
	c.queries.Add(1)
	if q.Partition.IsMissing() || q.Table != owntable.TableName {
		return store.Page{}, fmt.Errorf("a status reads %+v", q)
	}
	return c.Store.Query(ctx, q)
}

// TestLagCost: what a lag costs does not grow with the records that are not applied, and it scans
// nothing.
func TestLagCost(t *testing.T) {
	c := openClocked(t, shop)
	c.orders(0, 20)
	c.apply()
	counts := &costs{Store: c.Store}
	r := *c.Models[0].Runner
	r.Store = counts
	c.Models[0].Runner = &r
	c.orders(20, 1000)
	if is := c.lagging(); !strings.Contains(is, "in 2 of 2 shards") || counts.records.Load() != 2 || counts.queries.Load() != 2 { // of shards, and of letters
		t.Errorf("%s; %d records and %d queries are read", is, counts.records.Load(), counts.queries.Load())
	}
}

// TestRecentLag: however many ask a server, it reads the streams every ten seconds, and not at all if no
// one asks for lags.
func TestRecentLag(t *testing.T) {
	c := openClocked(t, shop)
	c.orders(0, 20)
	c.apply()
	recent := NewRecent(c.System, c.Models[0], func() time.Time { return c.at })
	c.orders(20, 40)
	if is, err := recent.Status(t.Context()); err != nil || is.Tables[0].Lag != nil || !is.LagAt.IsZero() {
		t.Error(is, err)
	}
	for _, step := range []struct {
		after time.Duration
		want  float64
	}{{0, 0}, {9 * time.Second, 0}, {time.Second, 10}} {
		c.at = c.at.Add(step.after)
		is, err := recent.Lagging(t.Context())
		if err != nil || is.Tables[0].Lag.Behind != 2 || *is.Tables[0].Lag.Seconds != step.want || *is.Derivations[0].Lag != step.want {
			t.Fatal(is, err)
		}
	}
}

// TestLagOnDynamoDB: the same, of real shards.
func TestLagOnDynamoDB(t *testing.T) {
	t.Parallel()
	m, err := model.Parse("shop.yaml", []byte(shop))
	failtest.On(t, err)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(t, err)
	db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	s, err := system.Over(t.Context(), db, "", []*model.Model{m}, system.Options{NoSearch: true})
	failtest.On(t, err)
	c := &clocked{T: t, System: s}
	c.orders(0, 20)
	c.apply()
	if is := c.lagging(); !strings.HasPrefix(is, "all applied, ") || !strings.HasSuffix(is, "\nCustomer.orderCount") {
		t.Error(is)
	}
	c.orders(20, 40)
	time.Sleep(2 * time.Second)
	st, err := Of(t.Context(), s, s.Models[0])
	failtest.On(t, err)
	if l := st.Tables[0].Lag; l.Behind == 0 || l.Seconds == nil || *l.Seconds < 1 || *l.Seconds > 600 {
		t.Errorf("%+v", l)
	}
	c.apply()
	if is := c.lagging(); !strings.HasPrefix(is, "all applied, ") {
		t.Error(is)
	}
}
