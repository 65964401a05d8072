package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/catalog"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

// shopModel is a model that shows a value on rows of a table.
func shopModel(t *testing.T, name, table string) *model.Model {
	t.Helper()
	m, err := model.Parse(name+".yaml", fmt.Appendf(nil, `
model: %s
tables: {%[2]s: {key: [PK, SK]}}
entities:
  Customer: {table: %[2]s, key: {PK: "C#{id}", SK: METADATA}}
  Order: {table: %[2]s, key: {PK: "C#{id}", SK: "O#{order}"}}
derive:
  Customer.orders: {count: Order}
`, name, table))
	failtest.On(t, err)
	return m
}

// reached is a store that says before each call that it is reached.
type reached struct {
	store.Store
	arns   bool // tables have ARNs
	lost   bool // streams lack what was written before
	before func()
}

func (s *reached) call() {
	if s.before != nil {
		s.before()
	}
}

func (s *reached) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	s.call()
	return s.Store.Get(ctx, refs)
}

func (s *reached) Query(ctx context.Context, q store.Query) (store.Page, error) {
	s.call()
	return s.Store.Query(ctx, q)
}

func (s *reached) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	s.call()
	return s.Store.Write(ctx, ws)
}

func (s *reached) Transact(ctx context.Context, ws []store.Write) error {
	s.call()
	return s.Store.Transact(ctx, ws)
}

func (s *reached) Identity(ctx context.Context, table string) (store.Identity, error) {
	s.call()
	is, err := s.Store.Identity(ctx, table)
	if s.arns {
		is.ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/" + table
	}
	is.Whole = is.Whole && !s.lost
	return is, err
}

// shops opens a store with our own table, and the tables Shop and Other.
func shops(t *testing.T) store.Store {
	t.Helper()
	tables := []store.Table{owntable.Table()}
	for _, name := range []string{"Shop", "Other"} {
		one := shopModel(t, "shop", name).Tables[0].Table
		one.Stream = true
		tables = append(tables, one)
	}
	s, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
	failtest.On(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// shop returns the catalog of a model that names its table as given, which is the table real of the store.
func shop(t *testing.T, s store.Store, name, table, real string) *catalog.Catalog {
	t.Helper()
	m := shopModel(t, name, table)
	n, err := stage.New(stage.Stage{Tables: []stage.Pair{{Logical: table, Real: real}}}, []store.Table{owntable.Table(), m.Tables[0].Table})
	failtest.On(t, err)
	return catalog.New(m, stage.Wrap(s, n), time.Now, catalog.Options{})
}

func unsaid(context.Context, catalog.Switch) error { return nil }

// starts starts a program, which must be refused with the words, or begin if there are none.
func starts(t *testing.T, c *catalog.Catalog, words ...string) {
	t.Helper()
	err := c.Start(t.Context(), unsaid)
	if len(words) == 0 && err != nil || len(words) > 0 && !errors.Is(err, catalog.ErrModel) {
		t.Fatalf("%v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v; it should say %s", err, w)
		}
	}
}

// retireAll retires all that a model derives.
func retireAll(t *testing.T, c *catalog.Catalog) {
	t.Helper()
	_, err := c.Change(t.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		next := was.Clone()
		for name, is := range next.Derivations {
			is.State = owntable.Retired
			next.Derivations[name] = is
		}
		return next, nil
	})
	failtest.On(t, err)
}

// TestOneTableOfSeveralNames: a table belongs to one model, whatever models call it; and tables of one name in two maps
// are not one. Where all of a model is retired, another one takes its table.
func TestOneTableOfSeveralNames(t *testing.T) {
	for _, arns := range []bool{false, true} {
		t.Run(fmt.Sprint("ARNs ", arns), func(t *testing.T) {
			s := &reached{Store: shops(t), arns: arns}
			starts(t, shop(t, s, "shop", "Shop", "Shop"))
			for range 2 {
				starts(t, shop(t, s, "stats", "Stats", "Shop"), "belongs to model shop, which derives Customer.orders, and this is model stats", "Put both into one model file.",
					"If model shop is to derive nothing any more, take all of derive out of its file, and build it: projector build FILE")
			}
			starts(t, shop(t, s, "elsewhere", "Shop", "Other"))
			starts(t, shop(t, s, "other", "Other", "Other"), "belongs to model elsewhere")
			renamed := shop(t, s, "shop", "Stats", "Shop")
			if err := renamed.Start(t.Context(), unsaid); errors.Is(err, catalog.ErrModel) {
				t.Errorf("a model is refused its own table: %v", err)
			}
			retireAll(t, renamed)
			starts(t, shop(t, s, "stats", "Stats", "Shop"))
			starts(t, shop(t, s, "third", "Shop", "Shop"), "belongs to model stats")
		})
	}
}

// TestDerivesNothing: a model that derives no rows begins beside another, and claims nothing.
func TestDerivesNothing(t *testing.T) {
	for _, derives := range []string{"", "search: {customers: {of: Customer, text: [id]}}\n", "queries: {customer: {get: Customer, with: [id]}}\n"} {
		s := shops(t)
		m, err := model.Parse("other.yaml", []byte("model: other\ntables: {Shop: {key: [PK, SK]}}\nentities:\n  Customer: {key: {PK: \"C#{id}\", SK: METADATA}}\n"+derives))
		failtest.On(t, err)
		starts(t, catalog.New(m, s, time.Now, catalog.Options{}))
		starts(t, shop(t, s, "shop", "Shop", "Shop"))
		starts(t, catalog.New(m, s, time.Now, catalog.Options{}))
	}
}

// TestGivenUpTable: a table from which a model no longer derives is free for another model, but only once a program that is
// not refused has said so.
func TestGivenUpTable(t *testing.T) {
	s := shops(t)
	both := func(derive string) *catalog.Catalog {
		m, err := model.Parse("both.yaml", []byte(`
model: both
tables: {Shop: {key: [PK, SK]}, Other: {key: [PK, SK]}}
entities:
  Customer: {table: Shop, key: {PK: "C#{id}", SK: METADATA}}
  Order: {table: Shop, key: {PK: "C#{id}", SK: "O#{order}"}}
  Room: {table: Other, key: {PK: "R#{id}", SK: METADATA}}
  Guest: {table: Other, key: {PK: "R#{id}", SK: "G#{guest}"}}
derive:
  Customer.orders: {count: Order}
`+derive))
		failtest.On(t, err)
		return catalog.New(m, s, time.Now, catalog.Options{})
	}
	older := both("  Room.guests: {count: Guest}\n")
	starts(t, older)
	if _, err := older.Admit(t.Context(), catalog.Batch{Tables: []string{"Shop", "Other"}, Reader: catalog.Process}, unsaid); err != nil {
		t.Fatal(err)
	}
	other := shop(t, s, "other", "Other", "Other")
	starts(t, other, "belongs to model both")
	newer := both("")
	if err := newer.Start(t.Context(), unsaid); !errors.Is(err, catalog.ErrUnknown) {
		t.Fatal(err)
	}
	starts(t, other, "belongs to model both")
	if _, err := newer.Change(t.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		next := was.Clone()
		is := next.Derivations["Room.guests"]
		is.State = owntable.Retired
		next.Derivations["Room.guests"] = is
		return next, nil
	}); err != nil {
		t.Fatal(err)
	}
	starts(t, newer)
	starts(t, other)
}

// TestModelsBeginTogether has two models of the same rows begin, the one before each call of the other
// to the store, and this one again at each of its calls. One of them begins, never both.
func TestModelsBeginTogether(t *testing.T) {
	begin := map[string]func(c *catalog.Catalog, ctx context.Context) error{
		"start": func(c *catalog.Catalog, ctx context.Context) error { return c.Start(ctx, unsaid) },
		"build": func(c *catalog.Catalog, ctx context.Context) error { // as package build announces it
			if err := c.Start(ctx, unsaid); err != nil && !errors.Is(err, catalog.ErrUnbuilt) {
				return err
			}
			_, err := c.Change(ctx, func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
				next, _, err := c.Program().Announce(was, nil, []string{"Customer"}, false, time.Now(), time.Now())
				return next, err
			})
			return err
		},
	}
	for way, begin := range begin {
		t.Run(way, func(t *testing.T) {
			db, schedules := shops(t), 0
			once := func(at, again int) (met, stopped bool) {
				schedules++
				defer func() {
					var ws []store.Write
					for _, row := range scan(t, db) {
						ws = append(ws, store.Write{Ref: owntable.Ref(row.Get(owntable.Partition).Text(), row.Get(owntable.Sort).Text()), Delete: true})
					}
					if _, err := db.Write(t.Context(), ws); err != nil {
						t.Fatal(err)
					}
				}()
				a, b := &reached{Store: db, lost: way == "build"}, &reached{Store: db, lost: way == "build"}
				programs := []*catalog.Catalog{shop(t, a, "shop", "Shop", "Shop"), shop(t, b, "stats", "Stats", "Shop")}
				stop, resume, ended := make(chan bool), make(chan bool), make(chan bool)
				results, calls, others := [2]error{}, 0, 0
				b.before = func() {
					if others++; others == again {
						close(stop)
						<-resume
					}
				}
				a.before = func() {
					if calls++; calls == at {
						met = true
						go func() {
							results[1] = begin(programs[1], t.Context())
							close(ended)
						}()
						select {
						case <-stop:
							stopped = true
						case <-ended:
						}
					}
				}
				results[0] = begin(programs[0], t.Context())
				close(resume)
				if !met {
					return
				}
				<-ended
				a.before, b.before = nil, nil
				won := 0
				if results[0] != nil {
					won = 1
				}
				if results[won] != nil || !errors.Is(results[1-won], catalog.ErrModel) {
					t.Fatalf("call %d, and %d of the other: %v, and %v", at, again, results[0], results[1])
				}
				if err := begin(programs[won], t.Context()); err != nil {
					t.Fatalf("call %d, and %d of the other: the winner goes on: %v", at, again, err)
				}
				if err := begin(programs[1-won], t.Context()); !errors.Is(err, catalog.ErrModel) {
					t.Fatalf("call %d, and %d of the other: the other one begins later: %v", at, again, err)
				}
				retireAll(t, programs[won])
				if err := begin(programs[1-won], t.Context()); err != nil {
					t.Fatalf("call %d, and %d of the other: where all is retired: %v", at, again, err)
				}
				return met, stopped
			}
			for at, met := 1, true; met; at++ {
				for again, stopped := 1, true; met && stopped; again++ {
					met, stopped = once(at, again)
				}
			}
			if schedules < 100 {
				t.Errorf("only %d schedules", schedules)
			}
		})
	}
}

// scan returns all rows of our own table.
func scan(t *testing.T, s store.Store) (rows []value.Item) {
	t.Helper()
	q := store.Query{Table: owntable.TableName}
	for {
		page, err := s.Query(t.Context(), q)
		failtest.On(t, err)
		if rows, q.After = append(rows, page.Rows...), page.Next; q.After == nil {
			return rows
		}
	}
}

// TestRefusedStartClaimsNothing: a program that is refused claims no table.
func TestRefusedStartClaimsNothing(t *testing.T) {
	s := shops(t)
	older := shop(t, s, "shop", "Shop", "Shop")
	starts(t, older)
	_, err := older.Change(t.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		return older.Program().Admit(was, catalog.Batch{Reader: catalog.Process, Tables: []string{"Shop"}}, time.Now())
	})
	failtest.On(t, err)
	newer, err := model.Parse("shop.yaml", []byte(`
model: shop
tables: {Shop: {key: [PK, SK]}, Other: {key: [PK, SK]}}
entities:
  Customer: {table: Shop, key: {PK: "C#{id}", SK: NEW}}
  Order: {table: Shop, key: {PK: "C#{id}", SK: "O#{order}"}}
  Room: {table: Other, key: {PK: "R#{id}", SK: METADATA}}
  Guest: {table: Other, key: {PK: "R#{id}", SK: "G#{guest}"}}
derive:
  Customer.orders: {count: Order}
  Room.guests: {count: Guest}
`))
	failtest.On(t, err)
	if err := catalog.New(newer, s, time.Now, catalog.Options{}).Start(t.Context(), unsaid); !errors.Is(err, catalog.ErrDefinition) {
		t.Fatal(err)
	}
	starts(t, shop(t, s, "stats", "Shop", "Shop"), "belongs to model shop")
	starts(t, shop(t, s, "stats", "Other", "Other"))
	starts(t, older)
}

// TestMovedTable: a model that is moved to another table before its stream was read leaves the first one to another model.
func TestMovedTable(t *testing.T) {
	for _, arns := range []bool{false, true} {
		t.Run(fmt.Sprint("ARNs ", arns), func(t *testing.T) {
			s := &reached{Store: shops(t), arns: arns}
			starts(t, shop(t, s, "shop", "Shop", "Shop"))
			starts(t, shop(t, s, "shop", "Shop", "Other"))
			starts(t, shop(t, s, "third", "Other", "Other"), "belongs to model shop")
			starts(t, shop(t, s, "stats", "Stats", "Shop"))
			starts(t, shop(t, s, "shop", "Shop", "Shop"), "belongs to model stats")
		})
	}
}
