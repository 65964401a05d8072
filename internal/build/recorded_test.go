package build_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"weir/internal/build"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/query"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/system/systemtest"
	"weir/internal/value"
)

// TestRecorded: an application has written more than half of each recording before weir reads
// the first record of the stream, and writes the rest while all that rows tell is built and
// builders are killed. Afterwards queries answer what the recording's own bookkeeping says.
func TestRecorded(t *testing.T) {
	recorded(t, open)
}

// TestRecordedOnDynamoDB is the same on DynamoDB Local.
func TestRecordedOnDynamoDB(t *testing.T) {
	recorded(t, openOnDynamoDB)
}

func recorded(t *testing.T, open func(testing.TB, *model.Model) *fixture) {
	for _, dir := range systemtest.Recordings(t) {
		name := systemtest.Name(dir)
		if testing.Short() && name != "wardrobe" && name != "shop" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m, err := model.Load(systemtest.Model(dir))
			if err != nil {
				t.Fatal(err)
			}
			f := open(t, m)
			var all [][]events.Entry
			in, err := events.Open(systemtest.Files(t, dir)...)
			f.ok(err)
			for batch, err := range in.Batches(t.Context()) {
				f.ok(err)
				all = append(all, slices.Collect(slices.Chunk(batch, 40))...)
			}
			r := &replay.Replay{Model: m, Store: f.Store, Runner: f.runner()}
			write := func(batches [][]events.Entry) {
				for _, batch := range append(slices.Clip(batches), nil) {
					f.ok(r.Next(t.Context(), slices.Clone(batch), ""))
				}
			}
			write(all[:len(all)*3/5])
			f.unreadAll()
			f.unbuilt()
			f.announced(allNames(m)...)
			f.buildBeside(func() { write(all[len(all)*3/5:]) })
			f.answers(systemtest.Read(t, dir).Checks)
			f.clock.Add(25)
			f.build(owntable.BuildVerified, allNames(m)...)
			f.catchUp()
			f.answers(systemtest.Read(t, dir).Checks)
		})
	}
}

// allNames are all builds of a model.
func allNames(m *model.Model) []string {
	return slices.Compact(slices.Sorted(maps.Values(m.Builds())))
}

// buildBeside builds all that can be built while an application writes and consumers follow;
// builders are killed.
func (f *fixture) buildBeside(write func()) {
	f.Helper()
	follow, end := context.WithCancel(f.Context())
	var followers, others sync.WaitGroup
	for range 2 {
		followers.Go(func() {
			follower := runner.Follower{Runner: f.runner(), Source: untrimmed{f.Store}}
			if err := follower.Run(follow); err != nil && !errors.Is(err, context.Canceled) {
				f.Error(err)
			}
		})
	}
	others.Go(write)
	names := allNames(f.model)
	for i := range 4 {
		ctx, kill := context.WithCancel(f.Context())
		b := f.builder(names...)
		b.Report = func(p build.Progress) {
			if p.Rows+p.Puts+p.Targets > int64(200+400*i) {
				kill()
			}
		}
		_, err := b.Run(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			f.Error(err)
		}
		kill()
	}
	f.build(owntable.BuildLive, names...)
	others.Wait()
	end()
	followers.Wait()
	f.catchUp()
	f.verified()
}

// answers compares the answers to queries with what is expected of a recording, but for
// history and search.
func (f *fixture) answers(checks []systemtest.Check) {
	f.Helper()
	told := func(c systemtest.Check) bool {
		i := slices.IndexFunc(f.model.Queries, func(q *model.Query) bool { return q.Name == c.Query })
		q := f.model.Queries[i]
		return q.Search != nil || slices.ContainsFunc(q.Steps, func(s *model.Step) bool {
			return slices.ContainsFunc(s.Entity.MadeBy, func(r *model.RowRule) bool { return len(r.Keep) > 0 })
		})
	}
	n := len(checks)
	checks = slices.DeleteFunc(slices.Clone(checks), told)
	f.Logf("%d of %d checks", len(checks), n)
	systemtest.All(f, checks, func(name string, params map[string]string) (rows []systemtest.Row, err error) {
		page := query.Page{Limit: 97}
		for {
			res, err := f.Models[0].Query.Run(f.Context(), name, params, page)
			if err != nil {
				return nil, err
			}
			for _, it := range res.Items {
				dec := json.NewDecoder(bytes.NewReader(value.AppendPlainItem(nil, it)))
				dec.UseNumber()
				var x systemtest.Row
				if err := dec.Decode(&x); err != nil {
					return nil, err
				}
				rows = append(rows, x)
			}
			if page.Cursor = res.Cursor; page.Cursor == "" {
				return rows, nil
			}
		}
	})
	f.verified()
}
