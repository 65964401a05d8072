package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
)

const albums = `
model: albums
tables: {rows: {key: [PK, SK]}, more: {key: [PK, SK]}}
entities:
  Album: {table: rows, where: {t: album}, key: {PK: "A#{id}", SK: A}, attributes: {title: string}}
  Picture: {table: rows, where: {t: picture}, key: {PK: "A#{id}", SK: "P#{p}"}, attributes: {size: number}}
  Vote: {table: more, where: {t: vote}, key: {PK: "A#{id}", SK: "V#{v}"}}
derive:
  Album.count: {count: Picture, to: {id: id}}
  Album.votes: {count: Vote, to: {id: id}}
search:
  albums: {of: Album, text: [title]}
`

func programOf(t *testing.T, text string) *Program {
	t.Helper()
	m, err := model.Parse("albums.yaml", []byte(text))
	failtest.On(t, err)
	return ProgramOf(m)
}

var (
	now = time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
)

func table(id string, whole bool) store.Identity {
	return store.Identity{ID: id, Stream: "1", Images: store.NewAndOldImages, Whole: whole}
}

// world is a catalog and what its programs find.
type world struct {
	*testing.T
	row    owntable.CatalogRow
	tables map[string]store.Identity
	now    time.Time
	asked  time.Time // since when a build is asked for again
	assume bool
	in     string // the region that derives
	own    string // the id of the own table
}

func newWorld(t *testing.T, whole bool) *world {
	row, _ := owntable.DecodeCatalog(nil)
	return &world{T: t, row: row, now: now, tables: map[string]store.Identity{"rows": table("r", whole), "more": table("m", whole)}}
}

func (w *world) start(p *Program) error {
	w.Helper()
	next, _, err := p.Start(w.row, Found{Own: w.own, Tables: w.tables, Now: w.now, Assume: w.assume, DeriveIn: w.in})
	if !next.Same(w.row) {
		next.Count++
	}
	w.row = next
	return err
}

// batch applies a batch of a table.
func (w *world) batch(p *Program, by Reader, tables ...string) error {
	w.Helper()
	next, err := p.Admit(w.row, Batch{Reader: by, Tables: tables}, w.now)
	if err == nil && !next.Same(w.row) {
		next.Count++
		w.row = next
	}
	return err
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Error(err)
	}
}

func (w *world) refused(err, kind error, words ...string) {
	w.Helper()
	if !errors.Is(err, kind) || !errors.Is(err, ErrRefused) {
		w.Errorf("%v, want %v", err, kind)
		return
	}
	for _, s := range words {
		if !strings.Contains(err.Error(), s) {
			w.Errorf("%v\ndoes not say %q", err, s)
		}
	}
}

func (w *world) states() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w.row.Derivations)) {
		out = append(out, fmt.Sprintf("%s %s", name, w.row.Derivations[name].State))
	}
	return strings.Join(out, ", ")
}

// without leaves a derivation out of the model.
func without(text, line string) string {
	out := strings.Replace(text, line, "", 1)
	if out == text {
		panic("nothing is left out")
	}
	return out
}

const (
	votes  = "  Album.votes: {count: Vote, to: {id: id}}\n"
	counts = "  Album.count: {count: Picture, to: {id: id}}\n"
)

// TestStreamOff: a program begins while the stream of a table is on that it derives from, says what stands still, and
// builds nothing that does. It is refused when all are off, with the command that helps.
func TestStreamOff(t *testing.T) {
	w, p := newWorld(t, true), programOf(t, albums)
	follows := func() error { return p.refuseUnread(w.row, Found{Tables: w.tables}) }
	builds := func() error {
		_, _, err := p.Announce(w.row, w.tables, []string{"Album"}, true, w.asked, w.now)
		return err
	}
	off := func(table string) {
		is := w.tables[table]
		is.Stream, is.ARN = "", "arn:aws:dynamodb:eu-west-1:1:table/"+table+"-prod"
		w.tables[table] = is
	}
	stale := func() string { return strings.Join(p.Unfinished(w.row, w.tables, []string{"Album"}), ", ") }
	w.must(w.start(p))
	w.must(w.batch(p, Process, "rows", "more"))
	w.must(follows())
	w.must(builds())
	if stale() != "" {
		t.Error(stale())
	}
	off("more")
	w.must(w.start(p))
	w.must(follows())
	w.refused(builds(), ErrTable, "Album.votes cannot be built", "the stream of table more is off")
	if stale() != "Album.votes" {
		t.Error(stale())
	}
	off("rows")
	w.refused(follows(), ErrTable, "--table-name more-prod", "StreamViewType=NEW_AND_OLD_IMAGES", "projector build albums --again")
	other := w.tables["rows"]
	other.ID = "another"
	w.tables["rows"] = other
	w.must(follows())
	w.refused(w.start(p), ErrTable, "is another one")
}

func TestFirstStart(t *testing.T) {
	t.Run("whole streams", func(t *testing.T) {
		w, p := newWorld(t, true), programOf(t, albums)
		w.must(w.start(p))
		w.must(w.batch(p, Process, "rows", "more"))
		w.must(w.start(p))
		if got := w.states(); got != "Album.count live, Album.votes live" {
			t.Error(got)
		}
	})
	t.Run("tables of others", func(t *testing.T) {
		w, p := newWorld(t, false), programOf(t, albums)
		w.refused(w.start(p), ErrUnbuilt, "Album.count cannot begin on table rows", "--assume-complete")
		w.refused(w.batch(p, Process, "rows"), ErrUnbuilt)
		if got := w.states(); got != "Album.count unbuilt, Album.votes unbuilt" {
			t.Error(got)
		}
		w.assume = true
		w.must(w.start(p))
		w.must(w.batch(p, Process, "rows"))
		if pin := w.row.Tables["rows"]; pin.Complete != owntable.CompleteAssumed || !pin.Since.Equal(now) {
			t.Errorf("%+v", pin)
		}
		w.assume = false
		w.must(w.start(p)) // it was said once
	})
	t.Run("one table is whole", func(t *testing.T) {
		w, p := newWorld(t, false), programOf(t, albums)
		w.tables["more"] = table("m", true)
		w.refused(w.start(p), ErrUnbuilt, "table rows")
		if got := w.states(); got != "Album.count unbuilt, Album.votes live" {
			t.Error(got)
		}
	})
	t.Run("tables that weir made", func(t *testing.T) {
		for age, ok := range map[time.Duration]bool{time.Hour: true, 22 * time.Hour: true, 24 * time.Hour: false, 1000 * time.Hour: false} {
			w, p := newWorld(t, false), programOf(t, albums)
			for name, id := range w.tables {
				w.row.Tables[name] = owntable.Pin{ID: id.ID, Stream: id.Stream, Images: id.Images, Complete: owntable.CompleteMade, Made: now, Since: now}
				id.Made = now
				w.tables[name] = id
			}
			w.now = now.Add(age)
			err := w.start(p)
			if ok {
				w.must(err)
				w.must(w.batch(p, Process, "rows", "more"))
				w.now = w.now.Add(10000 * time.Hour)
				w.must(w.start(p)) // read since, so it goes on
			} else {
				w.refused(err, ErrUnbuilt, "was made on 2026-11-23", "24 hours")
			}
		}
	})
	t.Run("tables that others made together with their streams", func(t *testing.T) {
		for age, ok := range map[time.Duration]bool{22 * time.Hour: true, 24 * time.Hour: false} {
			w, p := newWorld(t, false), programOf(t, albums)
			for name, id := range w.tables {
				id.Together, id.Made = true, now
				w.tables[name] = id
			}
			w.now = now.Add(age)
			if err := w.start(p); ok {
				w.must(err)
				w.must(w.batch(p, Process, "rows", "more"))
			} else {
				w.refused(err, ErrUnbuilt, "was made on 2026-11-23", "24 hours")
			}
		}
	})
	t.Run("a table that weir made, and its stream is another", func(t *testing.T) {
		w, p := newWorld(t, false), programOf(t, albums)
		for name, id := range w.tables {
			w.row.Tables[name] = owntable.Pin{ID: id.ID, Stream: "0", Images: id.Images, Complete: owntable.CompleteMade, Made: now, Since: now}
		}
		w.refused(w.start(p), ErrUnbuilt)
	})
	t.Run("assumed is for tables that were not read", func(t *testing.T) {
		w, p := newWorld(t, true), programOf(t, albums)
		old := programOf(t, without(albums, counts))
		w.must(w.start(old))
		w.must(w.batch(old, Process, "rows", "more"))
		w.assume = true
		w.refused(w.start(p), ErrUnbuilt, "Album.count is new")
	})
}

func TestTables(t *testing.T) {
	read := func(t *testing.T) (*world, *Program) {
		w, p := newWorld(t, true), programOf(t, albums)
		w.must(w.start(p))
		w.must(w.batch(p, Process, "rows", "more"))
		return w, p
	}
	w, p := read(t)
	w.tables["rows"] = table("other", true)
	w.refused(w.start(p), ErrTable, "another one", "dropped and made again, or restored", "--stage")

	w, p = read(t)
	delete(w.tables, "rows")
	w.refused(w.start(p), ErrTable, "there is no table rows", "deploy tables")

	w, p = read(t)
	w.tables["rows"] = store.Identity{ID: "r", Stream: "1", Images: store.NewImage}
	w.refused(w.start(p), ErrImages, "NEW_IMAGE", "NEW_AND_OLD_IMAGES", "no change could be taken back")

	w, p = read(t)
	w.tables["rows"] = store.Identity{ID: "r"} // off: what it has left is read
	w.must(w.start(p))

	w = newWorld(t, true)
	w.tables["rows"] = store.Identity{ID: "r"}
	w.refused(w.start(p), ErrTable, "no stream")

	w = newWorld(t, true) // nothing was read: the other table takes its place
	w.must(w.start(p))
	w.tables["rows"] = table("other", true)
	w.must(w.start(p))

	w, p = read(t)
	is := table("r", true)
	is.Stream = "2"
	w.tables["rows"] = is
	next, switched, err := p.Start(w.row, Found{Tables: w.tables, Now: now})
	if err != nil || len(switched) != 1 || switched[0] != (Switch{Table: "rows", From: "1", To: "2"}) || next.Tables["rows"].Stream != "2" {
		t.Errorf("%v, %v, %+v", switched, err, next.Tables["rows"])
	}
	if _, again, _ := p.Start(next, Found{Tables: w.tables, Now: now}); len(again) > 0 {
		t.Errorf("said again: %v", again)
	}
}

// TestMoved: an entity that is moved to a table which was not read yet is another definition: its rows count beside none of the
// rows of the former table.
func TestMoved(t *testing.T) {
	w := newWorld(t, true)
	w.tables["new"] = table("n", true)
	w.must(w.start(programOf(t, albums)))
	p := programOf(t, strings.NewReplacer("Picture: {table: rows", "Picture: {table: new", "{rows:", "{new: {key: [PK, SK]}, rows:").Replace(albums))
	w.must(w.start(p)) // nothing was read
	w.must(w.start(programOf(t, albums)))
	w.must(w.batch(programOf(t, albums), Process, "rows"))
	w.refused(w.start(p), ErrDefinition, "Album.count are of another definition", "projector build")
	w.row, _ = programOf(t, without(albums, counts)).Retire(w.row, false, now)
	w.refused(w.start(p), ErrDefinition, "Album.count is retired")
}

// TestImages: a stream is refused unless it has what the model says that it needs.
func TestImages(t *testing.T) {
	for _, c := range []struct {
		stream    string
		has, lack []store.Images
	}{
		{"", []store.Images{store.NewAndOldImages}, []store.Images{store.NewImage, "OLD_IMAGE", store.KeysOnlyImages}},
		{", stream: new-image", []store.Images{store.NewAndOldImages, store.NewImage}, []store.Images{"OLD_IMAGE", store.KeysOnlyImages}},
		{", stream: keys-only", []store.Images{store.NewAndOldImages, store.NewImage, store.KeysOnlyImages, "OLD_IMAGE"}, nil},
	} {
		m, err := model.Parse("x.yaml", []byte("model: x\ntables: {rows: {key: [PK]"+c.stream+"}}\nentities:\n  A: {key: {PK: \"A#{id}\"}}\n"))
		failtest.On(t, err)
		p := ProgramOf(m)
		for _, images := range append(c.has, c.lack...) {
			err := p.checkTable("rows", owntable.Pin{}, store.Identity{ID: "x", Stream: "1", Images: images})
			if errors.Is(err, ErrImages) != slices.Contains(c.lack, images) {
				t.Errorf("a stream of %s where the model says %q: %v", images, c.stream, err)
			}
		}
	}
}

// TestPrograms: two programs with different models on one catalog. Whichever is not the one
// whose values are there is refused, and no program changes what another derives.
func TestPrograms(t *testing.T) {
	full := albums
	for name, c := range map[string]struct {
		first, second string
		start, batch  error // of the second; its batches while the first runs
		say           string
	}{
		"the same":             {full, full, nil, nil, ""},
		"one was added":        {without(full, counts), full, ErrUnbuilt, ErrUnbuilt, "Leave it out of the model; or projector build albums derives it"},
		"one was removed":      {full, without(full, counts), ErrUnknown, ErrUnknown, "projector build albums, which retires it"},
		"one was changed":      {full, strings.Replace(full, "Album.count: {count: Picture,", "Album.count: {sum: Picture.size,", 1), ErrDefinition, ErrDefinition, "of another definition"},
		"an entity was":        {full, strings.Replace(full, "t: vote", "t: [vote, like]", 1), ErrDefinition, ErrDefinition, "Album.votes"},
		"a query was added":    {full, full + "queries:\n  album: {get: Album, with: [id]}\n", nil, nil, ""},
		"a search was changed": {full, strings.Replace(full, "{of: Album, text", "{of: Album, where: {title: x}, text", 1), nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b := newWorld(t, true), programOf(t, c.first), programOf(t, c.second)
			w.must(w.start(a))
			w.must(w.batch(a, Process, "rows", "more"))
			before := w.row
			if c.start == nil {
				w.must(w.start(b))
			} else {
				w.refused(w.start(b), c.start, c.say)
			}
			if c.batch == nil {
				w.must(w.batch(b, Process, "rows"))
			} else {
				w.refused(w.batch(b, Process, "rows"), c.batch)
			}
			w.must(w.batch(a, Process, "rows", "more")) // nothing of it is disturbed
			for d, was := range before.Derivations {
				if is := w.row.Derivations[d]; is != was {
					t.Errorf("%s was %+v, is %+v", d, was, is)
				}
			}
		})
	}
}

// TestBeforeAnythingIsRead: until a stream is read, the model may change at will.
func TestBeforeAnythingIsRead(t *testing.T) {
	w := newWorld(t, true)
	old, now := programOf(t, without(albums, counts)), programOf(t, without(albums, votes))
	w.must(w.start(old))
	w.must(w.start(now))
	if got := w.states(); got != "Album.count live" {
		t.Error(got)
	}
	w.refused(w.batch(old, Process, "rows"), ErrUnbuilt)
	w.must(w.batch(now, Process, "rows"))
	full := programOf(t, albums) // of the table that is not read yet, more may be derived
	w.must(w.start(full))
	w.refused(w.batch(now, Process, "rows"), ErrUnknown)
}

// TestSearchIsNotInTheCatalog: programs whose search definitions differ do not refuse each
// other.
func TestSearchIsNotInTheCatalog(t *testing.T) {
	w := newWorld(t, true)
	a, b := programOf(t, albums), programOf(t, strings.Replace(albums, "text: [title]", "text: [title, id]", 1))
	w.must(w.start(a))
	w.must(w.batch(a, Process, "rows"))
	w.must(w.start(b))
	for _, p := range []*Program{a, b, a} {
		w.must(w.batch(p, Process, "rows"))
	}
	if got := w.states(); got != "Album.count live, Album.votes live" {
		t.Error(got)
	}
}

func TestRetire(t *testing.T) {
	w, full, less := newWorld(t, true), programOf(t, albums), programOf(t, without(albums, counts))
	w.must(w.start(full))
	w.must(w.batch(full, Process, "rows"))
	if next, names := full.Retire(w.row, true, now); len(names) > 0 || !next.Same(w.row) {
		t.Errorf("retired by a program that has it: %v", names)
	}
	next, names := less.Retire(w.row, false, now)
	if !slices.Equal(names, []string{"Album.count"}) {
		t.Errorf("retired: %v", names)
	}
	w.row = next
	w.must(w.start(less))
	w.must(w.batch(less, Process, "rows"))
	w.refused(w.batch(full, Process, "rows"), ErrDefinition, "retired")
	w.refused(w.start(full), ErrDefinition)
	w.now = now.Add(retiredLife + time.Hour)
	w.must(w.start(less))
	if got := w.states(); got != "Album.votes live" {
		t.Errorf("a month later the catalog has %s", got)
	}
	w.refused(w.start(full), ErrUnbuilt, "Album.count is new")
}

// TestReaders: a function and processes may read one stream, one after the other and at once. The catalog notes a function,
// because what was built then goes on with marks.
func TestReaders(t *testing.T) {
	w, p := newWorld(t, true), programOf(t, albums)
	w.must(w.start(p))
	for _, is := range []struct{ reads, noted Reader }{{Process, Process}, {Shard, Shard}, {Process, Shard}, {Shard, Shard}} {
		w.must(w.batch(p, is.reads, "rows"))
		if pin := w.row.Tables["rows"]; Reader(pin.Reader) != is.noted {
			t.Errorf("after %s the catalog says %s", is.reads, pin.Reader)
		}
	}
}

// TestNewerStates: what only a newer weir can apply is refused.
func TestNewerStates(t *testing.T) {
	for _, d := range []owntable.Derived{{Generation: 1, State: owntable.Building}, {Generation: 2, State: owntable.Live}} {
		w, p := newWorld(t, true), programOf(t, albums)
		w.must(w.start(p))
		w.must(w.batch(p, Process, "rows"))
		d.Hash = w.row.Derivations["Album.count"].Hash
		w.row.Derivations["Album.count"] = d
		w.refused(w.batch(p, Process, "rows"), ErrDefinition)
		w.row.Derivations["Album.new"] = d
		w.refused(w.batch(programOf(t, without(albums, counts)), Process, "rows"), ErrUnknown)
	}
}

// TestReplicas: one region derives from a table that is replicated, and all say which.
func TestReplicas(t *testing.T) {
	w, p := newWorld(t, true), programOf(t, albums)
	at := func(region, others string) {
		is := table("r", true)
		is.Region, is.Replicas = region, others
		w.tables["rows"] = is
	}
	at("eu-west-1", "us-east-1,us-west-2")
	w.refused(w.start(p), ErrReplica, "rows is replicated between eu-west-1 and us-east-1, us-west-2", "--derive-in eu-west-1", "WEIR_DERIVE_IN")
	w.in = "us-east-1"
	w.refused(w.start(p), ErrReplica, "rows is derived in us-east-1. This is eu-west-1")
	w.in = "eu-west-1"
	w.must(w.start(p))
	w.in = "us-east-1" // a replica was added, and the other region was named
	w.refused(w.start(p), ErrReplica)
	at("eu-west-1", "")
	w.must(w.start(p))
	at("us-east-1", "eu-west-1")
	strong := w.tables["rows"]
	strong.Strong = true
	w.tables["rows"] = strong
	w.refused(w.start(p), ErrReplica, "rows is a global table with multi-region strong consistency")
}

// TestUnfinishedSearch: an answer of a search says that its index is no longer updated, as rows say it of their
// values, or that what it sorts by is not finished.
func TestUnfinishedSearch(t *testing.T) {
	p := programOf(t, `model: shop
tables:
  shop: {key: [PK, SK]}
  other: {key: [PK, SK]}
entities:
  Order: {where: {t: order}, table: shop, key: {PK: "O#{id}", SK: O}, attributes: {id: string, sku: string}}
  Product: {where: {t: product}, table: shop, key: {PK: "P#{sku}", SK: P}, attributes: {sku: string, title: string}}
  Page: {where: {t: page}, table: other, key: {PK: "P#{id}", SK: P}, attributes: {id: string, title: string}}
derive:
  Product.orders: {count: Order, to: {sku: sku}}
search:
  products: {of: Product, text: [title]}
  popular: {of: Product, text: [title], sorts: [orders]}
  pages: {of: Page, text: [title]}
`)
	every := []string{"Product", "Page", "search/products", "search/popular", "search/pages"}
	on := map[string]store.Identity{"shop": {ID: "1", Stream: "s"}, "other": {ID: "2", Stream: "s"}}
	off := map[string]store.Identity{"shop": {ID: "1"}, "other": {ID: "2", Stream: "s"}}
	live := owntable.CatalogRow{Derivations: map[string]owntable.Derived{"Product.orders": {Generation: 1, State: owntable.Live, Hash: p.Derivations[0].Hash}}}
	building := owntable.CatalogRow{Derivations: map[string]owntable.Derived{"Product.orders": {Generation: 2, State: owntable.Building, Hash: p.Derivations[0].Hash}}}
	for _, test := range []struct {
		row    owntable.CatalogRow
		tables map[string]store.Identity
		of     []string
		want   string
	}{
		{live, on, every, ""},
		{live, off, every, "Product.orders, search/popular, search/products"},
		{live, off, []string{"Product", "search/products"}, "Product.orders, search/products"},
		{live, off, []string{"Page", "search/pages"}, ""},
		{building, on, every, "Product.orders, search/popular"},
	} {
		if is := strings.Join(p.Unfinished(test.row, test.tables, test.of), ", "); is != test.want {
			t.Errorf("of %v: %s, want %s", test.of, is, test.want)
		}
	}
}

// TestUnfinished: what reads rows or values of a derivation that is not complete is not complete either, however far
// from it; nothing else is.
func TestUnfinished(t *testing.T) {
	p := programOf(t, `model: shop
tables:
  shop: {key: [PK, SK]}
entities:
  Order: {where: {t: order}, key: {PK: "O#{id}", SK: O}, attributes: {id: string, customer: string, sku: string, total: number}}
  Mine: {where: {t: mine}, key: {PK: "C#{customer}", SK: "M#{id}"}, attributes: {customer: string, id: string, sku: string}}
  Product: {where: {t: product}, key: {PK: "P#{sku}", SK: P}, attributes: {sku: string, shop: string}}
  Shop: {where: {t: shop}, key: {PK: "S#{shop}", SK: S}}
derive:
  Mine: {row: Order, set: {customer: customer, id: id, sku: sku}}
  Product.mine: {count: Mine, to: {sku: sku}}
  Product.sum: {sum: Order.total, to: {sku: sku}}
  Shop.mine: {sum: Product.mine, to: {shop: shop}}
  Shop.sum: {sum: Product.sum, to: {shop: shop}}
  Shop.products: {count: Product, to: {shop: shop}}
`)
	all := []string{"Mine", "Product", "Shop"}
	for lacking, want := range map[string][]string{
		"":            nil,
		"Mine":        {"Mine", "Product.mine", "Shop.mine"},
		"Product.sum": {"Product.sum", "Shop.sum"},
		"Shop.mine":   {"Shop.mine"},
	} {
		row := owntable.CatalogRow{Derivations: map[string]owntable.Derived{}}
		for _, d := range p.Derivations {
			is := owntable.Derived{Generation: 1, State: owntable.Live, Hash: d.Hash}
			if d.Name == lacking {
				is.State = owntable.Building
			}
			row.Derivations[d.Name] = is
		}
		if is := p.Unfinished(row, nil, all); !slices.Equal(is, want) {
			t.Errorf("%s is building: %v are unfinished, want %v", lacking, is, want)
		}
		if lacking == "Mine" {
			if is := p.Unfinished(row, nil, []string{"Shop"}); !slices.Equal(is, []string{"Shop.mine"}) {
				t.Errorf("of shops: %v", is)
			}
		}
		if waits := p.WaitFor(row)["Product.mine"]; slices.Contains(waits, "Mine") != (lacking == "Mine") {
			t.Errorf("Product.mine waits for %v", waits)
		}
	}
}

// TestFirstStream: events of a stream that was switched off before our own table knew the table are refused. Those of a
// stream that another one continues are not.
func TestFirstStream(t *testing.T) {
	p := programOf(t, albums)
	day := func(n string) string {
		if n == "" {
			return ""
		}
		return "2026-11-0" + n + "T00:00:00.000"
	}
	rows := func(w *world, label string) { is := w.tables["rows"]; is.Stream = day(label); w.tables["rows"] = is }
	of := func(w *world, label string) error {
		_, err := p.Admit(w.row, Batch{Reader: Shard, Tables: []string{"rows"}, Labels: map[string]string{"rows": day(label)}}, now)
		return err
	}
	w := newWorld(t, true)
	rows(w, "2")
	w.must(w.start(p))
	w.must(w.batch(p, Shard, "rows", "more"))
	if err := of(w, "1"); !errors.Is(err, ErrTable) || !strings.Contains(err.Error(), "earlier stream of table rows (2026-11-01") {
		t.Errorf("before the first stream: %v", err)
	}
	rows(w, "3")
	w.must(w.start(p))
	for _, label := range []string{"2", "3", "4", ""} {
		w.must(of(w, label))
	}
	if err := of(w, "1"); !errors.Is(err, ErrTable) {
		t.Errorf("before the first of two: %v", err)
	}

	for name, restarted := range map[string]bool{"counts on": false, "starts again": true} {
		w := newWorld(t, true)
		is := w.tables["more"]
		is.Stream = day("1")
		w.tables["more"] = is
		w.must(w.start(p))
		is = w.tables["more"] // no search reads it
		is.Stream = day("2")
		w.tables["more"] = is
		next, _, _ := p.Start(w.row, Found{Tables: w.tables, Now: now, Restarted: map[string]bool{"more": restarted}})
		if first := next.Tables["more"].First; (first == day("2")) != restarted {
			t.Errorf("nothing is read, and the second stream %s: the first one is %q", name, first)
		}
	}
	another := newWorld(t, true)
	rows(another, "2")
	another.must(another.start(p))
	another.tables["rows"] = store.Identity{ID: "other", Stream: day("1"), Images: store.NewAndOldImages, Whole: true}
	another.must(another.start(p))
	another.must(of(another, "1"))
}
