// This file chooses where rows and documents are. It has the one list of the drivers
// that the programs have: a new one is its package and an entry here.

package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"time"

	"weir/internal/budget"
	"weir/internal/memory"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/search"
	"weir/internal/search/opensearch"
	"weir/internal/seq"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
)

// Place is where rows and documents are, as a command line or an environment says it.
type Place struct {
	Data       string // a directory; see Directory
	AWS        bool
	OpenSearch string      // the URL of a cluster
	SearchDir  string      // a directory with embedded indexes of this process, where the store is shared
	Memory     memory.Size // the limit of the process, of which caches are shares; 0 is memory.Default
	Stage      stage.Stage // the deployment, with the names of its tables
	// Writes counts and limits write units where the store has them: where Shared.
	Writes *budget.Writes
	// Log gets the log of an embedded store; nil is slog.Default().
	Log *slog.Logger
	// Observe, if set, returns the observer of the store's calls, under the names of its tables.
	Observe func(stage.Names) store.Observer
}

// observer returns the observer of the store's calls, nil for nothing.
func (p Place) observer(n stage.Names) store.Observer {
	if p.Observe == nil {
		return nil
	}
	return p.Observe(n)
}

// Formats lists the formats of the program's stored data.
func Formats() string {
	return fmt.Sprintf("%sdocuments in OpenSearch %d, own table %d", embeddedFormats(), opensearch.Format, owntable.CatalogFormat)
}

// Store is a driver of rows.
type Store struct {
	// Of reports whether the place is the driver's.
	Of func(Place) bool
	// Name is the place for people.
	Name func(Place) string
	// Dir is the directory that the process has to itself while the store is open, ""
	// for none. The func is nil for a store that several processes use at a time: they
	// share its streams.
	Dir   func(Place) string
	Files memory.Need
	// open and deployer take tables under their real names.
	open func(ctx context.Context, at Place, tables []store.Table, now func() time.Time, told store.Observer) (store.Store, error)
	// deployer opens the store to make its tables. It is nil where open makes them.
	deployer func(ctx context.Context, at Place, tables []store.Table) (store.Deployer, error)
}

// Deploys reports whether the store's tables are made apart from opening it.
func (d *Store) Deploys() bool { return d.deployer != nil }

// Shared reports whether several processes use the store at a time.
func (d *Store) Shared() bool { return d.Dir == nil }

// Index is a driver of documents.
type Index struct {
	Of func(Place) bool
	// Kind names the driver and the form of its documents. Indexes of two kinds cannot
	// stand for each other.
	Kind string
	Open func(ctx context.Context, at Place, schemas []search.Schema, o IndexOptions) (search.Index, error)
	// Own takes indexes that only one process has, though the store is shared, and returns the id that tells them from those of
	// other processes, "" where all programs have the same. The error wraps store.ErrOwned if another process has them.
	Own func(at Place) (id string, release io.Closer, err error)
	// Files are those of so many indexes.
	Files func(indexes int) memory.Need
}

// IndexOptions are the options of every driver of documents.
type IndexOptions struct {
	Now      func() time.Time
	InMemory bool              // nothing has to outlive the process, for tests
	Noted    map[string]string // by name of the schema, the instance that was filled last
	Existing bool              // make no index in a cluster: one that is not there is search.ErrGone
	Source   string            // tells the store's positions from those of other stores
}

// served is the files that a process which uses a service keeps open beside those of requests:
// connections of followers, and files of records that they have read.
var served = memory.Need{Calls: 128}

// stores are all drivers of rows; the first whose place it is has it.
var stores = []Store{
	{
		Of:   func(p Place) bool { return p.AWS },
		Name: func(Place) string { return "DynamoDB" },
		open: func(ctx context.Context, p Place, tables []store.Table, now func() time.Time, told store.Observer) (store.Store, error) {
			return openDynamoDB(ctx, p, tables, now, told)
		},
		deployer: func(ctx context.Context, p Place, tables []store.Table) (store.Deployer, error) {
			return openDynamoDB(ctx, Place{Log: p.Log}, tables, nil, nil)
		},
		Files: served,
	},
	embeddedStore,
}

// indexes are all drivers of documents; the first whose place it is has it.
var indexes = []Index{
	{
		Of:   func(p Place) bool { return p.OpenSearch != "" },
		Kind: fmt.Sprint("opensearch ", opensearch.Format),
		Open: func(ctx context.Context, p Place, schemas []search.Schema, o IndexOptions) (search.Index, error) {
			return opensearch.Open(ctx, p.OpenSearch, schemas, opensearch.Options{Now: o.Now, Current: o.Noted, Existing: o.Existing, Source: o.Source, Prefix: p.Stage.Prefix()})
		},
		Files: func(int) memory.Need { return served },
	},
	embeddedIndex,
}

// Directory is where the process keeps files: the store of rows if it is embedded, the
// indexes if they are, and the records that it has read of streams. Each stage has its own below Data.
func (p Place) Directory() string { return p.Stage.Dir(p.Data) }

// Flags are the flags of a command line that name the place, but for those that hold without them.
func (p Place) Flags() (out []model.Flag) {
	add := func(given bool, name, value string) {
		if given {
			out = append(out, model.Flag{Name: name, Value: value})
		}
	}
	add(p.AWS, "aws", "")
	add(p.Data != "" && filepath.Clean(p.Data) != DefaultData, "data", p.Data)
	cluster := p.OpenSearch
	if u, err := url.Parse(cluster); err != nil || u.User != nil {
		cluster = "URL" // it has a password
	}
	add(p.OpenSearch != "", "opensearch", cluster)
	add(!p.Stage.IsDefault(), "stage", p.Stage.Name)
	add(len(p.Stage.Tables) > 0, "tables", p.Stage.Map())
	return out
}

// DefaultData is the directory of an embedded store if none is named.
const DefaultData = "data"

// Names are the names of the tables in the place. An error means that the place maps
// tables in a way that cannot be (ErrConfig).
func (p Place) Names(tables []store.Table) (stage.Names, error) {
	n, err := stage.New(p.Stage, tables)
	if err != nil {
		return n, configError{fmt.Errorf("the tables of the stage: %w", err)}
	}
	return n, nil
}

// Open opens the store of the place's rows, which takes the tables' logical names. If
// other programs use the store too, it refuses tables of another stage (stage.ErrTaken);
// and if the caller writes, the tables belong to this stage from now on.
func (p Place) Open(ctx context.Context, tables []store.Table, now func() time.Time, writes bool) (store.Store, stage.Names, error) {
	n, err := p.Names(tables)
	if err != nil {
		return nil, n, err
	}
	d := p.Store()
	db, err := d.open(ctx, p, p.real(&n, tables), now, p.observer(n))
	if err == nil && d.Shared() {
		if err = stage.Claim(ctx, db, &n, now(), writes); err != nil {
			err = errors.Join(err, db.Close())
		}
	}
	if err != nil {
		return nil, n, err
	}
	return stage.Wrap(db, n), n, nil
}

// real are the tables that the driver opens: those given under their real names, and
// the one that says which stage each belongs to.
func (p Place) real(n *stage.Names, tables []store.Table) []store.Table {
	out := n.Tables(tables)
	if registry := stage.Registry(); p.Store().Shared() && registry.Name != n.Own() {
		out = append(out, registry)
	}
	return out
}

// Deployer opens the store of the place's rows to make its tables, which it takes by
// their logical names, and which belong to the stage once its own table is made. It is nil
// if Open makes them.
func (p Place) Deployer(ctx context.Context, tables []store.Table) (store.Deployer, stage.Names, error) {
	n, err := p.Names(tables)
	if err != nil || !p.Store().Deploys() {
		return nil, n, err
	}
	db, err := p.Store().deployer(ctx, p, p.real(&n, tables))
	if err != nil {
		return nil, n, err
	}
	return stage.WrapDeployer(db, n, time.Now), n, nil
}

// Store is the driver of the place's rows.
func (p Place) Store() *Store {
	return seq.At(stores, func(s *Store) bool { return s.Of(p) }) // the last one takes every place
}

// Dir is the directory that the process has to itself, "" for none.
func (p Place) Dir() string {
	if d := p.Store(); d.Dir != nil {
		return d.Dir(p)
	}
	return ""
}

// Index is the driver of the place's documents, nil where there are none.
func (p Place) Index() *Index {
	return seq.At(indexes, func(ix *Index) bool { return ix.Of(p) })
}

// ErrConfig marks errors of a driver's environment.
var ErrConfig = errors.New("configuration")

type configError struct{ error }

func (e configError) Is(target error) bool { return target == ErrConfig }
func (e configError) Unwrap() error        { return e.error }

// openDynamoDB opens DynamoDB by the SDK's own environment: region, credentials and endpoint
// are those that the AWS CLI would use. No request is made.
func openDynamoDB(ctx context.Context, p Place, tables []store.Table, now func() time.Time, told store.Observer) (store.Deployer, error) {
	cfg, err := dynamodb.Config(ctx)
	if err != nil {
		return nil, configError{err}
	}
	log := p.Log
	if log == nil {
		log = slog.Default()
	}
	dynamodb.LogTo(&cfg, log)
	return dynamodb.Open(cfg, tables, dynamodb.Options{Now: now, Writes: p.Writes, Observe: told}), nil
}

// IsMistake reports whether a driver's error asks the user to change something, rather
// than to try again.
func IsMistake(err error) bool {
	return errors.Is(err, ErrConfig) || errors.Is(err, stage.ErrTaken) || errors.Is(err, opensearch.ErrTarget) || isDamage(err)
}
