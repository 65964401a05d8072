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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// shop returns the catalog of a model that names its table as given, which is the table real of the store.
func shop(t *testing.T, s store.Store, name, table, real string) *catalog.Catalog {
	t.Helper()
	m := shopModel(t, name, table)
	n, err := stage.New(stage.Stage{Tables: []stage.Pair{{Logical: table, Real: real}}}, []store.Table{owntable.Table(), m.Tables[0].Table})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
}

// TestOneTableOfSeveralNames: two models show nothing on one row, whatever they call its table; and
// tables of one name in two maps are not one.
func TestOneTableOfSeveralNames(t *testing.T) {
	for _, arns := range []bool{false, true} {
		t.Run(fmt.Sprint("ARNs ", arns), func(t *testing.T) {
			s := &reached{Store: shops(t), arns: arns}
			starts(t, shop(t, s, "shop", "Shop", "Shop"))
			starts(t, shop(t, s, "stats", "Stats", "Shop"), "on rows of table Stats, and model shop shows Customer.orders there, which it calls Shop", "and retire it: projector build FILE")
			starts(t, shop(t, s, "elsewhere", "Shop", "Other"))
			starts(t, shop(t, s, "other", "Other", "Other"), "model elsewhere shows Customer.orders there, which it calls Shop")
			renamed := shop(t, s, "shop", "Stats", "Shop")
			if err := renamed.Start(t.Context(), unsaid); errors.Is(err, catalog.ErrModel) {
				t.Errorf("a model is refused because of what it has noted itself: %v", err)
			}
			others, err := shop(t, s, "other", "Other", "Other").ShownByOthers(t.Context(), "Other")
			if err != nil || len(others) != 1 {
				t.Errorf("others show %v, %v", others, err)
			}

			retireAll(t, renamed)
			starts(t, shop(t, s, "stats", "Stats", "Shop"))
			starts(t, shop(t, s, "third", "Shop", "Shop"), "model stats shows Customer.orders there, which it calls Stats")
		})
	}
}

// TestNotesOfAnOlderWeir: what an older weir has noted, by the name in its model, counts until a program
// of that model starts again. The older weir finds what this one notes.
func TestNotesOfAnOlderWeir(t *testing.T) {
	for _, arns := range []bool{false, true} {
		t.Run(fmt.Sprint("ARNs ", arns), func(t *testing.T) {
			s := &reached{Store: shops(t), arns: arns}
			older := shop(t, s, "shop", "Shop", "Shop")
			starts(t, older)
			row, err := older.Row(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := row.Tables["Shop"].ID
			if arns {
				at = row.Tables["Shop"].ARN
			}
			noted := func(at string) bool {
				t.Helper()
				row, err := store.GetRow(t.Context(), s, owntable.Shown(at))
				is, derr := owntable.DecodeShown(row)
				if err != nil || derr != nil {
					t.Fatal(err, derr)
				}
				return len(is.Models["shop"]) > 0
			}
			if !noted(at) || !noted("Shop") {
				t.Fatalf("noted by what the table is: %v, and by its name: %v", noted(at), noted("Shop"))
			}
			if _, err := s.Write(t.Context(), []store.Write{{Ref: owntable.Shown(at), Delete: true}}); err != nil {
				t.Fatal(err)
			}
			starts(t, shop(t, s, "stats", "Shop", "Shop"), "model shop shows Customer.orders there")
			if arns { // the ARN has the name by which the older one may have noted it
				starts(t, shop(t, s, "stats", "Stats", "Shop"), "model shop shows Customer.orders there, which it calls Shop")
			}
			starts(t, shop(t, s, "elsewhere", "Shop", "Other"))
			if others, err := shop(t, s, "stats", "Shop", "Shop").ShownByOthers(t.Context(), "Shop"); err != nil || len(others) != 1 || len(others["shop"]) != 1 {
				t.Errorf("others show %v, %v", others, err)
			}
			if shapes, err := older.ShownBy(t.Context(), "Shop"); err != nil || len(shapes) != 1 {
				t.Errorf("it shows %v, %v", shapes, err)
			}
			starts(t, older)
			if !noted(at) {
				t.Error("a program that starts again does not note what it shows")
			}
		})
	}
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
		if err != nil {
			t.Fatal(err)
		}
		if rows, q.After = append(rows, page.Rows...), page.Next; q.After == nil {
			return rows
		}
	}
}

// TestRefusedStartNotesNothing: a program that is refused leaves what is noted of the one that runs: other models are
// refused, or not, by what that one shows. What the refused one may begin is noted beside.
func TestRefusedStartNotesNothing(t *testing.T) {
	s := shops(t)
	older := shop(t, s, "shop", "Shop", "Shop")
	starts(t, older)
	_, err := older.Change(t.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		return older.Program().Admit(was, catalog.Batch{Reader: catalog.Process, Tables: []string{"Shop"}}, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	noted := owntable.Shown("Shop")
	was, err := store.GetRow(t.Context(), s, noted)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if err := catalog.New(newer, s, time.Now, catalog.Options{}).Start(t.Context(), unsaid); !errors.Is(err, catalog.ErrDefinition) {
		t.Fatal(err)
	}
	is, err := store.GetRow(t.Context(), s, noted)
	if err != nil || !value.EqualItems(is, was) {
		t.Errorf("noted is %v, and was %v, %v", is, was, err)
	}
	starts(t, shop(t, s, "stats", "Shop", "Shop"), "model shop shows Customer.orders there")
	starts(t, older)
}

// TestMovedTable: a model that is moved to another table before its stream was read has nothing on the
// first one any more: another model may begin there, and nothing is noted.
func TestMovedTable(t *testing.T) {
	for _, arns := range []bool{false, true} {
		t.Run(fmt.Sprint("ARNs ", arns), func(t *testing.T) {
			s := &reached{Store: shops(t), arns: arns}
			first := shop(t, s, "shop", "Shop", "Shop")
			starts(t, first)
			row, err := first.Row(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := row.Tables["Shop"].ID
			if arns {
				at = row.Tables["Shop"].ARN
			}
			moved := shop(t, s, "shop", "Shop", "Other")
			starts(t, moved)
			starts(t, shop(t, s, "third", "Other", "Other"), "model shop shows Customer.orders there")
			left, err := store.GetRow(t.Context(), s, owntable.Shown(at))
			is, derr := owntable.DecodeShown(left)
			if err != nil || derr != nil || len(is.Models) > 0 {
				t.Errorf("noted of the first table: %v, %v, %v", is.Models, err, derr)
			}
			starts(t, shop(t, s, "stats", "Stats", "Shop"))
			starts(t, shop(t, s, "shop", "Shop", "Shop"), "model stats shows Customer.orders there")
		})
	}
}
