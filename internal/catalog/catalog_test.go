package catalog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/catalog"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// relabelled is a store in which things change while a program runs.
type relabelled struct {
	store.Store
	own, stream string // is added to the id of our own table, and to the label of streams
	gone        bool   // our own table is
}

func (r *relabelled) Identity(ctx context.Context, table string) (store.Identity, error) {
	is, err := r.Store.Identity(ctx, table)
	if table == owntable.TableName {
		is.ID += r.own
	} else {
		is.Stream += r.stream
	}
	return is, err
}

func (r *relabelled) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if r.gone {
		return nil, store.ErrNoTable
	}
	return r.Store.Get(ctx, refs)
}

// TestChangedUnderAProgram: a program that runs finds that its tables are other ones, by a batch
// of a later stream, by a catalog of a backup, or since its own table was gone for a while.
func TestChangedUnderAProgram(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(t, err)
	for name, c := range map[string]func(s *relabelled, c *catalog.Catalog, older value.Item) (said int, want error){
		"a later stream": func(s *relabelled, _ *catalog.Catalog, _ value.Item) (int, error) {
			s.stream = " later"
			return 1, nil
		},
		"a backup": func(s *relabelled, _ *catalog.Catalog, older value.Item) (int, error) {
			s.own = " restored"
			if _, err := s.Write(t.Context(), []store.Write{{Ref: owntable.Catalog(m.Name), Put: older}}); err != nil {
				t.Fatal(err)
			}
			return 0, catalog.ErrUnbuilt
		},
		"a table that was gone": func(s *relabelled, c *catalog.Catalog, _ value.Item) (int, error) {
			s.own, s.gone = " restored", true
			if _, err := c.Row(t.Context()); !errors.Is(err, store.ErrNoTable) {
				t.Error(err)
			}
			s.gone = false
			return 0, catalog.ErrUnbuilt
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
			failtest.On(t, err)
			defer db.Close()
			s, said := &relabelled{Store: db}, 0
			of := catalog.New(m, s, time.Now, catalog.Options{})
			say := func(context.Context, catalog.Switch) error { said++; return nil }
			table := m.Tables[0].Name
			is, err := db.Identity(t.Context(), table)
			failtest.On(t, err)
			batch := func() error {
				t.Helper()
				label := is.Stream + s.stream
				_, err := of.Admit(t.Context(), catalog.Batch{Reader: catalog.Shard, Tables: []string{table}, Labels: map[string]string{table: label}}, say)
				return err
			}
			failtest.On(t, batch())
			older, err := store.GetRow(t.Context(), db, owntable.Catalog(m.Name))
			failtest.On(t, err)
			_, err = of.Change(t.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
				next := was.Clone()
				next.Derivations["x"] = owntable.Derived{Hash: "x", Generation: 1, State: owntable.Retired, Since: time.Unix(1, 0).UTC()}
				return next, nil
			})
			if err != nil || batch() != nil {
				t.Fatal(err)
			}
			tells, want := c(s, of, older)
			if err := batch(); !errors.Is(err, want) || said != tells {
				t.Errorf("%v, and %d streams are said to be switched", err, said)
			}
			if err := batch(); !errors.Is(err, want) || said != tells {
				t.Errorf("again: %v, %d", err, said)
			}
		})
	}
}
