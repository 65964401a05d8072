package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/store"
	"weir/internal/value"
)

// Writer checks commands against a model and writes them. It may be used by many
// at once, and beside other writers of the same tables.
type Writer struct {
	Model *model.Model
	Store store.Store
	Now   func() time.Time // the clock; nil is time.Now

	// Again says that commands may have been done before, by a run that was broken
	// off: a create of a row that is there, just as the create would make it, is
	// Unchanged and not refused.
	Again bool

	once  sync.Once
	forms map[string]*form
}

const (
	maxTries  = 10 * time.Second // how long a command is planned anew while others change the same rows
	maxAtOnce = 16               // transactions at a time
)

// Do does the commands and answers for each, in order. Commands of one row happen
// in order; nothing is promised between rows. What independent commands write goes
// to the store in one call.
func (w *Writer) Do(ctx context.Context, commands []Command) []Result {
	w.once.Do(w.init)
	out := make([]Result, len(commands))
	var todo []*task
	for i := range commands {
		c, r := w.check(commands[i])
		if r != nil {
			out[i].Err = r
			continue
		}
		todo = append(todo, &task{checked: c, result: &out[i]})
	}
	for _, wave := range waves(todo) {
		w.wave(ctx, wave)
	}
	return out
}

func (w *Writer) init() {
	if w.Now == nil {
		w.Now = time.Now
	}
	w.forms = map[string]*form{}
	for _, e := range w.Model.Entities {
		w.forms[e.Name] = newForm(w.Model, e)
	}
}

func (w *Writer) check(c Command) (*checked, *Refusal) {
	switch c.Op {
	case Create, Put, Update, Delete:
	default:
		return nil, refuse(Invalid, "", "op must be create, put, update or delete, not %s", quoted(string(c.Op)))
	}
	f := w.forms[c.Entity]
	if f == nil || f.Derived {
		return nil, w.noEntity(c.Entity, f)
	}
	return f.check(c)
}

func (w *Writer) noEntity(name string, f *form) *Refusal {
	if f != nil {
		return refuse(Invalid, "", "weir makes the rows of %s, nobody else", name)
	}
	var names []string
	for _, e := range w.Model.Entities {
		if !e.Derived {
			names = append(names, e.Name)
		}
	}
	if near := query.Nearest(name, names); near != "" {
		return refuse(Invalid, "", "%s has no entity %s; did you mean %s?", w.Model.Name, quoted(name), near)
	}
	return refuse(Invalid, "", "%s has no entity %s", w.Model.Name, quoted(name))
}

// task is a command on its way.
type task struct {
	*checked
	result *Result
	row    value.Item // as it was read last
	read   bool
	plan   plan
}

// waves puts tasks of one row after each other.
func waves(todo []*task) (out [][]*task) {
	last := map[string]int{}
	for _, t := range todo {
		name := t.ref.String()
		n := last[name]
		if last[name] = n + 1; n == len(out) {
			out = append(out, nil)
		}
		out[n] = append(out[n], t)
	}
	return out
}

// wave does tasks of different rows, those again that others came in between of.
func (w *Writer) wave(ctx context.Context, todo []*task) {
	wait := backoff.WithContext(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Millisecond), backoff.WithMaxInterval(50*time.Millisecond), backoff.WithMaxElapsedTime(maxTries)), ctx)
	for {
		if todo = w.attempt(ctx, todo); len(todo) == 0 {
			return
		}
		pause := wait.NextBackOff()
		if pause == backoff.Stop {
			for _, t := range todo {
				t.result.Err = errors.Join(ctx.Err(), fmt.Errorf("%s: others kept changing the row; send the command again", t.ref))
			}
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// attempt reads, plans and writes. What it returns is to be tried again.
func (w *Writer) attempt(ctx context.Context, todo []*task) (again []*task) {
	if err := w.load(ctx, todo); err != nil {
		failed(todo, err)
		return nil
	}
	now := w.Now()
	var alone, together []*task
	for _, t := range todo {
		switch t.plan = t.checked.plan(t.row, now); {
		case t.plan.err != nil || len(t.plan.writes) == 0:
			w.answer(t, now)
		case len(t.plan.writes) == 1:
			alone = append(alone, t)
		default:
			together = append(together, t)
		}
	}
	again = w.alone(ctx, alone, now)
	return append(again, w.together(ctx, together, now)...)
}

// load reads the rows that plans are made from. A create is planned for a row that
// is not there, and read when it is.
func (w *Writer) load(ctx context.Context, todo []*task) error {
	var refs []store.Ref
	var of []*task
	for _, t := range todo {
		if !t.read && t.Op != Create {
			refs, of = append(refs, t.ref), append(of, t)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	rows, err := w.Store.Get(ctx, refs)
	for i, row := range rows {
		of[i].row, of[i].read = row, true
	}
	return err
}

// alone does plans of one write in one call.
func (w *Writer) alone(ctx context.Context, todo []*task, now time.Time) (again []*task) {
	if len(todo) == 0 {
		return nil
	}
	ws := make([]store.Write, len(todo))
	for i, t := range todo {
		ws[i] = t.plan.writes[0]
	}
	outcomes, err := w.Store.Write(ctx, ws)
	if err != nil {
		failed(todo, err)
		return nil
	}
	for i, t := range todo {
		o := outcomes[i]
		if errors.Is(o.Err, store.ErrCondition) {
			t.row, t.read = o.Row, true
			again = append(again, t)
			continue
		}
		if t.settle(o.Err); o.Err == nil {
			t.plan.row = o.Row
		}
		w.answer(t, now)
	}
	return again
}

// together does plans that are a transaction each.
func (w *Writer) together(ctx context.Context, todo []*task, now time.Time) (again []*task) {
	errs := make([]error, len(todo))
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxAtOnce)
	for i, t := range todo {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = w.Store.Transact(ctx, t.plan.writes)
			<-slots
		})
	}
	wg.Wait()
	for i, t := range todo {
		if err := errs[i]; errors.Is(err, store.ErrCondition) || errors.Is(err, store.ErrConflict) {
			t.read = false
			again = append(again, t)
			continue
		}
		t.settle(errs[i])
		w.answer(t, now)
	}
	return again
}

// settle takes over what a store says of a plan's writes.
func (t *task) settle(err error) {
	switch {
	case errors.Is(err, store.ErrRefused):
		t.plan.err = refuse(Invalid, "", "%v", err)
	case err != nil:
		t.plan.err = err
	}
}

func failed(todo []*task, err error) {
	for _, t := range todo {
		t.result.Err = err
	}
}

// answer says what became of a task.
func (w *Writer) answer(t *task, now time.Time) {
	if w.Again && t.asMade(now) {
		t.plan = plan{done: Unchanged, row: t.row}
	}
	if t.result.Err = t.plan.err; t.plan.err != nil {
		return
	}
	t.result.Done = t.plan.done
	if t.Op != Delete && t.plan.row != nil {
		t.result.Row, t.result.Revision = t.view.Row(t.plan.row, now), t.revision(t.plan.row)
	}
}

// asMade reports whether a create was refused for a row that is just what it would
// have made.
func (t *task) asMade(now time.Time) bool {
	var r *Refusal
	if t.Op != Create || !errors.As(t.plan.err, &r) || r.Kind != Exists || t.plan.row == nil {
		return false
	}
	again := *t.checked
	again.Op = Put
	p := again.plan(t.row, now)
	return p.err == nil && p.done == Unchanged
}
