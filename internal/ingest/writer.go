package ingest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

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
	leads   map[string]bool // tables whose rows lead to others
}

const (
	maxTries  = 10 * time.Second // how long a command is planned anew while others change the same rows
	maxAtOnce = 16               // transactions, and questions to indexes, at a time
)

// Do does the commands and answers for each. What comes of them is what comes of them
// one after the other, in the order given: commands that touch one another (see
// order.go) are done in that order, the others side by side, and what independent
// commands write goes to the store in one call. When the store does not say whether a
// command was done, those behind it that touch it are not begun.
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
	b := &batch{Writer: w, todo: todo}
	b.do(ctx)
	return out
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

func (w *Writer) init() {
	if w.Now == nil {
		w.Now = time.Now
	}
	if w.abreast = 1; w.NewID == nil {
		w.abreast = runtime.GOMAXPROCS(0)
		w.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	w.forms, w.leads = map[string]*form{}, leading(w.Model)
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
