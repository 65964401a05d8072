package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/lambda"
	"weir/internal/lambda/lambdatest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// world is a store whose stream lists the shards that the test says.
type world struct {
	store.Store
	t      *testing.T
	model  *model.Model
	now    time.Time
	shards []string
	denied bool
	next   int
}

func (w *world) Shards(context.Context, string) (out []store.Shard, err error) {
	if w.denied {
		return nil, errors.New("not authorized")
	}
	for _, id := range w.shards {
		out = append(out, store.Shard{ID: id})
	}
	return out, nil
}

func newWorld(t *testing.T) *world {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	return worldOf(t, m, inMemory)
}

// inMemory and onDynamoDB open the store of a world.
func inMemory(t *testing.T, tables []store.Table) store.Store {
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
	failtest.On(t, err)
	return db
}

// onDynamoDB makes tables without a TTL: the clock of a world stands in the past, and DynamoDB Local deletes
// what has expired by its own clock.
func onDynamoDB(t *testing.T, tables []store.Table) store.Store {
	tables = slices.Clone(tables)
	for i := range tables {
		tables[i].TTL = ""
	}
	return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
}

func worldOf(t *testing.T, m *model.Model, open func(*testing.T, []store.Table) store.Store) *world {
	tables := []store.Table{owntable.Table()}
	for _, mt := range m.Tables {
		st := mt.Table
		st.Stream = true
		tables = append(tables, st)
	}
	db := open(t, tables)
	t.Cleanup(func() { db.Close() })
	return &world{Store: lambdatest.Unrecorded{Store: db}, t: t, model: m, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// twice invokes the function with records of the world's table, and once more with the same.
func (w *world) twice(h *lambda.Handler, records ...string) {
	w.t.Helper()
	payload := strings.Replace(ofShard(recordsOf(records...)), "table/gallery", "table/"+w.model.Tables[0].Name, 1)
	for range 2 {
		if out, err := h.Invoke(w.t.Context(), []byte(payload)); err != nil || !strings.HasPrefix(string(out), `{"batchItemFailures":[]`) {
			w.t.Fatalf("%.300s %v", out, err)
		}
	}
}

func (w *world) handler() *lambda.Handler {
	run := &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w, Now: func() time.Time { return w.now }, Mover: &ingest.Mover{Model: w.model, Store: w}}
	return lambda.New(run, func(context.Context) error { return nil })
}

// add invokes the function with a record of the shard that puts a picture into an
// album.
func (w *world) add(h *lambda.Handler, shard, album string) {
	w.t.Helper()
	w.next++
	w.invoke(h, shard, album, w.next)
}

func (w *world) invoke(h *lambda.Handler, shard, album string, n int) {
	w.t.Helper()
	if err := w.try(h, shard, album, n); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) try(h *lambda.Handler, shard, album string, n int) error {
	w.t.Helper()
	row := fmt.Sprintf(`"PK":{"S":"ALBUM#%s"},"SK":{"S":"MEDIA#%d"}`, album, n)
	record := fmt.Sprintf(`{"eventID":"%d","eventName":"INSERT","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/gallery/stream/x","dynamodb":{"SequenceNumber":"%d","ApproximateCreationDateTime":1767225600,"Keys":{%s},"NewImage":{%s,"EntityType":{"S":"AlbumMedia"},"albumId":{"S":"%s"},"mediaId":{"S":"%d"},"addedAt":{"S":"2025-01-01T00:00:00Z"}}}}`,
		n, n, row, row, album, n)
	event := fmt.Sprintf(`{"Records":[%s],"window":{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:05:00Z"},"shardId":%q,"eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/gallery/stream/x","state":{},"isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false}`, record, shard)
	out, err := h.Invoke(w.t.Context(), []byte(event))
	if err != nil {
		return err
	}
	var answer struct {
		Failures *[]json.RawMessage `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Failures == nil || len(*answer.Failures) > 0 {
		w.t.Fatalf("%s, %v", out, err)
	}
	return nil
}

// ledger reads an album's ledger: its count, and the shards that it has positions of.
func (w *world) ledger(album string) (count int64, shards []string) {
	ref := store.Ref{Table: "gallery", Key: store.Key{Partition: value.OfString("ALBUM#" + album), Sort: value.OfString("METADATA")}}
	rows, err := w.Get(w.t.Context(), []store.Ref{owntable.Ledger("gallery", ref)})
	if err != nil {
		w.t.Fatal(err)
	}
	count, _ = rows[0].Get(owntable.SumAccumulator("mediaCount")).Int64()
	for _, a := range rows[0] {
		for _, shard := range []string{"s1", "s2", "s3", "s4"} {
			if a.Name == owntable.PositionOf(owntable.ShardKey("gallery", shard)) {
				shards = append(shards, shard)
			}
		}
	}
	slices.Sort(shards)
	return count, shards
}

func (w *world) want(album string, count int64, shards ...string) {
	w.t.Helper()
	if n, have := w.ledger(album); n != count || !slices.Equal(have, shards) {
		w.t.Errorf("album %s: %d with positions of %v; want %d with %v", album, n, have, count, shards)
	}
}

// set changes an attribute of a row of our table.
func (w *world) set(at store.Ref, attr string, v value.Value) {
	w.t.Helper()
	out, err := w.Write(w.t.Context(), []store.Write{{Ref: at, Ops: []store.Op{{Kind: store.Set, Attr: attr, Value: v}}}})
	if err != nil || out[0].Err != nil {
		w.t.Fatal(out, err)
	}
}

// TestJobOfNewerVersion: a job that no kind of this version knows is said, and holds no event up.
func TestJobOfNewerVersion(t *testing.T) {
	w := newWorld(t)
	w.shards = []string{"s1"}
	w.set(owntable.Ref(owntable.Jobs("gallery"), "0"), "later", value.OfInt(1))
	h := w.handler()
	said := 0
	h.Report = func(r lambda.Report) {
		if errors.Is(r.Waits, runner.ErrNoJob) && r.Why == nil && r.Again == 0 {
			said++
		}
	}
	w.add(h, "s1", "a")
	w.want("a", 1, "s1")
	if said != 1 {
		t.Errorf("it was said %d times that a job waits", said)
	}
}

// unreadable is a store one of whose rows cannot be read.
type unreadable struct {
	store.Store
	row store.Ref
}

var errUnreadable = errors.New("not authorized")

func (u *unreadable) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if slices.ContainsFunc(refs, func(r store.Ref) bool { return r.String() == u.row.String() }) {
		return nil, errUnreadable
	}
	return u.Store.Get(ctx, refs)
}

// TestJobThatFails: an event ends with the error of a job that fails, once all other jobs are done.
func TestJobThatFails(t *testing.T) {
	w := newWorld(t)
	w.shards = []string{"s1"}
	list := func(i int) store.Ref {
		return owntable.Followed("gallery", "Album.title", store.Ref{Table: "gallery", Key: store.Key{Partition: value.OfString(fmt.Sprint(i)), Sort: value.OfString("METADATA")}})
	}
	for i := range 150 {
		job := owntable.EntriesJob(list(i))
		if out, err := w.Write(t.Context(), []store.Write{job.Begin("gallery", time.Now())}); err != nil || out[0].Err != nil {
			t.Fatal(out, err)
		}
	}
	w.set(owntable.Ref(owntable.Jobs("gallery"), "0"), "later", value.OfInt(1))
	u := &unreadable{w.Store, list(0)}
	w.Store = u
	h := w.handler()
	if err := w.try(h, "s1", "a", 1); !errors.Is(err, errUnreadable) {
		t.Errorf("%v, want what the job fails with", err)
	}
	page, err := w.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Jobs("gallery"))})
	if err != nil || len(page.Rows) != 2 {
		t.Errorf("%d jobs are left (%v), want the one that fails and the one that no kind knows", len(page.Rows), err)
	}
	u.row = store.Ref{}
	w.invoke(h, "s1", "a", 1)
	w.want("a", 1, "s1")
}

// TestUnreadableShard: a shard's row that cannot be read stops only this shard, with an
// error that names the row. The shard continues when the row is deleted.
func TestUnreadableShard(t *testing.T) {
	w := newWorld(t)
	w.shards = []string{"s1", "s2"}
	h := w.handler()
	w.add(h, "s1", "a")
	at := owntable.Checkpoint("gallery", "gallery", "s1").Ref
	w.set(at, "a", value.OfInt(7))
	if err := w.try(h, "s1", "a", 2); !errors.Is(err, owntable.ErrRow) || !strings.Contains(err.Error(), "shard s1 of gallery") || !strings.Contains(err.Error(), "attribute a is 7") {
		t.Error(err)
	}
	w.next = 2
	w.add(h, "s2", "a")
	w.want("a", 2, "s1", "s2")
	if _, err := w.Write(t.Context(), []store.Write{{Ref: at, Delete: true}}); err != nil {
		t.Fatal(err)
	}
	w.invoke(h, "s1", "a", 2)
	w.want("a", 3, "s1", "s2")
}
