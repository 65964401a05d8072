package catalog_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
)

// BenchmarkAdmit is what a batch pays for the catalog on the embedded store.
func BenchmarkAdmit(b *testing.B) {
	m, err := model.Load("watchlists")
	if err != nil {
		b.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		b.Fatal(err)
	}
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	c := catalog.New(m, store.Store(db), time.Now, catalog.Options{})
	batch := catalog.Batch{Reader: catalog.Process, Tables: []string{m.Tables[0].Name}}
	for b.Loop() {
		if _, err := c.Admit(b.Context(), batch, nil); err != nil {
			b.Fatal(err)
		}
	}
}
