package build_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/internal/build"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// shared has five builds on one table: two of entities, one of a set, copies that follow a value, and copies of these, which a
// sixth one counts.
const shared = `model: shared
tables:
  shared: {key: [PK, SK]}
entities:
  Movie: {where: {type: Movie}, key: {PK: "MOVIE#{id}", SK: METADATA}, attributes: {title: string}}
  User: {where: {type: User}, key: {PK: "USER#{user}", SK: METADATA}}
  Rating:
    where: {type: Rating}
    key: {PK: "USER#{user}", SK: "RATING#{id}"}
    attributes: {stars: number, mood: string}
  Moods: {key: {PK: "MOODS#{id}", SK: "M[#{leaf}]"}}
  Card: {where: {type: Card}, key: {PK: "A#{user}", SK: "CARD#{id}"}, attributes: {stars: number, title: string}}
  Copy: {where: {type: Copy}, key: {PK: "A#{user}", SK: "COPY#{id}"}, attributes: {title: string}}
  Reader: {where: {type: Reader}, key: {PK: "READER#{user}", SK: METADATA}}
derive:
  Movie.ratings: {count: Rating}
  User.stars: {sum: Rating.stars}
  Moods.moods: {set: Rating.mood, to: {id: id}}
  Card: {row: Rating, set: {user: user, id: id, stars: stars, title: {follow: Movie.title, by: {id: id}}}}
  Copy: {row: Card, set: {user: user, id: id, title: title}}
  Reader.copies: {count: Copy}
`

// counts is that without the copies and the set.
var counts, _, _ = strings.Cut(shared, "  Moods.moods: {set")

// scans is a store that counts the rows that scans read, by table.
type scans struct {
	store.Store
	mu   sync.Mutex
	rows map[string]int
}

func (s *scans) Query(ctx context.Context, q store.Query) (store.Page, error) {
	page, err := s.Store.Query(ctx, q)
	if q.Segments > 0 {
		s.mu.Lock()
		s.rows[q.Table] += len(page.Rows)
		s.mu.Unlock()
	}
	return page, err
}

// scanned returns a builder of all, and a store that counts what its scans read.
func (f *fixture) scanned() (*build.Builder, *scans) {
	s := &scans{Store: f.Store, rows: map[string]int{}}
	b := f.builder(allNames(f.model)...)
	r := *b.Runner
	r.Store, b.Runner, b.Again = s, &r, false
	return b, s
}

// sharedRows writes the rows of a model like shared, which weir does not read.
func (f *fixture) sharedRows(movies, users int) {
	for m := range movies {
		f.write("PK", fmt.Sprint("MOVIE#", m), "SK", "METADATA", "type", "Movie", "title", fmt.Sprint("title ", m))
	}
	for u := range users {
		f.write("PK", fmt.Sprint("USER#", u), "SK", "METADATA", "type", "User")
		f.write("PK", fmt.Sprint("READER#", u), "SK", "METADATA", "type", "Reader")
		for m := range movies {
			f.write("PK", fmt.Sprint("USER#", u), "SK", fmt.Sprint("RATING#", m), "type", "Rating", "stars", u%6, "mood", fmt.Sprint("m", u%4), "more", strings.Repeat("x", 500))
		}
	}
	f.unread()
	f.unbuilt()
}

// TestOneScan: builds share the scans of a table, so it is read as often as there are rounds, and what is made of rows that the
// build makes is there when the build is live: without a reader of the stream, copies of copies have the values that those follow.
func TestOneScan(t *testing.T) {
	f := open(t, load(t, shared))
	f.sharedRows(10, 10)
	b, read := f.scanned()
	_, err := b.Run(t.Context())
	f.ok(err)
	copies := 0
	for _, row := range f.rows(f.table) {
		pk, sk := row.Get("PK").Text(), row.Get("SK").Text()
		if nr, is := strings.CutPrefix(sk, "COPY#"); is {
			if copies++; row.Get("title").Text() != "title "+nr {
				t.Errorf("the copy %s %s has the title %s", pk, sk, row.Get("title").Text())
			}
		}
		if strings.HasPrefix(pk, "READER#") && row.Get("copies").Text() != "10" {
			t.Errorf("%s has %s copies", pk, row.Get("copies").Text())
		}
	}
	if copies != 100 {
		t.Errorf("%d copies of copies, want 100", copies)
	}
	rows := len(f.rows(f.table))
	t.Logf("a build reads %d rows of the table, which has %d afterwards", read.rows[f.table], rows)
	if most := 6 * rows; read.rows[f.table] > most { // values and rows, twice, and what counts copies of copies
		t.Errorf("a build reads %d rows of the table, at most %d", read.rows[f.table], most)
	}
	f.clock.Add(25)
	b, read = f.scanned()
	_, err = b.Run(t.Context())
	f.ok(err)
	t.Logf("an audit reads %d rows of the table", read.rows[f.table])
	if most := 6 * rows; read.rows[f.table] > most {
		t.Errorf("an audit reads %d rows of the table, at most %d", read.rows[f.table], most)
	}
	f.verified()
}

// TestSharedScanGoesOn: builds whose builder was killed go on where each was, and share the rest of the scan again.
func TestSharedScanGoesOn(t *testing.T) {
	f := open(t, load(t, counts))
	f.sharedRows(3, 3000)
	ctx, kill := context.WithCancel(t.Context())
	b, _ := f.scanned()
	b.Names, b.Segments = []string{"Movie", "User"}, 1
	b.Report = func(p build.Progress) {
		if p.Puts > 7000 { // one has saved how far it is
			kill()
		}
	}
	if _, err := b.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	cursors := map[string]bool{}
	for _, row := range f.rows(owntable.TableName) {
		if strings.HasPrefix(row.Get(owntable.Partition).Text(), "build|") {
			is, err := owntable.DecodeSegment(row)
			f.ok(err)
			cursors[fmt.Sprint(is.Cursor)] = true
		}
	}
	if len(cursors) != 2 {
		t.Fatalf("the builds are at %d places, want 2: %v", len(cursors), cursors)
	}
	b, read := f.scanned()
	b.Names, b.Segments = []string{"Movie", "User"}, 1
	is, err := b.Run(t.Context())
	f.ok(err)
	if rows := len(f.rows(f.table)); read.rows[f.table] > 2*rows+1000 { // one scan that fills, and one that shows
		t.Errorf("%d rows were read of %d: %+v", read.rows[f.table], rows, is)
	}
	f.verified()
}

// TestOneBuildEndsAlone: a build that is too old, or that another builder takes over, ends alone; the others are built.
func TestOneBuildEndsAlone(t *testing.T) {
	for name, want := range map[string]error{"too old": build.ErrOld, "taken over": runner.ErrLost, "aborted": runner.ErrLost} {
		t.Run(name, func(t *testing.T) {
			f := open(t, load(t, counts))
			f.sharedRows(3, 3)
			f.announced("Movie", "User")
			b := f.builder("Movie", "User")
			if b.Again, b.Segments = false, 1; want == build.ErrOld {
				f.build(owntable.BuildLive, "Movie")
				f.clock.Add(25)
				f.build(owntable.BuildVerified, "Movie")
				f.clock.Add(26 * 24)
				b.Again = true
			}
			acts := map[string]func(){
				"too old":    func() {},
				"taken over": func() { f.takeSegments("User") },
				"aborted":    func() { f.ok(f.builder("User").Abort(t.Context())) },
			}
			b.Runner = f.beside(acts[name])
			is, err := b.Run(t.Context())
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			var built []string
			for _, s := range is {
				if s.State == owntable.BuildLive {
					built = append(built, s.Entity)
				}
			}
			if !slices.Equal(built, []string{"Movie"}) {
				t.Errorf("built: %v", built)
			}
		})
	}
}

// takeSegments takes all segments of a build, as another builder does.
func (f *fixture) takeSegments(entity string) {
	f.Helper()
	row, err := f.runner().Catalog.Row(f.Context())
	f.ok(err)
	for _, is := range row.Builds.Counting() {
		if is.Entity != entity {
			continue
		}
		partition, prefix := owntable.Segments(f.model.Name, is.Generation)
		for _, row := range f.rows(owntable.TableName) {
			at := owntable.Ref(row.Get(owntable.Partition).Text(), row.Get(owntable.Sort).Text())
			if row.Get(owntable.Partition).Text() != partition || !strings.HasPrefix(at.Key.Sort.Text(), prefix) {
				continue
			}
			s, err := owntable.DecodeSegment(row)
			f.ok(err)
			_, w := s.Take(at, f.now())
			_, err = f.Store.Write(f.Context(), []store.Write{w})
			f.ok(err)
		}
	}
}

// TestBuildOfAnEarlierProgram: of an audit that an earlier program, or one with other tables, has begun nothing is taken for done,
// and its builder puts nothing any more.
func TestBuildOfAnEarlierProgram(t *testing.T) {
	t.Run("other passes", func(t *testing.T) { auditOfAnother(t, "1", "rows again", "marks", "show again") })
	t.Run("other tables", func(t *testing.T) { auditOfAnother(t, "1 others", "audit") })
}

func auditOfAnother(t *testing.T, plan string, passes ...string) {
	f := open(t, load(t, films))
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie")
	f.rate(1, 3, "m")
	f.catchUp()
	f.build(owntable.BuildLive, "Movie")
	row, err := f.runner().Catalog.Row(t.Context())
	f.ok(err)
	var segments []store.Ref
	for _, pass := range passes {
		at := owntable.Segment(f.model.Name, row.Builds[0].Generation, pass, 0)
		_, w := owntable.SegmentRow{Plan: plan, Over: true}.Take(at, f.now())
		_, err := f.Store.Write(t.Context(), []store.Write{w})
		f.ok(err)
		segments = append(segments, at)
	}
	movie := store.Ref{Table: f.table, Key: store.Key{}}
	for _, row := range f.rows(f.table) {
		if row.Get("type").Text() == "Movie" {
			movie.Key, _ = f.model.Tables[0].KeyOf(row)
		}
	}
	for _, row := range f.rows(owntable.TableName) { // what the audit has to put right
		if strings.HasPrefix(row.Get(owntable.Partition).Text(), "mark|films#") {
			_, err := f.Store.Write(t.Context(), []store.Write{{Ref: owntable.Ref(row.Get(owntable.Partition).Text(), row.Get(owntable.Sort).Text()), Delete: true}})
			f.ok(err)
		}
	}
	f.clock.Add(25)
	f.build(owntable.BuildVerified, "Movie")
	rows, err := f.Store.Get(t.Context(), segments)
	f.ok(err)
	for i, row := range rows {
		if is, err := owntable.DecodeSegment(row); err != nil || is.Owner != 2 {
			t.Errorf("segment %d was taken %d times, %v", i, is.Owner, err)
		}
	}
	rows, err = f.Store.Get(t.Context(), []store.Ref{movie})
	f.ok(err)
	if n := rows[0].Get("rows").Text(); n != "2" { // the audit has read the row, and found no mark
		t.Errorf("the movie has %s rows", n)
	}
}

// TestKilledBeforeFollowersAreCompared: a builder is killed between the write of a copy and the comparison with the value that it
// follows, and the value changes meanwhile. When the build is live, the copy has the new value.
func TestKilledBeforeFollowersAreCompared(t *testing.T) {
	f := open(t, load(t, shared))
	f.sharedRows(1, 1)
	f.announced(allNames(f.model)...)
	ctx, kill := context.WithCancel(t.Context())
	b := f.builder(model.BuildInPlace)
	r := *b.Runner
	r.Store = &lastWrite{Store: f.Store, of: func(w *store.Write) bool { return strings.HasPrefix(w.Key.Sort.Text(), "CARD#") }, before: func() {
		f.write("PK", "MOVIE#0", "SK", "METADATA", "type", "Movie", "title", "changed")
		f.catchUp() // the copy is not there yet
		kill()
	}}
	b.Runner, b.Again = &r, false
	if _, err := b.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	f.build(owntable.BuildLive, allNames(f.model)...)
	for _, row := range f.rows(f.table) {
		if title := row.Get("title"); strings.HasPrefix(row.Get("SK").Text(), "C") && title.Text() != "changed" {
			t.Errorf("%s has the title %s", row.Get("SK").Text(), title.Text())
		}
	}
}

// lastWrite is a store whose process is killed when it has written a row.
type lastWrite struct {
	store.Store
	of     func(*store.Write) bool
	before func()
	killed bool
}

func (l *lastWrite) Transact(ctx context.Context, ws []store.Write) error {
	if l.killed || !slices.ContainsFunc(ws, func(w store.Write) bool { return !w.Check && l.of(&w) }) {
		return l.Store.Transact(ctx, ws)
	}
	l.killed = true
	l.before()
	if err := l.Store.Transact(context.WithoutCancel(ctx), ws); err != nil {
		return err
	}
	return ctx.Err()
}

// most is a store that knows the most rows that one call has read.
type most struct {
	store.Store
	mu sync.Mutex
	n  int
}

func (m *most) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	m.mu.Lock()
	m.n = max(m.n, len(refs))
	m.mu.Unlock()
	return m.Store.Get(ctx, refs)
}

// TestManyFollowersOfOneValue: what a builder holds of the followers of one value does not grow with them, in a build and in a
// dry run.
func TestManyFollowersOfOneValue(t *testing.T) {
	f := open(t, load(t, shared))
	f.sharedRows(1, 3000)
	f.build(owntable.BuildLive, allNames(f.model)...)
	for name, row := range f.rows(owntable.TableName) {
		if strings.Contains(name, "follow|shared|Movie.title") && !owntable.IsEntry(row.Get(owntable.Sort).Text()) {
			at := owntable.Ref(row.Get(owntable.Partition).Text(), row.Get(owntable.Sort).Text())
			_, err := f.Store.Write(t.Context(), []store.Write{{Ref: at, Delete: true}})
			f.ok(err)
		}
	}
	for _, dry := range []bool{true, false} {
		m := &most{Store: f.Store}
		b := f.builder(model.BuildInPlace)
		r := *b.Runner
		r.Store, b.Runner, b.Asked = m, &r, f.now()
		var err error
		if dry {
			_, err = b.Estimate(t.Context())
		} else {
			_, err = b.Run(t.Context())
		}
		f.ok(err)
		if m.n > 1000 {
			t.Errorf("dry run %v: %d rows are read at once", dry, m.n)
		}
	}
}
