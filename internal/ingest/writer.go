package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/store"
	"weir/internal/value"
)

// Writer checks commands against a model and writes them. It may be used by many
// goroutines at once, and beside other writers of the same tables. Set its fields
// before the first call; they must not change afterwards.
type Writer struct {
	Model *model.Model
	Store store.Store
	Now   func() time.Time // the clock; nil is the store's (store.Clock), by which idempotency keys expire

	// Again says that an interrupted run may have executed the commands before. A
	// create of a row that exists, and is equal to the one that the create would make, is then
	// Unchanged and not refused.
	Again bool

	// Brief leaves Row and Revision out of results, for callers that do not use them.
	Brief bool

	// NewID makes unique names; nil makes UUIDs.
	NewID func() string

	// Secret keys revisions; nil is the secret of the store (query.LoadSecret).
	Secret []byte

	once  sync.Once
	mu    sync.Mutex // guards Secret
	forms map[string]*form
	leads map[string]bool // tables from whose rows other rows are derived
}

// Do executes the commands and returns a result for each. The outcome is the same as if
// they were executed one after the other in the given order. Commands that touch one
// another (see order.go) are executed in that order, the others in parallel. Writes of
// independent commands go to the store in one call. If the store does not say whether a
// command was done, later commands that touch it are not started.
func (w *Writer) Do(ctx context.Context, commands []Command) []Result {
	w.once.Do(w.init)
	out := make([]Result, len(commands))
	named := slices.ContainsFunc(commands, func(c Command) bool { return c.IfMatch != "" })
	if err := w.loadSecret(ctx, named); err != nil {
		for i := range out {
			out[i].Err = err
		}
		return out
	}
	b := &batch{Writer: w}
	from := env{w.Now(), w.NewID}
	for i := range commands {
		if c, r := w.checkCommand(commands[i], from); r != nil {
			out[i].Err = r
		} else {
			b.todo = append(b.todo, &task{checked: c, result: &out[i]})
		}
	}
	b.executeTasks(ctx)
	return out
}

// loadSecret reads the key of revisions once, before the first that is made or compared (named).
func (w *Writer) loadSecret(ctx context.Context, named bool) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Secret == nil && (named || !w.Brief) {
		w.Secret, err = query.LoadSecret(ctx, w.Store)
	}
	return err
}

// init fills in defaults and makes the forms. It runs once, before the first command.
func (w *Writer) init() {
	if w.Now == nil {
		w.Now = store.Clock(time.Now, w.Store)
	}
	if w.NewID == nil {
		w.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	w.forms, w.leads = map[string]*form{}, leadingTables(w.Model)
	for _, e := range w.Model.Entities {
		w.forms[e.Name] = newForm(w.Model, e)
	}
	for _, f := range w.forms {
		if f.Once != nil {
			f.keeps = w.forms[f.Once.Of.Name]
		}
	}
}

// checkCommand checks a command without reading any row. Names are made from the command's
// seed, if it has one.
func (w *Writer) checkCommand(c Command, from env) (*checked, *Refusal) {
	switch c.Op {
	case Create, Put, Update, Delete:
	default:
		return nil, newRefusal(Invalid, "", "op must be create, put, update or delete, not %s", value.QuoteShort(string(c.Op)))
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
	out, r := f.checkItem(c, from)
	if out != nil {
		out.secret = w.Secret
	}
	return out, r
}

// noEntity refuses an entity that does not exist, or whose rows only weir makes; f is
// nil in the first case.
func (w *Writer) noEntity(name string, f *form) *Refusal {
	if f != nil {
		return newRefusal(Invalid, "", "only weir makes the rows of %s", name)
	}
	var names []string
	for _, e := range w.Model.Entities {
		if !e.Derived {
			names = append(names, e.Name)
		}
	}
	return newRefusal(Invalid, "", "%s has no entity %s%s", w.Model.Name, value.QuoteShort(name), model.Meant(name, names))
}
