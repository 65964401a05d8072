// Package migrate makes rows that are there into rows as the model has them: it
// moves rows of an older form (Mover, Scan), and gives rows the defaults and index
// keys that they were written without (Backfill).
//
// A migration is made row by row, each in one transaction that holds only as long
// as every row in it is as it was read: the old row, and those that it becomes. So
// a row is moved as it is at one moment, whoever asks for it, in whatever order and
// however often: the scan that finds old rows, and the follower of their stream that
// hears of changes. A request is no more than the news that an old row may have to
// be moved. What a crash breaks off has happened whole or not at all, and the next
// request finds out which.
//
// Marks say what was done, in the attribute book.Moved:
//
//	on a row made         SOURCE.STATE: which old row it was made from, and as what
//	on an old row         TARGETS.STATE: which rows it was made into, and as what;
//	                      a scan passes it by as long as it is so
//
// A row made that no longer is as it was made has been changed by the application,
// and no old row changes it again. One that is gone, although its old row says that
// it was made, was removed by the application, and stays gone.
package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/model"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Outcome is what became of a request.
type Outcome string

// The outcomes. Nothing was written for There and Kept but marks.
const (
	Moved    Outcome = "moved"    // rows were made of the old one
	Followed Outcome = "followed" // a row made before was changed, or went, with its old one
	There    Outcome = "there"    // there was nothing to do
	Kept     Outcome = "kept"     // the application has changed or removed what was made: it stays so
	Refused  Outcome = "refused"  // the old row cannot be moved as it is
)

// Result says what became of a request, and of a Refused one why.
type Result struct {
	Outcome
	Reason string
}

// Request says that an old row may have to be moved.
type Request struct {
	projections.OldRow
	// Now is the old row as it was just read; nil where it is to be read.
	Now value.Item
	// Trust says that an old row whose mark says that it was moved as it is needs no
	// look at what it became: right for a scan, since what an application puts back
	// with a mark of long ago comes by in the stream.
	Trust bool
}

// Mover moves rows. Many may work at once, in any number of processes.
type Mover struct {
	Model *model.Model
	Store store.Store
	Now   func() time.Time // the clock, by which rows are past their expiry; nil is time.Now
}

func (m *Mover) now() time.Time {
	if m.Now == nil {
		return time.Now()
	}
	return m.Now()
}

// Follow moves old rows that a change asks for. For each it gives the reason why it
// cannot be moved, "" where it was. No two are of one row of one migration. After an
// error some may have been moved; do all again.
func (m *Mover) Follow(ctx context.Context, rows []projections.OldRow) (refused []string, err error) {
	requests := make([]Request, len(rows))
	for i, r := range rows {
		requests[i] = Request{OldRow: r}
	}
	results, err := m.Move(ctx, requests)
	for _, r := range results {
		refused = append(refused, r.refusal())
	}
	return refused, err
}

// refusal is why a request was refused, "" where it was not.
func (r Result) refusal() string {
	if r.Outcome != Refused {
		return ""
	}
	return cmp.Or(r.Reason, string(Refused))
}

// Move does the requests and answers for each, in order. No two are of one row of
// one migration. After an error some may have been done; do all again.
func (m *Mover) Move(ctx context.Context, requests []Request) ([]Result, error) {
	out := make([]Result, len(requests))
	todo := make([]*task, len(requests))
	for i, r := range requests {
		todo[i] = &task{Request: r, result: &out[i]}
	}
	all := todo
	err := retry(ctx, "moving", func() (left string, err error) {
		if todo, err = m.attempt(ctx, todo); err == nil && len(todo) == 0 {
			todo = freed(all)
		}
		if err != nil || len(todo) == 0 {
			return "", err
		}
		return todo[0].Row.String(), nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// freed are the tasks that were refused a value which another one may have given back
// since.
func freed(all []*task) (again []*task) {
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

// task is a request on its way.
type task struct {
	Request
	result *Result
	plan   plan
}

// attempt reads, plans and writes. What it returns is to be tried again.
func (m *Mover) attempt(ctx context.Context, todo []*task) (again []*task, err error) {
	if err := m.read(ctx, todo); err != nil {
		return nil, err
	}
	plans := make([]*plan, len(todo))
	for i, t := range todo {
		plans[i] = &t.plan
		t.plan = m.begin(&t.Request)
	}
	if err := m.decide(ctx, plans); err != nil {
		return nil, err
	}
	var writing []*task
	for _, t := range todo {
		switch *t.result = t.plan.Result; {
		case t.plan.behind != nil:
			t.Now = nil
			again = append(again, t)
		case len(t.plan.writes) > 0:
			writing = append(writing, t)
		}
	}
	more, err := m.write(ctx, writing)
	return append(again, more...), err
}

// decide finishes plans that have begun, with the rows that they have to know.
func (m *Mover) decide(ctx context.Context, plans []*plan) error {
	var refs []store.Ref
	for _, p := range plans {
		refs = append(refs, p.reads()...)
	}
	rows, err := readAll(ctx, m.Store, refs)
	if err != nil {
		return err
	}
	for _, p := range plans {
		p.finish(rows)
	}
	return m.claim(ctx, plans)
}

// read reads the old rows that the requests do not bring.
func (m *Mover) read(ctx context.Context, todo []*task) error {
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

func (m *Mover) write(ctx context.Context, todo []*task) (again []*task, err error) {
	errs := make([]error, len(todo))
	_ = parallel.Do(len(todo), maxAtOnce, func(i int) error {
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
			*t.result = Result{Refused, err.Error()}
		default:
			return nil, fmt.Errorf("moving %s: %w", t.Row, err)
		}
	}
	return again, nil
}
