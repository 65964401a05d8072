package catalog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
)

// replaced is a store in which a table has another id.
type replaced struct {
	store.Store
	table string
}

func (r replaced) Identity(ctx context.Context, table string) (store.Identity, error) {
	is, err := r.Store.Identity(ctx, table)
	if table == r.table {
		is.ID += " another"
	}
	return is, err
}

// TestAdmitSearch: batches of search indexes are admitted beside any reader and any
// derivations, and enter nothing; but not from other tables than those that are pinned.
func TestAdmitSearch(t *testing.T) {
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	row := func() owntable.CatalogRow {
		t.Helper()
		rows, err := db.Get(t.Context(), []store.Ref{owntable.Catalog(m.Name)})
		if err != nil {
			t.Fatal(err)
		}
		row, err := owntable.DecodeCatalog(rows[0])
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	at := func(s store.Store) *catalog.Catalog { return catalog.New(m, s, time.Now, catalog.Options{}) }
	if err := at(db).AdmitSearch(t.Context()); err != nil || row().Count != 0 {
		t.Errorf("before all others: %v, %+v", err, row())
	}
	byItem := catalog.Batch{Reader: catalog.Item, Tables: []string{m.Tables[0].Name}}
	if _, err := at(db).Admit(t.Context(), byItem, nil); err != nil {
		t.Fatal(err)
	}
	before := row()
	if err := at(db).AdmitSearch(t.Context()); err != nil || !row().Same(before) || row().Count != before.Count {
		t.Errorf("beside a function: %v, %+v", err, row())
	}
	if err := at(replaced{db, m.Tables[0].Name}).AdmitSearch(t.Context()); !errors.Is(err, catalog.ErrTable) {
		t.Errorf("another table: %v", err)
	}
}
