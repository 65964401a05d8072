package system

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"weir/internal/drivers"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/query"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// The search indexes of a model have definitions, and the set of them, in one kind of index,
// is a search generation. Each generation has indexes of its own, a consumer group of its own
// with checkpoints, and a row in the own table (owntable.GenerationRow). Programs with different
// generations do not touch each other's.
//
// A generation is built in this order. A crash after any step leaves what the next program
// goes on from:
//
//  1. The driver makes the indexes, empty.
//  2. The row names their instances.
//  3. The checkpoints of the group move up to those of the rows' group, and the row says so.
//     From here on they are never moved like that again: the scan sees every change up to
//     them, and the group applies every change behind them.
//  4. A scan puts the documents of the rows, page by page, at the lowest position. The row
//     has the cursor. Changes from the stream win over them, whenever they are applied.
//  5. The row says that the generation is filled.
//  6. The group is applied up to the end of the streams, and the row says so. Only then are
//     searches answered: before, the index is behind the rows by as long as the scan took.

// generation is the search generation of one model of a system.
// Two models with one hash have the same indexes. It does not change after the start, but for
// reached.
type generation struct {
	model   *model.Model
	hash    string
	driver  string
	indexes map[string]string // by index, the hash of its definition
	reached atomic.Bool       // searches may be answered
}

// built returns nil if searches may be answered.
func (g *generation) built() error {
	if g.reached.Load() {
		return nil
	}
	return query.ErrBuilding
}

// hashLength is the number of characters of a generation's hash.
const hashLength = 12

// generationOf describes the generation of a model for a kind of index. It does no I/O, and the same definitions
// always give the same hash.
func generationOf(m *model.Model, driver string) *generation {
	g := &generation{model: m, driver: driver, indexes: map[string]string{}}
	by := map[string]string{}
	for _, d := range m.Derivations() {
		by[d.Name] = d.Hash
	}
	lines := []string{driver}
	for _, s := range m.Searches {
		hash := by[s.Derivation()]
		g.indexes[document.Index(m, s)] = hash
		lines = append(lines, s.Name+" "+hash)
	}
	slices.Sort(lines[1:])
	g.hash = owntable.Hash(strings.Join(lines, "\n"))[:hashLength]
	return g
}

// ref is the generation's row of the own table.
func (g *generation) ref() store.Ref { return owntable.Generation(g.model.Name, g.hash) }

// schemas are the schemas of the generation's indexes. No other generation has the same,
// so none shares an index with another, even one whose definition is the same in both.
func (g *generation) schemas() (out []search.Schema) {
	for _, s := range g.model.Searches {
		name := document.Index(g.model, s)
		out = append(out, search.Schema{Name: name, Filters: names(s.Filters), Sorts: names(s.Sorts), Version: g.hash})
	}
	return out
}

// noteNone is the beginning of what a driver is told to have been filled if nothing was:
// what follows it makes each different from all earlier ones.
const noteNone = "none "

// keptFor is how long a generation that no program applies can go on from its checkpoints:
// streams keep their records for 24 hours. Later it is filled again.
const keptFor = 20 * time.Hour

// openIndex opens the indexes of the place. The store must be open.
// With Late, an index that cannot be reached yet is opened by a later reach: until then searches are refused and rows go
// on, and only a mistake of the caller is an error.
func (s *System) openIndex(ctx context.Context, at drivers.Place, models []*model.Model, secret []byte, o Options) (err error) {
	d := at.Index()
	var schemas []search.Schema
	for _, m := range models {
		if len(m.Searches) == 0 {
			continue
		}
		s.searching = append(s.searching, m)
		if o.NoSearch || d == nil {
			continue
		}
		g := generationOf(m, d.Kind)
		s.generations = append(s.generations, g)
		schemas = append(schemas, g.schemas()...)
	}
	if len(schemas) == 0 {
		return nil
	}
	sum := sha256.Sum256(append([]byte("positions of "), secret...))
	open := func(ctx context.Context) (search.Index, error) {
		noted := map[string]string{}
		for _, g := range s.generations {
			row, err := s.current(ctx, g)
			if err != nil {
				return nil, err
			}
			for _, sc := range g.schemas() {
				noted[sc.Name] = row.Noted(sc.Name)
			}
		}
		ix, err := d.Open(ctx, at, schemas, drivers.IndexOptions{Now: s.now, InMemory: o.InMemory, Noted: noted, Existing: o.Existing, Source: hex.EncodeToString(sum[:8])})
		if err == nil {
			s.noted = noted
		}
		return ix, err
	}
	var ix search.Index
	if !o.WhenBuilt {
		ix, err = open(ctx)
	}
	if err != nil && (!o.Late || ctx.Err() != nil || drivers.IsMistake(err)) {
		return err
	}
	if err != nil {
		ix = nil // a driver's own nil is none of the interface
		s.log.Warn("the search indexes cannot be opened; rows are applied, and searches are refused until then", "error", err)
	}
	if o.Late || o.WhenBuilt {
		s.late = &late{open: open, ix: ix, gone: make(chan struct{}, 1)}
		ix = s.late
	}
	need := d.Files(len(schemas))
	s.Index, s.need.Indexes, s.need.Calls = ix, need.Indexes, max(s.need.Calls, need.Calls)
	return nil
}

// current reads a generation. One that no program has applied for longer than a stream keeps
// its records, or of which another model has removed records, is marked first, so that its indexes
// are made again.
func (s *System) current(ctx context.Context, g *generation) (owntable.GenerationRow, error) {
	for range maxTries {
		row, by, err := s.read(ctx, g)
		if err != nil {
			return row, err
		}
		if !row.Exists() || !row.Filled && !row.Begun {
			return row, nil
		}
		old := (by.Hash != g.hash || !settled(row, by)) && s.now().Sub(row.Kept) >= keptFor
		if !s.shared {
			if old, err = s.passed(ctx, g); err != nil {
				return row, err
			}
		}
		if !old {
			return row, nil
		}
		if err := s.dropCheckpoints(ctx, g.model, g.hash); err != nil {
			return row, err
		}
		next, err := s.write(ctx, g.ref(), row, owntable.GenerationRow{Driver: g.driver, Indexes: map[string]owntable.GenerationIndex{}, Base: noteNone + rand.Text()})
		if !errors.Is(err, store.ErrCondition) {
			return next, err
		}
	}
	return owntable.GenerationRow{}, errBusy
}

// passed reports whether a stream of the model no longer has what comes after a checkpoint of the
// generation.
func (s *System) passed(ctx context.Context, g *generation) (bool, error) {
	for _, t := range g.model.AllTables() {
		shards, err := s.Store.Shards(ctx, t.Name)
		if err != nil {
			return false, fmt.Errorf("looking how far the stream of table %s is trimmed: %w", t.Name, err)
		}
		for _, sh := range shards {
			oldest, err := s.Store.Horizon(ctx, t.Name, sh.ID)
			if err != nil {
				return false, err
			}
			row, err := store.GetRow(ctx, s.Store, owntable.Checkpoint(g.model.Name, runner.SearchGroup(g.hash), t.Name, sh.ID).Ref)
			if err != nil {
				return false, err
			}
			if is, err := owntable.DecodeCheckpoint(row); err == nil && !is.Done && is.At.Compare(oldest) < 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

// maxTries limits how often a row is changed again that others have changed meanwhile.
const maxTries = 50

// errBusy means that so many tries were not enough; nothing was changed.
var errBusy = errors.New("the row of the search generation is changed by others all the time")

// read reads a generation, and what functions apply. A row that cannot be decoded counts as
// none: the next write replaces it.
func (s *System) read(ctx context.Context, g *generation) (row owntable.GenerationRow, by owntable.FunctionSearchRow, err error) {
	rows, err := s.Store.Get(ctx, []store.Ref{g.ref(), owntable.FunctionSearch(g.model.Name)})
	if err != nil {
		return row, by, fmt.Errorf("read which search index is complete: %w", err)
	}
	if row, err = owntable.DecodeGeneration(rows[0]); err != nil {
		s.log.Warn("the search indexes are filled again, for the row that says what is in them cannot be read", "model", g.model.Name, "error", err)
		row.Base = noteNone + rand.Text()
	}
	by, err = owntable.DecodeFunctionSearch(rows[1])
	return row, by, err
}

// write replaces the row of a generation, durably. The error wraps store.ErrCondition if
// another program has changed it.
func (s *System) write(ctx context.Context, at store.Ref, was, next owntable.GenerationRow) (owntable.GenerationRow, error) {
	out, err := s.Store.Write(ctx, []store.Write{was.Becomes(at, next)})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		return was, fmt.Errorf("write what is in the search indexes: %w", err)
	}
	if err := s.Store.Sync(ctx); err != nil {
		return was, err
	}
	return owntable.DecodeGeneration(out[0].Row)
}

// change changes the row of a generation as often as it takes. do returns false if there is
// nothing to change.
func (s *System) change(ctx context.Context, g *generation, do func(*owntable.GenerationRow) bool) error {
	for range maxTries {
		row, _, err := s.read(ctx, g)
		if err != nil {
			return err
		}
		next := row.Clone()
		if !do(&next) {
			return nil
		}
		if _, err := s.write(ctx, g.ref(), row, next); !errors.Is(err, store.ErrCondition) {
			return err
		}
	}
	return errBusy
}

// generationOf returns the generation of a model of the system, nil without search.
func (s *System) generationOf(m *model.Model) *generation {
	for _, g := range s.generations {
		if g.model == m {
			return g
		}
	}
	return nil
}

// others yields the other generations of a model.
func (s *System) others(ctx context.Context, m *model.Model, yield func(hash string, row owntable.GenerationRow) error) error {
	own := ""
	if g := s.generationOf(m); g != nil {
		own = g.hash
	}
	return s.rowsOf(ctx, m, func(hash string, row owntable.GenerationRow) error {
		if hash == own {
			return nil
		}
		return yield(hash, row)
	}, func(owntable.FunctionSearchRow) {})
}

// rowsOf yields the generations of a model, and the row of functions if there is one.
// A row that does not have the form of this program is yielded as far as it could be read.
func (s *System) rowsOf(ctx context.Context, m *model.Model, yield func(string, owntable.GenerationRow) error, functions func(owntable.FunctionSearchRow)) error {
	q := store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Generations(m.Name))}
	for {
		page, err := s.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			hash, ok := owntable.GenerationOf(row)
			if !ok {
				by, err := owntable.DecodeFunctionSearch(row)
				if err != nil {
					return err
				}
				functions(by)
				continue
			}
			is, err := owntable.DecodeGeneration(row)
			if err != nil && !errors.Is(err, owntable.ErrRow) {
				return err
			}
			if err := yield(hash, is); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		q.After = page.Next
	}
}

// Searched reports whether a search index of the model may have documents that this program
// keeps: one that was filled, or that a program has begun to fill. A system without indexes
// keeps none, and notes that first, if it has the store to itself.
func (s *System) Searched(ctx context.Context, m *model.Model) (bool, error) {
	if len(m.Searches) == 0 {
		return false, nil
	}
	if s.Index == nil && !s.shared {
		if err := s.leave(ctx, m); err != nil {
			return false, err
		}
	}
	begun := false
	err := s.rowsOf(ctx, m, func(_ string, row owntable.GenerationRow) error {
		begun = begun || row.Filled || row.Begun || row.Part != "" || len(row.Cursor) > 0
		return nil
	}, func(owntable.FunctionSearchRow) { begun = true })
	return begun, err
}

// leave marks the generations that this program does not apply, where no other program uses
// the store: the stream gives up what they have not applied. Their indexes are made again
// when a program comes back to them.
func (s *System) leave(ctx context.Context, m *model.Model) error {
	return s.others(ctx, m, func(hash string, row owntable.GenerationRow) error {
		if !row.Filled && !row.Begun && strings.HasPrefix(row.Base, noteNone) {
			return nil
		}
		next := owntable.GenerationRow{Driver: row.Driver, Indexes: map[string]owntable.GenerationIndex{}, Base: noteNone + rand.Text()}
		for name, ix := range row.Indexes {
			next.Indexes[name] = owntable.GenerationIndex{Hash: ix.Hash, Place: ix.Place, Base: next.Base}
		}
		if err := s.dropCheckpoints(ctx, m, hash); err != nil {
			return err
		}
		_, err := s.write(ctx, owntable.Generation(m.Name, hash), row, next)
		return err
	})
}
