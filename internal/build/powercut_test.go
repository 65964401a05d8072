package build_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/system"
)

// errCut ends whatever calls the store when the power fails.
var errCut = errors.New("the power fails")

// failing is a store whose power fails before its nth change; no change is synced unless the
// caller does that.
type failing struct {
	store.Store
	mu   sync.Mutex // segments of a build write side by side
	left int        // changes until then; negative for ever
}

func (s *failing) fails() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return true
	}
	s.left--
	return false
}

func (s *failing) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if s.fails() {
		return nil, errCut
	}
	return s.Store.Write(ctx, ws)
}

func (s *failing) Transact(ctx context.Context, ws []store.Write) error {
	if s.fails() {
		return errCut
	}
	return s.Store.Transact(ctx, ws)
}

// powered is a fixture on a disk that loses what was not synced.
type powered struct {
	*fixture
	rng   *rand.Rand
	disk  *vfs.MemFS
	power *failing
	back  map[string]int // by what a cut took back
}

// on opens the store on a disk. Changes are left until the power fails.
func (p *powered) on(disk *vfs.MemFS, left int) {
	p.Helper()
	tables, err := system.Tables([]*model.Model{p.model})
	p.ok(err)
	db, err := embedded.Open("data", tables, embedded.Options{FS: disk, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	p.ok(err)
	p.disk, p.power = disk, &failing{Store: db, left: left}
	p.System, err = system.Over(p.Context(), p.power, "", []*model.Model{p.model}, system.Options{Now: p.now, NoSearch: true})
	p.ok(err)
}

// cut lets the power fail, and some of what was not synced stay. First it looks at what there is
// then, on a copy of the disk: everything must become right from there.
func (p *powered) cut() {
	p.Helper()
	before := p.state()
	disk := p.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 70, 95}[p.rng.IntN(4)], RNG: p.rng})
	p.ok(p.Close())
	p.on(disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: p.rng}), -1)
	if after := p.state(); after != before {
		p.back[fmt.Sprintf("%s to %s", before, after)]++
	}
	p.ends()
	p.ok(p.Close())
	p.on(disk, 10+p.rng.IntN(60))
}

// state is the state of the last build.
func (p *powered) state() string {
	p.Helper()
	row, err := p.runner().Catalog.Row(p.Context())
	p.ok(err)
	state := "none"
	for _, b := range row.Builds.Counting() {
		state = string(b.State)
	}
	return state
}

// ends builds to the end and compares.
func (p *powered) ends() {
	p.Helper()
	if p.state() == "none" {
		p.unbuilt()
	}
	b := p.builder("Movie")
	b.Again = false
	_, err := b.Run(p.Context())
	p.ok(err)
	p.catchUp()
	if got := p.state(); got != string(owntable.BuildLive) && got != string(owntable.BuildVerified) {
		p.Errorf("a builder without hindrance leaves a build that is %s", got)
	}
	p.recounted(p.storedRows())
}

// works does one thing, until the power fails.
func (p *powered) works() error {
	switch n := p.rng.IntN(10); {
	case n < 4:
		nr := p.rng.IntN(120)
		w := (&application{fixture: p.fixture, d: p.rng, rows: 120, movies: 5}).put(nr)
		if p.rng.IntN(4) == 0 {
			w.Put, w.Delete = nil, true
		}
		_, err := p.power.Write(p.Context(), []store.Write{w})
		return err
	case n < 5:
		return p.Store.Sync(p.Context())
	case n < 8:
		done := make(chan struct{})
		close(done)
		follower := runner.Follower{Runner: p.runner(), Source: untrimmed{p.Store}, Prompt: true}
		return follower.CatchUp(p.Context(), done)
	}
	b := p.builder("Movie")
	b.Again, b.Segments = false, 1+p.rng.IntN(3)
	_, err := b.Run(p.Context())
	return err
}

// TestPowerCut: whatever of a build a power cut takes back, it takes back together with all that
// was written later, marks, ledgers, positions and what rows show. So it is right from there,
// also after the audit.
func TestPowerCut(t *testing.T) {
	back := map[string]int{}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := &powered{
				fixture: &fixture{TB: t, model: load(t, films), older: true}, rng: rand.New(rand.NewPCG(seed, 17)), back: back,
			}
			p.table = p.model.Tables[0].Name
			p.on(vfs.NewCrashableMem(), -1)
			a := application{fixture: p.fixture, d: p.rng, rows: 120, movies: 5}
			for nr := range a.movies {
				p.write("PK", fmt.Sprint("MOVIE#", nr), "SK", "METADATA", "type", "Movie")
			}
			for nr := range a.rows {
				a.one(a.put(nr))
			}
			p.unread()
			p.unbuilt()
			p.announced("Movie")
			p.ok(p.Store.Sync(t.Context()))
			p.power.left = 10 + p.rng.IntN(60)
			for cuts := 0; cuts < 12; {
				err := p.works()
				if errors.Is(err, errCut) {
					p.cut()
					cuts++
				} else {
					p.ok(err)
				}
				if cuts == 6 {
					p.clock.Store(25) // the audit is due
				}
			}
			p.power.left = -1
			p.ends()
			p.verified()
			p.ok(p.Close())
		})
	}
	t.Log("taken back:", back)
	if len(back) == 0 {
		t.Error("no cut took back the state of a build")
	}
}
