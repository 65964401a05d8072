package system_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/reader"
	"weir/internal/replay"
	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/value"
)

// TestRecorded replays every recorded stream, twice, and asks everything that the
// recording's own bookkeeping knows the answer to.
func TestRecorded(t *testing.T) {
	recorded(t, func(t *testing.T, m *model.Model) *system.System { return openSystem(t, t.TempDir(), m) })
}

// TestRecordedOnServices does the same with the rows in DynamoDB and the documents
// in OpenSearch. All rows, entries of indexes and documents are those of the embedded
// drivers, history included, whose keys have the recorded times and positions.
func TestRecordedOnServices(t *testing.T) {
	dynamodbtest.Config(t)
	url := opensearchtest.URL(t)
	t.Parallel()
	recorded(t, func(t *testing.T, m *model.Model) *system.System {
		models := []*model.Model{m}
		tables, err := system.Tables(models)
		failtest.On(t, err)
		db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
		systemtest.Made(t, db, m)
		s, err := system.Over(context.Background(), db, "", models, system.Options{OpenSearch: url})
		return callOpened(t, s, err)
	}, func(t *testing.T, s *system.System, files []string) {
		here := openSystem(t, t.TempDir(), s.Models[0].Model)
		replayInto(t, here, files)
		same(t, dump(t, here), dump(t, s))
	})
}

// recorded replays each recording into a system of its own. Besides what the
// recording says, each of also is looked at. The short form has the recording of eleven
// tables and, without also, one of a table.
func recorded(t *testing.T, open func(*testing.T, *model.Model) *system.System, also ...func(*testing.T, *system.System, []string)) {
	for _, dir := range systemtest.Recordings(t) {
		name := systemtest.Name(dir)
		if testing.Short() && name != "movienight" && (name != "wardrobe" || len(also) > 0) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := model.Load(systemtest.Model(dir))
			failtest.On(t, err)
			want, files := systemtest.Read(t, dir), systemtest.Files(t, dir)
			s := open(t, m)
			first := replayInto(t, s, files)
			// A record that changes nothing but what is derived is skipped.
			if first.Records() != want.Records || first.Dead != 0 || first.Gaps != 0 {
				t.Errorf("replayed %d records of %d: %+v", first.Records(), want.Records, first)
			}
			checkAll(t, s, want.Checks)
			if again := replayInto(t, s, files); again.Applied != 0 || again.Dead != 0 {
				t.Errorf("the second replay did something: %+v", again)
			}
			checkAll(t, s, want.Checks)
			verifyNothing(t, s)
			for _, look := range also {
				look(t, s, files)
			}
		})
	}
}

func openSystem(t testing.TB, dir string, m *model.Model) *system.System {
	t.Helper()
	s, err := system.Open(context.Background(), dir, []*model.Model{m}, system.Options{})
	return callOpened(t, s, err)
}

func callOpened(t testing.TB, s *system.System, err error) *system.System {
	t.Helper()
	failtest.On(t, err)
	t.Cleanup(func() { s.Close() })
	failtest.On(t, s.Reach(context.Background(), nil))
	return s
}

func replayInto(t testing.TB, s *system.System, paths []string) replay.Summary {
	t.Helper()
	in, err := events.Open(paths...)
	failtest.On(t, err)
	summary := replayOnly(t, s, in)
	settle(t, s)
	return summary
}

// replayOnly replays a recording, and leaves what the streams then have to others.
func replayOnly(t testing.TB, s *system.System, in *events.Files) replay.Summary {
	t.Helper()
	part := s.Models[0]
	r := &replay.Replay{Model: part.Model, Store: s.Store, Runner: part.Runner}
	for batch, err := range in.Batches(context.Background()) {
		failtest.On(t, err)
		failtest.On(t, r.Batch(context.Background(), batch, ""))
	}
	return r.Summary
}

func settle(t testing.TB, s *system.System) {
	t.Helper()
	done := make(chan struct{})
	close(done)
	f := reader.Follower{Runner: s.Models[0].Runner}
	failtest.On(t, f.CatchUp(context.Background(), done))
	failtest.On(t, s.Show(context.Background()))
}

func verifyNothing(t testing.TB, s *system.System) {
	t.Helper()
	diffs, err := verifyAll(s)
	failtest.On(t, err)
	for _, d := range diffs {
		t.Error(d)
	}
}

func checkAll(t *testing.T, s *system.System, checks []systemtest.Check) {
	t.Helper()
	systemtest.All(t, checks, func(name string, params map[string]string) ([]systemtest.Row, error) {
		return answer(s.Models[0].Query, name, params)
	})
}

// answer asks, in small pages.
func answer(q *query.Engine, name string, params map[string]string) ([]systemtest.Row, error) {
	var rows []systemtest.Row
	page := query.Page{Limit: 97}
	for {
		res, err := q.Run(context.Background(), name, params, page)
		if err != nil {
			return nil, err
		}
		for _, it := range res.Items {
			rows = append(rows, plain(it))
		}
		if page.Cursor = res.Cursor; page.Cursor == "" {
			return rows, nil
		}
	}
}

func plain(it value.Item) systemtest.Row {
	dec := json.NewDecoder(bytes.NewReader(value.AppendPlainItem(nil, it)))
	dec.UseNumber()
	var x systemtest.Row
	if err := dec.Decode(&x); err != nil {
		panic(err)
	}
	return x
}
