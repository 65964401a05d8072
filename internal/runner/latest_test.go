package runner_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

const queue = `model: queue
tables:
  queue: {key: [PK, SK]}
entities:
  Queue: {where: {type: Queue}, key: {PK: "QUEUE#{queue}", SK: ABOUT}}
  Task: {where: {type: Task}, key: {PK: "TASK#{n}", SK: TASK}, attributes: {queue: string, at: number, what: string}}
derive:
  Queue.next: {earliest: Task.what, by: at, also: {nextAt: at}}
  Queue.last: {latest: Task.what, by: at}
`

// metered counts the units of a store by DynamoDB's documented rules: of writes one for each KB
// begun, also of those whose condition fails, and of strong reads one for each 4 KB.
type metered struct {
	store.Store
	wrote, read atomic.Int64
}

func (m *metered) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	for range ws {
		m.wrote.Add(1) // every row here is below 1 KB
	}
	return m.Store.Write(ctx, ws)
}

func (m *metered) Transact(ctx context.Context, ws []store.Write) error {
	m.wrote.Add(2 * int64(len(ws)))
	return m.Store.Transact(ctx, ws)
}

func (m *metered) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	m.read.Add(int64(len(refs)))
	return m.Store.Get(ctx, refs)
}

func (m *metered) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := m.Store.Query(ctx, q)
	size := 0
	for _, row := range page.Rows {
		size += row.Size()
	}
	m.read.Add(int64(max(1, (size+4095)/4096)))
	return page, err
}

// tasks is a queue that shows its first and its last task, and a runner whose store is metered.
type tasks struct {
	*testing.T
	model    *model.Model
	meter    *metered
	runner   *runner.Runner
	about    store.Ref
	position uint64
}

func newTasks(t *testing.T) *tasks { return newTasksOf(t, queue, "queue", "Queue", "QUEUE#q") }

// newTasksOf is newTasks for a model of one table, and its target row.
func newTasksOf(t *testing.T, text, table, kind, partition string) *tasks {
	m, err := loadText(t, text)
	failtest.On(t, err)
	db, err := embedded.Open("store", []store.Table{owntable.Table(), m.Tables[0].Table}, embedded.Options{FS: vfs.NewMem(), Shards: 1})
	failtest.On(t, err)
	t.Cleanup(func() { failtest.On(t, db.Close()) })
	q := &tasks{T: t, model: m, meter: &metered{Store: db}}
	q.runner = &runner.Runner{Kinds: kinds.All(), Model: m, Store: q.meter, Now: time.Now}
	q.about = store.Ref{Table: table, Key: store.Key{Partition: value.OfString(partition), Sort: value.OfString("ABOUT")}}
	row := m.Tables[0].Item(q.about.Key).With(value.Attr{Name: "type", Value: value.OfString(kind)})
	_, err = db.Write(t.Context(), []store.Write{{Ref: q.about, Put: row}})
	failtest.On(t, err)
	return q
}

// task is the row of a task.
func task(n int) value.Item {
	return value.NewItem(
		value.Attr{Name: "PK", Value: value.OfString(fmt.Sprintf("TASK#%07d", n))}, value.Attr{Name: "SK", Value: value.OfString("TASK")},
		value.Attr{Name: "type", Value: value.OfString("Task")}, value.Attr{Name: "queue", Value: value.OfString("q")},
		value.Attr{Name: "at", Value: value.OfInt(int64(n))}, value.Attr{Name: "what", Value: value.OfString(fmt.Sprint("task ", n))},
	)
}

func (q *tasks) change(old, now value.Item) projections.Change {
	q.position++
	keys := now
	if keys == nil {
		keys = old
	}
	c, ok := projections.NewChange(q.model.Tables[0], &events.Record{Table: q.about.Table, Keys: keys, Old: old, New: now, Position: events.PositionOf(q.position)})
	if !ok {
		q.Fatal("a record without its key")
	}
	return c
}

// apply applies changes as one batch of a runner.
func (q *tasks) apply(r *runner.Runner, changes ...projections.Change) {
	q.Helper()
	n, err := r.ApplyRows(q.Context(), runner.Batch{ShardKey: owntable.ShardKey(q.about.Table, "0"), Changes: changes})
	failtest.On(q, err)
	if n.Applied != len(changes) {
		q.Fatal(n)
	}
}

// add adds tasks, in batches.
func (q *tasks) add(from, to int) {
	for ; from < to; from += 500 {
		var some []projections.Change
		for n := from; n < min(from+500, to); n++ {
			some = append(some, q.change(nil, task(n)))
		}
		q.apply(q.runner, some...)
	}
}

// end deletes tasks one after the other.
func (q *tasks) end(from, to int) {
	for n := from; n < to; n++ {
		q.apply(q.runner, q.change(task(n), nil))
	}
}

func (q *tasks) shows(next, last int) {
	q.Helper()
	row, err := q.runner.GetRow(q.Context(), q.about)
	failtest.On(q, err)
	if row.Get("next").Text() != fmt.Sprint("task ", next) || row.Get("last").Text() != fmt.Sprint("task ", last) {
		q.Fatalf("it shows %v and %v, want %d and %d", row.Get("next"), row.Get("last"), next, last)
	}
}

// taskCost is what a change costs on average.
type taskCost struct{ wrote, read float64 }

// costsOf returns the cost of each kind of change in a queue with some source rows.
func costsOf(t *testing.T, rows int) map[string]taskCost {
	q := newTasks(t)
	q.add(0, rows)
	costs := map[string]taskCost{}
	measure := func(what string, times int, do func(i int)) {
		wrote, read := q.meter.wrote.Load(), q.meter.read.Load()
		for i := range times {
			do(i)
		}
		costs[what] = taskCost{float64(q.meter.wrote.Load()-wrote) / float64(times), float64(q.meter.read.Load()-read) / float64(times)}
	}
	q.shows(0, rows-1)
	measure("a new row at the end", 8, func(i int) { q.add(rows+i, rows+i+1) })
	q.shows(0, rows+7)
	measure("an edit that changes no order", 8, func(int) {
		q.apply(q.runner, q.change(task(5), task(5).With(value.Attr{Name: "what", Value: value.OfString("else")})))
	})
	measure("the last row goes", 8, func(i int) { q.end(rows+7-i, rows+8-i) })
	q.shows(0, rows-1)
	for i := range rows - 10 {
		q.end(i, i+1)
	}
	measure("the first row goes, again and again", 8, func(i int) { q.end(rows-10+i, rows-9+i) })
	q.shows(rows-2, rows-1)
	measure("a row comes last and goes, again and again", 200, func(i int) {
		q.add(rows+10+i, rows+11+i)
		q.end(rows+10+i, rows+11+i)
	})
	q.shows(rows-2, rows-1)
	q.add(3, 4) // among those that went
	q.shows(3, rows-1)
	q.add(1, 2)
	q.shows(1, rows-1)
	q.end(1, 2)
	q.shows(3, rows-1)
	return costs
}

// fewTasks and the other sizes of TestLatestCost are such that four withdrawn facts, or a multiple
// of four, are there when a change is measured: then all are in the skip of their ledger.
const fewTasks = 18

// TestLatestCost: a change costs the same units with few source rows and with thousands, also
// where the first row always goes, as in a queue, and its withdrawn facts stay.
func TestLatestCost(t *testing.T) {
	soaktest.Calm(t)
	few := costsOf(t, fewTasks)
	for _, rows := range []int{102, 5002} {
		for what, c := range costsOf(t, rows) {
			t.Logf("%s: %d rows: %.2f write units, %.2f read units", what, rows, c.wrote, c.read)
			if c != few[what] {
				t.Errorf("%s: with %d rows %v units, with %d %v", what, rows, c, fewTasks, few[what])
			}
		}
	}
}

// TestLatestCostOutsideSkip: up to three withdrawn facts are not in the skip yet. To read them takes
// at most two calls more for each change, however many source rows there are.
func TestLatestCostOutsideSkip(t *testing.T) {
	soaktest.Calm(t)
	few := costsOf(t, fewTasks)
	for _, rows := range []int{10, 11, 12, 13, 101, 103} {
		for what, c := range costsOf(t, rows) {
			t.Logf("%s: %d rows: %.2f write units, %.2f read units", what, rows, c.wrote, c.read)
			if c.wrote > few[what].wrote || c.read > few[what].read+float64(2*changesOf(what)) {
				t.Errorf("%s: with %d rows %v units, with %d %v", what, rows, c, fewTasks, few[what])
			}
		}
	}
}

// changesOf is how many changes are measured as one.
func changesOf(what string) int { return 1 + strings.Count(what, " comes ") }

// between is a store that does something once, between a read of facts and what follows it.
type between struct {
	store.Store
	do func()
}

func (b *between) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := b.Store.Query(ctx, q)
	if do := b.do; do != nil && err == nil && page.Next == nil && owntable.Kind(q.Partition.Text()) == owntable.KindFact {
		b.do = nil
		do()
	}
	return page, err
}

// TestLatestSkipMeanwhile: a worker that has read many withdrawn facts does not make the ledger
// skip a fact that another worker put after that read.
func TestLatestSkipMeanwhile(t *testing.T) {
	q := newTasks(t)
	q.add(0, 12)
	var all []projections.Change
	for n := range 12 {
		all = append(all, q.change(task(n), nil))
	}
	first := q.change(nil, task(3))
	slow := *q.runner
	slow.Store = &between{q.meter, func() { q.apply(q.runner, first) }}
	q.apply(&slow, all...)
	q.shows(3, 3)
	q.end(30, 31)
	q.shows(3, 3)
	q.add(20, 21)
	q.shows(3, 20)
}
