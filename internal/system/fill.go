package system

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections/document"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// fillLife is how long a program that fills may be silent before another one goes on. Two
// that fill at the same time do the same work twice, and nothing wrong.
const fillLife = 10 * time.Second

// Filling says how far the filling of indexes is. Rows includes those that were read before a
// crash.
type Filling struct {
	Table string
	Rows  int
	Total int  // approximately how many rows there are to read, 0 if that is not known
	Again bool // it goes on where another run of it stopped
}

// Fill fills the indexes that are new, or were made again, from the existing rows, as index.go
// describes. It returns when they are filled, by this program or another one. They are not
// for searches yet: see Reach. The errors are also those of NameIndexes.
func (s *System) Fill(ctx context.Context, progress func(Filling)) error {
	if err := s.NameIndexes(ctx); err != nil || s.Index == nil {
		return err
	}
	if err := s.late.reachIndex(ctx); err != nil {
		return err
	}
	if err := s.Store.Sync(ctx); err != nil { // the indexes keep the documents that they are given
		return err
	}
	for _, g := range s.generations {
		f := filler{System: s, generation: g, me: rand.Text(), progress: progress}
		if err := f.fillUntilWhole(ctx); err != nil {
			return fmt.Errorf("filling the search indexes of model %s: %w", g.model.Name, err)
		}
		if !s.shared || s.OwnsIndexes() { // processes that read before had others
			if err := s.Prune(ctx, g.part, func(Pruned) {}); err != nil {
				return err
			}
		}
	}
	return s.Index.Refresh(ctx)
}

// filler fills the indexes of one generation.
type filler struct {
	*System
	*generation
	// me names this filler among those of all processes; it is drawn at random.
	me string
	// row is the generation's row as this filler has read or written it last: each write has it as
	// the condition.
	row      owntable.GenerationRow
	progress func(Filling)
	// total is an estimate of the rows of all tables, 0 if the store gives none.
	total int
}

// fillUntilWhole returns when the indexes are filled, by this filler or another program that was first.
// Any number of programs may call it. One fills, as its lease in the row says, and the others wait
// for it.
func (f *filler) fillUntilWhole(ctx context.Context) error {
	for {
		row, kept, err := f.readKept(ctx, f.generation)
		if err != nil {
			return err
		}
		switch f.row = row; {
		case kept && f.isWhole():
			return f.tellDriver()
		case f.shared && row.Owner != f.me && row.Owner != "" && f.now().Before(row.Until):
			if err := parallel.Sleep(ctx, time.Second); err != nil {
				return err
			}
			continue
		}
		err = f.fillIndexes(ctx)
		if !errors.Is(err, store.ErrCondition) { // then another program fills
			return err
		}
	}
}

// isWhole reports whether the indexes that the driver has open are those that are filled.
func (f *filler) isWhole() bool { return f.row.Filled && f.hasSame() }

// hasSame reports whether the row is about the instances that the driver has open.
func (f *filler) hasSame() bool {
	for name := range f.indexes {
		if f.row.Indexes[name].Instance != f.Index.Instance(name) {
			return false
		}
	}
	return true
}

// tellDriver tells the driver.
func (f *filler) tellDriver() error {
	for name := range f.indexes {
		if slices.Contains(f.Index.Fresh(), name) {
			if err := f.Index.Filled(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// putRow writes the row as it is to be, and keeps it.
func (f *filler) putRow(ctx context.Context, next owntable.GenerationRow) (err error) {
	next.Owner, next.Until = f.me, f.now().Add(fillLife)
	f.row, err = f.writeGeneration(ctx, f.ref(), f.row, next)
	return err
}

// fillIndexes begins or goes on. The error wraps store.ErrCondition if another program does.
func (f *filler) fillIndexes(ctx context.Context) error {
	next, again := f.row.Clone(), f.row.Part != "" && f.hasSame()
	if !again {
		next = owntable.GenerationRow{Driver: f.driver, Indexes: map[string]owntable.GenerationIndex{}}
		for name, hash := range f.indexes {
			is := owntable.GenerationIndex{Hash: hash, Place: f.Index.Place(name), Instance: f.Index.Instance(name), Base: (*f.noted.Load())[name]}
			if is.Instance == "" { // it was left meanwhile
				return errLate
			}
			next.Indexes[name] = is
		}
	}
	if err := f.putRow(ctx, next); err != nil {
		return err
	}
	f.total = f.estimateRows(ctx)
	all := f.sources()
	for i := range all {
		if err := f.fillFrom(ctx, all, i, again); err != nil {
			return fmt.Errorf("from table %s: %w", all[i].table.Name, err)
		}
	}
	next = f.row.Clone()
	next.Filled, next.Since, next.Part, next.Cursor, next.Rows = true, f.now(), "", nil, 0
	if err := f.putRow(ctx, next); err != nil {
		return err
	}
	if err := f.changeGeneration(ctx, f.generation, func(g *owntable.GenerationRow) bool { g.Owner, g.Until = "", time.Time{}; return true }); err != nil {
		return err
	}
	return f.tellDriver()
}

// estimateRows returns how many rows there are to read, as the store estimates it, 0 if it does not.
func (f *filler) estimateRows(ctx context.Context) (rows int) {
	for _, from := range f.sources() {
		is, err := f.Store.Identity(ctx, from.table.Name)
		if err != nil || is.Rows == 0 {
			return 0
		}
		rows += int(is.Rows)
	}
	return rows
}

// fillPage is how many rows are read before the cursor is stored.
const fillPage = 1000

// source is a table that indexes are filled from, and its indexes. One scan fills all of
// them: reading costs more than documents that are there already.
type source struct {
	table *model.Table
	of    []*model.Search
}

// sources are the tables to read, in the order of the searches. The order is part of where filling goes on.
func (f *filler) sources() (out []source) {
	for _, sr := range f.model.Searches {
		i := slices.IndexFunc(out, func(o source) bool { return o.table == sr.Of.Table })
		if i < 0 {
			i, out = len(out), append(out, source{table: sr.Of.Table})
		}
		out[i].of = append(out[i].of, sr)
	}
	return out
}

// documents are those of a page of rows.
// Their position is the least that there is, so any document that a record has made, or deleted, is
// newer.
func (f *filler) documents(from source, rows []value.Item) (docs []search.Document) {
	for _, row := range rows {
		key, ok := from.table.KeyOf(row)
		if !ok {
			continue
		}
		entities := from.table.Classify(row)
		for _, sr := range from.of {
			if d, ok := document.DocumentOf(f.model, sr, entities, key, row); ok {
				d.Position = events.PositionOf(1)
				docs = append(docs, d)
			}
		}
	}
	return docs
}

// fillFrom fills the indexes of one table from where filling is.
// The cursor is stored after each page, behind its documents: a crash indexes at most one page
// again.
func (f *filler) fillFrom(ctx context.Context, all []source, i int, again bool) error {
	name := all[i].table.Name
	q := store.Query{Table: name, Limit: fillPage}
	if f.row.Part == name {
		if key, ok := all[i].table.KeyOf(f.row.Cursor); ok {
			q.After = &store.Cursor{Key: key}
		}
	} else if at := slices.IndexFunc(all, func(o source) bool { return o.table.Name == f.row.Part }); at > i || f.row.Part == allParts {
		return nil
	}
	for {
		page, err := f.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		if err := f.applyDocuments(ctx, f.documents(all[i], page.Rows)); err != nil {
			return err
		}
		next := f.row.Clone()
		next.Rows += int64(len(page.Rows))
		switch {
		case page.Next != nil:
			next.Part, next.Cursor = name, all[i].table.Item(page.Next.Key)
		case i+1 < len(all):
			next.Part, next.Cursor = all[i+1].table.Name, nil
		default:
			next.Part, next.Cursor = allParts, nil
		}
		if err := f.putRow(ctx, next); err != nil {
			return err
		}
		if f.progress != nil {
			f.progress(Filling{name, int(next.Rows), f.total, again})
		}
		if page.Next == nil {
			return nil
		}
		q.After = page.Next
	}
}

// allParts is the part of a row whose indexes are filled but for the note that they are.
const allParts = "|all"

// Filling waits for an index that is overloaded, longer each time, and gives up when nothing
// was taken for indexPatience. It goes on from the cursor when it is started again.
const indexPatience = 10 * time.Minute

// applyDocuments applies documents until each is taken or refused. A refused one has a dead letter
// as soon as the row changes.
func (f *filler) applyDocuments(ctx context.Context, docs []search.Document) error {
	since, pause := time.Now(), 100*time.Millisecond
	for len(docs) > 0 {
		errs, err := f.Index.Apply(ctx, docs)
		if err != nil && ctx.Err() != nil {
			return err
		}
		var left []search.Document
		for i, e := range errs {
			if e != nil && !errors.Is(e, search.ErrRefused) {
				left, err = append(left, docs[i]), e
			}
		}
		if errs == nil {
			left = docs
		}
		switch {
		case len(left) == 0:
			return nil
		case len(left) < len(docs):
			since, pause = time.Now(), 100*time.Millisecond
		case time.Since(since) > indexPatience || f.Index.Instance(docs[0].Index) == "":
			return err
		}
		docs = left
		if err := parallel.Sleep(ctx, pause); err != nil {
			return err
		}
		if f.now().Add(fillLife / 2).After(f.row.Until) { // it is not silent
			if err := f.putRow(ctx, f.row.Clone()); err != nil {
				return err
			}
		}
		pause = min(2*pause, fillLife/3)
	}
	return nil
}
