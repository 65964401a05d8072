package build_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"

	"weir/internal/build"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// outOfReach derives in the tables shown and people from the rows of a third. What is shown in people is partly derived from what
// weir makes in shown.
const outOfReach = `model: films
tables:
  ratings: {key: [PK, SK]}
  people: {key: [PK, SK]}
  shown: {key: [PK, SK]}
entities:
  Rating: {table: ratings, where: {type: Rating}, key: {PK: "RATING#{nr}", SK: RATING}, attributes: {movie: string, user: string, stars: number}}
  User: {table: people, where: {type: User}, key: {PK: "USER#{id}", SK: METADATA}}
  Club: {table: people, where: {type: Club}, key: {PK: "CLUB#{id}", SK: METADATA}}
  Movie: {table: shown, where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}, attributes: {title: string}}
  Card: {table: shown, where: {type: Card}, key: {PK: "CARD#{nr}", SK: CARD}, attributes: {movie: string, title: string}}
  Shelf: {table: shown, where: {type: Shelf}, key: {PK: "SHELF#{user}", SK: "ALL[#{leaf}]"}}
  Sum: {table: shown, where: {type: Sum}, key: {PK: "SUM#{stars}", SK: SUM}, attributes: {ratings: number}}
derive:
  User.ratings: {count: Rating, to: {id: user}}
  Club.cards: {count: Card, to: {id: movie}}
  Movie.ratings: {count: Rating, to: {id: movie}}
  Movie.stars: {sum: Rating.stars, to: {id: movie}}
  Card: {row: Rating, set: {nr: nr, movie: movie, title: {follow: Movie.title, by: {id: movie}}}}
  Shelf.movies: {set: Rating.movie}
  Sum: {group: Rating, by: {stars: stars}, set: {ratings: count}}
`

var errPolicy = errors.New("AccessDeniedException: a policy denies its writes")

// denying is a store of which one table takes no writes for a while.
type denying struct {
	store.Store
	table string
	now   atomic.Bool
}

func (d *denying) denies(ws ...store.Write) bool {
	for i := range ws {
		if d.now.Load() && ws[i].Table == d.table && !ws[i].Check {
			return true
		}
	}
	return false
}

func (d *denying) Write(ctx context.Context, ws []store.Write) (out []store.Outcome, err error) {
	for i := range ws {
		one, e := []store.Outcome{{Err: errPolicy}}, errPolicy
		if !d.denies(ws[i]) {
			one, e = d.Store.Write(ctx, ws[i:i+1])
		}
		if err = errors.Join(err, e); len(one) == 0 {
			one = make([]store.Outcome, 1)
		}
		out = append(out, one...)
	}
	return out, err
}

func (d *denying) Transact(ctx context.Context, ws []store.Write) error {
	if d.denies(ws...) {
		return errPolicy
	}
	return d.Store.Transact(ctx, ws)
}

// theatre is an application whose ratings are built.
type theatre struct {
	*fixture
	d       *denying
	later   atomic.Int64 // by how much the monotonic clock is ahead
	ratings map[int]ticket
	said    atomic.Bool // the table is said to take no writes
}

type ticket struct {
	movie, user string
	stars       int
}

func theatreIn(t *testing.T, open func([]store.Table) store.Store) *theatre {
	m := load(t, outOfReach)
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	h := &theatre{fixture: &fixture{TB: t, model: m, table: "ratings"}, d: &denying{Store: open(tables), table: "shown"}, ratings: map[int]ticket{}}
	h.System, err = system.Over(t.Context(), h.d, "", []*model.Model{m}, system.Options{Now: h.now, NoSearch: true})
	h.ok(err)
	h.runner().Mono = func() time.Time { return time.Now().Add(time.Duration(h.later.Load())) }
	for id := range 5 {
		for _, kind := range []string{"User", "Club", "Movie"} {
			h.puts(kind, fmt.Sprint(strings.ToUpper(kind), "#", id), "METADATA", nil)
		}
	}
	return h
}

// puts has the application write a row.
func (h *theatre) puts(kind, pk, sk string, more map[string]any) {
	h.Helper()
	row := value.NewItem(value.Attr{Name: "PK", Value: value.OfString(pk)}, value.Attr{Name: "SK", Value: value.OfString(sk)}, value.Attr{Name: "type", Value: value.OfString(kind)})
	if kind == "Movie" {
		row = row.With(value.Attr{Name: "title", Value: value.OfString("of " + pk)})
	}
	for name, v := range more {
		a := value.Attr{Name: name}
		switch v := v.(type) {
		case string:
			a.Value = value.OfString(v)
		case int:
			a.Value = value.OfInt(int64(v))
		}
		row = row.With(a)
	}
	table := h.model.Entity(kind).Table
	key, _ := table.KeyOf(row)
	_, err := h.d.Store.Write(h.Context(), []store.Write{{Ref: store.Ref{Table: table.Name, Key: key}, Put: row}})
	h.ok(err)
}

func (h *theatre) rate(nr int, is ticket) {
	h.ratings[nr] = is
	h.puts("Rating", fmt.Sprint("RATING#", nr), "RATING", map[string]any{"movie": is.movie, "user": is.user, "stars": is.stars})
}

// follows has a process apply records until the test ends, or what it returns is called.
func (h *theatre) follows() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	follower := runner.Follower{Runner: h.runner().Outlasting(), Source: untrimmed{h.d}, Prompt: true,
		Stopped: func(_, table, _, why string) {
			if table == "shown" {
				h.said.Store(strings.Contains(why, "takes no writes since"))
			}
		},
		Failed: func(_ string, _ bool, err error) (time.Duration, bool) {
			if !errors.Is(err, errPolicy) && ctx.Err() == nil {
				h.Error(err)
			}
			h.later.Add(int64(15 * time.Second))
			return 10 * time.Millisecond, true
		}}
	go func() {
		defer close(done)
		if err := follower.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			h.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	h.Cleanup(stop)
	return stop
}

// until waits for something.
func (h *theatre) until(what string, is func() bool) {
	h.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatal("not within a minute: " + what)
		}
	}
}

// differs recounts what rows show whose key has a prefix, from the ratings.
func (h *theatre) differs(prefix string) string {
	want, is, n := map[string]string{}, map[string]string{}, map[string]int{}
	for nr, r := range h.ratings {
		n["USER#"+r.user+" ratings"]++
		n["CLUB#"+r.movie+" cards"]++
		n["MOVIE#"+r.movie+" ratings"]++
		n["MOVIE#"+r.movie+" stars"] += r.stars
		n[fmt.Sprint("SUM#", r.stars, " ratings")]++
		want[fmt.Sprint("CARD#", nr, " title")] = "of MOVIE#" + r.movie
		want["SHELF#"+r.user+" has "+r.movie] = "yes"
	}
	for name, n := range n {
		want[name] = strconv.Itoa(n)
	}
	for _, table := range []string{"people", "shown"} {
		for _, row := range h.rows(table) {
			pk := row.Get("PK").Text()
			for _, id := range row.Get("movies").Elements() {
				is[pk+" has "+id.Value.Text()] = "yes"
			}
			for _, name := range []string{"ratings", "cards", "stars", "title"} {
				if v := row.Get(name); !v.IsMissing() && (name != "title" || row.Get("type").Text() == "Card") {
					is[pk+" "+name] = v.Text()
				}
			}
		}
	}
	maps.DeleteFunc(is, func(name, v string) bool { return want[name] == "" && v == "0" }) // none counts for it
	for _, m := range []map[string]string{want, is} {
		maps.DeleteFunc(m, func(name, _ string) bool { return !strings.HasPrefix(name, prefix) })
	}
	return gocmp.Diff(want, is)
}

// TestBuildBesideAnOutage: a table takes no writes while everything is built and records come. What is shown in other tables
// is built. The build of the rest says why it does not go on, and nothing of it is shown. The same builder goes on when the
// table takes writes again.
func TestBuildBesideAnOutage(t *testing.T) {
	besideAnOutage(theatreIn(t, func(tables []store.Table) store.Store {
		db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}))
}

// TestBuildBesideAnOutageOnDynamoDB is the same on DynamoDB Local.
func TestBuildBesideAnOutageOnDynamoDB(t *testing.T) {
	besideAnOutage(theatreIn(t, func(tables []store.Table) store.Store {
		return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	}))
}

func besideAnOutage(h *theatre) {
	nr := 0
	rates := func() { // a new rating, and another of an older one
		h.rate(nr, ticket{fmt.Sprint(nr % 5), fmt.Sprint(nr % 4), nr % 3})
		h.rate(nr/2, ticket{fmt.Sprint(nr % 3), fmt.Sprint(nr % 5), nr % 4})
		nr++
	}
	for range 60 {
		rates()
	}
	h.unreadAll()
	h.unbuilt()
	names := h.model.InBuildOrder(func(string) bool { return true })
	h.announced(names...)
	b := h.builder(names...)
	states := func() map[string]owntable.BuildState {
		is, err := b.States(h.Context())
		h.ok(err)
		out := map[string]owntable.BuildState{}
		for _, s := range is {
			out[s.Entity] = s.State
		}
		return out
	}

	h.d.now.Store(true)
	stop := h.follows()
	for range 3 {
		rates()
		_, err := b.Run(h.Context())
		if !errors.Is(err, errPolicy) || !strings.Contains(err.Error(), "building Movie: ") || !strings.Contains(err.Error(), "building Club: it waits for the build of copies/") {
			h.Fatalf("what is built while the table takes no writes: %v", err)
		}
	}
	h.until("the table is said to take no writes", func() bool { rates(); return h.said.Load() })
	_, err := b.Run(h.Context())
	if is := states(); !errors.Is(err, errPolicy) || is["User"] != owntable.BuildLive || is["Movie"] != owntable.BuildShowing || is["Sum"] != owntable.BuildShowing || is["Shelf"] != owntable.BuildShowing || is["Club"] != owntable.BuildBuilding {
		h.Errorf("the builds are %v, and say %v", is, err)
	}
	rates()
	h.until("the other table shows what is built", func() bool { return h.differs("USER#") == "" })
	for name, row := range h.rows("people") {
		if row.Has("cards") {
			h.Errorf("%s shows what waits for rows that are not made: %v", name, row)
		}
	}
	for name, row := range h.rows("shown") {
		if row.Get("type").Text() != "Movie" || len(row) != 4 {
			h.Errorf("%s has %v", name, row)
		}
	}

	h.d.now.Store(false)
	h.until("all is live", func() bool {
		rates()
		is, err := b.Run(h.Context())
		h.ok(err)
		return !slices.ContainsFunc(is, func(s build.Status) bool { return s.State != owntable.BuildLive })
	})
	rates()
	h.until("nothing waits", func() bool {
		h.later.Add(int64(time.Minute))
		page, err := h.d.Query(h.Context(), owntable.Owed(h.model.Name, "shown", 1))
		h.ok(err)
		return len(page.Rows) == 0 && !h.said.Load()
	})
	stop()
	h.catchUp()
	recount := func(when string) {
		h.Helper()
		if d := h.differs(""); d != "" {
			h.Errorf("%s (-want +is):\n%s", when, d)
		}
		h.verified()
		h.ok(h.runner().Dead(h.Context(), func(d runner.Dead) error {
			h.Errorf("%s: a letter: %s %s", when, d.Kind, d.Reason)
			return nil
		}))
	}
	recount("live")
	h.clock.Add(25)
	h.build(owntable.BuildVerified, names...)
	recount("audited")
	rates()
	h.catchUp()
	recount("afterwards")
}
