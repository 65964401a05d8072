package system_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/query"
	"weir/internal/reader"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/value"
)

// mute is a store in which a process cannot renew its lease while it is cut, and waits, at its next look at the catalog, for stalls.
type mute struct {
	store.Store
	cut    *atomic.Bool
	stalls *atomic.Pointer[stall]
}

// stall holds a process up until over is closed.
type stall struct{ begun, over chan struct{} }

func (m mute) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if slices.ContainsFunc(refs, func(r store.Ref) bool { return owntable.RowText(r) == owntable.RowText(owntable.Catalog("gallery")) }) {
		if is := m.stalls.Swap(nil); is != nil {
			close(is.begun)
			<-is.over
		}
	}
	return m.Store.Get(ctx, refs)
}

func (m mute) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if m.cut.Load() && slices.ContainsFunc(ws, func(w store.Write) bool {
		return owntable.RowText(w.Ref) == owntable.RowText(owntable.Lease("gallery"))
	}) {
		return nil, errors.New("the service does not answer")
	}
	return m.Store.Write(ctx, ws)
}

// process is one of several processes, with an index of its own.
type process struct {
	*system.System
	cut    atomic.Bool
	stalls atomic.Pointer[stall]
	held   *reader.Leased
	stop   func()
	err    chan error // what ended it
}

// begin starts a process as run does.
func begin(t *testing.T, db store.Store, dir string, m *model.Model) *process {
	t.Helper()
	p := &process{err: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := system.Over(t.Context(), mute{db, &p.cut, &p.stalls}, "", []*model.Model{m}, system.Options{Shared: true, SearchDir: dir, Log: log})
	failtest.On(t, err)
	p.System = s
	failtest.On(t, s.Start(t.Context()))
	part := s.Models[0]
	p.held = reader.NewLeased(part.Runner, reader.Options{
		Lease: time.Second, Poll: 20 * time.Millisecond, List: 50 * time.Millisecond, Log: log,
		Taken: func(ctx context.Context) error { return s.TakeIndexes(ctx, part) },
	})
	s.HoldIndexes(part, func() bool { return p.held.Fence() != 0 })
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	p.held.Start()
	all.Go(func() { p.err <- p.held.Apply(ctx) })
	all.Go(func() {
		for ctx.Err() == nil {
			if s.Reach(ctx, nil) == nil {
				_ = s.AwaitGone(ctx)
			}
		}
	})
	p.stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		p.held.Close()
		failtest.On(t, s.Close())
		if err := <-p.err; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(p.stop)
	return p
}

// finds returns the first answer that the process gives, which is a moment after it has begun to read at the earliest.
func (p *process) finds(t *testing.T) []string {
	t.Helper()
	for range 3000 {
		res, err := p.Models[0].Query.Run(t.Context(), "search-albums", map[string]string{"q": "sunset"}, query.Page{})
		if err == nil {
			var ids []string
			for _, item := range res.Items {
				ids = append(ids, item.Get("id").Text())
			}
			slices.Sort(ids)
			return ids
		}
		if !errors.Is(err, query.ErrBuilding) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no answer")
	return nil
}

// findsSoon waits until the process finds these albums: it applies what the streams have.
func (p *process) findsSoon(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for range 1000 {
		if got = p.finds(t); slices.Equal(got, want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("found %v, want %v", got, want)
}

// TestOwnIndex: of processes with indexes of their own, the one that reads answers searches, and no other. One that takes over gives no
// answer before its index has all rows, also if it had the index before, and what each leaves in weir's table does not grow.
func TestOwnIndex(t *testing.T) {
	one, _ := galleries(t)
	tables, err := system.Tables([]*model.Model{one})
	failtest.On(t, err)
	ownIndex(t, kept{embeddedStore(t, tables)}, one)
}

func TestOwnIndexOnServices(t *testing.T) {
	one, _ := galleries(t)
	tables, err := system.Tables([]*model.Model{one})
	failtest.On(t, err)
	db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	systemtest.Made(t, db, one)
	ownIndex(t, kept{db}, one)
}

func ownIndex(t *testing.T, db store.Store, m *model.Model) {
	dirs := []string{t.TempDir(), t.TempDir()}
	a := begin(t, db, dirs[0], m)
	for i := range 5 {
		putAlbum(t, a.System, fmt.Sprint("a", i), "sunset")
	}
	a.findsSoon(t, "a0", "a1", "a2", "a3", "a4")

	if _, err := system.Over(t.Context(), db, "", []*model.Model{m}, system.Options{Shared: true, SearchDir: dirs[0]}); !errors.Is(err, store.ErrOwned) {
		t.Errorf("two processes have one directory: %v", err)
	}
	none, err := system.Over(t.Context(), db, "", []*model.Model{m}, system.Options{Shared: true})
	failtest.On(t, err)
	f := reader.Follower{Runner: none.Models[0].Runner}
	done := make(chan struct{})
	close(done)
	putAlbum(t, a.System, "a9", "moonset")
	if err := f.CatchUp(t.Context(), done); !errors.Is(err, catalog.ErrRefused) {
		t.Errorf("a reader without the index is not refused: %v", err)
	}

	b := begin(t, db, dirs[1], m)
	time.Sleep(100 * time.Millisecond)
	unanswered(t, b.System, "while another process reads")
	if all := b.held.Stopped(); len(all) > 0 {
		t.Errorf("a process that stands by reports %v", all)
	}
	deleteAlbum(t, a.System, "a0")
	a.findsSoon(t, "a1", "a2", "a3", "a4")
	a.stop()
	putAlbum(t, b.System, "a5", "sunset")
	if got := b.finds(t); slices.Contains(got, "a0") || !slices.Contains(got, "a4") {
		t.Errorf("before its index has all rows it finds %v", got)
	}
	b.findsSoon(t, "a1", "a2", "a3", "a4", "a5")

	// Back in the first directory, whose index has missed changes.
	a = begin(t, db, dirs[0], m)
	deleteAlbum(t, b.System, "a1")
	b.findsSoon(t, "a2", "a3", "a4", "a5")
	b.stop()
	if got := a.finds(t); !slices.Equal(got, []string{"a2", "a3", "a4", "a5"}) {
		t.Errorf("its old index answers: %v", got)
	}
	verifyNothing(t, a.System)

	// A process that comes back before another has read goes on with its index.
	was := a.Index.Instance("gallery-albums")
	a.stop()
	a = begin(t, db, dirs[0], m)
	a.findsSoon(t, "a2", "a3", "a4", "a5")
	if a.Index.Instance("gallery-albums") != was {
		t.Error("an index that has missed nothing is made again")
	}

	// A process that loses its lease while it has a record refuses searches, stands by, and takes the lease again.
	b = begin(t, db, dirs[1], m)
	is := stall{make(chan struct{}), make(chan struct{})}
	a.stalls.Store(&is)
	putAlbum(t, a.System, "a7", "moonset")
	<-is.begun
	a.cut.Store(true)
	b.findsSoon(t, "a2", "a3", "a4", "a5")
	unanswered(t, a.System, "without the lease")
	close(is.over)
	putAlbum(t, b.System, "a6", "sunset")
	b.findsSoon(t, "a2", "a3", "a4", "a5", "a6")
	a.cut.Store(false)
	b.stop()
	if got := a.finds(t); !slices.Equal(got, []string{"a2", "a3", "a4", "a5", "a6"}) {
		t.Errorf("its index of before answers: %v", got)
	}
	verifyNothing(t, a.System)

	for range soaktest.Count(2, 6) { // directories that no process has again
		b = begin(t, db, t.TempDir(), m)
		a.stop()
		b.findsSoon(t, "a2", "a3", "a4", "a5", "a6")
		a = b
	}
	n := 0
	for _, err := range store.EachRow(t.Context(), db, owntable.RowsOf(owntable.Generations("gallery"))) {
		failtest.On(t, err)
		n++
	}
	if n > 2 {
		t.Errorf("%d search generations are left", n)
	}
}
