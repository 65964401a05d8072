package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"weir/internal/parallel"
	"weir/internal/store"
	"weir/internal/value"
)

// batch is a list of commands that are being executed.
type batch struct {
	*Writer
	todo      []*task // tasks without an answer yet, in the order of the commands
	now       time.Time
	fresh     *facts // rows, as the store returned them, that were not as a plan assumed
	unknown   steps  // rows touched by commands of which it is unknown whether they were done
	contended bool   // another writer is writing the same rows
	met       bool   // a row assumed missing was found; other such rows may exist, too
}

// task is one command of a batch.
type task struct {
	*checked
	result *Result
	// known is the rows that the plan has read, and those that it still asks for; plan is made from it and may be
	// made again.
	known   known
	plan    plan
	touches []touch
	done    bool // it has its answer
}

var (
	// Both mean that it is not known whether a command was done, so the same command may be sent again.
	errOthers = errors.New("others kept changing the row; send the command again")
	errBehind = errors.New("the outcome of an earlier command on the same row is unknown; send both again, in their order")
)

// executeTasks executes the tasks: it plans all of them, writes them step by step, and plans
// those that are left again when a write did not have the planned outcome. Afterwards
// every task has its answer. After a crash each task is written whole or not at all,
// since its writes are one transaction.
// It returns when every task has its answer; an error of the store is an answer too. It gives up on rows that others
// keep changing after maxTries.
func (b *batch) executeTasks(ctx context.Context) {
	wait := newPauses()
	for len(b.todo) > 0 {
		n := len(b.todo)
		plans, err := b.schedulePlans(ctx)
		if err != nil {
			b.answerUnknown(b.todo, err)
			return
		}
		b.performSteps(ctx, plans)
		b.todo = slices.DeleteFunc(b.todo, func(t *task) bool { return t.done })
		if len(b.todo) < n {
			wait.Reset()
		}
		if len(b.todo) > 0 && b.contended && !b.pauseFor(ctx, wait.NextBackOff()) {
			return
		}
	}
}

// pauseFor waits so that other writers can finish. It reports false, after answering all
// tasks, when no time is left.
func (b *batch) pauseFor(ctx context.Context, d time.Duration) bool {
	if d == backoff.Stop {
		for _, t := range b.todo {
			b.answerUnknown([]*task{t}, fmt.Errorf("%s: %w", t.ref, errOthers))
		}
		return false
	}
	if parallel.Sleep(ctx, d) != nil {
		b.answerUnknown(b.todo, errors.Join(context.Cause(ctx), errOthers))
		return false
	}
	return true
}

// schedulePlans plans the tasks as if they were executed one after the other. It returns the
// steps in which to execute them: of two tasks that touch one another, the later one is
// in a later step.
func (b *batch) schedulePlans(ctx context.Context) (plans [][]*task, err error) {
	b.now, b.contended = b.Now(), false
	for _, t := range b.todo {
		t.known.sure = t.known.sure || b.met
	}
	f := b.fresh
	if b.fresh = newFacts(0); f == nil {
		f = newFacts(len(b.todo))
	}
	if err := b.planTasks(ctx, b.todo, f); err != nil {
		return nil, err
	}
	order := make(steps, len(b.todo))
	for i, t := range b.todo {
		if slices.ContainsFunc(t.known.used, func(name string) bool { return order[name][writes] > 0 }) {
			if err := b.planTasks(ctx, b.todo[i:i+1], f); err != nil {
				return nil, err
			}
		}
		if err := b.followTask(t, f, i); err != nil {
			t.plan = plan{err: newRefusal(Invalid, "", "%v", err)}
		}
		if b.unknown.stepAfter(t.touches) > 0 {
			b.answerUnknown(b.todo[i:i+1], errBehind)
			continue
		}
		at := order.placeTask(t.touches)
		if int(at) == len(plans) {
			plans = append(plans, nil)
		}
		plans[at] = append(plans[at], t)
	}
	return plans, nil
}

// performSteps executes the tasks step by step, and stops after a step in which a task did
// not have the planned outcome.
func (b *batch) performSteps(ctx context.Context, plans [][]*task) {
	for _, step := range plans {
		var alone, together []*task
		for _, t := range step {
			switch n := len(t.plan.writes); {
			case t.plan.err != nil || n == 0:
				b.answerTask(t)
			case n == 1:
				alone = append(alone, t)
			default:
				together = append(together, t)
			}
		}
		b.writeSingles(ctx, alone)
		b.writeTransactions(ctx, together)
		if slices.ContainsFunc(step, func(t *task) bool { return !t.asPlanned() }) {
			return
		}
	}
}

// asPlanned reports whether the tasks after this one can still rely on its plan.
func (t *task) asPlanned() bool {
	return t.done && (t.result.Err == nil || len(t.plan.writes) == 0)
}

// writeSingles executes plans of one write each, all in one call of the store.
// A command whose condition does not hold is planned again with the row that the store returned, so
// it costs no further read. An error of the call leaves all outcomes unknown.
func (b *batch) writeSingles(ctx context.Context, todo []*task) {
	if len(todo) == 0 {
		return
	}
	ws := make([]store.Write, len(todo))
	for i, t := range todo {
		ws[i] = t.plan.writes[0]
		ws[i].Return = true
	}
	outcomes, err := b.Store.Write(ctx, ws)
	if err != nil {
		b.answerUnknown(todo, err)
		return
	}
	for i, t := range todo {
		o := outcomes[i]
		switch {
		case errors.Is(o.Err, store.ErrCondition):
			b.fresh.noteRow(ws[i].Ref, o.Row)
			b.planAgain(t)
		case o.Err != nil:
			b.answerRefused(t, o.Err)
		default:
			if t.plan.own {
				t.plan.row = o.Row
			}
			b.answerTask(t)
		}
	}
}

// writeTransactions executes plans of several writes, each in a transaction of its own.
// They run side by side, and none depends on another: batches put commands that touch one another
// into different steps.
func (b *batch) writeTransactions(ctx context.Context, todo []*task) {
	errs := make([]error, len(todo))
	_ = parallel.Do(len(todo), maxAtOnce, func(i int) error {
		errs[i] = b.Store.Transact(ctx, todo[i].plan.writes)
		return nil
	})
	for i, t := range todo {
		switch err := errs[i]; {
		case errors.Is(err, store.ErrCondition) || errors.Is(err, store.ErrConflict):
			b.planAgain(t)
		case err != nil:
			b.answerRefused(t, err)
		default:
			b.answerTask(t)
		}
	}
}

// planAgain leaves a task to be planned again, because the rows are not as the plan
// assumed.
func (b *batch) planAgain(t *task) {
	b.contended = b.contended || t.known.sure
	t.known.sure, b.met = true, true
}

// answerRefused answers a task whose writes the store rejected, or of whose writes the
// outcome is unknown.
func (b *batch) answerRefused(t *task, err error) {
	if errors.Is(err, store.ErrRefused) {
		t.result.Err, t.done = newRefusal(Invalid, "", "%s", b.Model.ShownText(err.Error())), true
		return
	}
	b.answerUnknown([]*task{t}, err)
}

// answerUnknown answers tasks of which it is unknown whether they were done. Later tasks that
// touch the same things must not run in this batch.
func (b *batch) answerUnknown(todo []*task, err error) {
	for _, t := range todo {
		if t.done {
			continue
		}
		t.result.Err, t.done = err, true
		if b.unknown == nil {
			b.unknown = steps{}
		}
		b.unknown.placeTask(t.touches)
	}
}

// answerTask fills in the result of a task that had the planned outcome.
func (b *batch) answerTask(t *task) {
	if t.done = true; b.Again && t.asMade(b.now) {
		t.plan = plan{done: Unchanged, row: t.plan.row}
	}
	if t.result.Err = t.plan.err; t.plan.err != nil {
		return
	}
	t.result.Done, t.result.Repeated = t.plan.done, t.plan.repeated
	if t.Op != Delete && t.plan.row != nil && !b.Brief {
		t.result.Row, t.result.Revision = t.view.Row(t.plan.row, b.now), t.revisionOf(t.plan.row)
	}
}

// asMade reports whether a create was refused because of a row that is equal to the row
// that it would have made.
func (t *task) asMade(now time.Time) bool {
	var r *Refusal
	if t.Op != Create || !errors.As(t.plan.err, &r) || r.Kind != Exists || t.plan.row == nil {
		return false
	}
	again := *t.checked
	again.Op = Put
	again.key = ""
	k := known{facts: &facts{rows: map[string]value.Item{}}, now: now, newID: t.known.newID}
	k.noteRow(t.ref, t.plan.row)
	p := again.planCommand(&k)
	return p.err == nil && p.done == Unchanged
}
