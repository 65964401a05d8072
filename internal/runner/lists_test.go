package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// lists returns the counters of the lists of subscribers, by the end of their names.
func (h *harness) lists() map[string]store.Ref {
	out := map[string]store.Ref{}
	for _, row := range h.scan(owntable.TableName) {
		if k := row.Get("k").Text(); strings.HasPrefix(k, owntable.SubscriberLists(h.model.Name)) && row.Get("s").Text() == "-" {
			out[k[strings.LastIndexByte(k, '|')+1:]] = owntable.Ref(k, "")
		}
	}
	return out
}

// newSavers is a harness with two lists that one user is on, each with a notification.
func newSavers(t *testing.T) *harness {
	m, err := model.Load("watchlists")
	failtest.On(t, err)
	h := newHarness(t, m)
	for _, list := range []string{"v", "w"} {
		failtest.On(t, h.write(fmt.Sprintf(`put worthwatch {"PK":"USER#u","SK":"SAVED#WATCHLIST#%s","entityType":"USER_SAVED_WATCHLIST","savedAt":"2026-01-01T00:00:00Z"}`, list)))
	}
	failtest.On(t, h.settle(1))
	h.adds(1)
	failtest.On(t, h.settle(len(h.records)+1))
	return h
}

// adds puts one more item on both lists.
func (h *harness) adds(item int) {
	for _, list := range []string{"v", "w"} {
		failtest.On(h.t, h.write(fmt.Sprintf(`put worthwatch {"PK":"WATCHLIST#%s","SK":"ITEM#MOVIE#%d","entityType":"WATCHLIST_ITEM","contentType":"MOVIE","contentId":"%d","addedAt":"2026-01-02T00:00:00Z"}`, list, item, item)))
	}
}

// told counts the notifications of a list's user.
func (h *harness) told(list string) (n int) {
	for _, row := range h.scan("worthwatch") {
		if strings.HasPrefix(row.Get("SK").Text(), "NOTIFICATION#") && row.Get("watchlistId").Text() == list {
			n++
		}
	}
	return n
}

// TestFullListIsOneLetter: a list of subscribers whose counter cannot be written has a dead
// letter for each change; the other lists of the batch, and later batches, go on.
func TestFullListIsOneLetter(t *testing.T) {
	h := newSavers(t)
	defer h.close()
	full := h.lists()["w"]
	h.set(full, owntable.Count, value.OfInt(100)) // 101 takes a byte more
	row, err := h.store.Get(t.Context(), []store.Ref{full})
	failtest.On(t, err)
	h.set(full, "z", value.OfString(strings.Repeat("x", store.MaxItemBytes-row[0].Size()-len("z"))))
	dead := 0
	for item := 2; item <= 3; item++ {
		from := len(h.records) + 1
		h.adds(item)
		failtest.On(t, h.write(`put worthwatch {"PK":"USER#x","SK":"SAVED#WATCHLIST#v","entityType":"USER_SAVED_WATCHLIST","savedAt":"2026-01-01T00:00:00Z"}`))
		h.pull()
		n, err := h.deliver(nil, which(from, len(h.records)))
		failtest.On(t, err)
		dead += n.Dead
	}
	if dead != 2 {
		t.Errorf("%d records are dead, want 2", dead)
	}
	if v, w := h.told("v"), h.told("w"); v < 3 || w != 1 {
		t.Errorf("%d notifications of the good list, %d of the full one; want 3 or more, and 1", v, w)
	}
	letters := 0
	failtest.On(t, h.runner(nil).EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
		if letters++; d.Kind != deadletter.Image || !strings.HasSuffix(d.Target, "|w") {
			t.Errorf("a dead letter for %s of kind %s: %s", d.Target, d.Kind, d.Reason)
		}
		return nil
	}))
	if letters != 2 {
		t.Errorf("%d dead letters, want 2", letters)
	}
}

func (h *harness) set(ref store.Ref, name string, v value.Value) {
	h.t.Helper()
	out, err := h.store.Write(h.t.Context(), []store.Write{{Ref: ref, Ops: []store.Op{{Kind: store.Set, Attr: name, Value: v}}}})
	failtest.On(h.t, errors.Join(err, out[0].Err))
}

func which(from, to int) (out []int) {
	for ; from <= to; from++ {
		out = append(out, from)
	}
	return out
}

// refusing is a store that refuses to write rows of a kind.
type refusing struct {
	store.Store
	kind string
}

func (s refusing) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	out := make([]store.Outcome, len(ws))
	var pass []store.Write
	var at []int
	for i, w := range ws {
		if strings.HasPrefix(w.Ref.Key.Partition.Text(), s.kind) {
			out[i].Err = fmt.Errorf("%w: it is too large", store.ErrRefused)
			continue
		}
		pass, at = append(pass, w), append(at, i)
	}
	some, err := s.Store.Write(ctx, pass)
	for i := range some {
		out[at[i]] = some[i]
	}
	return out, err
}

// TestRefusedSubscriberIsOneLetter: a subscriber that cannot be entered, or cannot be taken
// out, is a dead letter, and the batch goes on.
func TestRefusedSubscriberIsOneLetter(t *testing.T) {
	h := newSavers(t)
	defer h.close()
	failtest.On(t, h.write(`delete worthwatch {"PK":"USER#u","SK":"SAVED#WATCHLIST#w"}`))
	failtest.On(t, h.write(`put worthwatch {"PK":"USER#y","SK":"SAVED#WATCHLIST#w","entityType":"USER_SAVED_WATCHLIST","savedAt":"2026-01-01T00:00:00Z"}`))
	from := len(h.records) + 1
	h.pull()
	batch := runner.Batch{ShardKey: "l"}
	for i := from; i <= len(h.records); i++ {
		batch.Changes = append(batch.Changes, h.batch(i).Changes...)
	}
	r := h.runner(nil)
	r.Store = refusing{h.store, owntable.SubscriberLists("watchlists")}
	n, err := r.ApplyRows(t.Context(), batch)
	if err != nil || n.Dead != 2 {
		t.Fatalf("%+v, %v; want 2 dead", n, err)
	}
}

// TestManyClosedShardsOfAList: the positions of 1,200 shards that are over leave a list's
// counter, some with each write.
func TestManyClosedShardsOfAList(t *testing.T) {
	h := newSavers(t)
	defer h.close()
	list := h.lists()["w"]
	for n := 0; n < 1200; {
		w := store.Write{Ref: list}
		for end := n + 50; n < end; n++ {
			w.Ops = append(w.Ops, store.Op{Kind: store.Set, Attr: owntable.PositionOf(fmt.Sprintf("over%08d", n)), Value: events.PositionOf(7).Value()})
		}
		out, err := h.store.Write(t.Context(), []store.Write{w})
		failtest.On(t, errors.Join(err, out[0].Err))
	}
	r := h.runner(nil)
	r.Frontiers = func(_ context.Context, shardKeys []string) (out []runner.Frontier, _ error) {
		for _, key := range shardKeys {
			out = append(out, runner.Frontier{Gone: strings.HasPrefix(key, "over")})
		}
		return out, nil
	}
	for item := 2; item <= 22; item++ {
		from := len(h.records) + 1
		h.adds(item)
		h.pull()
		var changes []projections.Change
		for i := from; i <= len(h.records); i++ {
			if c := h.batch(i).Changes[0]; c.Is != nil && c.Is.Name == "Item" {
				changes = append(changes, c)
			}
		}
		if n, err := r.ApplyRows(t.Context(), runner.Batch{ShardKey: owntable.ShardKey("worthwatch", h.records[from-1].shard), Changes: changes}); err != nil || n.Dead != 0 {
			t.Fatal(n, err)
		}
	}
	rows, err := h.store.Get(t.Context(), []store.Ref{list})
	failtest.On(t, err)
	if left := owntable.Positions(rows[0]); len(left) > 33 {
		t.Errorf("%d shards are left in the list's counter", len(left))
	}
}

// TestJobsOfListsThatAreGone: a job of a list that has no row any more ends, whichever kind it
// is of, and one that no kind knows is said and stops no other.
func TestJobsOfListsThatAreGone(t *testing.T) {
	m, err := loadText(t, films)
	failtest.On(t, err)
	h := newHarness(t, m)
	defer h.close()
	p := events.PositionOf(7)
	values, targets, notify := owntable.EntriesJob(owntable.Followed("films", "Movie.title", theMovie)), owntable.TargetsJob("films", "Movie.gone"), owntable.EntriesJob(owntable.Subscribers("films", "gone"))
	values.Position, notify.Position, notify.Rule, notify.Source, notify.Moment = p, p, "gone", "Movie", 1
	ws := []store.Write{
		values.Begin("films", h.now()), targets.Begin("films", h.now()), notify.Begin("films", h.now()),
		{Ref: owntable.Ref(owntable.Jobs("films"), "0"), Ops: []store.Op{{Kind: store.Set, Attr: "later", Value: value.OfInt(1)}}},
	}
	out, err := h.store.Write(t.Context(), ws)
	failtest.On(t, err)
	for i := range out {
		failtest.On(t, out[i].Err)
	}
	r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: h.store, Now: h.now}
	jobs := &runner.Jobs{Runner: r}
	for range 2 {
		left, err := jobs.RunStep(t.Context())
		if left || !errors.Is(err, runner.ErrNoJob) || !strings.Contains(err.Error(), "job 0") {
			t.Errorf("left %v, error %v; want false, and an error that names job 0", left, err)
		}
	}
	var still []string
	f := reader.Follower{Runner: r, Source: h.store, Stopped: func(table, shard, why string) { still = append(still, table+" "+shard+": "+why) }}
	step := f.NewStepper()
	for range 3 {
		_, _, err := step.Step(t.Context())
		failtest.On(t, err)
	}
	if len(still) != 1 || !strings.Contains(still[0], "weir jobs: ") || !strings.Contains(still[0], "job 0") {
		t.Errorf("it says %q, want once that job 0 stands still", still)
	}
	rows, err := h.store.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Jobs("films"))})
	failtest.On(t, err)
	if len(rows.Rows) != 1 {
		t.Errorf("%d jobs are left, want 1", len(rows.Rows))
	}
}

// queryFails is a store whose queries can be made to fail.
type queryFails struct {
	store.Store
	fails bool
}

func (q *queryFails) Query(ctx context.Context, of store.Query) (store.Page, error) {
	if q.fails {
		return store.Page{}, errors.New("the store does not answer")
	}
	return q.Store.Query(ctx, of)
}

// TestJobGoesOnAfterFailure: a job that stood still before its group failed, and is gone
// afterwards, is reported as going on.
func TestJobGoesOnAfterFailure(t *testing.T) {
	h := newShelf(t)
	job := owntable.Ref(owntable.Jobs("shelf"), "0")
	write := func(w store.Write) {
		w.Ref = job
		out, err := h.store.Write(t.Context(), []store.Write{w})
		failtest.On(t, err)
		failtest.On(t, out[0].Err)
	}
	write(store.Write{Ops: []store.Op{store.Assign("later", value.OfInt(1))}})
	r := h.runner(nil)
	s := &queryFails{Store: h.store}
	r.Store = s
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stop := make(chan struct{})
	f := reader.Follower{Runner: r, Source: h.store, Stop: stop,
		Stopped: func(_, shard, why string) {
			if s.fails = why != ""; !s.fails {
				close(stop)
			}
		},
		Failed: func(bool, error) (time.Duration, bool) {
			write(store.Write{Delete: true})
			s.fails = false
			return 0, true
		},
	}
	if err := f.Run(ctx); err != nil {
		t.Fatalf("%v; it is not reported that the job goes on", err)
	}
}
