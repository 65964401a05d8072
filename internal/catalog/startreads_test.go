package catalog_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/catalog"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// slow is a store that counts its reads, and in which all tables of the model are identified at a time or not at all.
type slow struct {
	store.Store
	reads, asked atomic.Int64
	together     int64
	all          chan struct{}
}

func (s *slow) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	s.reads.Add(1)
	return s.Store.Get(ctx, refs)
}

func (s *slow) Identity(ctx context.Context, table string) (store.Identity, error) {
	if table != owntable.TableName {
		if s.asked.Add(1) == s.together {
			close(s.all)
		}
		select {
		case <-s.all:
		case <-ctx.Done():
			return store.Identity{}, ctx.Err()
		}
	}
	return s.Store.Identity(ctx, table)
}

// Tip is that of a store whose streams forget by time, as DynamoDB's do.
func (s *slow) Tip() store.Tip { return store.Tip{} }

// TestStartWaitsForFewCalls: a start makes as many reads one after the other for ten tables as for one, and identifies
// the tables beside each other. The first event of a function waits for all of this.
func TestStartWaitsForFewCalls(t *testing.T) {
	reads := map[int]int64{}
	for _, n := range []int{1, 10} {
		text := "model: many\ntables:\n"
		for i := range n {
			text += fmt.Sprintf("  Tab%d: {key: [PK, SK]}\n", i)
		}
		text += "entities:\n"
		for i := range n {
			text += fmt.Sprintf("  Customer%[1]d: {table: Tab%[1]d, key: {PK: \"C#{id}\", SK: METADATA}}\n", i)
			text += fmt.Sprintf("  Order%[1]d: {table: Tab%[1]d, key: {PK: \"C#{id}\", SK: \"O#{order}\"}}\n", i)
		}
		text += "derive:\n"
		for i := range n {
			text += fmt.Sprintf("  Customer%[1]d.orders: {count: Order%[1]d}\n", i)
		}
		m, err := model.Parse("many.yaml", []byte(text))
		failtest.On(t, err)
		tables := []store.Table{owntable.Table()}
		for _, table := range m.Tables {
			is := table.Table
			is.Stream = true
			tables = append(tables, is)
		}
		db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
		failtest.On(t, err)
		s := &slow{Store: db, together: int64(n), all: make(chan struct{})}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := catalog.New(m, s, time.Now, catalog.Options{}).Start(ctx, unsaid); err != nil {
			t.Errorf("%d tables: %v", n, err)
		}
		cancel()
		if err := catalog.New(m, s, time.Now, catalog.Options{}).Start(t.Context(), unsaid); err != nil {
			t.Errorf("%d tables, the second time: %v", n, err)
		}
		reads[n] = s.reads.Load()
		failtest.On(t, db.Close())
	}
	t.Logf("%v reads", reads)
	if reads[1] != reads[10] || reads[1] == 0 {
		t.Errorf("starts read %d times for one table, and %d times for ten", reads[1], reads[10])
	}
}
