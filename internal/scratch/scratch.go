// Package scratch derives a model's values of some rows, by the ordinary engine, into an embedded store that is thrown away,
// and tells where another store says something else.
//
// It knows no kind of projection. The derived values of rows (said.go) are compared; how they came about is not: no
// positions, no versions.
package scratch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/memory"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// Engine derives from the rows that it is given. One goroutine uses it. Close it: its files are gone then.
type Engine struct {
	dir   string
	store *embedded.Store
	run   *runner.Runner
	bulk  *replay.Bulk
	rows  uint64
}

// Options of an Engine.
type Options struct {
	Dir    string // in which it makes a directory for its files; "" is that for temporary files
	Memory memory.Size
	Now    func() time.Time
	// InMemory has all of its store in memory, whatever Memory says.
	InMemory bool
	// Watch, if set, has records come one by one, to Step, and history made of them too. It is called with the work that is gathered of
	// each record, and of each change that this leads to.
	Watch func(*projections.Gathered)
}

// New returns an Engine without rows. It uses about half of the memory: the store that is verified has the other half.
func New(ctx context.Context, m *model.Model, o Options) (e *Engine, err error) {
	e = &Engine{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("a store for what is derived: %w", err), e.Close())
		}
	}()
	all := kinds.All()
	if o.Watch != nil {
		all = append(all, watcher{see: o.Watch})
	} else if m, err = m.WithoutHistory(); err != nil {
		return e, err
	}
	removeAbandoned(cmp.Or(o.Dir, os.TempDir()), o.Now())
	if e.dir, err = os.MkdirTemp(o.Dir, dirs); err != nil {
		return e, err
	}
	tables := []store.Table{owntable.Table()}
	for _, t := range m.AllTables() {
		st := t.Table
		st.Stream = true
		tables = append(tables, st)
	}
	if e.store, err = embedded.Open(e.dir, tables, embedded.Options{Memory: o.Memory / 2, InMemory: o.InMemory}); err != nil {
		return e, err
	}
	e.run = &runner.Runner{Kinds: all, Model: m, Store: e.store, Now: o.Now}
	e.run.Catalog = catalog.New(m, e.store, o.Now, catalog.Options{})
	if err = e.run.Start(ctx); err != nil {
		return e, err
	}
	share := int((o.Memory / 2).Share(window))
	b, why, err := replay.New(ctx, &replay.Replay{Model: m, Store: e.store, Runner: e.run}, replay.Size{Memory: share, Disk: pieces * int64(share), Scratch: true, Each: o.Watch != nil})
	if err == nil && why != "" {
		err = errors.New(why)
	}
	e.bulk = b
	return e, err
}

// window is how much of every 256 MB a window gets, and pieces how many times as much its records may take on disk.
const (
	window = 32 * memory.MB
	pieces = 64
)

// dirs is the names of directories of engines.
const dirs = "weir-scratch-*"

// removeAbandoned removes the directories that engines of killed processes have left: those that no process has open. One that is an hour
// old at most may be about to be opened.
func removeAbandoned(dir string, now time.Time) {
	left, _ := filepath.Glob(filepath.Join(dir, dirs))
	for _, d := range left {
		is, err := os.Stat(d)
		if err != nil || now.Sub(is.ModTime()) < time.Hour {
			continue
		}
		embedded.Remove(d) // if no process has it open
	}
}

// Add adds rows of a table, each once, in any order. Values that weir has derived on them are left out.
func (e *Engine) Add(ctx context.Context, t *model.Table, rows []value.Item) error {
	entries := make([]events.Entry, 0, len(rows))
	for _, row := range rows {
		if entry, ok := Insert(t, row, e.rows+1); ok {
			entries, e.rows = append(entries, entry), e.rows+1
		}
	}
	return e.bulk.Batch(ctx, entries, t.Name)
}

// Step applies a record, and all that it leads to.
func (e *Engine) Step(ctx context.Context, entry *events.Entry, table string) error {
	return e.bulk.Step(ctx, []events.Entry{*entry}, table)
}

// Row returns a row as it is after the last Step, nil if there is none.
func (e *Engine) Row(ctx context.Context, ref store.Ref) (value.Item, error) {
	return e.bulk.Row(ctx, ref)
}

// watcher is a kind that derives nothing and sees the work that the others gather.
type watcher struct {
	runner.Base
	see func(*projections.Gathered)
}

// Begin returns the part of a batch that sees it.
func (w watcher) Begin(*model.Model, *projections.Gathered) runner.Part { return watched{w: w} }

// watched is its part of a batch.
type watched struct {
	runner.BasePart
	w watcher
}

// Record sees the work that all kinds have folded.
func (p watched) Record(_ context.Context, w *runner.Work) error {
	p.w.see(w.Gathered)
	return nil
}

// Insert is a row as the nth record, which inserts it. It is false of a row that weir has made, and something else has changed since.
func Insert(t *model.Table, row value.Item, nth uint64) (e events.Entry, ok bool) {
	key, ok := t.KeyOf(row)
	if !ok || t.Classify(row) == nil && slices.ContainsFunc(row, func(a value.Attr) bool { return owntable.IsOurs(a.Name) }) {
		return e, false
	}
	return events.Entry{Record: events.Record{Table: t.Name, Keys: t.Item(key), New: row, Position: events.PositionOf(nth)}}, true
}

// Store returns the store with all that is derived from the rows. Add none afterwards.
func (e *Engine) Store(ctx context.Context) (store.Store, error) {
	if err := e.bulk.Land(ctx); err != nil {
		return nil, err
	}
	return e.store, nil
}

// Close removes the files.
func (e *Engine) Close() error {
	var errs []error
	if e.bulk != nil {
		errs = append(errs, e.bulk.Close())
	}
	if e.store != nil {
		errs = append(errs, e.store.Close())
	}
	if e.dir != "" {
		errs = append(errs, os.RemoveAll(e.dir))
	}
	return errors.Join(errs...)
}
