package live_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/live"
	"weir/internal/model"
	"weir/internal/runner"
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

// TestShardsAreForgottenOnDynamoDB says that nothing is kept of a shard that is over
// but what it counted.
func TestShardsAreForgottenOnDynamoDB(t *testing.T) {
	m, err := model.Load("gallery")
	must(t, err)
	table := m.Tables[0].Table
	table.Stream = true
	db := dynamodbtest.Open(t, dynamodbtest.Config(t), []store.Table{book.Table(), table}, dynamodb.Options{})
	s := &ending{Store: db}
	run := &runner.Runner{Model: m, Store: s, Now: time.Now}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- live.Follow(ctx, run, live.Options{
			Dir: t.TempDir(), Lease: time.Second, Poll: 20 * time.Millisecond, List: 50 * time.Millisecond, Retire: time.Millisecond,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
	}()
	for _, media := range []string{"m1", "m2", "m3"} {
		row := item("PK", "ALBUM#a", "SK", "MEDIA#"+media, "EntityType", "AlbumMedia", "albumId", "a", "mediaId", media, "addedAt", "2025-01-01T00:00:00Z")
		key, _ := table.KeyOf(row)
		_, err := db.Write(ctx, []store.Write{{Ref: store.Ref{Table: "gallery", Key: key}, Put: row}})
		must(t, err)
	}
	kept := func(k string) int {
		page, err := db.Query(ctx, store.Query{Table: book.TableName, Partition: value.OfString(k)})
		must(t, err)
		return len(page.Rows)
	}
	counted := func() int {
		n, err := run.Totals(ctx, runner.GroupRows)
		must(t, err)
		return n.Applied
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("never %s", what)
			}
		}
	}
	until("counted", func() bool { return counted() == 3 })
	if kept("check|gallery|rows") == 0 || kept("lease|gallery") == 0 {
		t.Error("nothing is kept of a shard that is open")
	}
	s.ended.Store(true)
	s.forgotten.Store(true)
	until("forgotten", func() bool { return kept("check|gallery|rows")+kept("lease|gallery") == 0 })
	if counted() != 3 {
		t.Errorf("%d records are counted", counted())
	}
	stop()
	must(t, <-over)
}

// TestSwitchedOffAndOnOnDynamoDB says that who follows a table goes over to the stream
// that it has after the one it had was switched off, and names what is in neither.
func TestSwitchedOffAndOnOnDynamoDB(t *testing.T) {
	m, err := model.Load("gallery")
	must(t, err)
	table := m.Tables[0].Table
	table.Stream = true
	cfg := dynamodbtest.Config(t)
	db := dynamodbtest.Open(t, cfg, []store.Table{book.Table(), table}, dynamodb.Options{})
	run := &runner.Runner{Model: m, Store: db, Now: time.Now}
	put := func(media string) {
		row := item("PK", "ALBUM#a", "SK", "MEDIA#"+media, "EntityType", "AlbumMedia", "albumId", "a", "mediaId", media, "addedAt", "2025-01-01T00:00:00Z")
		key, _ := table.KeyOf(row)
		_, err := db.Write(t.Context(), []store.Write{{Ref: store.Ref{Table: "gallery", Key: key}, Put: row}})
		must(t, err)
	}
	counted := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			n, err := run.Totals(t.Context(), runner.GroupRows)
			must(t, err)
			if n.Applied == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d records are applied, want %d", n.Applied, want)
			}
		}
	}
	gaps := func() (out []string) {
		must(t, run.Dead(t.Context(), func(d runner.Dead) error {
			if d.Kind != runner.DeadGap {
				t.Errorf("kept %+v", d)
			}
			out = append(out, d.Target+": "+d.Reason)
			return nil
		}))
		return out
	}
	turn := func(on bool) {
		admin := awsdb.NewFromConfig(cfg)
		spec := &types.StreamSpecification{StreamEnabled: aws.Bool(on)}
		if on {
			spec.StreamViewType = types.StreamViewTypeNewAndOldImages
		}
		_, err := admin.UpdateTable(t.Context(), &awsdb.UpdateTableInput{TableName: aws.String("gallery"), StreamSpecification: spec})
		must(t, err)
	}
	follow := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		dir := t.TempDir()
		go func() {
			over <- live.Follow(ctx, run, live.Options{
				Dir: dir, Lease: time.Second, Poll: 20 * time.Millisecond, List: 50 * time.Millisecond, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			})
		}()
		return func() { cancel(); must(t, <-over) }
	}
	stop := follow()
	put("m1")
	put("m2")
	counted(2)
	turn(false)
	put("m3")
	turn(true)
	put("m4")
	counted(3)
	if got := gaps(); len(got) != 1 || !strings.HasPrefix(got[0], "stream of gallery: the stream of gallery was switched off and on again") {
		t.Errorf("gaps: %q", got)
	}
	stop()
	defer follow()()
	put("m5")
	counted(4)
	if got := gaps(); len(got) != 1 {
		t.Errorf("gaps: %q", got)
	}
}
