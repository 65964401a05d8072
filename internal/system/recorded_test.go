package system_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// expected is what must come of a recording, by the bookkeeping of the script that
// made it.
type expected struct {
	Records int     `json:"records"`
	Checks  []check `json:"checks"`
}

// check is a query and the rows it must answer. Ordered says that their order is
// fixed; Subset that only the attributes named count; Except leaves rows out whose
// attribute has one of the values.
type check struct {
	Query   string              `json:"query"`
	Params  map[string]string   `json:"params"`
	Ordered bool                `json:"ordered"`
	Subset  bool                `json:"subset"`
	Except  map[string][]string `json:"except"`
	Items   []map[string]any    `json:"items"`
}

// TestRecorded replays every recorded stream, twice, and asks everything that the
// recording's own bookkeeping knows the answer to.
func TestRecorded(t *testing.T) {
	recorded(t, func(t *testing.T, m *model.Model) *system.System { return openSystem(t, t.TempDir(), m) })
}

// TestRecordedOnDynamoDB does the same with the rows in DynamoDB.
func TestRecordedOnDynamoDB(t *testing.T) {
	dynamodbtest.Config(t)
	recorded(t, func(t *testing.T, m *model.Model) *system.System {
		models := []*model.Model{m}
		tables, err := system.Tables(models)
		if err != nil {
			t.Fatal(err)
		}
		db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
		s, err := system.Over(context.Background(), db, t.TempDir(), models, system.Options{})
		return opened(t, s, err)
	})
}

func recorded(t *testing.T, open func(*testing.T, *model.Model) *system.System) {
	dirs, err := filepath.Glob("../../testdata/streams/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no recorded streams: %v", err)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			m, err := model.Load(name)
			if err != nil {
				t.Skipf("no model for this recording: %v", err)
			}
			want := readExpected(t, filepath.Join(dir, "expected.json.gz"))
			s := open(t, m)
			first := replayInto(t, s, files(t, dir))
			if first.Records() != want.Records || first.Applied != want.Records || first.Gaps != 0 {
				t.Errorf("replayed %d records of %d: %+v", first.Records(), want.Records, first)
			}
			checkAll(t, s, want.Checks)
			if again := replayInto(t, s, files(t, dir)); again.Applied != 0 || again.Kept != 0 {
				t.Errorf("the second replay did something: %+v", again)
			}
			checkAll(t, s, want.Checks)
			verifyNothing(t, s)
		})
	}
}

// TestRecordedInAnyOrder replays the streams of a recording with several tables
// otherwise than they were recorded: one table after the other from the last to
// the first, and interleaved at random, in pieces. Within each stream the order
// stays. All answers are the same: state is, in whatever order it came. (History
// is one pass over the records as they came.)
func TestRecordedInAnyOrder(t *testing.T) {
	dirs, _ := filepath.Glob("../../testdata/streams/*")
	several := 0
	for _, dir := range dirs {
		name := filepath.Base(dir)
		m, err := model.Load(name)
		if err != nil || len(m.Tables) < 2 || slices.ContainsFunc(m.Rows, func(r *model.RowRule) bool { return len(r.Keep) > 0 }) {
			continue
		}
		several++
		want := readExpected(t, filepath.Join(dir, "expected.json.gz"))
		for order, arrange := range map[string]func([][]events.Entry) [][]events.Entry{
			"reverse":        reversed,
			"interleaved 1":  interleaved(1, 60),
			"interleaved 2":  interleaved(2, 400),
			"one by another": interleaved(3, 3),
		} {
			t.Run(name+"/"+order, func(t *testing.T) {
				t.Parallel()
				s := openSystem(t, t.TempDir(), m)
				pieces := arrange(byTable(t, files(t, dir)))
				first := replayPieces(t, s, pieces)
				if first.Records() != want.Records || first.Applied != want.Records || first.Gaps != 0 {
					t.Errorf("replayed %d records of %d: %+v", first.Records(), want.Records, first)
				}
				checkAll(t, s, want.Checks)
				if again := replayPieces(t, s, pieces); again.Applied != 0 || again.Kept != 0 {
					t.Errorf("the second replay did something: %+v", again)
				}
				checkAll(t, s, want.Checks)
				verifyNothing(t, s)
			})
		}
	}
	if several == 0 {
		t.Error("no recording has several tables")
	}
}

// byTable reads the stream of each table, in the order of the tables' names.
func byTable(t testing.TB, paths []string) [][]events.Entry {
	t.Helper()
	in, err := events.Open(paths...)
	if err != nil {
		t.Fatal(err)
	}
	streams := map[string][]events.Entry{}
	for batch, err := range in.Batches(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch {
			if e.Record.Table == "" {
				t.Fatal("a record does not say its table")
			}
			streams[e.Record.Table] = append(streams[e.Record.Table], e)
		}
	}
	var out [][]events.Entry
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		out = append(out, streams[name])
	}
	return out
}

func reversed(streams [][]events.Entry) [][]events.Entry {
	streams = slices.Clone(streams)
	slices.Reverse(streams)
	return streams
}

// interleaved takes pieces of up to longest records from the streams, in an order
// that the seed decides.
func interleaved(seed uint64, longest int) func([][]events.Entry) [][]events.Entry {
	return func(streams [][]events.Entry) (out [][]events.Entry) {
		r := rand.New(rand.NewPCG(seed, 4))
		for streams = slices.Clone(streams); len(streams) > 0; {
			i := r.IntN(len(streams))
			n := min(1+r.IntN(longest), len(streams[i]))
			out = append(out, streams[i][:n])
			if streams[i] = streams[i][n:]; len(streams[i]) == 0 {
				streams = slices.Delete(streams, i, i+1)
			}
		}
		return out
	}
}

// replayPieces replays, and lets all derived data catch up now and then.
func replayPieces(t testing.TB, s *system.System, pieces [][]events.Entry) replay.Summary {
	t.Helper()
	part := s.Models[0]
	r := &replay.Replay{Model: part.Model, Store: s.Store, Runner: part.Runner}
	for i, piece := range pieces {
		if err := r.Batch(context.Background(), piece, ""); err != nil {
			t.Fatal(err)
		}
		if len(pieces) < 100 || i%(len(pieces)/100) == 0 {
			settle(t, s)
		}
	}
	settle(t, s)
	return r.Summary
}

func openSystem(t testing.TB, dir string, m *model.Model) *system.System {
	t.Helper()
	s, err := system.Open(context.Background(), dir, []*model.Model{m}, system.Options{})
	return opened(t, s, err)
}

func opened(t testing.TB, s *system.System, err error) *system.System {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Fill(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func files(t testing.TB, dir string) []string {
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range all {
		if !strings.HasPrefix(filepath.Base(f), "expected.") {
			out = append(out, f)
		}
	}
	return out
}

func replayInto(t testing.TB, s *system.System, paths []string) replay.Summary {
	t.Helper()
	part := s.Models[0]
	r := &replay.Replay{Model: part.Model, Store: s.Store, Runner: part.Runner}
	in, err := events.Open(paths...)
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range in.Batches(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Batch(context.Background(), batch, ""); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, s)
	return r.Summary
}

func settle(t testing.TB, s *system.System) {
	t.Helper()
	done := make(chan struct{})
	close(done)
	f := runner.Follower{Runner: s.Models[0].Runner}
	if err := f.CatchUp(context.Background(), done); err != nil {
		t.Fatal(err)
	}
}

func verifyNothing(t testing.TB, s *system.System) {
	t.Helper()
	diffs, err := verifyAll(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range diffs {
		t.Error(d)
	}
}

func readExpected(t testing.TB, path string) expected {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(z)
	dec.UseNumber()
	var e expected
	if err := dec.Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

func checkAll(t *testing.T, s *system.System, checks []check) {
	t.Helper()
	bad := 0
	for _, c := range checks {
		if err := c.run(s.Models[0].Query); err != nil {
			if bad++; bad <= 10 {
				t.Error(err)
			}
		}
	}
	if bad > 10 {
		t.Errorf("… and %d more of %d checks", bad-10, len(checks))
	}
}

// run asks, in small pages, and compares.
func (c *check) run(q *query.Engine) error {
	var have []map[string]any
	page := query.Page{Limit: 97}
	for {
		res, err := q.Run(context.Background(), c.Query, c.Params, page)
		if err != nil {
			return fmt.Errorf("%s %v: %w", c.Query, c.Params, err)
		}
		for _, it := range res.Items {
			if row := plain(it); !c.excepted(row) {
				have = append(have, row)
			}
		}
		if page.Cursor = res.Cursor; page.Cursor == "" {
			break
		}
	}
	if len(have) != len(c.Items) {
		return fmt.Errorf("%s %v: %d rows, want %d%s", c.Query, c.Params, len(have), len(c.Items), c.firstMissing(have))
	}
	want := c.Items
	if !c.Ordered {
		want, have = sorted(c, want), sorted(c, have)
	}
	for i := range want {
		if !c.same(have[i], want[i]) {
			return fmt.Errorf("%s %v: row %d\nhave %s\nwant %s", c.Query, c.Params, i, text(have[i]), text(want[i]))
		}
	}
	return nil
}

func (c *check) excepted(row map[string]any) bool {
	for name, values := range c.Except {
		if v, ok := row[name].(string); ok && slices.Contains(values, v) {
			return true
		}
	}
	return false
}

func (c *check) firstMissing(have []map[string]any) string {
	there := map[string]bool{}
	for _, h := range have {
		there[c.key(h)] = true
	}
	for _, w := range c.Items {
		if !there[c.key(w)] {
			return "; missing first: " + text(w)
		}
		delete(there, c.key(w))
	}
	for k := range there {
		return "; too many, such as " + k
	}
	return ""
}

func (c *check) same(have, want map[string]any) bool {
	have, want = c.relevant(have, want), c.relevant(want, want)
	return reflect.DeepEqual(have, want)
}

func (c *check) relevant(row, want map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range row {
		if _, named := want[k]; named || !c.Subset {
			out[k] = v
		}
	}
	return out
}

func (c *check) key(row map[string]any) string {
	for _, pk := range [][2]string{{"PK", "SK"}, {"profileId", "sk"}} {
		if row[pk[0]] != nil {
			return fmt.Sprint(row[pk[0]], "|", row[pk[1]])
		}
	}
	return text(row)
}

func sorted(c *check, rows []map[string]any) []map[string]any {
	rows = append([]map[string]any(nil), rows...)
	sort.SliceStable(rows, func(i, j int) bool { return c.key(rows[i]) < c.key(rows[j]) })
	return rows
}

func plain(it value.Item) map[string]any {
	dec := json.NewDecoder(bytes.NewReader(value.AppendPlainItem(nil, it)))
	dec.UseNumber()
	var x map[string]any
	if err := dec.Decode(&x); err != nil {
		panic(err)
	}
	return x
}

func text(x any) string {
	b, _ := json.Marshal(x)
	return string(b)
}
