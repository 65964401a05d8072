package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/runner/runnertest"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

const shelf = `model: shelf
tables:
  shelf: {key: [PK, SK]}
entities:
  Box: {where: {type: Box}, key: {PK: "BOX#{id}", SK: METADATA}, attributes: {title: string}}
  Thing: {where: {type: Thing}, key: {PK: "BOX#{box}", SK: "THING#{n}"}, attributes: {name: string}}
derive:
  Box.things: {count: Thing, to: {id: box}}
`

// napping is a store whose user falls asleep before it saves its place.
type napping struct {
	store.Store
	*sleeper
	slept bool
}

func (n *napping) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if len(ws) > 0 && !n.slept && strings.HasPrefix(ws[0].Key.Partition.Text(), "check|") {
		n.slept = true
		n.nap()
	}
	return n.Store.Write(ctx, ws)
}

// untrimmed keeps the stream, so that a test can look at all of it.
type untrimmed struct{ store.Store }

func (untrimmed) Trim(context.Context, string, string, events.Position) error { return nil }

// TestPlaces has a follower sleep before it saves its place, while another one goes
// on. When it wakes, the place does not go back, nothing is derived twice, and the
// totals have each record once.
func TestPlaces(t *testing.T) {
	h := newShelf(t)
	z := newSleeper()
	ctx, done := context.Background(), make(chan struct{})
	close(done)
	slow := h.runner(nil)
	slow.Store = &napping{Store: untrimmed{h.store}, sleeper: z}
	go func() {
		defer close(z.over)
		f := reader.Follower{Runner: slow}
		z.err = f.CatchUp(ctx, done)
	}()
	<-z.asleep
	catchUp := func() {
		r := h.runner(nil)
		r.Store = untrimmed{h.store}
		f := reader.Follower{Runner: r}
		failtest.On(t, f.CatchUp(ctx, done))
	}
	things(t, h, 6, 9)
	catchUp()
	things(t, h, 10, 12)
	before := checkpoints(h)
	z.wake()
	<-z.over
	failtest.On(t, z.err)
	catchUp()
	for shard, at := range checkpoints(h) {
		if at < before[shard] {
			t.Errorf("shard %s: the place went from %x back to %x", shard, before[shard], at)
		}
	}
	h.pull()
	n, err := runnertest.Counted(ctx, h.runner(nil))
	failtest.On(t, err)
	if total := n.Applied + n.Skipped + n.Dead; total != len(h.records) {
		t.Errorf("%d records are counted, there are %d: %+v", total, len(h.records), n)
	}
	for i := range h.records {
		h.done[i+1] = true
	}
	if out := h.audit(); out != "" {
		t.Error(out)
	}
}

// newShelf is a harness with a box of five things.
func newShelf(t *testing.T) *harness {
	m, err := loadText(t, shelf)
	failtest.On(t, err)
	h := newHarness(t, m)
	t.Cleanup(h.close)
	things(t, h, 1, 5)
	return h
}

func things(t *testing.T, h *harness, from, to int) {
	failtest.On(t, h.write(`put shelf {"PK":"BOX#1","SK":"METADATA","type":"Box","title":"One"}`))
	for i := from; i <= to; i++ {
		failtest.On(t, h.write(fmt.Sprintf(`put shelf {"PK":"BOX#1","SK":"THING#%d","type":"Thing","name":"x"}`, i)))
	}
}

func checkpoints(h *harness) map[string]string {
	out := map[string]string{}
	for _, row := range h.scan("weir") {
		if strings.HasPrefix(row.Get("k").Text(), "check|") {
			out[row.Get("s").Text()] = row.Get("p").Text()
		}
	}
	return out
}

// behind is a store whose last writes are acknowledged before they are in its stream, as
// they are while a batch with lower numbers is on its way.
type behind struct {
	*embedded.Store
	tip  events.Position
	asks int
}

func (b *behind) Tip() store.Tip { return store.Tip{Seen: b.tip, Given: b.Store.Tip().Given} }

// Read shows what is late when each shard was read.
func (b *behind) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	shards, err := b.Shards(ctx, table)
	if err != nil {
		return store.Records{}, err
	}
	if b.asks++; b.asks > len(shards) {
		b.tip = b.Tip().Given
	}
	page, err := b.Store.Read(ctx, table, shard, after, limit)
	page.Records = slices.DeleteFunc(page.Records, func(r events.Record) bool { return r.Position.Compare(b.tip) > 0 })
	return page, err
}

// TestCatchUpWaitsForWhatIsAcknowledged: what was written before it was to catch up is
// applied, though it comes into the stream late.
func TestCatchUpWaitsForWhatIsAcknowledged(t *testing.T) {
	h := newShelf(t)
	late := &behind{Store: h.store}
	run := h.runner(nil)
	run.Store = late
	done := make(chan struct{})
	close(done)
	failtest.On(t, (&reader.Follower{Runner: run}).CatchUp(t.Context(), done))
	counted, err := runnertest.Counted(t.Context(), run)
	failtest.On(t, err)
	if n := counted.Applied + counted.Skipped; n < 5 {
		t.Errorf("%d records are applied, after %d reads", n, late.asks)
	}
}

// TestWindow: records that come within a window are applied together, and a follower that is to
// catch up, or to stop, does not wait for its end.
func TestWindow(t *testing.T) {
	h := newShelf(t)
	put := func(from, to int) { // beside the follower, which the harness's clock does not allow
		for i := from; i <= to; i++ {
			row := value.NewItem(runner.Attr("PK", value.OfString("BOX#1")), runner.Attr("SK", value.OfString(fmt.Sprint("THING#", i))),
				runner.Attr("type", value.OfString("Thing")), runner.Attr("name", value.OfString("x")))
			key, _ := h.model.Table("shelf").KeyOf(row)
			out, err := h.store.Write(t.Context(), []store.Write{{Ref: store.Ref{Table: "shelf", Key: key}, Put: row}})
			failtest.On(t, err)
			failtest.On(t, out[0].Err)
		}
	}
	batches := make(chan int, 100)
	done, stop := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	follower := &reader.Follower{Runner: h.runner(nil), Prompt: true, Window: time.Hour, Applied: func(_ *model.Table, records []events.Record) { batches <- len(records) }}
	go func() { ended <- follower.CatchUp(t.Context(), done) }()
	<-batches
	put(6, 9)
	select {
	case n := <-batches:
		t.Errorf("%d records are applied within the window", n)
	case <-time.After(200 * time.Millisecond): // a follower without a window needs less
	}
	close(done)
	failtest.On(t, <-ended)
	if out := h.audit(); out != "" {
		t.Error(out)
	}

	follower.Stop = stop
	go func() { ended <- follower.Run(t.Context()) }()
	put(10, 12)
	<-batches
	close(stop)
	failtest.On(t, <-ended)
}
