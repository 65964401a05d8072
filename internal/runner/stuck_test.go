package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// stuck is a store of which one shard cannot be read.
type stuck struct {
	store.Store
	shard string
}

func (s *stuck) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	if shard == s.shard {
		return store.Records{}, fmt.Errorf("%w: the disk says no", owntable.ErrRow)
	}
	return s.Store.Read(ctx, table, shard, after, limit)
}

// TestStuckShardOfAnOrder: where the order of changes matters, all shards of a store wait for one that cannot be read.
// Of shards that processes share, it alone stands still, and is named.
func TestStuckShardOfAnOrder(t *testing.T) {
	m, err := loadText(t, letters)
	failtest.On(t, err)
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	tables := []store.Table{owntable.Table()}
	for _, mt := range m.AllTables() {
		st := mt.Table
		st.Stream = true
		tables = append(tables, st)
	}
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Now: now, Shards: 4})
	failtest.On(t, err)
	defer db.Close()
	shards, err := db.Shards(t.Context(), "letters")
	failtest.On(t, err)
	s := &stuck{db, shards[0].ID}
	r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: now}
	for i := range 40 {
		row := value.NewItem(value.Attr{Name: "PK", Value: value.OfString(fmt.Sprintf("POST#%d", i))}, value.Attr{Name: "SK", Value: value.OfString("METADATA")},
			value.Attr{Name: "type", Value: value.OfString("Post")}, value.Attr{Name: "author", Value: value.OfString("a")}, value.Attr{Name: "title", Value: value.OfString("x")})
		ref := store.Ref{Table: "letters", Key: store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}}
		_, err := db.Write(t.Context(), []store.Write{{Ref: ref, Put: row}})
		failtest.On(t, err)
	}
	posts := func() int64 {
		row, err := store.GetRow(t.Context(), db, store.Ref{Table: "letters", Key: store.Key{Partition: value.OfString("AUTHOR#a"), Sort: value.OfString("METADATA")}})
		failtest.On(t, err)
		n, _ := row.Get("posts").Int64()
		return n
	}
	still := map[string]string{}
	stopped := func(table, shard, why string) { still[table+" "+shard] = why }
	step := (&reader.Follower{Runner: r, Source: s, Stopped: stopped}).NewStepper()
	for range 10 {
		if _, _, err := step.Step(t.Context()); !errors.Is(err, owntable.ErrRow) {
			t.Fatalf("all shards of a store must wait: %v", err)
		}
	}
	if posts() > 0 || len(still) > 0 {
		t.Fatalf("%d posts, %v", posts(), still)
	}
	step = (&reader.Follower{Runner: r, Source: &leased{Store: s, fence: 1}, Stopped: stopped}).NewStepper()
	for range 10 {
		_, _, err := step.Step(t.Context())
		failtest.On(t, err)
	}
	if n := posts(); n == 0 || n == 40 || still["letters "+s.shard] == "" || len(still) != 1 {
		t.Fatalf("%d posts while one shard of four stands still, %v", n, still)
	}
	s.shard = ""
	for range 10 {
		_, _, err := step.Step(t.Context())
		failtest.On(t, err)
	}
	if n := posts(); n != 40 || still["letters "+shards[0].ID] != "" {
		t.Fatalf("%d of 40 posts, %v", n, still)
	}
}
