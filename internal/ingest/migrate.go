// A migration changes existing rows into rows as the model declares them. It moves rows of an
// older form (Mover, Scan). Backfill gives rows the defaults and index keys that they were written without.
//
// A migration works row by row. Each row is moved in one transaction, on the condition
// that every row in it is as it was read: the old row, and the rows that it becomes. So
// a row is moved as it is at one moment, however often and in whatever order it is
// asked for. Two programs ask: the scan that finds old rows, and the follower of their
// stream that sees changes. A request only says that an old row may have to be moved.
// After a crash a move has happened whole or not at all, and the next request finds out
// which.
//
// Marks in the attribute owntable.Moved say which step was done:
//
//	on a row made         SOURCE.STATE: which old row it was made from, and as which entity
//	on an old row         TARGETS.STATE: which rows it was made into, and as which entities;
//	                      a scan skips it as long as this is still true
//
// A made row that has changed since was changed by the application, and no old row
// changes it again. A made row that is missing, although its old row says that it was
// made, was deleted by the application, and is not made again.

package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/model"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Outcome is the outcome of a request.
type Outcome string

// The outcomes. For There and Kept nothing but marks was written.
const (
	Moved    Outcome = "moved"    // rows were made of the old one
	Followed Outcome = "followed" // a row made before was changed or deleted with its old row
	There    Outcome = "there"    // there was nothing to do
	Kept     Outcome = "kept"     // the application has changed or deleted the new row: it stays so
	Refused  Outcome = "refused"  // the old row cannot be moved as it is
)

// MigrationResult is the outcome of a request and, for Refused, the reason.
// Reason is a sentence for the person who has to correct the old row.
type MigrationResult struct {
	Outcome
	Reason string
}

// Request says that an old row may have to be moved.
type Request struct {
	projections.OldRow
	// Now is the old row as it was just read; if it is nil, the row is read.
	Now value.Item
	// Trust says not to read the rows made from an old row if its mark says that it was
	// moved as it is. A scan may do that: if an application puts a row back with an old
	// mark, the change is in the stream.
	Trust bool
}

// Mover moves rows. Any number of processes and goroutines may use one at the same
// time.
type Mover struct {
	Model *model.Model
	Store store.Store
	Now   func() time.Time // the clock that decides which rows have expired; nil is the store's
	Alone bool             // move one row at a time, so that the same answers of the store lead to the same calls
}

// now is the time by the mover's clock.
func (m *Mover) now() time.Time {
	if m.Now == nil {
		return store.Clock(time.Now, m.Store)()
	}
	return m.Now()
}

// Follow moves the old rows that changes ask for, and returns for each why it cannot be moved as it is, or "".
// No two may be of one row and one migration. After an error some rows may have been moved; send all of them again.
func (m *Mover) Follow(ctx context.Context, rows []projections.OldRow) (refused []string, err error) {
	requests := make([]Request, len(rows))
	for i, r := range rows {
		requests[i] = Request{OldRow: r}
	}
	results, err := m.Move(ctx, requests)
	for _, r := range results {
		reason := ""
		if r.Outcome == Refused {
			reason = cmp.Or(r.Reason, string(Refused))
		}
		refused = append(refused, reason)
	}
	return refused, err
}

// Move executes the requests and returns a result for each, in order. No two may be of
// one row and one migration. After an error some may have been executed; send all of
// them again.
func (m *Mover) Move(ctx context.Context, requests []Request) ([]MigrationResult, error) {
	out := make([]MigrationResult, len(requests))
	todo := make([]*moveTask, len(requests))
	for i, r := range requests {
		todo[i] = &moveTask{Request: r, result: &out[i]}
	}
	all := todo
	err := retryUntilDone(ctx, "moving", func() (left string, err error) {
		if todo, err = m.tryOnce(ctx, todo); err == nil && len(todo) == 0 {
			todo = freedTasks(all)
		}
		if err != nil || len(todo) == 0 {
			return "", err
		}
		return todo[0].Row.String(), nil
	})
	return out, err
}

// freedTasks returns the tasks that were refused because of a unique value, if another task
// may have given a value back since.
func freedTasks(all []*moveTask) (again []*moveTask) {
	gave := false
	for _, t := range all {
		gave = gave || len(t.plan.frees) > 0 && len(t.plan.writes) > 0
		if t.plan.clash {
			t.Now = nil
			again = append(again, t)
		}
	}
	if !gave {
		return nil
	}
	for _, t := range all {
		t.plan.frees = nil
	}
	return again
}

// moveTask is a request that is being executed.
type moveTask struct {
	Request
	result *MigrationResult
	plan   movePlan
}

// tryOnce reads, plans and writes. It returns the tasks that are to be tried again.
// It may be repeated at any time: it decides from the rows as they are then.
func (m *Mover) tryOnce(ctx context.Context, todo []*moveTask) (again []*moveTask, err error) {
	if err := m.readOldRows(ctx, todo); err != nil {
		return nil, err
	}
	plans := make([]*movePlan, len(todo))
	for i, t := range todo {
		t.plan = m.beginPlan(&t.Request)
		plans[i] = &t.plan
	}
	if err := m.finishPlans(ctx, plans); err != nil {
		return nil, err
	}
	var writing []*moveTask
	for _, t := range todo {
		switch *t.result = t.plan.MigrationResult; {
		case t.plan.behind != nil:
			t.Now = nil
			again = append(again, t)
		case len(t.plan.writes) > 0:
			writing = append(writing, t)
		}
	}
	more, err := m.writePlans(ctx, writing)
	return append(again, more...), err
}

// finishPlans finishes plans that begin has made, with the rows that they need.
// All rows of all plans are read in one call, strongly.
func (m *Mover) finishPlans(ctx context.Context, plans []*movePlan) error {
	refs := seq.Flat(plans, func(p *movePlan) []store.Ref { return p.neededRows() })
	rows, err := readAll(ctx, m.Store, refs)
	if err != nil {
		return err
	}
	for _, p := range plans {
		p.planWrites(rows)
	}
	return m.claimValues(ctx, plans)
}

// readOldRows reads the old rows that the requests do not bring.
func (m *Mover) readOldRows(ctx context.Context, todo []*moveTask) error {
	var refs []store.Ref
	for _, t := range todo {
		if t.Now == nil {
			refs = append(refs, t.Row)
		}
	}
	rows, err := readAll(ctx, m.Store, refs)
	for _, t := range todo {
		if err == nil && t.Now == nil {
			t.Now = rows[t.Row.String()]
		}
	}
	return err
}

// writePlans writes each plan in a transaction of its own. It returns the tasks whose rows
// have changed since they were read. A crash leaves each plan written whole or not at
// all.
func (m *Mover) writePlans(ctx context.Context, todo []*moveTask) (again []*moveTask, err error) {
	errs := make([]error, len(todo))
	atOnce := maxAtOnce
	if m.Alone {
		atOnce = 1
	}
	_ = parallel.Do(len(todo), atOnce, func(i int) error {
		errs[i] = m.Store.Transact(ctx, todo[i].plan.writes)
		return nil
	})
	for i, t := range todo {
		switch err := errs[i]; {
		case err == nil:
		case errors.Is(err, store.ErrCondition), errors.Is(err, store.ErrConflict):
			t.Now = nil
			again = append(again, t)
		case errors.Is(err, store.ErrRefused):
			*t.result = MigrationResult{Refused, err.Error()}
		default:
			return nil, fmt.Errorf("moving %s: %w", t.Row, err)
		}
	}
	return again, nil
}
