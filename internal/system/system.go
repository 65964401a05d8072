// Package system combines models with their drivers: a store, a search index, the runner
// between them, and the queries.
//
// An embedded system is one directory: store/ holds the rows of all its models, search/ the
// indexes. An index can be rebuilt from the rows at any time. That happens if it is missing or
// its definition has changed.
//
// system.go opens and closes a system. The other files are about search indexes, which are
// caches of the rows with a life of their own, and about the whole of a system:
//
//	index.go     search generations, in which order one is built, and its row
//	fill.go      filling the indexes of a generation from the rows, resumable
//	keep.go      when searches are answered
//	late.go      a cluster that does not answer when the program begins
//	prune.go     removing generations that readers do not keep
//	status.go    the generations that there are
//	census.go    how many rows there are, and their values
//	tables.go    making tables, also those that a replay writes into
package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/ingest"
	"weir/internal/memory"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/copies"
	"weir/internal/projections/kinds"
	"weir/internal/query"
	"weir/internal/reader"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/value"
)

// System holds the models of one process with their drivers. Its fields are set before it is
// returned, noted when the index opens; its methods may be called from many goroutines. Call
// Close when done: it closes the drivers, after which nothing of the system may be used.
type System struct {
	Store  store.Store
	Index  search.Index // nil without search
	Models []*Part
	Names  stage.Names // of the tables, in the store and in records from outside

	need        memory.Need
	shared      bool          // other processes may use the store
	generations []*generation // of the models whose indexes are open
	late        *late         // the index; nil without search
	release     io.Closer     // releases indexes that are this process's own, nil for others
	// noted is the instances that the index was told when it opened, by name. An index that opens
	// late answers only after this is set.
	noted atomic.Pointer[map[string]string]
	now   func() time.Time
	log   *slog.Logger

	dir    string      // of its files; "" for none
	memory memory.Size // of the process
}

// Part is one model of a system, with the runner that applies its streams and the engine that answers its
// queries. All parts share the system's drivers.
type Part struct {
	Model  *model.Model
	Runner *runner.Runner
	Query  *query.Engine
}

// Options are the options of a system. The zero Options are right for production.
type Options struct {
	Now      func() time.Time // the clock; nil is time.Now
	NoSearch bool             // leave the indexes alone
	// NoQueries is of a program that answers none: Part.Query is nil. Without indexes too, the secret of cursors is not
	// read, which a function would do at each start.
	NoQueries bool
	Late      bool // begin without a cluster of indexes that does not answer; see Reach
	// WhenBuilt leaves the indexes closed until Built finds them built: the program makes none, and needs none to begin.
	WhenBuilt bool
	// Existing has the program make no index in a cluster, since it cannot fill one.
	Existing bool
	Writes   bool // the program writes rows; see Place.Open
	InMemory bool // search in memory only, for tests
	// Shared says, of a store that is open already, that other programs may use it at the
	// same time. OpenAt knows it by itself.
	Shared bool
	// AssumeComplete says that the streams of the models' tables still have every change
	// since the tables were made, where that is not known. See catalog.Found.
	AssumeComplete bool
	DeriveIn       string // see catalog.Found
	// LetterTTL is after how long the rows that dead letters have are deleted; 0 for never. The letters stay.
	LetterTTL time.Duration
	Tracer    runner.Tracer // is told of each batch; nil for none
	Log       *slog.Logger  // nil is slog.Default()
	// OpenSearch is the URL of a cluster that holds the indexes. If it is "", they are
	// embedded. See opensearch.ParseTarget.
	OpenSearch string
	// SearchDir is a directory with indexes of this process, where the store is shared.
	SearchDir string
}

// Open opens an embedded system in a directory; see OpenAt.
func Open(ctx context.Context, dir string, models []*model.Model, o Options) (*System, error) {
	return OpenAt(ctx, Place{Data: dir, OpenSearch: o.OpenSearch}, models, o)
}

// OpenAt opens the system at a place. It creates the directory if necessary. The error wraps
// store.ErrOwned if another process has the directory open.
// It enters no model in its catalog: Start does, and refuses a program that must not derive.
func OpenAt(ctx context.Context, at Place, models []*model.Model, o Options) (*System, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	tables, err := Tables(models)
	if err = cmp.Or(err, functions(models)); err != nil {
		return nil, err
	}
	if need := at.Store().Files; need.Store {
		for _, m := range models {
			if d := at.Index(); d != nil && !o.NoSearch {
				need.Indexes += d.Files(len(m.Searches)).Indexes
			}
		}
		if err := memory.Check(need); err != nil {
			return nil, err
		}
	}
	db, names, err := at.Open(ctx, tables, o.Now, o.Writes)
	if err != nil {
		return nil, err
	}
	return over(ctx, &System{Store: db, Names: names, need: at.Store().Files, shared: at.Store().Shared()}, at, models, o)
}

// functions returns an error if the program does not have all Go functions of the models, before it writes anything.
func functions(models []*model.Model) error {
	for _, m := range models {
		if err := m.Functions(); err != nil {
			return err
		}
	}
	return nil
}

// Over combines an open store, which must have the tables of the models (Tables), into a
// system. The index is the one that the options name, or otherwise an embedded one in dir; if
// dir is "" there is none. The system owns the store and closes it, also if Over fails.
func Over(ctx context.Context, db store.Store, dir string, models []*model.Model, o Options) (_ *System, err error) {
	if err := functions(models); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return over(ctx, &System{Store: db, shared: o.Shared}, Place{Data: dir, OpenSearch: o.OpenSearch}, models, o)
}

// over finishes a system whose store is open. It closes the store if it fails.
func over(ctx context.Context, s *System, at Place, models []*model.Model, o Options) (_ *System, err error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s.now, s.log = store.Clock(o.Now, s.Store), cmp.Or(o.Log, slog.Default())
	at.SearchDir = o.SearchDir
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.memory = at.Memory; !s.shared && at.Data != "" {
		s.dir = at.Directory()
	}
	return s, s.assembleModels(ctx, at, models, o)
}

// assembleModels adds the secret of cursors, the index and the models. The own table must exist.
// It reads the secret, if something needs it, and makes it if there is none yet: programs that start together agree on one.
func (s *System) assembleModels(ctx context.Context, at Place, models []*model.Model, o Options) error {
	var secret []byte
	if !o.NoQueries || !o.NoSearch {
		var err error
		if secret, err = query.LoadSecret(ctx, s.Store); err != nil {
			return err
		}
	}
	if err := s.openIndex(ctx, at, models, secret, o); err != nil {
		return err
	}
	for _, m := range models {
		p := &Part{Model: m, Runner: &runner.Runner{
			Kinds: kinds.All(), Model: m, Store: s.Store, Now: s.now, Mover: &ingest.Mover{Model: m, Store: s.Store, Now: s.now},
		}}
		if len(m.Searches) > 0 {
			p.Runner.Index = s.Index
			if g := s.generationOf(m); g != nil {
				g.part, p.Runner.Generation, p.Runner.Named = p, g.hash, &g.named
			}
		}
		p.Runner.Tracer, p.Runner.LetterTTL = o.Tracer, o.LetterTTL
		p.Runner.Catalog = catalog.New(m, s.Store, s.now, catalog.Options{Assume: o.AssumeComplete, DeriveIn: o.DeriveIn})
		if !o.NoQueries {
			var err error
			if p.Query, err = s.queries(p, secret); err != nil {
				return err
			}
		}
		s.Models = append(s.Models, p)
	}
	return nil
}

// queries is the engine of a part's queries.
func (s *System) queries(p *Part, secret []byte) (*query.Engine, error) {
	config := query.Config{Model: p.Model, Store: s.Store, Search: s.Index, Now: s.now, Secret: secret, Unfinished: p.Runner.Catalog.Unfinished}
	if g := s.generationOf(p.Model); g != nil {
		config.Built = g.built
	}
	return query.New(config)
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
	if s.release != nil {
		errs = append(errs, s.release.Close())
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

// names are the names of fields, in their order.
func names(fs []*model.Field) []string {
	return seq.Map(fs, func(f *model.Field) string { return f.Name })
}

// Show makes everything that was applied before the call visible to searches. Without it, a
// cluster does so within about a second.
func (s *System) Show(ctx context.Context) error {
	if s.Index == nil {
		return nil
	}
	return s.Index.Refresh(ctx)
}

// Room says where temporary files may be ("" is the place of the system), and how much memory the process may use.
func (s *System) Room() (dir string, size memory.Size) { return s.dir, s.memory }

// Now returns the present time.
func (s *System) Now() time.Time { return s.now() }

// sourcesFirst puts the removal of its source in the place of a copy's removal, where the source
// has expired too and is still there. The source's own source goes before that.
func (s *System) sourcesFirst(ctx context.Context, tables map[string]*model.Table, removals []store.Write, now time.Time) error {
	at := make([]int, len(removals)) // those whose row may be a copy
	for i := range at {
		at[i] = i
	}
	seen := map[string]bool{}
	for i := range removals {
		seen[owntable.RowText(removals[i].Ref)] = true
	}
	for len(at) > 0 {
		refs := make([]store.Ref, len(at))
		for i, n := range at {
			refs[i] = removals[n].Ref
		}
		rows, err := s.Store.Get(ctx, refs)
		if err != nil {
			return err
		}
		var sources []store.Ref
		var of []int
		for i, row := range rows {
			t := tables[refs[i].Table]
			if t == nil {
				continue // of no model
			}
			if e := t.Classify(row); e != nil {
				for _, source := range copies.Makers(e, row) {
					sources, of = append(sources, source), append(of, at[i])
				}
			}
		}
		if len(sources) == 0 {
			return nil
		}
		if rows, err = s.Store.Get(ctx, sources); err != nil {
			return err
		}
		at = at[:0]
		for i, row := range rows {
			t := tables[sources[i].Table]
			if t == nil || row == nil || !t.Expired(row, now) {
				continue
			}
			if n := len(at); n > 0 && at[n-1] == of[i] {
				continue // another source goes now
			}
			w := &removals[of[i]]
			if name := owntable.RowText(sources[i]); seen[name] {
				w.If = append(w.If, []store.Test{}) // never holds: the source is among the removals
			} else {
				seen[name] = true
				w.Ref, w.If = sources[i], store.Cond{{{Attr: t.TTL, Is: store.Eq, Value: row.Get(t.TTL)}}}
				at = append(at, of[i])
			}
		}
	}
	return nil
}

// SweepAtOnce limits the number of rows that one Sweep deletes.
const SweepAtOnce = 1000

// Sweep deletes rows whose TTL has expired and returns how many; more may be left for the next
// call. DynamoDB does this by itself. A deleted row that a replay wrote leaves a mark, so that
// replaying the same records again does not restore it. A source goes before rows that were copied
// from it, which the derivation then removes. While records are not applied that are older than
// runner.MaxPending, rows of the own table stay that expired later than these allow: they say which records were
// counted. Rows of the application go in any case, as in DynamoDB.
func (s *System) Sweep(ctx context.Context) (removed int, err error) {
	tables := map[string]*model.Table{}
	for _, p := range s.Models {
		for _, t := range p.Model.Tables {
			tables[t.Name] = t
		}
	}
	now := s.now()
	ours, err := s.ownExpiryTime(ctx, now)
	if err != nil {
		return 0, err
	}
	return s.Store.Sweep(ctx, now, SweepAtOnce, func(ctx context.Context, removals []store.Write) error {
		for i := range removals {
			if w := &removals[i]; w.Ref.Table == owntable.TableName && ours.Before(now) {
				w.If = append(w.If, []store.Test{{Attr: owntable.Expiry, Is: store.Le, Value: value.OfInt(ours.Unix())}})
			}
		}
		if err := s.sourcesFirst(ctx, tables, removals, now); err != nil {
			return err
		}
		return replay.BeforeSweep(ctx, s.Store, tables, removals)
	})
}

// ownExpiryTime returns the time by which rows of the own table have expired: now, or runner.MaxPending after the
// oldest record that is not applied to rows. Any row there may be about a record of any table.
func (s *System) ownExpiryTime(ctx context.Context, now time.Time) (time.Time, error) {
	if s.shared {
		return now, nil // the service deletes rows
	}
	for _, p := range s.Models {
		for _, t := range p.Model.Tables {
			shards, err := s.Store.Shards(ctx, t.Name)
			if err != nil {
				return now, err
			}
			for _, shard := range shards {
				since, err := s.unapplied(ctx, p, t.Name, shard.ID)
				if err != nil {
					return now, err
				}
				if by := since.Add(runner.MaxPending); !since.IsZero() && by.Before(now) {
					now = by
				}
			}
		}
	}
	return now, nil
}

// unapplied returns the time of a shard's oldest record that is not applied to rows, zero if
// there is none or the record has no time. Of a shard whose checkpoint cannot be read nothing
// is applied until that is put right, so its records do not count.
func (s *System) unapplied(ctx context.Context, p *Part, table, shard string) (time.Time, error) {
	at, err := reader.ReadPlace(ctx, p.Runner, table, shard)
	if err != nil {
		return time.Time{}, unless(err, owntable.ErrRow)
	}
	page, err := s.Store.Read(ctx, table, shard, at.At, 1)
	if err != nil || len(page.Records) == 0 {
		return time.Time{}, unless(err, store.ErrTrimmed)
	}
	return page.Records[0].Time, nil
}

// unless returns an error, nil if it wraps the other one.
func unless(err, other error) error {
	if errors.Is(err, other) {
		return nil
	}
	return err
}

// RealTables are the names that the model's tables have in the deployment, in the model's order.
func (s *System) RealTables(part *Part) []string {
	return seq.Map(part.Model.Tables, func(t *model.Table) string { return s.Names.Real(t.Name) })
}

// Builder returns the builder of all that can be built of the model.
func (p *Part) Builder() *build.Builder {
	names := p.Model.InBuildOrder(func(string) bool { return true })
	return &build.Builder{Runner: p.Runner, Contributions: kinds.Contributions, Names: names}
}

// OpenFiles returns the files that the system needs open while it serves.
func (s *System) OpenFiles() memory.Need { return s.need }
