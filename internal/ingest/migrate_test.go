package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/scratch"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// moveWorld is a model's tables in one of the stores.
type moveWorld struct {
	testing.TB
	model *model.Model
	store store.Store
}

func tables(t *testing.T, name string) (*model.Model, []store.Table) {
	m, err := model.Load(name)
	failtest.On(t, err)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(t, err)
	return m, tables
}

func onEmbedded(t *testing.T, name string, do func(*moveWorld)) {
	m, tables := tables(t, name)
	db, err := embedded.Open("store", tables, embedded.Options{InMemory: true, Shards: 2})
	failtest.On(t, err)
	defer db.Close()
	do(&moveWorld{t, m, db})
}

func onDynamoDB(t *testing.T, name string, do func(*moveWorld)) {
	m, tables := tables(t, name)
	do(&moveWorld{t, m, dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})})
}

// row is a row from pairs of name and value; a nil takes the attribute away.
func row(pairs ...any) value.Item {
	var attrs []value.Attr
	for i := 0; i < len(pairs); i += 2 {
		a := value.Attr{Name: pairs[i].(string)}
		switch v := pairs[i+1].(type) {
		case string:
			a.Value = value.OfString(v)
		case int:
			a.Value = value.OfInt(int64(v))
		case bool:
			a.Value = value.OfBool(v)
		}
		attrs = append(attrs, a)
	}
	return value.NewItem(attrs...)
}

func (w *moveWorld) ref(table string, row value.Item) store.Ref {
	key, ok := w.table(table).KeyOf(row)
	if !ok {
		w.Fatalf("no key of %s", table)
	}
	return store.Ref{Table: table, Key: key}
}

func (w *moveWorld) write(ws ...store.Write) {
	out, err := w.store.Write(context.Background(), ws)
	failtest.On(w, err)
	for _, o := range out {
		if o.Err != nil && !errors.Is(o.Err, store.ErrCondition) {
			w.Fatal(o.Err)
		}
	}
}

func (w *moveWorld) put(table string, it value.Item) {
	w.write(store.Write{Ref: w.ref(table, it), Put: it})
}

// set changes a row if it exists, as an application does that knows its rows.
func (w *moveWorld) set(table string, key value.Item, name string, v value.Value) {
	t := w.table(table)
	w.write(store.Write{
		Ref: w.ref(table, key), Ops: []store.Op{{Kind: store.Set, Attr: name, Value: v}},
		If: store.Cond{{{Attr: t.Key.Partition.Name, Is: store.Exists}}},
	})
}

func (w *moveWorld) delete(table string, key value.Item) {
	w.write(store.Write{Ref: w.ref(table, key), Delete: true})
}

func (w *moveWorld) get(table string, key value.Item) value.Item {
	rows, err := w.store.Get(context.Background(), []store.Ref{w.ref(table, key)})
	failtest.On(w, err)
	return rows[0]
}

func (w *moveWorld) scan(table string) (rows []value.Item) {
	for row, err := range store.EachRow(context.Background(), w.store, store.Query{Table: table}) {
		failtest.On(w, err)
		rows = append(rows, row)
	}
	return rows
}

// migrate scans until the scan comes through.
func (w *moveWorld) migrate(db store.Store) ingest.Counts {
	s := ingest.Scan{Mover: &ingest.Mover{Model: w.model, Store: db}, Migration: w.model.Migration("v1"), Rows: 5}
	for {
		counts, err := s.Run(context.Background())
		if err == nil {
			return counts
		}
		if !errors.Is(err, errBroken) {
			w.Fatal(err)
		}
	}
}

// follow follows the streams while do runs, and until nothing is left.
func (w *moveWorld) follow(do func()) {
	done := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		f := reader.Follower{Runner: &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: w.store, Now: time.Now, Mover: &ingest.Mover{Model: w.model, Store: w.store}}}
		failed <- f.CatchUp(context.Background(), done)
	}()
	do()
	close(done)
	failtest.On(w, <-failed)
	v := scratch.Verify{Model: w.model, Store: w.store, InMemory: true}
	failtest.On(w, v.Run(context.Background(), func(d scratch.Difference) { w.Errorf("differs: %+v", d) }))
}

var errBroken = errors.New("the connection broke")

// shaky fails now and then: before a write, or after it, so that the caller does not
// learn that the write happened.
type shaky struct {
	store.Store
	mu  sync.Mutex
	rng *rand.Rand
}

func (s *shaky) chance() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(12)
}

func (s *shaky) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	switch s.chance() {
	case 0:
		return nil, errBroken
	case 1:
		_, _ = s.Store.Write(ctx, ws)
		return nil, errBroken
	}
	return s.Store.Write(ctx, ws)
}

func (s *shaky) Transact(ctx context.Context, ws []store.Write) error {
	switch s.chance() {
	case 0:
		return errBroken
	case 1:
		_ = s.Store.Transact(ctx, ws)
		return errBroken
	}
	return s.Store.Transact(ctx, ws)
}

// TestLiveTable: while a shaky scan goes over a table and the projector follows,
// applications of both forms write. At the end each old row has a row as it is, but
// where an application of the new form changed or removed that.
func TestLiveTable(t *testing.T)           { onEmbedded(t, "watchlists", liveTable) }
func TestLiveTableOnDynamoDB(t *testing.T) { onDynamoDB(t, "watchlists", liveTable) }

func liveTable(w *moveWorld) {
	const rows = 40
	rng := rand.New(rand.NewPCG(1, 2))
	old := func(i, rating int) value.Item {
		return row("id", fmt.Sprint(i), "entityType", "RATING", "userId", fmt.Sprintf("u%d", i), "contentType", "MOVIE", "contentId", "m",
			"rating", rating, "ratedAt", "2025-01-01T00:00:00Z")
	}
	key := func(i int) value.Item { return row("PK", fmt.Sprintf("USER#u%d", i), "SK", "RATING#MOVIE#m") }
	w.put("worthwatch", row("PK", "MOVIE#m", "SK", "METADATA", "entityType", "MOVIE", "movieId", "m", "title", "Laura",
		"createdAt", "2025-01-01T00:00:00Z", "updatedAt", "2025-01-01T00:00:00Z"))
	for i := range rows {
		w.put("worthwatch-v1", old(i, i))
	}
	mine := map[int]string{} // what the new application did last
	oldRows := map[int]bool{}
	for i := range rows {
		oldRows[i] = true
	}
	w.follow(func() {
		var wg sync.WaitGroup
		wg.Go(func() { w.migrate(&shaky{Store: w.store, rng: rand.New(rand.NewPCG(3, 4))}) })
		for range 200 {
			i := rng.IntN(rows)
			switch k := rng.IntN(10); {
			case k < 4 && oldRows[i]:
				w.set("worthwatch-v1", row("id", fmt.Sprint(i)), "rating", value.OfInt(int64(100+rng.IntN(100))))
			case k < 5:
				w.delete("worthwatch-v1", row("id", fmt.Sprint(i)))
				oldRows[i] = false
			case k < 7 && !oldRows[i]:
				w.put("worthwatch-v1", old(i, 200+rng.IntN(100)))
				oldRows[i] = true
			case k < 8 && w.get("worthwatch", key(i)) != nil && mine[i] == "":
				// It may go with its old row at this moment; then there is nothing to change.
				w.set("worthwatch", key(i), "rating", value.OfInt(-1))
				if now := w.get("worthwatch", key(i)); now != nil && now.Get("rating").Sign() < 0 {
					mine[i] = "changed"
				}
			}
		}
		wg.Wait()
	})
	for i := range rows {
		have, from := w.get("worthwatch", key(i)), w.get("worthwatch-v1", row("id", fmt.Sprint(i)))
		switch {
		case mine[i] == "changed":
			if have.Get("rating").Sign() >= 0 {
				w.Errorf("%d: the application's rating is lost: %v, of %v", i, have, from)
			}
		case (have == nil) != (from == nil):
			w.Errorf("%d: %v of %v", i, have, from)
		case !value.Equal(have.Get("rating"), from.Get("rating")):
			w.Errorf("%d: rating %v of %v", i, have.Get("rating"), from.Get("rating"))
		}
	}
	if n := len(w.scan("worthwatch")); n > rows+1 {
		w.Errorf("%d rows of %d", n, rows+1)
	}
}

// TestLiveInPlace: the same for rows that become others at their own key. Each
// picture counts once, all along.
func TestLiveInPlace(t *testing.T)           { onEmbedded(t, "gallery", liveInPlace) }
func TestLiveInPlaceOnDynamoDB(t *testing.T) { onDynamoDB(t, "gallery", liveInPlace) }

func liveInPlace(w *moveWorld) {
	const rows = 30
	rng := rand.New(rand.NewPCG(5, 6))
	key := func(i int) value.Item { return row("PK", "ALBUM#a", "SK", fmt.Sprintf("MEDIA#%d", i)) }
	old := func(i int, status string) value.Item {
		return key(i).With(row("filename", fmt.Sprintf("%d.jpg", i), "albumId", "a", "status", status, "createdAt", "2025-01-01T00:00:00Z")...)
	}
	w.put("gallery", row("PK", "ALBUM#a", "SK", "METADATA", "EntityType", "Album", "id", "a", "title", "Sea", "isPublic", "true", "createdAt", "2025-01-01T00:00:00Z"))
	for i := range rows {
		w.put("gallery", old(i, "new"))
	}
	last := map[int]string{}
	mine := map[int]bool{}
	w.follow(func() {
		var wg sync.WaitGroup
		wg.Go(func() { w.migrate(&shaky{Store: w.store, rng: rand.New(rand.NewPCG(7, 8))}) })
		for n := range 150 {
			i, status := rng.IntN(rows), fmt.Sprintf("s%d", n)
			media := row("PK", fmt.Sprintf("MEDIA#%d", i), "SK", "METADATA")
			switch k := rng.IntN(6); {
			case k < 3: // an old application, which knows the row by its key
				w.set("gallery", key(i), "status", value.OfString(status))
				last[i] = status
			case k == 3:
				w.put("gallery", old(i, status))
				last[i] = status
			case w.get("gallery", media) != nil:
				w.set("gallery", media, "status", value.OfString("mine"))
				mine[i] = true
			}
		}
		wg.Wait()
	})
	for i := range rows {
		media := w.get("gallery", row("PK", fmt.Sprintf("MEDIA#%d", i), "SK", "METADATA"))
		link := w.get("gallery", key(i))
		want := last[i]
		if want == "" {
			want = "new"
		}
		if mine[i] {
			want = "mine"
		}
		if media.Get("status").Text() != want || media.Get("filename").Text() != fmt.Sprintf("%d.jpg", i) {
			w.Errorf("%d: %v, status should be %s", i, media, want)
		}
		if link.Get("EntityType").Text() != "AlbumMedia" || link.Has("status") || link.Has("filename") {
			w.Errorf("%d: %v", i, link)
		}
	}
	if n := w.get("gallery", row("PK", "ALBUM#a", "SK", "METADATA")).Get("mediaCount"); !value.Equal(n, value.OfInt(rows)) {
		w.Errorf("mediaCount %v, not %d", n, rows)
	}
}

// TestMarksStayInside: no reader of a row is shown what a migration keeps on it.
func TestMarksStayInside(t *testing.T) {
	if !owntable.IsOurs(owntable.Moved) {
		t.Error("the mark is shown")
	}
}

func (w *moveWorld) table(name string) *model.Table {
	t := w.model.Table(name)
	if t == nil {
		w.Fatalf("no table %s", name)
	}
	return t
}
