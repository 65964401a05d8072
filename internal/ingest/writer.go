package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"

	"weir/internal/model"
	"weir/internal/store"
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

	// Brief leaves Row and Revision out of results: nobody looks at them.
	Brief bool

	// NewID names what nothing else is named; nil is a UUID.
	NewID func() string

	once    sync.Once
	abreast int // how many goroutines check and plan many commands
	forms   map[string]*form
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
	tasks, todo := make([]task, len(commands)), make([]*task, 0, len(commands))
	from := env{w.Now(), w.NewID}
	w.parts(len(commands), func(i int) {
		c, r := w.check(commands[i], from)
		if tasks[i] = (task{checked: c, result: &out[i]}); r != nil {
			out[i].Err = r
		}
	})
	for i := range tasks {
		if tasks[i].checked != nil {
			todo = append(todo, &tasks[i])
		}
	}
	for _, wave := range waves(todo) {
		for len(wave) > 0 {
			w.wave(ctx, wave)
			wave = freed(wave)
		}
	}
	return out
}

// freed are the tasks that were refused a value which one before them may have given
// back since.
func freed(wave []*task) (again []*task) {
	wrote := map[*form]bool{}
	for _, t := range wave {
		if isTaken(t.result.Err) && wrote[t.form] {
			t.known, *t.result = known{sure: true}, Result{}
			again = append(again, t)
		}
		wrote[t.form] = wrote[t.form] || t.result.Err == nil && t.result.Done != Unchanged
	}
	return again
}

// partOf is how many commands are worth a goroutine.
const partOf = 64

// parts does something for each of n, several at a time where there are many. Names
// that the caller makes are asked for one after the other.
func (w *Writer) parts(n int, do func(i int)) {
	many := min(w.abreast, n/partOf)
	if many < 2 {
		for i := range n {
			do(i)
		}
		return
	}
	var wg sync.WaitGroup
	for part := range many {
		wg.Go(func() {
			for i := n * part / many; i < n*(part+1)/many; i++ {
				do(i)
			}
		})
	}
	wg.Wait()
}

func isTaken(err error) bool {
	if err == nil {
		return false
	}
	var r *Refusal
	return errors.As(err, &r) && r.Kind == Taken
}

func (w *Writer) init() {
	if w.Now == nil {
		w.Now = time.Now
	}
	if w.abreast = 1; w.NewID == nil {
		w.abreast = runtime.GOMAXPROCS(0)
		w.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	w.forms = map[string]*form{}
	for _, e := range w.Model.Entities {
		w.forms[e.Name] = newForm(w.Model, e)
	}
	for _, f := range w.forms {
		if f.Once != nil {
			f.keeps = w.forms[f.Once.Of.Name]
		}
	}
}

func (w *Writer) check(c Command, from env) (*checked, *Refusal) {
	switch c.Op {
	case Create, Put, Update, Delete:
	default:
		return nil, refuse(Invalid, "", "op must be create, put, update or delete, not %s", quoted(string(c.Op)))
	}
	f := w.forms[c.Entity]
	if f == nil || f.Derived {
		return nil, w.noEntity(c.Entity, f)
	}
	if c.Seed != "" {
		made := 0
		from.newID = func() string {
			made++
			return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%d %s", made, c.Seed)).String()
		}
	}
	return f.check(c, from)
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
	return refuse(Invalid, "", "%s has no entity %s%s", w.Model.Name, quoted(name), model.Meant(name, names))
}

// task is a command on its way.
type task struct {
	*checked
	result *Result
	known  known
	plan   plan
}

// waves puts tasks that have to do with one row, value or key after each other.
func waves(todo []*task) (out [][]*task) {
	if len(todo) == 1 {
		return [][]*task{todo}
	}
	next := make(map[string]int, len(todo))
	var room [4]string
	for _, t := range todo {
		n, names := 0, t.touched(room[:0])
		for _, name := range names {
			n = max(n, next[name])
		}
		for _, name := range names {
			next[name] = n + 1
		}
		if n == len(out) {
			out = append(out, nil)
		}
		out[n] = append(out[n], t)
	}
	return out
}

// touched adds the names of what no two tasks may have to do with at a time.
func (c *checked) touched(out []string) []string {
	k := c.ref.Key
	out = append(out, c.ref.Table+"\x00"+k.Partition.Text()+"\x00"+k.Sort.Text())
	for _, u := range c.Unique {
		if v := model.Scalar(c.given.get(u.Field.Name)); v != "" {
			out = append(out, "value "+c.Name+"."+u.Field.Name+" "+v)
		}
	}
	if c.key != "" {
		out = append(out, "key "+c.key)
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

// attempt plans and writes. What it returns is to be tried again.
func (w *Writer) attempt(ctx context.Context, todo []*task) (again []*task) {
	now := w.Now()
	if err := w.decide(ctx, todo, now); err != nil {
		failed(todo, err)
		return nil
	}
	var alone, together []*task
	for _, t := range todo {
		switch n := t.plan.count(); {
		case t.plan.err != nil || n == 0:
			w.answer(t, now)
		case n == 1:
			alone = append(alone, t)
		default:
			together = append(together, t)
		}
	}
	again = w.alone(ctx, alone, now)
	return append(again, w.together(ctx, together, now)...)
}

// decide makes the plans, reading what they ask for until they ask no more.
func (w *Writer) decide(ctx context.Context, todo []*task, now time.Time) error {
	for len(todo) > 0 {
		w.parts(len(todo), func(i int) {
			t := todo[i]
			t.known.now, t.known.newID, t.known.open, t.known.finds = now, w.NewID, nil, nil
			t.plan = t.checked.plan(&t.known)
		})
		var open []*task
		for _, t := range todo {
			if t.known.waiting() {
				open = append(open, t)
			}
		}
		if err := w.read(ctx, open); err != nil {
			return err
		}
		if err := w.find(ctx, open); err != nil {
			return err
		}
		todo = open
	}
	return nil
}

// read reads all rows that tasks ask for at once.
func (w *Writer) read(ctx context.Context, todo []*task) error {
	var refs []store.Ref
	at := map[string]int{}
	for _, t := range todo {
		for _, ref := range t.known.open {
			if name := ref.String(); at[name] == 0 {
				refs = append(refs, ref)
				at[name] = len(refs)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	rows, err := w.Store.Get(ctx, refs)
	if err != nil {
		return err
	}
	for _, t := range todo {
		for _, ref := range t.known.open {
			t.known.learn(ref, rows[at[ref.String()]-1])
		}
	}
	return nil
}

// find asks indexes what tasks ask of them.
func (w *Writer) find(ctx context.Context, todo []*task) error {
	return parallel(todo, func(t *task) error {
		for _, q := range t.known.finds {
			refs, err := w.having(ctx, t.Table, q)
			if err != nil {
				return err
			}
			if t.known.found == nil {
				t.known.found = map[string][]store.Ref{}
			}
			t.known.found[q.name] = refs
		}
		return nil
	})
}

func (w *Writer) having(ctx context.Context, table *model.Table, q find) (refs []store.Ref, err error) {
	for {
		page, err := w.Store.Query(ctx, q.Query)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Rows {
			if key, ok := table.KeyOf(row); ok && q.keep(row) {
				refs = append(refs, store.Ref{Table: table.Name, Key: key})
			}
		}
		if q.After = page.Next; q.After == nil {
			return refs, nil
		}
	}
}

// parallel does something for all tasks, a few at a time.
func parallel(todo []*task, do func(*task) error) error {
	if len(todo) == 1 {
		return do(todo[0])
	}
	errs := make([]error, len(todo))
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxAtOnce)
	for i, t := range todo {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = do(t)
			<-slots
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// alone does plans of one write in one call.
func (w *Writer) alone(ctx context.Context, todo []*task, now time.Time) (again []*task) {
	if len(todo) == 0 {
		return nil
	}
	ws := make([]store.Write, len(todo))
	for i, t := range todo {
		if t.plan.write != nil {
			ws[i] = *t.plan.write
		} else {
			ws[i] = t.plan.also[0]
		}
		ws[i].Return = true
	}
	outcomes, err := w.Store.Write(ctx, ws)
	if err != nil {
		failed(todo, err)
		return nil
	}
	for i, t := range todo {
		o := outcomes[i]
		if errors.Is(o.Err, store.ErrCondition) {
			t.known = known{sure: true}
			t.known.learn(ws[i].Ref, o.Row)
			again = append(again, t)
			continue
		}
		if t.settle(o.Err); o.Err == nil && t.plan.write != nil {
			t.plan.row = o.Row
		}
		w.answer(t, now)
	}
	return again
}

// together does plans that are a transaction each.
func (w *Writer) together(ctx context.Context, todo []*task, now time.Time) (again []*task) {
	errs := make([]error, len(todo))
	at := map[*task]int{}
	for i, t := range todo {
		at[t] = i
	}
	parallel(todo, func(t *task) error {
		errs[at[t]] = w.Store.Transact(ctx, t.plan.writes())
		return nil
	})
	for i, t := range todo {
		if err := errs[i]; errors.Is(err, store.ErrCondition) || errors.Is(err, store.ErrConflict) {
			t.known = known{sure: true}
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
		t.plan = plan{done: Unchanged, row: t.plan.row}
	}
	if t.result.Err = t.plan.err; t.plan.err != nil {
		return
	}
	t.result.Done, t.result.Repeated = t.plan.done, t.plan.repeated
	if t.Op != Delete && t.plan.row != nil && !w.Brief {
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
	again.key = ""
	k := known{now: now, newID: t.known.newID}
	k.learn(t.ref, t.plan.row)
	p := again.plan(&k)
	return p.err == nil && p.done == Unchanged
}
