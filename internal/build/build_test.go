package build_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/scratch"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

const films = `model: films
tables:
  films: {key: [PK, SK]}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}, attributes: {title: string}}
  Rating:
    where: {type: Rating}
    key: {PK: "USER#{user}", SK: "RATING#{nr}"}
    attributes: {movie: string, stars: number, mood: string}
derive:
  Movie.rating: {mean: Rating.stars, to: {id: movie}, round: 2}
  Movie.rows: {count: Rating, to: {id: movie}}
  Movie.stars: {sum: Rating.stars, to: {id: movie}}
` + moods

// moods has a row for each value.
const moods = `  Movie.moods: {distinct: Rating.mood, to: {id: movie}, max: 100}
`

// fixture is a store with a model, and a clock that the test moves.
type fixture struct {
	testing.TB
	*system.System
	model   *model.Model
	table   string
	clock   atomic.Int64 // hours
	minutes atomic.Int64
	stream  *approximate // nil for a store that numbers all changes
	leases  int64
	jumps   []jump
	older   bool // consumers began behind what is in the stream
	before  int  // records until then
}

func (f *fixture) now() time.Time {
	return time.Now().Add(time.Duration(f.clock.Load())*time.Hour + time.Duration(f.minutes.Load())*time.Minute)
}

func open(t testing.TB, m *model.Model) *fixture {
	t.Helper()
	f := &fixture{TB: t, model: m, table: m.Tables[0].Name, older: true}
	var err error
	if f.System, err = system.Open(t.Context(), t.TempDir(), []*model.Model{m}, system.Options{Now: f.now, NoSearch: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// openOnDynamoDB is open on DynamoDB Local.
func openOnDynamoDB(t testing.TB, m *model.Model) *fixture {
	t.Helper()
	f := &fixture{TB: t, model: m, table: m.Tables[0].Name}
	tables, err := system.Tables([]*model.Model{m})
	f.ok(err)
	db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	f.System, err = system.Over(t.Context(), db, "", []*model.Model{m}, system.Options{Now: f.now, NoSearch: true})
	f.ok(err)
	return f
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) runner() *runner.Runner { return f.Models[0].Runner }

// write puts a row, or deletes it if it has only a key.
func (f *fixture) write(attrs ...any) {
	f.Helper()
	var it value.Item
	for i := 0; i < len(attrs); i += 2 {
		v := value.Value{}
		switch x := attrs[i+1].(type) {
		case string:
			v = value.OfString(x)
		case int:
			v = value.OfInt(int64(x))
		}
		it = append(it, value.Attr{Name: attrs[i].(string), Value: v})
	}
	it = value.NewItem(it...)
	key, _ := f.model.Tables[0].KeyOf(it)
	w := store.Write{Ref: store.Ref{Table: f.table, Key: key}, Put: it}
	if len(attrs) == 4 {
		w.Put, w.Delete = nil, true
	}
	out, err := f.Store.Write(f.Context(), []store.Write{w})
	f.ok(err)
	f.ok(out[0].Err)
}

// unread makes the consumers begin behind all records that there are, as those of a table
// with older rows do.
func (f *fixture) unread() { f.unreadIn(f.table) }

func (f *fixture) unreadIn(table string) {
	f.Helper()
	f.read()
	shards, err := f.Store.Shards(f.Context(), table)
	f.ok(err)
	for _, s := range shards {
		var at events.Position
		for {
			page, err := f.Store.Read(f.Context(), table, s.ID, at, 1<<20)
			f.ok(err)
			n := len(page.Records)
			if n == 0 {
				break
			}
			at = page.Records[n-1].Position
			if page.End {
				break
			}
		}
		if !at.IsZero() {
			_, err = f.Store.Write(f.Context(), []store.Write{owntable.OvertakeCheckpoint(owntable.Checkpoint(f.model.Name, table, s.ID), at)})
			f.ok(err)
		}
	}
}

func (f *fixture) catchUp() {
	f.Helper()
	done := make(chan struct{})
	close(done)
	follower := runner.Follower{Runner: f.runner(), Source: untrimmed{f.Store}, Prompt: true}
	if f.stream != nil {
		f.leases++
		follower.Source = leased{f.Store, f.leases}
	}
	f.ok(follower.CatchUp(f.Context(), done))
}

// announced announces builds, without which consumers may be refused.
func (f *fixture) announced(entities ...string) {
	f.Helper()
	_, err := f.builder(entities...).Announce(f.Context())
	f.ok(err)
}

// read makes the catalog say that processes read all streams from the first record on.
func (f *fixture) read() {
	f.Helper()
	f.ok(f.runner().Start(f.Context()))
	_, err := f.runner().Catalog.Change(f.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		next := was.Clone()
		for t, pin := range next.Tables {
			pin.Reader = string(catalog.Process)
			next.Tables[t] = pin
		}
		return next, nil
	})
	f.ok(err)
}

// unbuilt makes tallies those of a table that weir begins to read behind older rows.
func (f *fixture) unbuilt() {
	f.Helper()
	f.read()
	_, err := f.runner().Catalog.Change(f.Context(), func(was owntable.CatalogRow) (owntable.CatalogRow, error) {
		next := was.Clone()
		for name, d := range next.Derivations {
			if name != "" {
				d.State = owntable.Unbuilt
				next.Derivations[name] = d
			}
		}
		return next, nil
	})
	f.ok(err)
}

// untrimmed is a source whose consumers do not trim what others have not read.
type untrimmed struct{ store.Store }

func (untrimmed) Trim(context.Context, string, string, events.Position) error { return nil }

func (f *fixture) builder(names ...string) *build.Builder {
	return &build.Builder{Runner: f.runner(), Contributions: kinds.Contributions, Again: true, Segments: 3, Names: names}
}

// build builds, and expects a state.
func (f *fixture) build(want owntable.BuildState, entities ...string) {
	f.Helper()
	is, err := f.builder(entities...).Run(f.Context())
	f.ok(err)
	for _, s := range is {
		if s.State != want {
			f.Fatalf("%s is %s, want %s", s.Entity, s.State, want)
		}
	}
}

// rows returns the rows of a table by key.
func (f *fixture) rows(table string) map[string]value.Item {
	f.Helper()
	out := map[string]value.Item{}
	t := owntable.Table()
	if table != owntable.TableName {
		t = f.model.Table(table).Table
	}
	q := store.Query{Table: table}
	for {
		page, err := f.Store.Query(f.Context(), q)
		f.ok(err)
		for _, row := range page.Rows {
			key, _ := t.KeyOf(row)
			out[string(value.AppendPlainItem(nil, t.Item(key)))] = row
		}
		if page.Next == nil {
			return out
		}
		q.After = page.Next
	}
}

func load(t testing.TB, text string) *model.Model {
	t.Helper()
	m, err := model.Parse("films.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestExistingRows: pictures that were there before the first start, and one that is removed
// after it. Without a build the album counts -1.
func TestExistingRows(t *testing.T) {
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, m)
	f.write("PK", "ALBUM#a", "SK", "METADATA", "EntityType", "Album", "id", "a", "title", "A", "isPublic", "true", "createdAt", "2025-01-01T00:00:00Z")
	f.write("PK", "ALBUM#b", "SK", "METADATA", "EntityType", "Album", "id", "b", "title", "B", "isPublic", "true", "createdAt", "2025-01-01T00:00:00Z")
	for i := range 5 {
		f.write("PK", "ALBUM#a", "SK", fmt.Sprint("MEDIA#", i), "EntityType", "AlbumMedia", "albumId", "a", "mediaId", fmt.Sprint(i), "addedAt", "2025-01-01T00:00:00Z")
	}
	f.unread()
	f.write("PK", "ALBUM#a", "SK", "MEDIA#3")
	f.catchUp()
	for _, row := range f.rows(f.table) {
		if n := row.Get("mediaCount"); !n.IsMissing() && n.Text() != "-1" {
			t.Errorf("before the build: %v", row)
		}
	}
	f.build(owntable.BuildLive, "Album")
	find := func(id string) string {
		for _, row := range f.rows(f.table) {
			if row.Get("EntityType").Text() == "Album" && row.Get("id").Text() == id {
				return row.Get("mediaCount").Text()
			}
		}
		return "no album"
	}
	if a, b := find("a"), find("b"); a != "4" || b != "0" {
		t.Errorf("mediaCount is %q and %q, want 4 and 0", a, b)
	}
	f.write("PK", "ALBUM#b", "SK", "MEDIA#3", "EntityType", "AlbumMedia", "albumId", "b", "mediaId", "3", "addedAt", "2025-01-01T00:00:00Z")
	f.write("PK", "ALBUM#a", "SK", "MEDIA#4")
	f.catchUp()
	if a, b := find("a"), find("b"); a != "3" || b != "1" {
		t.Errorf("after the build, mediaCount is %q and %q, want 3 and 1", a, b)
	}
	f.clock.Add(25)
	f.build(owntable.BuildVerified, "Album")
	f.verified()
	if a, b := find("a"), find("b"); a != "3" || b != "1" {
		t.Errorf("after the audit, mediaCount is %q and %q, want 3 and 1", a, b)
	}
}

// TestUnbuilt: what was never built is refused until a build is announced, and not shown until
// it is complete.
func TestUnbuilt(t *testing.T) {
	f := open(t, load(t, films))
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
	f.write("PK", "USER#1", "SK", "RATING#1", "type", "Rating", "movie", "1", "stars", 3, "mood", "m")
	f.unread()
	f.unbuilt()
	done := make(chan struct{})
	close(done)
	follower := runner.Follower{Runner: f.runner()}
	f.write("PK", "USER#1", "SK", "RATING#2", "type", "Rating", "movie", "1", "stars", 5, "mood", "m")
	if err := follower.CatchUp(t.Context(), done); !errors.Is(err, catalog.ErrUnbuilt) || !strings.Contains(err.Error(), "projector build "+f.model.Name) {
		t.Fatal(err)
	}
	f.announced("Movie")
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "title", "T")
	f.catchUp()
	for _, row := range f.rows(f.table) {
		if row.Get("type").Text() == "Movie" && (row.Has("rows") || row.Has("stars") || row.Has(owntable.Version)) {
			t.Errorf("half a value is shown: %v", row)
		}
	}
	for name := range f.rows(owntable.TableName) {
		if strings.Contains(name, owntable.Ledgers(f.model.Name)) {
			t.Errorf("what is not built is counted: %s", name)
		}
	}
	f.verified()
	f.ok(f.builder("Movie").Abort(t.Context()))
	if err := follower.CatchUp(t.Context(), done); err != nil {
		t.Error(err) // nothing is left in the stream
	}
	f.write("PK", "USER#1", "SK", "RATING#3", "type", "Rating", "movie", "1", "stars", 1, "mood", "m")
	if err := follower.CatchUp(t.Context(), done); !errors.Is(err, catalog.ErrUnbuilt) {
		t.Error("after the abort: ", err)
	}
	f.build(owntable.BuildLive, "Movie")
	f.catchUp()
	f.compare()
}

// TestAdded: a sum is added to a live count. The count stays right and shown while the sum
// is built, and the sum is absent until it is complete.
func TestAdded(t *testing.T) {
	const sum = "  Movie.stars: {sum: Rating.stars, to: {id: movie}}\n"
	older := load(t, strings.Replace(films, sum, "", 1))
	f := open(t, older)
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
	for i, stars := range []int{3, 5, 4, 4} {
		f.write("PK", "USER#1", "SK", fmt.Sprint("RATING#", i), "type", "Rating", "movie", "1", "stars", stars, "mood", "m")
	}
	f.catchUp()
	f.build(owntable.BuildLive, "Movie") // the live ledgers are those of a build
	f.with(load(t, films))
	done := make(chan struct{})
	close(done)
	f.write("PK", "USER#1", "SK", "RATING#0")
	follower := runner.Follower{Runner: f.runner()}
	if err := follower.CatchUp(t.Context(), done); !errors.Is(err, catalog.ErrUnbuilt) {
		t.Fatal(err)
	}
	f.announced("Movie")
	f.catchUp()
	row := f.rows(f.table)
	for _, row := range row {
		if row.Get("type").Text() == "Movie" && (row.Get("rows").Text() != "3" || row.Has("stars")) {
			t.Errorf("during the build: %v", row)
		}
	}
	f.verified()
	was := f.runner()
	f.with(older)
	f.write("PK", "USER#1", "SK", "RATING#9", "type", "Rating", "movie", "1", "stars", 2, "mood", "m")
	follower = runner.Follower{Runner: f.runner()}
	if err := follower.CatchUp(t.Context(), done); !errors.Is(err, catalog.ErrUnknown) {
		t.Errorf("the older program: %v", err)
	}
	f.with(was.Model)
	f.build(owntable.BuildLive, "Movie")
	f.catchUp()
	f.compare()
}

// with goes on with another model.
func (f *fixture) with(m *model.Model) {
	f.Helper()
	f.model = m
	was := f.Models[0]
	next := *was.Runner
	next.Model, next.Catalog = m, catalog.New(m, f.Store, f.now, catalog.Options{})
	part := *was
	part.Model, part.Runner = m, &next
	f.Models[0] = &part
}

// compare compares what movies show with a count of the ratings.
func (f *fixture) compare() {
	f.Helper()
	type sums struct {
		rows, stars int64
		moods       map[string]bool
	}
	want := map[string]*sums{}
	rows := f.rows(f.table)
	for _, row := range rows {
		if row.Get("type").Text() != "Rating" {
			continue
		}
		s := want[row.Get("movie").Text()]
		if s == nil {
			s = &sums{moods: map[string]bool{}}
			want[row.Get("movie").Text()] = s
		}
		stars, _ := row.Get("stars").Int64()
		s.rows, s.stars = s.rows+1, s.stars+stars
		s.moods[row.Get("mood").Text()] = true
	}
	shown := 0
	for _, row := range rows {
		if row.Get("type").Text() != "Movie" {
			continue
		}
		shown++
		s := want[row.Get("PK").Text()[len("MOVIE#"):]]
		if s == nil {
			s = &sums{}
		}
		for name, n := range map[string]int64{"rows": s.rows, "stars": s.stars, "moods": int64(len(s.moods))} {
			if got := row.Get(name).Text(); got != strconv.FormatInt(n, 10) {
				f.Errorf("%s of %s is %s, want %d", name, row.Get("PK").Text(), got, n)
			}
		}
	}
	if shown == 0 {
		f.Error("there are no movies")
	}
	f.verified()
}

// verified expects that verify finds nothing.
func (f *fixture) verified() {
	f.Helper()
	v := scratch.Of(f.System, f.Models[0])
	v.InMemory = true
	f.ok(v.Run(f.Context(), func(d scratch.Difference) {
		f.Errorf("verify: %s of %s is %s, want %s", d.Derivation, d.Row, d.Have, d.Want)
	}))
}

// TestEstimate: a dry run says within a tenth what the build takes, and writes nothing. The
// build keeps to its budget.
func TestEstimate(t *testing.T) {
	f := open(t, load(t, films))
	for nr := range 300 {
		f.write("PK", fmt.Sprint("USER#", nr), "SK", fmt.Sprint("RATING#", nr), "type", "Rating", "movie", fmt.Sprint(nr%7), "stars", nr%6, "mood", "m")
	}
	for nr := range 9 {
		f.write("PK", fmt.Sprint("MOVIE#", nr), "SK", "METADATA", "type", "Movie")
	}
	f.unread()
	before := f.rows(owntable.TableName)
	b := f.builder("Movie")
	b.Segments = 1 // beside another one, a transaction may be tried again, which takes units
	said, err := b.Estimate(t.Context())
	f.ok(err)
	if after := f.rows(owntable.TableName); !maps.EqualFunc(before, after, value.EqualItems) {
		t.Error("the dry run wrote")
	}
	b = f.builder("Movie")
	b.Segments, b.Budget = 1, 100
	waited := time.Duration(0)
	var mu sync.Mutex
	b.Wait = func(_ context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		waited = max(waited, d)
		return nil
	}
	_, err = b.Run(t.Context())
	f.ok(err)
	took := b.Done()
	if off := float64(said.Units)/float64(took.Units) - 1; off > 0.1 || off < -0.1 {
		t.Errorf("%d units were estimated, and it took %d", said.Units, took.Units)
	}
	if said.Puts != 300 || took.Puts != 300 || said.Targets != 9 || took.Targets != 9 || said.Price() <= 0 {
		t.Errorf("said %+v, took %+v", said, took)
	}
	// The last piece waits until all before it would be paid.
	if least := time.Duration(took.Units-100) * time.Second / 100; waited < least {
		t.Errorf("at 100 units a second, %d units waited for %v", took.Units, waited)
	}
}

// beforeSegment is a store that does something before one of the writes of segments.
type beforeSegment struct {
	store.Store
	nth int
	do  func()
}

func (s *beforeSegment) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if strings.HasPrefix(ws[0].Key.Partition.Text(), "build|") {
		if s.nth--; s.nth == 0 {
			s.do()
		}
	}
	return s.Store.Write(ctx, ws)
}

// TestAbortBesideBuilder: a builder beside which its build is aborted, before any of its writes, leaves none of its rows.
func TestAbortBesideBuilder(t *testing.T) {
	for nth, aborted := 1, true; aborted; nth++ {
		f := open(t, load(t, films))
		f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
		f.write("PK", "USER#1", "SK", "RATING#1", "type", "Rating", "movie", "1", "stars", 3, "mood", "m")
		f.catchUp()
		before := f.rows(owntable.TableName)
		aborted = false
		b := f.builder("Movie")
		r := *f.runner()
		r.Store = &beforeSegment{f.Store, nth, func() {
			err := f.builder("Movie").Abort(t.Context())
			if aborted = !errors.Is(err, build.ErrNone); aborted { // it is shown by now
				f.ok(err)
			}
		}}
		r.Catalog = catalog.New(f.model, r.Store, f.now, catalog.Options{})
		b.Runner, b.Segments = &r, 1
		if _, err := b.Run(t.Context()); aborted && !errors.Is(err, runner.ErrLost) || !aborted && err != nil {
			t.Errorf("before write %d: %v", nth, err)
		}
		for name := range f.rows(owntable.TableName) {
			if _, was := before[name]; aborted && !was {
				t.Errorf("before write %d: %s is left", nth, name)
			}
		}
		if nth == 1 && !aborted {
			t.Error("the build is not aborted")
		}
	}
}

// TestAbort: an aborted build leaves none of its rows, and what was shown stays.
func TestAbort(t *testing.T) {
	f := open(t, load(t, films))
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
	f.write("PK", "USER#1", "SK", "RATING#1", "type", "Rating", "movie", "1", "stars", 3, "mood", "m")
	f.catchUp()
	before := len(f.rows(owntable.TableName))
	ctx, kill := context.WithCancel(t.Context())
	b := f.builder("Movie")
	b.Report = func(p build.Progress) {
		if p.Puts > 0 {
			kill()
		}
	}
	if _, err := b.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	f.write("PK", "USER#1", "SK", "RATING#2", "type", "Rating", "movie", "1", "stars", 5, "mood", "m")
	f.catchUp()
	if n := len(f.rows(owntable.TableName)); n < before+4 {
		t.Fatalf("the own table has %d rows, and had %d: nothing was built", n, before)
	}
	f.ok(f.builder("Movie").Abort(t.Context()))
	f.compare()
	if n := len(f.rows(owntable.TableName)); n != before {
		t.Errorf("the own table has %d rows, want %d", n, before)
	}
	if err := f.builder("Movie").Abort(t.Context()); !errors.Is(err, build.ErrNone) {
		t.Errorf("a second abort: %v", err)
	}
	f.build(owntable.BuildLive, "Movie")
	f.compare()
}
