package build_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/build"
	"weir/internal/deploy"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// billed is a store that counts write units by DynamoDB's documented rules: one for each KB of
// the larger of a row before and after a write, two in a transaction, and a refused condition
// costs as much as one that holds. Each entry of the model's indexes that a write changes is one for each
// KB, and two where its key changes. It counts read units too: one for each 4 KB of a row, or of a
// page, that is read strongly.
type billed struct {
	store.Store
	units, reads *atomic.Int64
	model        *model.Model
}

func (b billed) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	rows, err := b.Store.Get(ctx, refs)
	for _, row := range rows {
		b.reads.Add(int64(max(1, (row.Size()+4095)/4096)))
	}
	return rows, err
}

func (b billed) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := b.Store.Query(ctx, q)
	size := 0
	for _, row := range page.Rows {
		size += row.Size()
	}
	b.reads.Add(int64(max(1, (size+4095)/4096)))
	return page, err
}

func (b billed) rows(ctx context.Context, ws []store.Write) ([]value.Item, error) {
	refs := make([]store.Ref, len(ws))
	for i := range ws {
		refs[i] = ws[i].Ref
	}
	return b.Store.Get(ctx, refs)
}

// entries returns the units of the entries of a row of the model's tables.
func (b billed) entries(table string, before, after value.Item) (units int) {
	of := b.model.Table(table)
	if of == nil {
		return 0
	}
	for _, ix := range of.Indexes {
		names := []string{ix.Key.Partition.Name}
		if ix.Key.Sort.Name != "" {
			names = append(names, ix.Key.Sort.Name)
		}
		key := func(row value.Item) (key []value.Value) {
			for _, name := range names {
				if !row.Has(name) {
					return nil
				}
				key = append(key, row.Get(name))
			}
			return key
		}
		was, is := key(before), key(after)
		kb := func(row value.Item) int {
			if ix.KeysOnly {
				return 1
			}
			return (row.Size() + 1023) / 1024
		}
		switch {
		case was != nil && is != nil && slices.EqualFunc(was, is, value.Equal):
			if !ix.KeysOnly && !value.EqualItems(before, after) {
				units += max(kb(before), kb(after))
			}
		default:
			if was != nil {
				units += kb(before)
			}
			if is != nil {
				units += kb(after)
			}
		}
	}
	return units
}

func (b billed) bill(ctx context.Context, ws []store.Write, each int, write func() error) error {
	before, err := b.rows(ctx, ws)
	if err != nil {
		return err
	}
	failed := write()
	after, err := b.rows(ctx, ws)
	for i := range before {
		b.units.Add(int64(each*max(1, (max(before[i].Size(), after[i].Size())+1023)/1024) + b.entries(ws[i].Table, before[i], after[i])))
	}
	if failed != nil {
		return failed
	}
	return err
}

func (b billed) Write(ctx context.Context, ws []store.Write) (out []store.Outcome, err error) {
	err = b.bill(ctx, ws, 1, func() (err error) {
		out, err = b.Store.Write(ctx, ws)
		return err
	})
	return out, err
}

func (b billed) Transact(ctx context.Context, ws []store.Write) error {
	return b.bill(ctx, ws, 2, func() error { return b.Store.Transact(ctx, ws) })
}

// unitEntities are those of the models of TestUnitsOfKinds.
const unitEntities = `model: kinds
tables:
  kinds: {key: [PK, SK]}
entities:
  Movie:
    where: {type: Movie}
    key: {PK: "MOVIE#{id}", SK: METADATA}
    attributes: {title: string, code: string, state: {type: string, enum: [open, done], forward: true}}
  Rating:
    where: {type: Rating}
    key: {PK: "MOVIE#{id}", SK: "RATING#{nr}"}
    attributes: {stars: number, mood: string, at: time, up: string, more: string}
`

const (
	unitMoods = "  Moods: {key: {PK: \"MOODS#{id}\", SK: \"M[#{leaf}]\"}}\n"
	unitSet   = "Moods.moods: {set: Rating.mood, to: {id: id}}"
)

// unitKinds are a derivation of each kind, with what its build may cost: LIFECYCLE's estimate is
// some 2.1 write units for each source row and 1 for each target. A set takes a transaction for ten members. A copy is a
// transaction of the row, its tombstone's condition and the fence, and each value that it follows one more.
var unitKinds = map[string]struct {
	entities, derive string
	perRow, target   float64
	mood             string // how each rating's own mood begins, "m" if it is not said
}{
	"count":        {"", "Movie.n: {count: Rating}", 2.15, 1, ""},
	"sum":          {"", "Movie.n: {sum: Rating.stars}", 2.15, 1, ""},
	"wide":         {"", strings.ReplaceAll("Movie.a~: {count: Rating}\n  Movie.b~: {sum: Rating.stars}\n  Movie.c~: {count: Rating}\n  Movie.d~: {distinct: Rating.type}", "~", strings.Repeat("n", 250)), 4.2, 1, ""},
	"mean":         {"", "Movie.n: {mean: Rating.stars, round: 1}", 2.15, 1, ""},
	"distinct":     {"", "Movie.n: {distinct: Rating.mood}", 4.2, 1, ""},
	"min":          {"", "Movie.n: {min: Rating.stars}", 2.15, 1, ""},
	"latest":       {"", "Movie.n: {latest: Rating.mood, by: at}", 2.15, 1, ""},
	"status":       {"", "Movie.state: {steps: {done: {when: Rating, where: {up: \"yes\"}}}}", 2.15, 1, ""},
	"set":          {unitMoods, unitSet, 2.55, 0, ""},
	"set, large":   {unitMoods, unitSet, 8, 0, ""},
	"group":        {"  Day: {where: {type: Day}, key: {PK: \"DAYS#{id}\", SK: \"{day}\"}, attributes: {n: number}}\n", "Day: {group: Rating, by: {id: id, day: {day: at, zone: UTC}}, set: {n: count}}", 2.2, 2, ""},
	"copy":         {"  Mine: {where: {type: Mine}, key: {PK: \"MINE#{nr}\", SK: \"{id}\"}, attributes: {stars: number, more: string}}\n", "Mine: {row: Rating, set: {id: id, nr: nr, stars: stars, more: more}}", 6.1, 0, ""},
	"copy, follow": {"  Mine: {where: {type: Mine}, key: {PK: \"MINE#{nr}\", SK: \"{id}\"}, attributes: {stars: number, title: string}}\n", "Mine: {row: Rating, set: {id: id, nr: nr, stars: stars, title: {follow: Movie.title}}}", 12.2, 0, ""},
	"feed":         {"  Fan: {where: {type: Fan}, key: {PK: \"MOVIE#{id}\", SK: \"FAN#{user}\"}}\n  Told: {where: {type: Told}, key: {PK: \"USER#{user}\", SK: \"TOLD#{id}#{nr}#{position}\"}}\n", "Told: {row: Rating, keep: [insert], each: {of: Fan, by: [id]}, set: {user: Fan.user, id: id, nr: nr, position: $position}}", 2.15, 0, ""},
}

// TestUnitsOfKinds: what a build of each kind writes, of 1,000 source rows for 20 targets, is at
// most what its estimate says. The dry run before says it within a tenth in dollars, with all that
// is read, and the builder itself in units (billOf).
func TestUnitsOfKinds(t *testing.T) {
	soaktest.Calm(t)
	for _, name := range slices.Sorted(maps.Keys(unitKinds)) {
		t.Run(name, func(t *testing.T) { unitsOfKind(t, name, 20, open) })
	}
}

// TestUnitsOfKindsOnDynamoDB is the same on DynamoDB Local with fewer rows, in short for each third kind.
func TestUnitsOfKindsOnDynamoDB(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(unitKinds)) {
		if testing.Short() && i%3 > 0 {
			continue
		}
		t.Run(name, func(t *testing.T) { unitsOfKind(t, name, 10, openOnDynamoDB) })
	}
}

func unitsOfKind(t *testing.T, name string, movies int, open func(testing.TB, *model.Model) *fixture) {
	kind, ratings := unitKinds[name], 50
	if strings.HasSuffix(name, ", large") { // its members are in many leaves
		movies, ratings = 1, 1000
	}
	is := billOf(t, name, open, movies, ratings, 0, "")
	if n := int(is.took.Targets); kind.target > 0 && n != movies {
		t.Errorf("%d rows shown, want %d", n, movies)
	}
	perRow := (float64(is.units) - kind.target*float64(is.took.Targets)) / float64(movies*ratings)
	t.Logf("%.2f a source row, %.0f a target", perRow, kind.target)
	if perRow > kind.perRow {
		t.Errorf("%.2f write units a source row, at most %.2f", perRow, kind.perRow)
	}
}

// unitIndexes are of each sort: all rows, rows with an attribute, whose key is shown, and only the keys.
const unitIndexes = `, indexes: {inverted: [SK, PK], codes: [code], states: [state, SK], keys: {key: [mood], projection: keys}}`

// TestUnitsOfShapes is the same for tables of other shapes: where showing a target costs as much as
// what it shows, where rows cost several units each, and where indexes have them too.
func TestUnitsOfShapes(t *testing.T) {
	soaktest.Calm(t)
	for shape, of := range map[string]struct {
		movies, ratings, bytes int
		indexes                string
	}{
		"one rating a movie": {200, 1, 0, ""},
		"rows of 6 KB":       {20, 20, 6000, ""},
		"five indexes":       {20, 20, 0, unitIndexes},
		"indexes, 6 KB":      {20, 20, 6000, unitIndexes},
	} {
		if testing.Short() && (shape == "rows of 6 KB" || shape == "five indexes") {
			continue // as the last one
		}
		for _, name := range slices.Sorted(maps.Keys(unitKinds)) {
			t.Run(shape+"/"+name, func(t *testing.T) { billOf(t, name, open, of.movies, of.ratings, of.bytes, of.indexes) })
		}
	}
}

// bill is what a build took.
type bill struct {
	said, took   build.Progress // by the dry run before, and by the builder
	units, reads int64          // by the calls that the store got
}

// billOf builds a kind of derivation on movies with so many ratings each, and rows with so many
// bytes more than they need. The dry run and the builder must say within a tenth what the calls
// were that the store got: the dry run in dollars, write units, read units and rows, the builder in write and in read units.
func billOf(t *testing.T, name string, open func(testing.TB, *model.Model) *fixture, movies, ratings, bytes int, indexes string) bill {
	t.Helper()
	kind := unitKinds[name]
	if slices.Contains([]string{"count", "sum", "mean"}, name) { // a number that is shown is the key of an index
		indexes = strings.Replace(indexes, "codes: [code]", "codes: [code], best: [code, {n: number}]", 1)
	}
	entities := strings.Replace(unitEntities, "{key: [PK, SK]}", "{key: [PK, SK]"+indexes+"}", 1)
	f := open(t, load(t, entities+kind.entities+"derive:\n  "+kind.derive+"\n"))
	f.kindRows(movies, ratings, bytes, cmp.Or(kind.mood, "m"))
	f.unread()
	f.unbuilt()
	return f.billed(name)
}

// billed is billOf for the rows that there are.
func (f *fixture) billed(name string) bill {
	f.Helper()
	names := f.model.InBuildOrder(func(string) bool { return true })
	const segments = 1 // the scan of one of several meets rows that another one has made, as it happens
	b := f.builder(names...)
	b.Segments = segments
	said, err := b.Estimate(f.Context())
	f.ok(err)
	b = f.builder(names...)
	b.Segments = segments
	var units, reads atomic.Int64
	r := *b.Runner
	r.Store = billed{f.Store, &units, &reads, f.model}
	b.Runner = &r
	is, err := b.Run(f.Context())
	f.ok(err)
	for _, s := range is {
		if s.State != owntable.BuildLive {
			f.Fatalf("%+v", is)
		}
	}
	out := bill{said, b.Done(), units.Load(), reads.Load()}
	dollars := (float64(out.units)*deploy.WritePrice + float64(out.reads)*deploy.ReadPrice) / 1e6
	checked := map[string][2]float64{
		"dry run, $":          {said.Price(), dollars},
		"dry run, write unit": {float64(said.Units), float64(out.units)},
		"builder, write unit": {float64(out.took.Units), float64(out.units)},
		"builder, read unit":  {float64(out.took.ReadUnits()), float64(out.reads)},
	}
	if _, one := unitKinds[name]; one { // where copies get other keys, a scan meets some that it has moved itself
		checked["dry run, rows"] = [2]float64{float64(said.Rows), float64(out.took.Rows)}
		checked["dry run, read unit"] = [2]float64{float64(said.ReadUnits()), float64(out.reads)}
	}
	for what, of := range checked {
		if off := of[0]/of[1] - 1; off > 0.1 || off < -0.1 {
			f.Errorf("%s: %g, and the calls took %g: %+.1f %%", what, of[0], of[1], 100*off)
		}
	}
	f.Logf("%-12s | write units: dry run %d, builder %d, by its calls %d | read units: dry run %d, builder %d, by its calls %d | dry run, in dollars: %+.1f %%",
		name, said.Units, out.took.Units, out.units, said.ReadUnits(), out.took.ReadUnits(), out.reads, 100*(said.Price()/dollars-1))
	return out
}

// kindRows writes movies, with so many ratings and fans each, which weir does not read. Movies and
// ratings have so many bytes more than they need, and each rating a mood of its own, which begins with mood.
func (f *fixture) kindRows(movies, ratings, bytes int, mood string) {
	f.Helper()
	text := func(name, v string) value.Attr { return runner.Attr(name, value.OfString(v)) }
	more := text("more", strings.Repeat("x", bytes))
	var ws []store.Write
	put := func(attrs ...value.Attr) {
		it := value.NewItem(attrs...)
		key, _ := f.model.Tables[0].KeyOf(it)
		ws = append(ws, store.Write{Ref: store.Ref{Table: f.table, Key: key}, Put: it})
	}
	for m := range movies {
		at := text("PK", fmt.Sprint("MOVIE#", m))
		put(at, text("SK", "METADATA"), text("type", "Movie"), text("title", fmt.Sprint("title ", m)), text("code", "c"), text("state", "open"), more)
		for n := range ratings {
			nr := fmt.Sprint(m*ratings + n)
			put(at, text("SK", "RATING#"+nr), text("type", "Rating"), text("mood", mood+nr), text("up", "yes"),
				text("at", time.Date(2026, 11, 1+m, 10, 0, 0, 0, time.UTC).Format(time.RFC3339)), runner.Attr("stars", value.OfInt(int64((m*ratings+n)%6))), more)
			if f.model.Entity("Fan") != nil {
				put(at, text("SK", "FAN#"+nr), text("type", "Fan"))
			}
		}
	}
	for some := range slices.Chunk(ws, 500) {
		out, err := f.Store.Write(f.Context(), some)
		f.ok(err)
		for i := range out {
			f.ok(out[i].Err)
		}
	}
}

// TestWriteBudget: a builder with a budget of write units waits as long as its units take, by
// its clock, whatever it builds.
func TestWriteBudget(t *testing.T) {
	for _, name := range []string{"count", "set", "status", "copy", "copy, follow", "feed"} {
		t.Run(name, func(t *testing.T) {
			kind := unitKinds[name]
			f := open(t, load(t, unitEntities+kind.entities+"derive:\n  "+kind.derive+"\n"))
			f.kindRows(10, 20, 0, "m")
			f.unread()
			f.unbuilt()
			var units, reads, waited atomic.Int64
			b := f.builder(allNames(f.model)...)
			b.Segments, b.Budget = 1, 10
			r := *b.Runner
			r.Store, r.Alone = billed{f.Store, &units, &reads, f.model}, true
			began := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
			r.Mono = func() time.Time { return began.Add(time.Duration(waited.Load())) }
			b.Runner = &r
			b.Wait = func(_ context.Context, d time.Duration) error {
				waited.Add(int64(d))
				if most := float64(b.Budget)*time.Duration(waited.Load()).Seconds() + 500; float64(units.Load()) > most {
					t.Errorf("%d units within %s", units.Load(), time.Duration(waited.Load()))
				}
				return nil
			}
			if _, err := b.Run(f.Context()); err != nil {
				t.Fatal(err)
			}
			pace := float64(units.Load()) / time.Duration(waited.Load()).Seconds()
			t.Logf("%s: %d units in %s: %.1f a second, of 10", name, units.Load(), time.Duration(waited.Load()).Round(time.Second), pace)
			if pace > 11 || pace < 8 {
				t.Errorf("%.1f write units a second, and the budget is 10", pace)
			}
		})
	}
}
