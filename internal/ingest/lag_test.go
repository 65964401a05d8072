package ingest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
)

// lagging is a store whose indexes lag, as DynamoDB's may: an index repeats an old
// answer several times. With behind 0 it is always empty.
type lagging struct {
	store.Store
	behind int

	mu      sync.Mutex
	answers map[string]*answer
}

type answer struct {
	page  store.Page
	times int
}

func (l *lagging) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if q.Index == "" {
		return l.Store.Query(ctx, q)
	}
	if l.behind == 0 {
		return store.Page{}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := fmt.Sprint(q.Table, q.Index, q.Partition, q.Sort, q.After)
	if a := l.answers[name]; a != nil && a.times < l.behind {
		a.times++
		return a.page, nil
	}
	page, err := l.Store.Query(ctx, q)
	if l.answers == nil {
		l.answers = map[string]*answer{}
	}
	l.answers[name] = &answer{page: page}
	return page, err
}

// TestRacesWithALaggingIndex: unique values stay unique whatever an index returns: that
// no row has a value which a row has, or that a row still has a value which it has
// lost. All rules depend only on strong reads and conditions.
func TestRacesWithALaggingIndex(t *testing.T) {
	eachLag(t, func(t *testing.T, tables []store.Table) store.Store {
		s, err := embedded.Open(t.TempDir(), tables, embedded.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return slow{s}
	})
}

func TestRacesWithALaggingIndexOnDynamoDB(t *testing.T) {
	dynamodbtest.Config(t)
	eachLag(t, func(t *testing.T, tables []store.Table) store.Store {
		return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	})
}

func eachLag(t *testing.T, open func(*testing.T, []store.Table) store.Store) {
	for _, behind := range []int{0, 7} {
		t.Run(fmt.Sprint(behind, " answers behind"), func(t *testing.T) {
			eachRace(t, func(t *testing.T, tables []store.Table) store.Store {
				return &lagging{Store: open(t, tables), behind: behind}
			})
		})
	}
}
