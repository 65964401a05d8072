package reader_test

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/runner/runnertest"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

// ending is a store whose shards end and are forgotten when the test says so, which
// DynamoDB Local takes hours for.
type ending struct {
	store.Store
	ended, forgotten atomic.Bool
}

func (e *ending) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	page, err := e.Store.Read(ctx, table, shard, after, limit)
	page.End = page.End || e.ended.Load() && len(page.Records) == 0
	return page, err
}

func (e *ending) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	if e.forgotten.Load() {
		return nil, nil
	}
	return e.Store.Shards(ctx, table)
}

// watched is a gallery on DynamoDB, and who follows it.
type watched struct {
	*testing.T
	cfg   aws.Config
	db    store.Store
	table *model.Table
	run   *runner.Runner
}

func watch(t *testing.T) *watched {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	table := m.Tables[0]
	table.Stream = true
	cfg := dynamodbtest.Config(t)
	db := dynamodbtest.Open(t, cfg, []store.Table{owntable.Table(), table.Table}, dynamodb.Options{})
	return &watched{t, cfg, db, table, &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now}}
}

// follow has the runner's store followed until stop is called; shards that are over go
// after retire.
func (w *watched) follow(retire time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	over := make(chan error, 1)
	go func() {
		over <- reader.Follow(ctx, w.run, reader.Options{
			Lease: time.Second, Poll: 20 * time.Millisecond, List: 50 * time.Millisecond, Retire: retire,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
	}()
	return func() { cancel(); failtest.On(w.T, <-over) }
}

func (w *watched) put(media ...string) {
	w.Helper()
	for _, id := range media {
		row := item("PK", "ALBUM#a", "SK", "MEDIA#"+id, "EntityType", "AlbumMedia", "albumId", "a", "mediaId", id, "addedAt", "2025-01-01T00:00:00Z")
		key, _ := w.table.KeyOf(row)
		out, err := w.db.Write(w.Context(), []store.Write{{Ref: store.Ref{Table: "gallery", Key: key}, Put: row}})
		failtest.On(w.T, err)
		failtest.On(w.T, out[0].Err)
	}
}

// applied is how many records all who have followed have applied.
func (w *watched) applied() int {
	w.Helper()
	n, err := runnertest.Counted(w.Context(), w.run)
	failtest.On(w.T, err)
	return n.Applied
}

// until waits until there are as many as wanted.
func (w *watched) until(what string, have func() int, want int) {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); have() != want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("%d %s, want %d", have(), what, want)
		}
	}
}

// TestShardsAreForgottenOnDynamoDB says that nothing is kept of a shard that is over.
func TestShardsAreForgottenOnDynamoDB(t *testing.T) {
	w := watch(t)
	s := &ending{Store: w.db}
	w.run.Store = s
	stop := w.follow(time.Millisecond)
	w.put("m1", "m2", "m3")
	kept := func(k string) int {
		page, err := w.db.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(k)})
		failtest.On(t, err)
		return len(page.Rows)
	}
	w.until("records applied", w.applied, 3)
	if kept(owntable.Checkpoints("gallery")) == 0 || kept("lease|gallery") == 0 {
		t.Error("nothing is kept of a shard that is open")
	}
	s.ended.Store(true)
	s.forgotten.Store(true)
	w.until("rows of a shard that is over", func() int { return kept(owntable.Checkpoints("gallery")) }, 0)
	stop()
}
