package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// An app is the application of one model, with the bookkeeping of its writes. After a failed write it sends
// nothing more, but plays on by its books, so that no workload has to look; failed holds that error.
type app struct {
	ctx   context.Context
	model string
	scale float64
	rand  *rand.Rand
	clock time.Time

	specs    []tableSpec // as the script has created them
	page     int         // records a page of GetRecords
	tables   map[string]*table
	streams  []stream // known after finish
	log      []change // every write that changed something, in order
	recorded []change // the same, in the order of the records; known after auditStreams
	failed   error

	offline  bool // plays by its books alone: for tests
	endpoint string
	client   *http.Client
}

type table struct {
	tableSpec
	rows map[string]row // by keyOf
}

// A change is one effect on one row; old is nil for an insert, new for a delete.
type change struct {
	table, key string
	old, new   row
	swept      bool
}

// An op is one write of the application: a put of row, an update of key (set, remove), or a delete of key.
type op struct {
	kind   string
	table  string
	row    row // put: the row; update and delete: the key
	set    row
	remove []string
}

func putOp(table string, r row) op { return op{kind: "Put", table: table, row: cloneRow(r)} }
func deleteOp(table string, key row) op {
	return op{kind: "Delete", table: table, row: cloneRow(key)}
}
func updateOp(table string, key, set row, remove ...string) op {
	return op{kind: "Update", table: table, row: cloneRow(key), set: cloneRow(set), remove: remove}
}

func newApp(ctx context.Context, model, endpoint string, seed uint64, scale float64) *app {
	h := fnv.New64a()
	h.Write([]byte(model))
	return &app{
		ctx:      ctx,
		model:    model,
		scale:    scale,
		rand:     rand.New(rand.NewPCG(seed, h.Sum64())),
		clock:    time.Date(2025, 1, 6, 7, 30, 0, 0, time.UTC),
		tables:   make(map[string]*table),
		endpoint: endpoint,
		client:   &http.Client{Timeout: 30 * time.Second},
	}
}

// finishRecording reads the streams when all is written, and holds them and the tables against the booked rows.
func (a *app) finishRecording() (err error) {
	if a.offline {
		a.recorded = a.log
		return nil
	}
	if a.streams, err = a.captureStreams(); err != nil {
		return err
	}
	if err := a.auditStreams(a.streams); err != nil {
		return err
	}
	return a.auditTables()
}

// writeEach does each op in a request of its own.
func (a *app) writeEach(ops ...op) {
	for _, o := range ops {
		a.doRequest(func() error { return a.writeSingle(o) }, o)
	}
}

// writeTransaction does the ops in one transaction.
func (a *app) writeTransaction(ops ...op) {
	a.doRequest(func() error { return a.sendTransaction(ops) }, ops...)
}

// writeBatches does puts and deletes in batch writes of 25.
func (a *app) writeBatches(ops ...op) {
	for part := range slices.Chunk(ops, 25) {
		a.doRequest(func() error { return a.batchWrite(part) }, part...)
	}
}

// awaitExpiry puts rows whose time to live is over, and waits until the service has deleted them by itself. The global
// indexes are away meanwhile: the sweep of DynamoDB Local ends for good at a row that is not in all of them.
func (a *app) awaitExpiry(table, attribute string, rows ...row) {
	t := a.tables[table]
	a.doUnlessFailed(func() error { return a.dropIndexes(t.tableSpec) })
	a.doUnlessFailed(func() error { return a.enableTTL(t.tableSpec) })
	for _, r := range rows {
		r[attribute] = n(time.Now().Add(-time.Hour).Unix())
		a.writeEach(putOp(table, r))
	}
	for _, r := range rows {
		if a.offline {
			a.bookOp(deleteOp(table, t.rowKey(r)), true)
		}
		a.doUnlessFailed(func() error { return a.awaitSweep(deleteOp(table, t.rowKey(r))) })
	}
	a.doUnlessFailed(func() error { return a.addIndexes(t.tableSpec) })
}

// doUnlessFailed does something that may fail, unless something has failed.
func (a *app) doUnlessFailed(do func() error) {
	if a.failed == nil && !a.offline {
		a.failed = do()
	}
}

func (a *app) doRequest(do func() error, ops ...op) {
	if len(ops) == 0 {
		return
	}
	first := ops[0]
	a.doUnlessFailed(func() error {
		if err := do(); err != nil {
			return fmt.Errorf("%s %v in %s (write %d): %w", first.kind, a.tables[first.table].rowKey(first.row), first.table, len(a.log), err)
		}
		return nil
	})
	for _, o := range ops {
		a.bookOp(o, false)
	}
}

// bookOp keeps the row that an op made, and logs the change where it changed anything.
func (a *app) bookOp(o op, swept bool) {
	t := a.tables[o.table]
	key := t.keyOf(o.row)
	old := t.rows[key]
	var now row
	switch o.kind {
	case "Put":
		now = o.row
	case "Update":
		now = cloneRow(old)
		if now == nil {
			now = cloneRow(o.row)
		}
		for k, v := range o.set {
			now[k] = v
		}
		for _, k := range o.remove {
			delete(now, k)
		}
	}
	if equalRows(old, now) {
		return
	}
	if now == nil {
		delete(t.rows, key)
	} else {
		t.rows[key] = cloneRow(now)
	}
	a.log = append(a.log, change{table: o.table, key: key, old: old, new: now, swept: swept})
}

// awaitSweep waits until a row is gone, and books that.
func (a *app) awaitSweep(o op) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		r, err := a.getRow(o.table, o.row)
		if err != nil {
			return err
		}
		if r == nil {
			a.bookOp(o, true)
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%v in %s is past its time to live and was not swept", o.row, o.table)
		}
	}
}

// bookedRows returns the booked rows of a table that where accepts, in an order that is always the same. The caller must not change them.
func (a *app) bookedRows(table string, where func(row) bool) []row {
	var out []row
	for _, r := range a.tables[table].rows {
		if where(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(x, y row) int {
		return strings.Compare(a.tables[table].keyOf(x), a.tables[table].keyOf(y))
	})
	return out
}

// bookedRow returns the booked row with a key, nil where there is none.
func (a *app) bookedRow(table string, key row) row {
	t := a.tables[table]
	return t.rows[t.keyOf(key)]
}

func (t *table) rowKey(r row) row {
	out := row{t.hash: r[t.hash]}
	if t.rng != "" {
		out[t.rng] = r[t.rng]
	}
	return out
}

func (t *table) keyOf(r row) string {
	if t.rng == "" {
		return fmt.Sprintf("%q", r[t.hash])
	}
	return fmt.Sprintf("%q %q", r[t.hash], r[t.rng])
}
