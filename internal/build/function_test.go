package build_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/lambda"
	"weir/internal/lambda/lambdatest"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// records returns what is in the streams of the table, as Lambda has it, in order.
func (f *fixture) records() (out []json.RawMessage) {
	f.Helper()
	shards, err := f.Store.Shards(f.Context(), f.table)
	f.ok(err)
	for _, s := range shards {
		page, err := f.Store.Read(f.Context(), f.table, s.ID, events.Position{}, 1<<20)
		f.ok(err)
		out = append(out, f.asEvents(page.Records)...)
	}
	return out
}

// asEvents returns records as Lambda has them.
func (f *fixture) asEvents(records []events.Record) (out []json.RawMessage) {
	for i := range records {
		out = append(out, lambdatest.Record(f.table, &records[i]))
	}
	return out
}

// function is a function.
func (f *fixture) function(r *runner.Runner) *lambda.Handler {
	own := *r
	own.Store = lambdatest.Unrecorded{Store: r.Store}
	return lambda.New(&own, func(context.Context) error { return nil })
}

// invoke returns whether all records, as those of one shard, were applied, and otherwise why not.
func (f *fixture) invoke(h *lambda.Handler, records ...json.RawMessage) (ok bool, why string) {
	return f.invokeFor("shard-1", h, records...)
}

func (f *fixture) invokeFor(shard string, h *lambda.Handler, records ...json.RawMessage) (ok bool, why string) {
	f.Helper()
	var said []string
	h.Report = func(r lambda.Report) {
		if r.Why != nil {
			said = append(said, r.Why.Error())
		}
	}
	event, err := json.Marshal(map[string]any{
		"Records": records, "shardId": shard, "state": map[string]any{}, "window": map[string]any{"start": "2026-01-02T03:00:00Z", "end": "2026-01-02T03:05:00Z"},
	})
	f.ok(err)
	reply, err := h.Invoke(f.Context(), event)
	if err != nil {
		return false, err.Error()
	}
	return !strings.Contains(string(reply), "itemIdentifier"), strings.Join(said, "; ")
}

// TestFunctionBeside: a function does not build. It is refused where nothing was built, and
// applies beside a build, whose records it gets late, twice and in halves.
func TestFunctionBeside(t *testing.T) {
	f := rated(t)
	f.unbuilt()
	f.readByFunction()
	old := f.records()
	h := f.function(f.runner())
	if ok, why := f.invoke(h, old...); ok || !strings.Contains(why, "projector build films") {
		t.Fatal(ok, why)
	}
	f.announced("Movie")
	applied := func(records ...json.RawMessage) {
		t.Helper()
		if ok, why := f.invoke(h, records...); !ok {
			t.Error(why)
		}
	}
	f.rate(1, 5, "x")
	f.write("PK", "USER#1", "SK", "RATING#2")
	all := f.records()
	applied(old...)
	applied(all[len(old):]...)
	applied(all[len(old):]...)
	f.build(owntable.BuildLive, "Movie")
	f.compare()
	f.rate(2, 1, "y")
	f.rate(1, 0, "z")
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "title", "over")
	more := f.records()
	next := more[slices.IndexFunc(more, func(r json.RawMessage) bool { return string(r) == string(all[len(all)-1]) })+1:]
	applied(next...)
	applied(next[:1]...)
	f.compare()
	f.clock.Add(25)
	f.build(owntable.BuildVerified, "Movie")
	f.compare()
}

// goneBefore is a function that has applied ratings, among them one whose row is gone
// again. It returns the records of that row.
func goneBefore(t *testing.T) (f *fixture, h *lambda.Handler, put, removed json.RawMessage) {
	f = rated(t)
	f.ok(f.runner().Start(t.Context()))
	f.readByFunction()
	f.rate(7, 4, "gone")
	f.write("PK", "USER#1", "SK", "RATING#7")
	all := f.records()
	n := len(all) - 2
	h = f.function(f.runner())
	if ok, why := f.invoke(h, all[:n]...); !ok {
		t.Fatal(why)
	}
	return f, h, all[n], all[n+1]
}

// TestRecordAtTheFrontier: a function applied records before a build. Those that are
// delivered again without those that followed do not count in it. No audit is needed for that.
func TestRecordAtTheFrontier(t *testing.T) {
	f, h, put, removed := goneBefore(t)
	if ok, why := f.invoke(h, put, removed); !ok {
		t.Fatal(why)
	}
	f.announced("Movie")
	if ok, why := f.invoke(h, put); !ok {
		t.Fatal(why)
	}
	if m, there := f.marks()["RATING#7"]; there {
		t.Errorf("a record at the frontier is counted: %+v", m)
	}
	before := len(f.records())
	f.rate(8, 1, "m")
	f.rate(1, 5, "x")
	if ok, why := f.invoke(h, f.records()[before:]...); !ok {
		t.Fatal(why)
	}
	f.build(owntable.BuildLive, "Movie")
	if ok, why := f.invoke(h, put); !ok {
		t.Fatal(why)
	}
	f.compare()
}

// TestEventOfAnOlderView: an invocation that read the catalog before a build was announced cannot
// note its event as applied once another invocation has noted the build's floor. The event comes again.
func TestEventOfAnOlderView(t *testing.T) {
	f, h, put, removed := goneBefore(t)
	do := func() {
		f.announced("Movie")
		if ok, why := f.invoke(h, put); !ok {
			t.Fatal(why)
		}
	}
	r := *f.runner()
	r.Store = beforeShow{f.Store, f.table, &do}
	ok, why := f.invoke(f.function(&r), put, removed)
	if ok || !strings.Contains(why, "what is built changed") {
		t.Error(ok, why)
	}
	if !ok {
		if ok, why := f.invoke(h, put, removed); !ok {
			t.Fatal(why)
		}
	}
	f.build(owntable.BuildLive, "Movie")
	f.compare()
}

// beforeShow is a store that does something once, before its next write to a table.
type beforeShow struct {
	store.Store
	table string
	do    *func()
}

func (b beforeShow) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if do := *b.do; do != nil && len(ws) > 0 && ws[0].Table == b.table {
		*b.do = nil
		do()
	}
	return b.Store.Write(ctx, ws)
}

// TestFunctionBesideTheSwitch: an invocation that shows values of the older ledgers after the
// build had shown its own does not succeed, and its records come again.
func TestFunctionBesideTheSwitch(t *testing.T) {
	f, r := switched(t, true)
	h, next := f.function(r), f.records()[f.before:]
	if ok, why := f.invoke(h, next...); ok || !strings.Contains(why, runner.ErrSwitched.Error()) {
		t.Error(ok, why)
	}
	if ok, why := f.invoke(h, next...); !ok {
		t.Error(why)
	}
	f.compare()
}

// TestProcessBesideTheSwitch: nor does a consumer of a process move its checkpoint.
func TestProcessBesideTheSwitch(t *testing.T) {
	f, r := switched(t, false)
	done := make(chan struct{})
	close(done)
	follower := reader.Follower{Runner: r}
	f.ok(follower.CatchUp(t.Context(), done))
	f.compare()
}

// switched returns a runner that applies a change of a movie whose ledger is wrong, and a
// build which puts that right in the moment before the runner shows the ledger.
func switched(t *testing.T, byFunction bool) (*fixture, *runner.Runner) {
	f := rated(t)
	f.unread()
	if byFunction {
		f.readByFunction()
	}
	f.ok(f.runner().Start(t.Context()))
	f.build(owntable.BuildLive, "Movie")
	f.clock.Add(25)
	f.build(owntable.BuildVerified, "Movie")
	row, err := f.runner().Catalog.Row(t.Context())
	f.ok(err)
	movie := store.Ref{Table: f.table, Key: store.Key{Partition: value.OfString("MOVIE#1"), Sort: value.OfString("METADATA")}}
	wrong := store.Write{Ref: owntable.Ledger(row.Builds[0].Ledgers("films"), movie), Ops: []store.Op{store.Assign(owntable.SumAccumulator("rows"), value.OfInt(99))}}
	_, err = f.Store.Write(t.Context(), []store.Write{wrong})
	f.ok(err)
	f.announced("Movie")
	f.before = len(f.records())
	f.write("PK", "MOVIE#1", "SK", "METADATA", "type", "Movie", "title", "over")
	do := func() { f.build(owntable.BuildLive, "Movie") }
	r := *f.runner()
	r.Store = beforeShow{f.Store, f.table, &do}
	return f, &r
}
