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

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/query"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/store"
)

// The search indexes of a model have definitions, and the set of them, in one kind of index,
// is a search generation. Each generation has indexes of its own, and a row in the own table (owntable.GenerationRow). The
// catalog names the one generation that readers keep: they write each document of a record to it, or note it as pending, and a
// reader with another generation is refused (document.IsIndexed).
//
// A generation is built in this order. A crash after any step leaves a state from which the next program
// goes on from:
//
//  1. The row says that nothing is filled. The catalog names the generation. It is read for each event, after the event was received. So a change that an event
//     did not write, because it did not know the generation, was in the rows before this step.
//  2. The driver makes the indexes, empty, and the row names their instances.
//  3. A scan puts the documents of the rows, page by page, at the lowest position. The row
//     has the cursor. Changes from the stream win over them, whenever they are applied.
//  4. The row says that the generation is filled.
//  5. Pending documents are written, and the row says so. Only then are searches answered.

// generation is the search generation of one model of a system.
// Two models with one hash have the same indexes. It does not change after the start, but for
// reached.
type generation struct {
	part    *Part
	model   *model.Model
	hash    string
	driver  string
	indexes map[string]string // by index, the hash of its definition
	term    atomic.Int64      // 1, and how often the indexes were made again
	reached atomic.Int64      // searches may be answered while this is the term
	named   atomic.Bool       // this program had the catalog name it
	holds   func() bool       // set where the indexes are this process's own: whether it reads, so that they have every change
}

// isReached reports whether searches may be answered.
func (g *generation) isReached() bool {
	return g.reached.Load() == g.term.Load() && (g.holds == nil || g.holds())
}

// built returns nil if searches may be answered.
func (g *generation) built() error {
	if g.isReached() {
		return nil
	}
	return query.ErrBuilding
}

// hashLength is the number of characters of a generation's hash.
const hashLength = 12

// generationOf describes the generation of a model for a kind of index, of which own tells those of one process from others'. It does
// no I/O, and the same definitions always give the same hash.
func generationOf(m *model.Model, driver, own string) *generation {
	g := &generation{model: m, driver: driver, indexes: map[string]string{}}
	g.term.Store(1)
	by := map[string]string{}
	for _, d := range m.Derivations() {
		by[d.Name] = d.Hash
	}
	lines := []string{driver}
	for _, s := range m.Searches {
		hash := by[s.Derivation()]
		g.indexes[document.IndexName(m, s)] = hash
		lines = append(lines, s.Name+" "+hash)
	}
	slices.Sort(lines[1:])
	if own != "" {
		lines = append(lines, own)
	}
	g.hash = owntable.Hash(strings.Join(lines, "\n"))[:hashLength]
	return g
}

// ref is the generation's row of the own table.
func (g *generation) ref() store.Ref { return owntable.Generation(g.model.Name, g.hash) }

// schemas are the schemas of the generation's indexes. No other generation has the same,
// so none shares an index with another, even one whose definition is the same in both.
func (g *generation) schemas() (out []search.Schema) {
	for _, s := range g.model.Searches {
		name := document.IndexName(g.model, s)
		out = append(out, search.Schema{Name: name, Filters: names(s.Filters), Sorts: names(s.Sorts), Version: g.hash})
	}
	return out
}

// noteNone is the beginning of the instance that a driver is told to have been filled if nothing was:
// the rest makes each different from all earlier ones.
const noteNone = "none "

// openIndex opens the indexes of the place. The store must be open.
// With Late, an index that cannot be reached yet is opened by a later reach: until then searches are refused and rows go
// on, and only a mistake of the caller is an error.
func (s *System) openIndex(ctx context.Context, at Place, models []*model.Model, secret []byte, o Options) (err error) {
	d := at.Index()
	if d == nil || o.NoSearch {
		return nil
	}
	own := ""
	if d.Own != nil {
		if own, s.release, err = d.Own(at); err != nil {
			return err
		}
	}
	var schemas []search.Schema
	for _, m := range models {
		if len(m.Searches) == 0 {
			continue
		}
		g := generationOf(m, d.Kind, own)
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
			row, err := s.readGeneration(ctx, g)
			if err != nil {
				return nil, err
			}
			for _, sc := range g.schemas() {
				noted[sc.Name] = row.Noted(sc.Name)
			}
		}
		ix, err := d.Open(ctx, at, schemas, IndexOptions{Now: s.now, InMemory: o.InMemory, Noted: noted, Existing: o.Existing, Source: hex.EncodeToString(sum[:8])})
		if err == nil {
			s.noted.Store(&noted)
		}
		return ix, err
	}
	var ix search.Index
	if !o.WhenBuilt {
		ix, err = open(ctx)
	}
	if err != nil && (!o.Late || ctx.Err() != nil || IsMistake(err)) {
		return err
	}
	if err != nil {
		ix = nil // a driver's own nil is none of the interface
		s.log.Warn("the search indexes cannot be opened; rows are applied, and searches are refused until then", "error", err)
	}
	s.late = &late{open: open, ix: ix, gone: make(chan struct{}, 1)}
	need := d.Files(len(schemas))
	s.Index, s.need.Indexes, s.need.Calls = s.late, need.Indexes, max(s.need.Calls, need.Calls)
	return nil
}

// unfilled is the row of the generation when nothing is filled, and its indexes are to be made again.
func (g *generation) unfilled() owntable.GenerationRow {
	return owntable.GenerationRow{Driver: g.driver, Indexes: map[string]owntable.GenerationIndex{}, Base: noteNone + rand.Text()}
}

// readGeneration reads a generation. One that readers do not keep has missed changes, so it is marked first, and its indexes are made
// again.
func (s *System) readGeneration(ctx context.Context, g *generation) (owntable.GenerationRow, error) {
	for range maxTries {
		row, kept, err := s.readKept(ctx, g)
		if err != nil || kept || !row.Exists() || !row.Filled && row.Part == "" {
			return row, err
		}
		next, err := s.writeGeneration(ctx, g.ref(), row, g.unfilled())
		if !errors.Is(err, store.ErrCondition) {
			return next, err
		}
	}
	return owntable.GenerationRow{}, errBusy
}

// NameIndexes has the catalog name the generations of this system, or none for a model that has no searches any more, and where a
// program without indexes has the store to itself. Call it before anything is followed. The error wraps catalog.ErrRefused if
// another program has named its generation since this one did.
func (s *System) NameIndexes(ctx context.Context) error {
	for _, p := range s.Models {
		row, err := p.Runner.Admit(ctx, nil)
		g := s.generationOf(p.Model)
		switch {
		case err != nil:
			return err
		case g == nil && row.Search != "" && (!s.shared || len(p.Model.Searches) == 0):
			err = p.Runner.Catalog.SetSearchGeneration(ctx, "")
		case g == nil:
		case row.Search == g.hash:
			g.named.Store(true)
		case g.named.Load():
			_, err = document.IsIndexed(p.Runner, row)
		default:
			err = s.nameGeneration(ctx, g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// OwnsIndexes reports whether the indexes are this process's alone, though other processes may use the store. They have every change
// only while the process reads: it calls TakeIndexes before it does, and answers searches while holds of HoldIndexes.
func (s *System) OwnsIndexes() bool { return s.release != nil && len(s.generations) > 0 }

// HoldIndexes says when this process reads the streams of a model. Call it before the first search.
func (s *System) HoldIndexes(p *Part, holds func() bool) {
	if g := s.generationOf(p.Model); g != nil {
		g.holds = holds
	}
}

// TakeIndexes has the catalog name the generation of this process's own indexes. If it named another one, these have missed changes:
// they are made again, and Reach fills them. A process that goes on reading under the other generation is refused, and moves no
// checkpoint behind a record that it received after this call: the rows have the change when Reach scans them.
func (s *System) TakeIndexes(ctx context.Context, p *Part) error {
	g := s.generationOf(p.Model)
	row, err := p.Runner.Catalog.Row(ctx)
	if err != nil || g == nil {
		return err
	}
	if row.Search == g.hash {
		return s.NameIndexes(ctx)
	}
	if err := s.emptyIndexes(ctx, g); err != nil {
		return err
	}
	return s.nameGeneration(ctx, g)
}

// emptyIndexes refuses searches, and has the next Reach make the indexes of a generation again, empty, and fill them.
func (s *System) emptyIndexes(ctx context.Context, g *generation) error {
	g.term.Add(1)
	if err := s.changeGeneration(ctx, g, func(row *owntable.GenerationRow) bool { *row = g.unfilled(); return true }); err != nil {
		return err
	}
	return s.late.leaveIndex()()
}

// isBuilding refuses to take the place of a generation that another program is building: the older of two programs that are
// started again and again would, in turn with the newer one.
func (s *System) isBuilding(ctx context.Context, g *generation) error {
	row, err := g.part.Runner.Catalog.Row(ctx)
	if err != nil || row.Search == "" || !s.shared {
		return err
	}
	other, err := store.GetRow(ctx, s.Store, owntable.Generation(g.model.Name, row.Search))
	if err != nil {
		return err
	}
	if is, err := owntable.DecodeGeneration(other); err == nil && !is.Filled && s.now().Before(is.Until) {
		_, err = document.IsIndexed(g.part.Runner, row)
		return fmt.Errorf("they are being built: %w", err)
	}
	return nil
}

// nameGeneration marks a generation that readers did not keep, unless that was done when its indexes were opened, and has the catalog
// name it.
func (s *System) nameGeneration(ctx context.Context, g *generation) error {
	if err := s.isBuilding(ctx, g); err != nil {
		return err
	}
	was, _, err := s.readKept(ctx, g)
	if err != nil {
		return err
	}
	if now, err := s.readGeneration(ctx, g); err != nil {
		return err
	} else if now.Base != was.Base { // they are open as another program kept them until a moment ago
		if err := s.late.leaveIndex()(); err != nil {
			return err
		}
	}
	if err := g.part.Runner.Catalog.SetSearchGeneration(ctx, g.hash); err != nil {
		return err
	}
	g.named.Store(true)
	return nil
}

// maxTries limits how often a row is changed again that others have changed meanwhile.
const maxTries = 50

// errBusy means that so many tries were not enough; nothing was changed.
var errBusy = errors.New("the row of the search generation is changed by others all the time")

// readKept reads a generation, and whether readers keep it. A row that cannot be decoded counts as
// none: the next write replaces it.
func (s *System) readKept(ctx context.Context, g *generation) (row owntable.GenerationRow, kept bool, err error) {
	rows, err := s.Store.Get(ctx, []store.Ref{g.ref(), owntable.Catalog(g.model.Name)})
	if err != nil {
		return row, false, fmt.Errorf("read which search index is complete: %w", err)
	}
	if row, err = owntable.DecodeGeneration(rows[0]); err != nil {
		s.log.Warn("the search indexes are filled again, for the row that says what is in them cannot be read", "model", g.model.Name, "error", err)
		row.Base = noteNone + rand.Text()
	}
	is, err := owntable.DecodeCatalog(rows[1])
	return row, is.Search == g.hash, err
}

// writeGeneration replaces the row of a generation, durably. The error wraps store.ErrCondition if
// another program has changed it.
func (s *System) writeGeneration(ctx context.Context, at store.Ref, was, next owntable.GenerationRow) (owntable.GenerationRow, error) {
	row, err := store.WriteRow(ctx, s.Store, was.Becomes(at, next))
	if err != nil {
		return was, fmt.Errorf("write what is in the search indexes: %w", err)
	}
	if err := s.Store.Sync(ctx); err != nil {
		return was, err
	}
	return owntable.DecodeGeneration(row)
}

// changeGeneration changes the row of a generation as often as it takes. do returns false if there is
// nothing to change.
func (s *System) changeGeneration(ctx context.Context, g *generation, do func(*owntable.GenerationRow) bool) error {
	for range maxTries {
		row, _, err := s.readKept(ctx, g)
		if err != nil {
			return err
		}
		next := row.Clone()
		if !do(&next) {
			return nil
		}
		if _, err := s.writeGeneration(ctx, g.ref(), row, next); !errors.Is(err, store.ErrCondition) {
			return err
		}
	}
	return errBusy
}

// generationOf returns the generation of a model of the system, nil without search.
func (s *System) generationOf(m *model.Model) *generation {
	return seq.Find(s.generations, func(g *generation) bool { return g.model == m })
}

// rowsOf yields the generations of a model.
// A row that does not have the form of this program is yielded as far as it could be read.
func (s *System) rowsOf(ctx context.Context, m *model.Model, yield func(hash string, row owntable.GenerationRow) error) error {
	for row, err := range store.EachRow(ctx, s.Store, owntable.RowsOf(owntable.Generations(m.Name))) {
		if err != nil {
			return err
		}
		is, err := owntable.DecodeGeneration(row)
		if err != nil && !errors.Is(err, owntable.ErrRow) {
			return err
		}
		if err := yield(owntable.GenerationOf(row), is); err != nil {
			return err
		}
	}
	return nil
}

// Searched reports whether readers keep a search index of the model. A system without indexes keeps none, and has the catalog
// say so first, if it has the store to itself.
func (s *System) Searched(ctx context.Context, p *Part) (bool, error) {
	if s.Index == nil && !s.shared {
		if err := p.Runner.Catalog.SetSearchGeneration(ctx, ""); err != nil {
			return false, err
		}
	}
	row, err := p.Runner.Catalog.Row(ctx)
	return row.Search != "", err
}
