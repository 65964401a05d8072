package build_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/store"
)

// beforeMove is a store that does something once, before a checkpoint moves.
type beforeMove struct {
	store.Store
	do *func()
}

func (b beforeMove) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	moves := func(op store.Op) bool { return op.Attr == owntable.Position }
	if do := *b.do; do != nil && len(ws) > 0 && strings.HasPrefix(ws[0].Key.Partition.Text(), "check|") && slices.ContainsFunc(ws[0].Ops, moves) {
		*b.do = nil
		do()
	}
	return b.Store.Write(ctx, ws)
}

// delayed is a worker that has taken records for the last batch of the log, and is delayed
// before it asks which builds there are: it is made before the application writes them, and
// calls took after they were applied.
type delayed struct {
	*fixture
	run    *runner.Runner
	places []reader.Place
	pages  []reader.Page
}

func (f *fixture) delayed() *delayed {
	f.Helper()
	l := &delayed{fixture: f, run: f.runner()}
	shards, err := f.Store.Shards(f.Context(), f.table)
	f.ok(err)
	for _, s := range shards {
		p, err := reader.ReadPlace(f.Context(), l.run, f.table, s.ID)
		f.ok(err)
		l.places = append(l.places, p)
	}
	return l
}

// took reads the records, up to the first that does not match.
func (l *delayed) took(match func(*events.Record) bool) {
	l.Helper()
	for _, p := range l.places {
		page, err := l.Store.Read(l.Context(), p.Table, p.Shard, p.At, 1000)
		l.ok(err)
		rs := page.Records
		if n := slices.IndexFunc(rs, func(r events.Record) bool { return !match(&r) }); n >= 0 {
			rs = rs[:n]
		}
		if len(rs) > 0 {
			l.pages = append(l.pages, reader.Page{Table: l.model.Table(p.Table), Shard: p.Shard, Records: rs})
		}
	}
	if len(l.pages) == 0 {
		l.Fatal("no batch was taken")
	}
}

// goesOn applies the batch by the builds that there are now.
func (l *delayed) goesOn() {
	l.Helper()
	l.ok((&reader.Follower{Runner: l.run}).NewStepper().ApplyAgain(l.Context(), l.now(), l.pages))
}

// undeleted matches what is not a deletion.
func undeleted(r *events.Record) bool { return r.New != nil }

// marks returns the marks of the builds, by the sort key of the source row.
func (f *fixture) marks() map[string]contribution.Mark {
	f.Helper()
	out := map[string]contribution.Mark{}
	for name, row := range f.rows(owntable.TableName) {
		if strings.Contains(name, `"mark|`) {
			m, err := owntable.DecodeContribution(row)
			f.ok(err)
			out[m.SourceKey.Get("SK").Text()] = m.Mark
		}
	}
	return out
}

// fence fences the checkpoints for the builds that there are.
func (f *fixture) fence() {
	f.Helper()
	view, err := f.runner().Catalog.Row(f.Context())
	f.ok(err)
	shards, err := f.Store.Shards(f.Context(), f.table)
	f.ok(err)
	for _, s := range shards {
		ref := owntable.Checkpoint(f.model.Name, f.table, s.ID)
		rows, err := f.Store.Get(f.Context(), []store.Ref{ref.Ref})
		f.ok(err)
		is, err := owntable.DecodeCheckpoint(rows[0])
		f.ok(err)
		was, err := owntable.FenceOf(rows[0])
		f.ok(err)
		next, _ := was.Take(view.Count, view.Builds.Generations(), is.At)
		out, err := f.Store.Write(f.Context(), []store.Write{owntable.TakeFence(ref, was, next, is.At)})
		f.ok(err)
		f.ok(out[0].Err)
	}
}

// TestBatchOfAnOlderView: a batch that was applied by the view before a build does not move
// the checkpoint once another consumer has fenced it for the build. It is applied again.
func TestBatchOfAnOlderView(t *testing.T) {
	f := rated(t)
	f.unread()
	f.rate(7, 4, "m")
	do := func() {
		f.announced("Movie")
		f.fence() // as another consumer does, which is killed then
	}
	r := *f.runner()
	r.Store = beforeMove{f.Store, &do}
	follower := reader.Follower{Runner: &r, Source: untrimmed{f.Store}}
	for range 3 {
		if _, _, err := follower.NewStepper().Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if m := f.marks()["RATING#7"]; m.Position.IsZero() {
		t.Errorf("the record is not counted in the build: %+v", m)
	}
	f.build(owntable.BuildLive, "Movie")
	f.catchUp()
	f.compare()
}

// TestRecordBelowTheFloor: a record that was applied before a build, and is delivered again
// without those that followed, does not count in the build.
func TestRecordBelowTheFloor(t *testing.T) {
	f := rated(t)
	f.unread()
	late := f.delayed()
	f.rate(7, 4, "m")
	f.write("PK", "USER#1", "SK", "RATING#7")
	prompt := reader.Follower{Runner: f.runner(), Source: untrimmed{f.Store}}
	catchUp := func() {
		t.Helper()
		done := make(chan struct{})
		close(done)
		f.ok(prompt.CatchUp(t.Context(), done))
	}
	catchUp()
	late.took(undeleted)
	f.announced("Movie")
	f.rate(8, 1, "m")
	catchUp()
	late.goesOn()
	if m, there := f.marks()["RATING#7"]; there {
		t.Errorf("a record below the floor is counted: %+v", m)
	}
	f.build(owntable.BuildLive, "Movie")
	f.catchUp()
	f.compare()
}
