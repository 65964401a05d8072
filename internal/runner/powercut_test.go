package runner_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/document"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/runner/runnertest"
	"weir/internal/search"
	searchembedded "weir/internal/search/embedded"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
	"weir/internal/verify"
)

// TestPowerCut cuts the power again and again while an application writes and both
// groups follow. Rows that were synced are there, whatever was lost took what came of
// it along, the index never has what the store lost, and each record counts once.
func TestPowerCut(t *testing.T) {
	seeds := uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := newPower(t, seed)
			defer p.index.Close()
			for range 16 {
				p.life()
			}
			t.Logf("%d writes were lost with %d cuts", p.lost, p.cuts)
			if p.lost == 0 {
				t.Error("no cut took anything")
			}
		})
	}
}

// power is a model on a disk that loses what was not synced. The index is another
// disk, which loses nothing.
type power struct {
	*testing.T
	ctx   context.Context
	rng   *rand.Rand
	model *model.Model
	disk  *vfs.MemFS
	index *searchembedded.Index
	store *embedded.Store

	titles map[string]string // of items, as they were when all was synced last
	since  map[string]bool   // items written since
	lost   int
	cuts   int
	made   int
}

func newPower(t *testing.T, seed uint64) *power {
	m, err := model.Load("wardrobe")
	must(t, err)
	p := &power{
		T: t, ctx: context.Background(), rng: rand.New(rand.NewPCG(seed, 0)), model: m, disk: vfs.NewCrashableMem(),
		titles: map[string]string{}, since: map[string]bool{},
	}
	var schemas []search.Schema
	for _, s := range m.Searches {
		schemas = append(schemas, search.Schema{Name: document.Index(m, s)})
	}
	p.index, err = searchembedded.Open("", schemas, searchembedded.Options{InMemory: true})
	must(t, err)
	return p
}

// life is from one power cut to the next: the store is opened, what it has is looked
// at, and some more is done.
func (p *power) life() {
	tables := []store.Table{owntable.Table()}
	for _, t := range p.model.AllTables() {
		st := t.Table
		st.Stream = true
		tables = append(tables, st)
	}
	var err error
	p.store, err = embedded.Open("store", tables, embedded.Options{
		FS: p.disk, MemTableBytes: 256 << 10, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	must(p, err)
	r := &runner.Runner{Kinds: kinds.All(), Model: p.model, Store: untrimmed{p.store}, Index: p.index, Now: time.Now}
	p.promised()
	f := &runner.Follower{Runner: r}
	rows, docs := f.Stepper(runner.GroupRows), f.Stepper(runner.GroupSearch)
	if p.cuts%3 == 0 {
		p.caughtUp(r, rows, docs)
	}
	for range 10 + p.rng.IntN(30) {
		switch u := p.rng.IntN(10); {
		case u < 5:
			p.write()
		case u < 8:
			p.step(rows)
		case u < 9:
			p.step(docs)
		case p.rng.IntN(3) == 0:
			p.sync()
		}
	}
	p.cut()
}

func (p *power) step(s *runner.Stepper) (n int, left bool) {
	n, left, err := s.Step(p.ctx)
	must(p, err)
	return n, left
}

// write has the application write some rows.
func (p *power) write() {
	w := &ingest.Writer{Model: p.model, Store: p.store}
	for range 1 + p.rng.IntN(4) {
		id := fmt.Sprint("i", p.rng.IntN(12))
		p.made++
		at := fmt.Sprintf("2026-01-01T00:00:00.%06dZ", p.made)
		c := ingest.Command{Op: ingest.Put, Entity: "Item", Item: item("itemId", id, "UserId", fmt.Sprint("u", p.rng.IntN(3)),
			"Name", fmt.Sprint("name", p.made), "Category", "c", "Season", "summer", "CreatedAt", at, "UpdatedAt", at)}
		switch p.rng.IntN(5) {
		case 0, 1:
			c = ingest.Command{Op: ingest.Put, Entity: "Share", Item: item("ItemId", id, "UserId", "u1", "SharedAt", at)}
		case 2:
			c = ingest.Command{Op: ingest.Delete, Entity: "Item", Item: item("itemId", id)}
		}
		must(p, w.Do(p.ctx, []ingest.Command{c})[0].Err)
		p.since[id] = true
	}
}

func item(pairs ...string) value.Item {
	var attrs []value.Attr
	for i := 0; i < len(pairs); i += 2 {
		attrs = append(attrs, value.Attr{Name: pairs[i], Value: value.OfString(pairs[i+1])})
	}
	return value.NewItem(attrs...)
}

// sync makes all of it a promise.
func (p *power) sync() {
	must(p, p.store.Sync(p.ctx))
	p.titles, p.since = p.names(), map[string]bool{}
}

// cut takes the disk as it would be now, with some of what was not synced.
func (p *power) cut() {
	before := p.records()
	disk := p.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 70, 95}[p.rng.IntN(4)], RNG: p.rng})
	must(p, p.store.Close())
	p.disk = disk
	p.lost += before
	p.cuts++
}

// promised holds the rows against what was synced, where nothing was written since.
func (p *power) promised() {
	p.lost -= p.records()
	names := p.names()
	for id, name := range p.titles {
		if !p.since[id] && names[id] != name {
			p.Errorf("cut %d: item %s was synced as %q and is %q", p.cuts, id, name, names[id])
		}
	}
	p.sync()
}

func (p *power) names() map[string]string {
	out := map[string]string{}
	p.each("WardrobeTable", func(row value.Item) {
		if row.Get("EntityType").Text() == "Item" {
			out[row.Get("PK").Text()[len("ITEM#"):]] = row.Get("Name").Text()
		}
	})
	return out
}

func (p *power) each(table string, do func(value.Item)) {
	for q := (store.Query{Table: table}); ; {
		page, err := p.store.Query(p.ctx, q)
		must(p, err)
		for _, row := range page.Rows {
			do(row)
		}
		if q.After = page.Next; q.After == nil {
			return
		}
	}
}

// records is how many records the streams have.
func (p *power) records() (n int) {
	for _, t := range p.model.AllTables() {
		shards, err := p.store.Shards(p.ctx, t.Name)
		must(p, err)
		for _, s := range shards {
			for after := (events.Position{}); ; {
				page, err := p.store.Read(p.ctx, t.Name, s.ID, after, 1<<20)
				must(p, err)
				if len(page.Records) == 0 {
					break
				}
				n += len(page.Records)
				after = page.Records[len(page.Records)-1].Position
			}
		}
	}
	return n
}

// caughtUp applies everything, and recounts.
func (p *power) caughtUp(r *runner.Runner, groups ...*runner.Stepper) {
	for quiet := false; !quiet; {
		quiet = true
		for _, s := range groups {
			if n, left := p.step(s); n > 0 || left {
				quiet = false
			}
		}
	}
	v := verify.Verify{Model: p.model, Store: p.store, Index: p.index}
	must(p, v.Run(p.ctx, func(d verify.Difference) { p.Errorf("cut %d: %+v", p.cuts, d) }))
	for _, group := range r.Groups() {
		n, err := runnertest.Counted(p.ctx, r, group)
		must(p, err)
		if sum := n.Applied + n.Skipped + n.Dead; sum != p.records() {
			p.Errorf("cut %d: group %s counted %d records, there are %d", p.cuts, group, sum, p.records())
		}
	}
}
