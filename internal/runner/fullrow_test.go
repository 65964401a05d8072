package runner_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

// nearlyFull derives on one row what is small, and a text that may be long.
const nearlyFull = `
model: films
tables: {films: {key: [PK, SK]}}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {review: string, tag: string, at: time}}
derive:
  Movie.ratings: {count: Rating, to: {id: movie}}
  Movie.tags: {distinct: Rating.tag, to: {id: movie}, max: 1000}
  Movie.review: {latest: Rating.review, by: at, to: {id: movie}}
`

// nearlyFullOfTallies derives only what ledgers have; a sum may be long.
const nearlyFullOfTallies = `
model: films
tables: {films: {key: [PK, SK]}}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}}
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{movie}"}, attributes: {points: number, tag: string}}
derive:
  Movie.ratings: {count: Rating, to: {id: movie}}
  Movie.tags: {distinct: Rating.tag, to: {id: movie}, max: 1000}
  Movie.points: {sum: Rating.points, to: {id: movie}}
`

// fills are what fills a row: a derivation of a model that may be long, with three values, each longer than the one before.
type fills struct {
	model, attr string
	values      [3]string
}

var allFills = map[string]fills{
	"a text": {nearlyFull, "review", [3]string{"short", strings.Repeat("long ", 60), strings.Repeat("longer ", 60)}},
	"a sum":  {nearlyFullOfTallies, "points", [3]string{strings.Repeat("3", 22), strings.Repeat("5", 30), strings.Repeat("7", 37)}},
}

// TestNearlyFullRowOnDynamoDB: a row of nearly 400 KB, by DynamoDB's rules of sizes, shows what it has room for, to the
// byte. A dead letter names the rest, while values grow and shrink, until there is room.
func TestNearlyFullRowOnDynamoDB(t *testing.T) {
	fillsRow(t, func(t *testing.T, m *model.Model) store.Store {
		return dynamodbtest.Open(t, dynamodbtest.Config(t), []store.Table{m.Tables[0].Table, owntable.Table()}, dynamodb.Options{})
	})
}

// TestNearlyFullRow is the same on the embedded store.
func TestNearlyFullRow(t *testing.T) {
	fillsRow(t, func(t *testing.T, m *model.Model) store.Store {
		h := newHarness(t, m)
		t.Cleanup(h.close)
		return h.store
	})
}

// evenly is a clock whose versions all have as many bytes: a number has fewer with zeros at its end.
func evenly() time.Time { return time.UnixMicro(time.Now().Unix()*1_000_000 + 111) }

// filled is a movie whose application fills its row.
type filled struct {
	*testing.T
	fills
	m      *model.Model
	s      store.Store
	byItem bool
	movie  value.Item // as the application has it, without what fills it
	record uint64
	rated  int
	sum    *big.Int // of the points
}

func fillsRow(t *testing.T, open func(*testing.T, *model.Model) store.Store) {
	for name, by := range allFills {
		t.Run(name, func(t *testing.T) {
			m, err := loadText(t, by.model)
			must(t, err)
			s := open(t, m)
			for _, byItem := range []bool{false, true} {
				t.Run(fmt.Sprintf("byItem=%v", byItem), func(t *testing.T) {
					f := &filled{T: t, fills: by, m: m, s: s, byItem: byItem, sum: new(big.Int), movie: value.NewItem(
						value.Attr{Name: "PK", Value: value.OfString(fmt.Sprint("MOVIE#", byItem))}, value.Attr{Name: "SK", Value: value.OfString("METADATA")},
						value.Attr{Name: "type", Value: value.OfString("Movie")})}
					if byItem {
						f.record = 1000
					}
					f.goes()
				})
			}
		})
	}
}

func (f *filled) goes() {
	short, long, longer := f.values[0], f.values[1], f.values[2]
	f.leaves(500)
	f.rate(long)
	f.shows("room for all", long)
	small := f.row().Filter(func(name string) bool { return !f.movie.Has(name) && name != f.attr && name != "filler" }).Size()
	f.leaves(small + f.row().Filter(func(name string) bool { return name == f.attr }).Size())
	f.shows("room for all, to the last byte", long)
	f.rate(longer)
	f.shows("the "+f.attr+" has grown", "")
	f.rate(long)
	f.shows("it has shrunk", long)
	small += len(owntable.FullMark) + 1
	f.leaves(small)
	f.shows("the row has grown, up to the last byte", "")
	if got, most := f.row().Size(), store.MaxItemBytes; got != most {
		f.Errorf("the row has %d bytes, not %d", got, most)
	}
	f.rate(short)
	f.shows("a short one has no room either", "")
	f.leaves(small - 1)
	if row := f.row(); row.Has(f.attr) || row.Has("ratings") && row.Has("tags") || !row.Has("ratings") && !row.Has("tags") {
		f.Errorf("with a byte less the row has ratings %v, tags %v", row.Get("ratings"), row.Get("tags"))
	}
	f.leaves(500)
	f.shows("there is room", short)
	f.rate(longer)
	f.shows("and there still is", longer)
}

// row reads the movie.
func (f *filled) row() value.Item {
	f.Helper()
	rows, err := f.s.Get(f.Context(), []store.Ref{f.ref(f.movie)})
	must(f.T, err)
	return rows[0]
}

func (f *filled) ref(row value.Item) store.Ref {
	key, _ := f.m.Tables[0].KeyOf(row)
	return store.Ref{Table: "films", Key: key}
}

// applies writes a row as its application does, and applies the record of that.
func (f *filled) applies(w store.Write) {
	f.Helper()
	before, err := f.s.Get(f.Context(), []store.Ref{w.Ref})
	must(f.T, err)
	out, err := f.s.Write(f.Context(), []store.Write{w})
	must(f.T, err)
	must(f.T, out[0].Err)
	after, err := f.s.Get(f.Context(), []store.Ref{w.Ref})
	must(f.T, err)
	f.record++
	table := f.m.Tables[0]
	c, ok := projections.NewChange(table, &events.Record{
		Table: "films", Keys: table.Item(w.Key), Old: before[0], New: after[0], Position: events.PositionOf(f.record), Time: time.Unix(int64(f.record), 0),
	})
	if !ok {
		f.Fatal("no change")
	}
	_, err = f.runner().Rows(f.Context(), runner.Batch{ShardKey: owntable.ShardKey("films", "s"), ByItem: f.byItem, Changes: []projections.Change{c}})
	must(f.T, err)
}

func (f *filled) runner() *runner.Runner {
	return &runner.Runner{Kinds: kinds.All(), Model: f.m, Store: f.s, Now: evenly}
}

// leaves has the application fill the row, and leave so many bytes for what is derived.
func (f *filled) leaves(bytes int) {
	f.Helper()
	pad := store.MaxItemBytes - bytes - f.movie.Size() - len("filler")
	filler := value.Attr{Name: "filler", Value: value.OfString(strings.Repeat("x", pad))}
	if f.row() == nil {
		f.applies(store.Write{Ref: f.ref(f.movie), Put: f.movie.With(filler)})
		return
	}
	if room := store.MaxItemBytes - f.row().With(filler).Size(); room < 0 { // DynamoDB refuses it as it stands: the application replaces the row
		f.applies(store.Write{Ref: f.ref(f.movie), Put: f.movie.With(filler)})
		return
	}
	f.applies(store.Write{Ref: f.ref(f.movie), Ops: []store.Op{{Kind: store.Set, Attr: filler.Name, Value: filler.Value}}})
}

// rate adds a rating, the newest, after which the row should show a value.
func (f *filled) rate(v string) {
	f.Helper()
	f.rated++
	at := func(name, v string) value.Attr { return value.Attr{Name: name, Value: value.OfString(v)} }
	row := value.NewItem(at("PK", fmt.Sprint("USER#", f.rated)), at("SK", fmt.Sprint("RATING#", f.byItem)), at("type", "Rating"), at("tag", fmt.Sprint(f.rated%2)))
	if f.attr == "review" {
		row = row.With(at("review", v), at("at", time.Unix(int64(f.rated), 0).UTC().Format(time.RFC3339)))
	} else {
		sum, _ := new(big.Int).SetString(v, 10)
		points, err := value.ParseNumber(new(big.Int).Sub(sum, f.sum).String())
		must(f.T, err)
		row, f.sum = row.With(value.Attr{Name: f.attr, Value: points}), sum
	}
	f.applies(store.Write{Ref: f.ref(row), Put: row})
}

// shows fails unless the row shows what is small, and what may be long; if that is "", none, and a dead letter
// of kind full that names it alone.
func (f *filled) shows(when, want string) {
	f.Helper()
	row := f.row()
	if n, _ := row.Get("ratings").Int64(); n != int64(f.rated) {
		f.Errorf("%s: %v ratings, want %d", when, row.Get("ratings"), f.rated)
	}
	if n, _ := row.Get("tags").Int64(); n != int64(min(f.rated, 2)) {
		f.Errorf("%s: %v tags", when, row.Get("tags"))
	}
	if got := row.Get(f.attr).Text(); got != want || row.Has(owntable.FullMark) != (want == "") {
		f.Errorf("%s: the %s is %.40q, and the mark %v", when, f.attr, got, row.Get(owntable.FullMark))
	}
	var said, letters []string
	must(f.T, f.runner().Dead(f.Context(), func(d runner.Dead) error {
		said = append(said, string(d.Kind)+" "+d.Reason)
		return nil
	}))
	if want == "" {
		letters = []string{"full " + runner.NoRoom([]string{"Movie." + f.attr})}
	}
	if !slices.Equal(said, letters) {
		f.Errorf("%s: letters %q, want %q", when, said, letters)
	}
}
