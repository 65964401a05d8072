package build_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/events"
	"weir/internal/lambda"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// consumers read the stream while rows are built, until they have applied all that was written
// before done was closed. One stream is never read both ways.
var consumers = map[string]func(f *fixture, done <-chan struct{}){"processes": (*fixture).processes, "a function": (*fixture).invoking}

// TestManyWritten: rows that weir has not read are built while an application writes 200
// times a second, builders are killed ten times, two work side by side, one is late, and
// records come again. Afterwards a recount agrees. WEIR_TEST_MANY says how many rows instead
// of 500, and of 2,000 in the long form.
func TestManyWritten(t *testing.T) {
	for name, consume := range consumers {
		t.Run(name, func(t *testing.T) {
			f := open(t, load(t, films))
			f.manyWritten(consume, f.storedRows)
		})
	}
}

// TestManyWrittenOnDynamoDB is the same on DynamoDB Local. The recount reads the table by the
// SDK alone.
func TestManyWrittenOnDynamoDB(t *testing.T) {
	cfg := dynamodbtest.Config(t)
	for name, consume := range consumers {
		t.Run(name, func(t *testing.T) {
			cfg := cfg
			cfg.Credentials = dynamodbtest.Config(t).Credentials
			m := load(t, films)
			f := &fixture{TB: t, model: m, table: m.Tables[0].Name, older: true}
			tables, err := system.Tables([]*model.Model{m})
			f.ok(err)
			f.System, err = system.Over(t.Context(), dynamodbtest.Open(t, cfg, tables, dynamodb.Options{}), "", []*model.Model{m}, system.Options{Now: f.now, NoSearch: true})
			f.ok(err)
			f.manyWritten(consume, func() []map[string]string { return scanned(t, cfg, f.table) })
		})
	}
}

// scanned returns the rows of a table as the SDK reads them.
func scanned(t *testing.T, cfg aws.Config, table string) (out []map[string]string) {
	t.Helper()
	in := &sdk.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	pages := sdk.NewScanPaginator(sdk.NewFromConfig(cfg), in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			row := map[string]string{}
			for name, v := range item {
				switch v := v.(type) {
				case *types.AttributeValueMemberS:
					row[name] = v.Value
				case *types.AttributeValueMemberN:
					row[name] = v.Value
				}
			}
			out = append(out, row)
		}
	}
	return out
}

// storedRows returns the rows of the model's table.
func (f *fixture) storedRows() (out []map[string]string) {
	for _, row := range f.rows(f.table) {
		r := map[string]string{}
		for _, a := range row {
			r[a.Name] = a.Value.Text()
		}
		out = append(out, r)
	}
	return out
}

// application writes ratings and movies at random.
type application struct {
	*fixture
	d            *rand.Rand
	rows, movies int
	wrote        map[string]int // by what it did
}

func (a *application) rating(nr int) (key store.Key, row value.Item) {
	key = store.Key{Partition: value.OfString(fmt.Sprint("USER#", nr%1000)), Sort: value.OfString(fmt.Sprint("RATING#", nr))}
	return key, value.NewItem(
		runner.Attr("PK", key.Partition), runner.Attr("SK", key.Sort), runner.Attr("type", value.OfString("Rating")), runner.Attr("mood", value.OfString(fmt.Sprint("m", a.d.IntN(4)))),
		runner.Attr("movie", value.OfString(fmt.Sprint(a.d.IntN(a.movies)))), runner.Attr("stars", value.OfInt(int64(a.d.IntN(6)))))
}

func (a *application) put(nr int) store.Write {
	key, row := a.rating(nr)
	return store.Write{Ref: store.Ref{Table: a.table, Key: key}, Put: row}
}

// write does one thing: most often it edits a rating, which may move it to another movie.
func (a *application) act() {
	nr := a.d.IntN(a.rows)
	switch n := a.d.IntN(20); {
	case n < 11:
		a.wrote["edits and moves"]++
		a.one(a.put(nr))
	case n < 14:
		a.wrote["deletions"]++
		w := a.put(nr)
		w.Put, w.Delete = nil, true
		a.one(w)
	case n < 16:
		a.wrote["rows that are created again"]++
		w := a.put(nr)
		gone := w
		gone.Put, gone.Delete = nil, true
		a.one(gone)
		a.one(w)
	case n < 18:
		a.wrote["transactions"]++
		err := store.ErrConflict
		for errors.Is(err, store.ErrConflict) { // with another writer's
			err = a.Store.Transact(a.Context(), []store.Write{a.put(nr), a.put((nr + 1 + a.d.IntN(a.rows-1)) % a.rows)})
		}
		a.ok(err)
	default:
		a.wrote["movies that are created again"]++
		id := fmt.Sprint("MOVIE#", a.d.IntN(a.movies))
		a.fixture.write("PK", id, "SK", "METADATA")
		a.fixture.write("PK", id, "SK", "METADATA", "type", "Movie", "title", "again")
	}
}

// writers and pace are how many clients an application has, and how often it writes. It does not
// wait: what comes late because of slow answers is done at once.
const (
	writers = 8
	pace    = 5 * time.Millisecond
)

// until writes at the pace, until stop is closed.
func (a *application) until(stop <-chan struct{}) {
	var all sync.WaitGroup
	var tell sync.Mutex
	due, begun := make(chan struct{}), time.Now()
	for n := range writers {
		one := *a
		one.d, one.wrote = rand.New(rand.NewPCG(13, uint64(n))), map[string]int{}
		all.Go(func() {
			for range due {
				one.act()
			}
			tell.Lock()
			defer tell.Unlock()
			for what, n := range one.wrote {
				a.wrote[what] += n
			}
		})
	}
	for sent := time.Duration(0); !isClosed(stop); sent++ {
		time.Sleep(time.Until(begun.Add(sent * pace)))
		due <- struct{}{}
	}
	close(due)
	all.Wait()
}

func (a *application) one(w store.Write) {
	out, err := a.Store.Write(a.Context(), []store.Write{w})
	a.ok(err)
	a.ok(out[0].Err)
}

func (f *fixture) manyWritten(consume func(*fixture, <-chan struct{}), scan func() []map[string]string) {
	rows := soaktest.Count(500, 2000)
	if n, err := strconv.Atoi(os.Getenv("WEIR_TEST_MANY")); err == nil {
		rows = n
	}
	a := &application{fixture: f, d: rand.New(rand.NewPCG(11, 12)), rows: rows, movies: max(20, rows/50), wrote: map[string]int{}}
	for nr := 0; nr < rows; nr += 500 {
		var ws []store.Write
		for i := range min(500, rows-nr) {
			ws = append(ws, a.put(nr+i))
		}
		_, err := f.Store.Write(f.Context(), ws)
		f.ok(err)
	}
	for nr := range a.movies {
		f.write("PK", fmt.Sprint("MOVIE#", nr), "SK", "METADATA", "type", "Movie")
	}
	f.unread()
	f.unbuilt()
	f.announced("Movie")

	stop, done := make(chan struct{}), make(chan struct{})
	var all, readers sync.WaitGroup
	readers.Go(func() { consume(f, done) })
	all.Go(func() { a.until(stop) })

	late, awake := f.late()
	start, kills, lost := time.Now(), 0, 0
	var did build.Progress
	var tell sync.Mutex
	ended := func(b *build.Builder) {
		tell.Lock()
		defer tell.Unlock()
		p := b.Done()
		did.Rows, did.Puts, did.Targets, did.Units = did.Rows+p.Rows, did.Puts+p.Puts, did.Targets+p.Targets, did.Units+p.Units
	}
	for live, fought := false, 0; !live; {
		ctx, kill := context.WithCancel(f.Context())
		b := f.builder("Movie")
		at := int64(rows / 12)
		b.Report = func(p build.Progress) {
			if kills < 10 && p.Puts >= at {
				kill()
			}
		}
		var beside sync.WaitGroup
		if kills%3 == 1 && fought < kills { // two side by side, until one has lost: in earnest it would wait then
			fought = kills
			beside.Go(func() {
				other := f.builder("Movie")
				_, _ = other.Run(ctx)
				ended(other)
				kill()
			})
		}
		is, err := b.Run(ctx)
		kill()
		beside.Wait()
		ended(b)
		switch {
		case err == nil:
			live = is[0].State == owntable.BuildLive
		case errors.Is(err, context.Canceled):
			kills++
		case errors.Is(err, runner.ErrLost):
			lost++
		default:
			f.Fatal(err)
		}
	}
	took := time.Since(start)
	awake()
	if err := <-late; !errors.Is(err, runner.ErrLost) {
		f.Errorf("the late builder: %v", err)
	}
	time.Sleep(200 * time.Millisecond)
	close(stop)
	all.Wait()
	writes, wrote := 0, time.Since(start)
	for _, n := range a.wrote {
		writes += n
	}
	f.Logf("%d rows and %d movies, built in %v (%.0f rows/s) beside %.0f writes/s: %v", rows, a.movies, took.Round(time.Millisecond),
		float64(rows)/took.Seconds(), float64(writes)/wrote.Seconds(), a.wrote)
	f.Logf("%d builders were killed, %d lost to another; all read %d rows, put %d contributions, showed %d targets, %d write units", kills, lost, did.Rows, did.Puts, did.Targets, did.Units)
	start = time.Now()
	close(done)
	readers.Wait()
	f.Logf("consumers had applied everything %v later", time.Since(start).Round(time.Millisecond))
	f.recounted(scan())
	f.verified()
	f.clock.Add(25)
	start = time.Now()
	f.build(owntable.BuildVerified, "Movie")
	f.Logf("audited in %v", time.Since(start).Round(time.Millisecond))
	f.recounted(scan())
}

// late is a builder that stands still just before it puts something, until awake is called.
// done gets how it ended.
func (f *fixture) late() (done chan error, awake func()) {
	done = make(chan error, 1)
	reached, wait := make(chan struct{}), make(chan struct{})
	s := &paused{Store: f.Store, puts: ownPut("ledger|films#"), act: func() { close(reached); <-wait }}
	b := f.builder("Movie")
	b.Segments = 1
	b.Runner = &runner.Runner{Kinds: kinds.All(), Model: f.model, Store: s, Now: f.now, Alone: true, Catalog: catalog.New(f.model, s, f.now, catalog.Options{})}
	go func() {
		_, err := b.Run(f.Context())
		done <- err
	}()
	<-reached
	return done, func() { close(wait) }
}

// processes follow the stream. The second one delivers everything once more, and moves no
// checkpoint that the first one moved.
func (f *fixture) processes(done <-chan struct{}) {
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			follower := reader.Follower{Runner: f.runner(), Source: untrimmed{f.Store}}
			if err := follower.CatchUp(f.Context(), done); err != nil {
				f.Error(err)
			}
		})
	}
	both.Wait()
}

// invoking invokes a function with all that is new in the stream. Every
// third event comes again, whole or its second half. Once done is closed it writes last rows,
// until one has come out of each open shard: a shard has its records in order, so everything
// before them was applied.
func (f *fixture) invoking(done <-chan struct{}) {
	f.readByFunction()
	h := f.function(f.runner())
	at, ended, last := map[string]events.Position{}, map[string]bool{}, map[string]bool{}
	f.fromCheckpoints(at)
	for n := 0; ; {
		ending := isClosed(done)
		if ending {
			f.write("PK", fmt.Sprint("LAST#", len(last), rand.N(1<<30)), "SK", "LAST", "type", "Last")
		}
		shards, err := f.Store.Shards(f.Context(), f.table)
		f.ok(err)
		open := 0
		for _, s := range shards {
			if ended[s.ID] {
				continue
			}
			if s.Parent != "" && !ended[s.Parent] && known(shards, s.Parent) {
				open++
				continue
			}
			page, err := f.Store.Read(f.Context(), f.table, s.ID, at[s.ID], 100)
			f.ok(err)
			if len(page.Records) > 0 {
				records := f.asEvents(page.Records)
				f.applies(h, s.ID, records)
				if n++; n%3 == 0 {
					f.applies(h, s.ID, records[n%2*len(records)/2:])
				}
				at[s.ID] = page.Records[len(page.Records)-1].Position
			}
			for _, r := range page.Records {
				last[s.ID] = last[s.ID] || strings.HasPrefix(r.Keys.Get("PK").Text(), "LAST#")
			}
			if ended[s.ID] = page.End; !page.End && !last[s.ID] {
				open++
			}
		}
		if ending && open == 0 {
			return
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func known(shards []store.Shard, id string) bool {
	return slices.ContainsFunc(shards, func(s store.Shard) bool { return s.ID == id })
}

// fromCheckpoints reads how far the stream was overtaken.
func (f *fixture) fromCheckpoints(at map[string]events.Position) {
	f.Helper()
	shards, err := f.Store.Shards(f.Context(), f.table)
	f.ok(err)
	for _, s := range shards {
		row, err := f.runner().GetRow(f.Context(), owntable.Checkpoint(f.model.Name, f.table, s.ID).Ref)
		f.ok(err)
		is, err := owntable.DecodeCheckpoint(row)
		f.ok(err)
		at[s.ID] = is.At
	}
}

// applies invokes a function until it has applied records.
func (f *fixture) applies(h *lambda.Handler, shard string, records []json.RawMessage) {
	f.Helper()
	why := ""
	for range 100 {
		ok := false
		if ok, why = f.invokeFor(shard, h, records...); ok {
			return
		}
	}
	f.Errorf("%d records are not applied: %s", len(records), why)
}

// recounted fails the test for each movie that shows something else than its ratings say.
func (f *fixture) recounted(rows []map[string]string) {
	f.Helper()
	for _, d := range differing(rows) {
		f.Error(d)
	}
}

// differing compares what movies show with their ratings, without weir's code.
func differing(rows []map[string]string) (out []string) {
	type sums struct {
		rows, stars int
		moods       map[string]bool
	}
	want := map[string]*sums{}
	for _, row := range rows {
		if row["type"] != "Rating" {
			continue
		}
		s := want[row["movie"]]
		if s == nil {
			s = &sums{moods: map[string]bool{}}
			want[row["movie"]] = s
		}
		n, _ := strconv.Atoi(row["stars"])
		s.rows, s.stars, s.moods[row["mood"]] = s.rows+1, s.stars+n, true
	}
	movies := 0
	for _, row := range rows {
		if row["type"] != "Movie" {
			continue
		}
		movies++
		s := want[strings.TrimPrefix(row["PK"], "MOVIE#")]
		if s == nil {
			s = &sums{}
		}
		is := fmt.Sprint(row["rows"], " rows, ", row["stars"], " stars, ", row["moods"], " moods")
		if be := fmt.Sprint(s.rows, " rows, ", s.stars, " stars, ", len(s.moods), " moods"); is != be {
			out = append(out, row["PK"]+" shows "+is+", want "+be)
		}
	}
	if movies == 0 {
		out = append(out, "there are no movies")
	}
	return out
}
