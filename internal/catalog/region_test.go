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
)

// replicated is a store whose tables are replicated between regions, as one of these sees it.
type replicated struct {
	store.Store
	region, others string
}

func (s replicated) Identity(ctx context.Context, table string) (store.Identity, error) {
	is, err := s.Store.Identity(ctx, table)
	is.Region, is.Replicas = s.region, s.others
	return is, err
}

// TestFence: of two regions, the one derives that took over last. A program that began before is refused, in batches and in what a
// build changes, and goes on where its region derives again.
func TestFence(t *testing.T) {
	m, err := model.Parse("shop.yaml", []byte(`model: shop
tables: {Tab: {key: [PK, SK]}}
entities:
  Customer: {key: {PK: "C#{id}", SK: METADATA}}
  Order: {key: {PK: "C#{id}", SK: "O#{order}"}}
derive: {Customer.orders: {count: Order}}
`))
	failtest.On(t, err)
	table := m.Tables[0].Table
	table.Stream = true
	db, err := embedded.Open("store", []store.Table{owntable.Table(), table}, embedded.Options{FS: vfs.NewMem()})
	failtest.On(t, err)
	defer db.Close()
	in := func(region, others string) *catalog.Catalog {
		return catalog.New(m, replicated{db, region, others}, time.Now, catalog.Options{DeriveIn: region})
	}
	here, there := in("here", "there"), in("there", "here")
	batch := func(c *catalog.Catalog) error {
		_, err := c.Admit(t.Context(), catalog.Batch{Tables: []string{"Tab"}}, unsaid)
		return err
	}
	build := func(c *catalog.Catalog) error {
		_, err := c.Change(t.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) { return was, nil })
		return err
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, catalog.ErrReplica) {
			t.Errorf("%s: %v", what, err)
		}
	}
	takes := func(c *catalog.Catalog, want bool) {
		t.Helper()
		if taken, err := c.TakeOver(t.Context()); err != nil || taken != want {
			t.Errorf("taken over: %v, %v", taken, err)
		}
	}
	failtest.On(t, here.Start(t.Context(), unsaid))
	takes(here, false)
	failtest.On(t, batch(here))
	failtest.On(t, build(here))
	refused("a start elsewhere", there.Start(t.Context(), unsaid))
	_, why, err := there.ReadAndCheck(t.Context())
	failtest.On(t, err)
	refused("a look elsewhere", why)

	takes(there, true)
	row, err := here.Row(t.Context())
	failtest.On(t, err)
	if is := row.Derivations["Customer.orders"]; is.State != owntable.Unbuilt {
		t.Errorf("what the ledgers of before say is %s", is.State)
	}
	refused("a build that runs", build(here))
	refused("a batch", batch(here))
	refused("a start", in("here", "there").Start(t.Context(), unsaid))
	takes(in("here", "there"), true)
	if err := batch(here); errors.Is(err, catalog.ErrReplica) || !errors.Is(err, catalog.ErrUnbuilt) {
		t.Errorf("back: %v", err)
	}
	refused("a batch in the other region", batch(there))
}
