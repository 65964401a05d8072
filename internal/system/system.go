// Package system combines models with their drivers: a store, a search index, the runner
// between them, and the queries.
//
// An embedded system is one directory: store/ holds the rows of all its models, search/ the
// indexes. An index can be rebuilt from the rows at any time. That happens if it is missing or
// its definition has changed.
package system

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/drivers"
	"weir/internal/events"
	"weir/internal/migrate"
	"weir/internal/model"
	"weir/internal/openfiles"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/projections/kinds"
	"weir/internal/query"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/value"
	"weir/internal/verify"
)

// System holds the models of one process with their drivers. Call Close when done.
type System struct {
	Store  store.Store
	Index  search.Index // nil without search
	Models []*Part
	Names  stage.Names // of the tables, in the store and in records from outside

	need    openfiles.Need
	schemas []search.Schema
	now     func() time.Time
}

// Part is one model of a system.
type Part struct {
	Model  *model.Model
	Runner *runner.Runner
	Query  *query.Engine
}

// Options are the options of a system. The zero Options are right for production.
type Options struct {
	Now      func() time.Time // the clock; nil is time.Now
	NoSearch bool             // leave the indexes alone
	Writes   bool             // the program writes rows; see drivers.Place.Open
	InMemory bool             // search in memory only, for tests
	// AssumeComplete says that the streams of the models' tables still have every change
	// since the tables were made, where that is not known. See catalog.Found.
	AssumeComplete bool
	Drained        []catalog.Reader // see runner.Runner
	// OpenSearch is the URL of a cluster that holds the indexes. If it is "", they are
	// embedded. See opensearch.ParseTarget.
	OpenSearch string
}

// Open opens an embedded system in a directory; see OpenAt.
func Open(ctx context.Context, dir string, models []*model.Model, o Options) (*System, error) {
	return OpenAt(ctx, drivers.Place{Data: dir, OpenSearch: o.OpenSearch}, models, o)
}

// OpenAt opens the system at a place. It creates the directory if necessary. The error wraps
// store.ErrOwned if another process has the directory open.
func OpenAt(ctx context.Context, at drivers.Place, models []*model.Model, o Options) (*System, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	tables, err := Tables(models)
	if err != nil {
		return nil, err
	}
	db, names, err := at.Open(ctx, tables, o.Now, o.Writes)
	if err != nil {
		return nil, err
	}
	return over(ctx, &System{Store: db, Names: names, need: at.Store().Files}, at, models, o)
}

// Over combines an open store, which must have the tables of the models (Tables), into a
// system. The index is the one that the options name, or otherwise an embedded one in dir; if
// dir is "" there is none. The system owns the store and closes it, also if Over fails.
func Over(ctx context.Context, db store.Store, dir string, models []*model.Model, o Options) (_ *System, err error) {
	return over(ctx, &System{Store: db}, drivers.Place{Data: dir, OpenSearch: o.OpenSearch}, models, o)
}

func over(ctx context.Context, s *System, at drivers.Place, models []*model.Model, o Options) (_ *System, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s.now = o.Now
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	return s, s.assemble(ctx, at, models, o)
}

func (s *System) assemble(ctx context.Context, at drivers.Place, models []*model.Model, o Options) error {
	secret, err := query.LoadSecret(ctx, s.Store)
	if err != nil {
		return err
	}
	if err := s.openIndex(ctx, at, models, secret, o); err != nil {
		return err
	}
	for _, m := range models {
		p := &Part{Model: m, Runner: &runner.Runner{
			Kinds: kinds.All(), Model: m, Store: s.Store, Now: s.now, Mover: &migrate.Mover{Model: m, Store: s.Store, Now: s.now},
		}}
		if len(m.Searches) > 0 {
			p.Runner.Index = s.Index
		}
		p.Runner.Drained = o.Drained
		p.Runner.Catalog = catalog.New(m, s.Store, s.now, catalog.Options{Search: p.Runner.Index != nil, Assume: o.AssumeComplete})
		if p.Query, err = query.New(query.Config{Model: m, Store: s.Store, Search: s.Index, Now: s.now, Secret: secret}); err != nil {
			return err
		}
		s.Models = append(s.Models, p)
	}
	return nil
}

// Start enters all models in their catalogs. The error wraps catalog.ErrRefused if this
// program must not derive one of them from its tables. Call it before anything is written
// or followed.
func (s *System) Start(ctx context.Context) error {
	for _, p := range s.Models {
		if err := p.Runner.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the index and the store.
func (s *System) Close() error {
	var errs []error
	if s.Index != nil {
		errs = append(errs, s.Index.Close())
	}
	if s.Store != nil {
		errs = append(errs, s.Store.Close())
	}
	return errors.Join(errs...)
}

// Tables returns the own table and the tables of all models. It is an error if two models
// share a table, because each would take the other's rows for its own.
func Tables(models []*model.Model) ([]store.Table, error) {
	owner := map[string]string{}
	tables := []store.Table{owntable.Table()}
	for _, m := range models {
		for _, t := range m.AllTables() {
			if other, taken := owner[t.Name]; taken {
				return nil, fmt.Errorf("models %s and %s both have a table %s; give one of them another data directory", other, m.Name, t.Name)
			}
			owner[t.Name] = m.Name
			st := t.Table
			st.Stream = true
			tables = append(tables, st)
		}
	}
	return tables, nil
}

func schemasOf(models []*model.Model) []search.Schema {
	var out []search.Schema
	for _, m := range models {
		for _, s := range m.Searches {
			out = append(out, search.Schema{Name: document.Index(m, s), Filters: names(s.Filters), Sorts: names(s.Sorts), Version: version(s)})
		}
	}
	return out
}

func names(fs []*model.Field) []string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Name)
	}
	return out
}

// version returns a hash of everything that a document is made from, except filters and sorts.
// If it changes, the index is rebuilt.
func version(s *model.Search) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q", s.Of.Name, names(s.Text))
	for _, t := range s.Where {
		fmt.Fprintf(h, " %s %v %v", t.Field.Name, t.Not, t.Present)
		for _, v := range t.OneOf {
			fmt.Fprintf(h, " %q", value.Scalar(v))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Fill fills the indexes that are new, or that were created again, from the existing rows. It
// gives each document the lowest position. So every change from the stream wins over it, and
// the result is the same even if Fill read rows that are ahead of the stream. Call Fill before
// changes are applied. If the system has no index, Fill marks all indexes as incomplete,
// because the changes will not reach them. After a crash the next Fill starts again.
func (s *System) Fill(ctx context.Context, progress func(index string, rows int)) error {
	if s.Index == nil {
		return s.forget(ctx)
	}
	if err := s.Store.Sync(ctx); err != nil { // the indexes keep what they are given
		return err
	}
	fresh := map[string]bool{}
	for _, name := range s.Index.Fresh() {
		fresh[name] = true
	}
	for _, p := range s.Models {
		isFresh := func(sr *model.Search) bool { return fresh[document.Index(p.Model, sr)] }
		if old := func(sr *model.Search) bool { return !isFresh(sr) }; !slices.ContainsFunc(p.Model.Searches, old) {
			if err := p.Runner.Overtake(ctx, runner.GroupSearch, runner.GroupRows); err != nil {
				return err
			}
		}
		for _, sr := range p.Model.Searches {
			name := document.Index(p.Model, sr)
			if !isFresh(sr) {
				continue
			}
			if err := s.fill(ctx, p.Model, sr, progress); err != nil {
				return fmt.Errorf("filling index %s: %w", name, err)
			}
			// The note first: an index without one is filled again, at the next call already.
			if err := s.note(ctx, name, s.Index.Instance(name)); err != nil {
				return err
			}
			if err := s.Index.Filled(name); err != nil {
				return err
			}
		}
	}
	return s.Index.Refresh(ctx)
}

// Show makes everything that was applied before the call visible to searches. Without it, a
// cluster does so within about a second.
func (s *System) Show(ctx context.Context) error {
	if s.Index == nil {
		return nil
	}
	return s.Index.Refresh(ctx)
}

func (s *System) fill(ctx context.Context, m *model.Model, sr *model.Search, progress func(string, int)) error {
	t := sr.Of.Table
	q, rows := store.Query{Table: t.Name}, 0
	for {
		page, err := s.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		var docs []search.Document
		for _, row := range page.Rows {
			key, ok := t.KeyOf(row)
			if !ok {
				continue
			}
			if d, ok := document.Of(m, sr, t.Classify(row), key, row); ok {
				d.Position = events.PositionOf(1)
				docs = append(docs, d)
			}
		}
		errs, err := s.Index.Apply(ctx, docs)
		if err != nil {
			return err
		}
		for _, e := range errs {
			if e != nil && !errors.Is(e, search.ErrRefused) {
				return e
			}
		}
		if rows += len(page.Rows); progress != nil {
			progress(sr.Name, rows)
		}
		if page.Next == nil {
			return nil
		}
		q.After = page.Next
	}
}

// Verify returns a Verify for the derived data of one part.
func (s *System) Verify(p *Part) *verify.Verify {
	return &verify.Verify{Model: p.Model, Store: s.Store, Index: p.Runner.Index}
}

// sweepAtOnce limits the number of rows that one Sweep deletes.
const sweepAtOnce = 1000

// Sweep deletes rows whose TTL has expired and returns how many; more may be left for the next
// call. DynamoDB does this by itself. A deleted row that a replay wrote leaves a mark, so that
// replaying the same records again does not restore it.
func (s *System) Sweep(ctx context.Context) (removed int, err error) {
	tables := map[string]*model.Table{}
	for _, p := range s.Models {
		for _, t := range p.Model.Tables {
			tables[t.Name] = t
		}
	}
	return s.Store.Sweep(ctx, s.now(), sweepAtOnce, func(ctx context.Context, removals []store.Write) error {
		return replay.BeforeSweep(ctx, s.Store, tables, removals)
	})
}
