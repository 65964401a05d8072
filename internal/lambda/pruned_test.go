package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/lambda"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// sleepy is a store that does something before the first write of a row whose partition key begins
// so: what a function meets that sleeps there.
type sleepy struct {
	store.Store
	before string
	after  int // this many such writes
	meets  func()
}

func (s *sleepy) meet(ws []store.Write) {
	for i := range ws {
		if s.meets == nil || !strings.HasPrefix(ws[i].Key.Partition.Text(), s.before) {
			continue
		}
		if s.after--; s.after < 0 {
			meets := s.meets
			s.meets = nil
			meets()
		}
	}
}

func (s *sleepy) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	s.meet(ws)
	return s.Store.Write(ctx, ws)
}

func (s *sleepy) Transact(ctx context.Context, ws []store.Write) error {
	s.meet(ws)
	return s.Store.Transact(ctx, ws)
}

// counting is what counts records of shards in one row of our own table.
type counting struct {
	model  string
	rows   string // with which their partition keys begin
	first  []string
	record func(n int) string // a row of the model's first table, as DynamoDB's JSON
}

func own(w *world, rows string) (out []value.Item) {
	page, err := w.Query(w.t.Context(), store.Query{Table: owntable.TableName})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, row := range page.Rows {
		if strings.HasPrefix(row.Get(owntable.Partition).Text(), rows) {
			out = append(out, row)
		}
	}
	return out
}

// countings has one for each kind of row that keeps positions of shards.
var countings = []counting{
	{
		model: "gallery", rows: "ledger|",
		record: func(n int) string {
			return fmt.Sprintf(`"PK":{"S":"ALBUM#a"},"SK":{"S":"MEDIA#%d"}|,"EntityType":{"S":"AlbumMedia"},"albumId":{"S":"a"},"mediaId":{"S":"%d"},"addedAt":{"S":"2025-01-01T00:00:00Z"}`, n, n)
		},
	},
	{
		model: "viewing", rows: "set|",
		record: func(n int) string {
			return fmt.Sprintf(`"profileId":{"S":"p"},"sk":{"S":"IN_PROGRESS|%d"}|,"a.assetId":{"S":"%d"},"a.state":{"S":"IN_PROGRESS"}`, n, n)
		},
	},
	{
		model: "watchlists", rows: "feed|",
		first: []string{`"PK":{"S":"USER#u"},"SK":{"S":"SAVED#WATCHLIST#w"}|,"entityType":{"S":"USER_SAVED_WATCHLIST"},"savedAt":{"S":"2026-01-01T00:00:00Z"}`},
		record: func(n int) string {
			return fmt.Sprintf(`"PK":{"S":"WATCHLIST#w"},"SK":{"S":"ITEM#MOVIE#%d"}|,"entityType":{"S":"WATCHLIST_ITEM"},"contentType":{"S":"MOVIE"},"contentId":{"S":"%d"},"addedAt":{"S":"2026-01-02T00:00:00Z"}`, n, n)
		},
	},
}

// event is an event of a shard with one record for each number: an insert of its row.
func (c *counting) event(w *world, shard string, numbers ...int) []byte {
	table := w.model.Tables[0].Name
	var records []string
	for _, n := range numbers {
		row := c.record(n)
		if n <= len(c.first) {
			row = c.first[n-1]
		}
		keys, rest, _ := strings.Cut(row, "|,")
		if c.model == "viewing" { // its sort keys have the sign too
			i := strings.LastIndex(row, "|,")
			keys, rest = row[:i], row[i+2:]
		}
		records = append(records, fmt.Sprintf(`{"eventID":"%d","eventName":"INSERT","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/%s/stream/x","dynamodb":{"SequenceNumber":"%d","ApproximateCreationDateTime":1767225600,"Keys":{%s},"NewImage":{%s,%s}}}`,
			n, table, n, keys, keys, rest))
	}
	return fmt.Appendf(nil, `{"Records":[%s],"window":{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:05:00Z"},"shardId":%q,"eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/%s/stream/x","state":{},"isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false}`,
		strings.Join(records, ","), shard, table)
}

// says are the sums of a row, its members, or the rows that it led to: all that counting a record
// twice changes.
func (c *counting) says(w *world) (out []string) {
	for _, row := range own(w, c.rows) {
		for _, a := range row {
			if owntable.IsSum(a.Name) || c.rows == "set|" && a.Name == "m" {
				out = append(out, fmt.Sprint(row.Get(owntable.Partition).Text(), a.Name, runner.ValueText(a.Value)))
			}
		}
	}
	if c.rows == "feed|" {
		page, err := w.Query(w.t.Context(), store.Query{Table: w.model.Tables[0].Name})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, row := range page.Rows {
			out = append(out, runner.ValueText(row.Get("PK"))+runner.ValueText(row.Get("SK")))
		}
	}
	slices.Sort(out)
	return out
}

// has reports whether a row has a position of a shard.
func (c *counting) has(w *world, shard string) bool {
	return slices.ContainsFunc(own(w, c.rows), func(row value.Item) bool {
		return row.Has(owntable.PositionOf(owntable.ShardKey(w.model.Tables[0].Name, shard)))
	})
}

func (w *world) must(h *lambda.Handler, event []byte) {
	w.t.Helper()
	out, err := h.Invoke(w.t.Context(), event)
	var answer struct {
		Failures *[]json.RawMessage `json:"batchItemFailures"`
	}
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil || answer.Failures == nil || len(*answer.Failures) > 0 {
		w.t.Fatalf("%s, %v", out, err)
	}
}

// inCountings runs a test for each kind of row. The world's functions keep one position in a row.
func inCountings(t *testing.T, test func(t *testing.T, w *world, c *counting, h func() *lambda.Handler)) {
	t.Helper()
	countingsIn(t, inMemory, test)
}

// countingsIn is inCountings with a store of its own kind.
func countingsIn(t *testing.T, open func(*testing.T, []store.Table) store.Store, test func(t *testing.T, w *world, c *counting, h func() *lambda.Handler)) {
	for i := range countings {
		c := &countings[i]
		t.Run(c.model, func(t *testing.T) {
			m, err := model.Load(c.model)
			failtest.On(t, err)
			w := worldOf(t, m, open)
			h := func() *lambda.Handler {
				h := w.handler()
				h.Runner.MostPositions = 1
				return h
			}
			for n := range c.first {
				w.must(h(), c.event(w, "s0", n+1))
			}
			test(t, w, c, h)
		})
	}
}

// prunes has other shards count there until no position of the shard is left.
func (c *counting) prunes(w *world, h func() *lambda.Handler, shard string) {
	w.t.Helper()
	for n := 100 + w.next; c.has(w, shard); n++ {
		w.must(h(), c.event(w, fmt.Sprint("other", n), n))
		if w.next++; w.next > 50 {
			w.t.Fatalf("the position of %s stays", shard)
		}
	}
}

// TestPrunedAndAgain: what is delivered again counts once, also when its position has left the row;
// so do records that follow it in the same event. A process that remembers that the row was pruned
// looks at it first: for the first portion of an event before it reads the shard's row, and for the
// others after.
func TestPrunedAndAgain(t *testing.T) {
	inCountings(t, func(t *testing.T, w *world, c *counting, h func() *lambda.Handler) {
		w.must(h(), c.event(w, "s1", 11, 12))
		c.prunes(w, h, "s1")
		warm, portions := h(), h()
		portions.Portion = 1
		for i, knows := range []*lambda.Handler{warm, portions} {
			w.must(knows, c.event(w, fmt.Sprint("knows", i), 300+i))
		}
		was := c.says(w)
		for i, again := range []*lambda.Handler{h(), h(), warm, warm, portions, portions} {
			w.must(again, c.event(w, "s1", 11, 12))
			w.must(again, c.event(w, "s1", 12))
			if now := c.says(w); !slices.Equal(now, was) {
				t.Fatalf("delivered again to process %d: %q, before %q", i, now, was)
			}
		}
		if c.has(w, "s1") {
			t.Error("what counts nothing wrote a position")
		}
		w.must(h(), c.event(w, "s1", 12, 13))
		if now := c.says(w); slices.Equal(now, was) {
			t.Error("a record behind the frontier does not count")
		}
		was = c.says(w)
		w.must(h(), c.event(w, "s1", 12, 13))
		if now := c.says(w); !slices.Equal(now, was) {
			t.Errorf("delivered again: %q, before %q", now, was)
		}
	})
}

// TestZombies: a function that sleeps before it writes a row, while another one counts its records and
// their position leaves the row, counts nothing. It may have met the row before, pruned or not.
func TestZombies(t *testing.T) { zombies(t, inMemory) }

func TestZombiesOnDynamoDB(t *testing.T) { zombies(t, onDynamoDB) }

func zombies(t *testing.T, open func(*testing.T, []store.Table) store.Store) {
	for _, before := range []bool{false, true} {
		t.Run(fmt.Sprint("pruned before ", before), func(t *testing.T) {
			countingsIn(t, open, func(t *testing.T, w *world, c *counting, h func() *lambda.Handler) {
				slow := &sleepy{Store: w, before: c.rows}
				zombie := w.over(slow)
				zombie.Runner.MostPositions = 1
				if before { // the zombie remembers that the row was pruned, and looks at it first
					w.must(h(), c.event(w, "s1", 11))
					c.prunes(w, h, "s1")
					w.must(zombie, c.event(w, "s1", 12))
					c.prunes(w, h, "s1")
				}
				var was []string
				slow.meets = func() {
					w.must(h(), c.event(w, "s1", 13))
					w.now = w.now.Add(time.Second)
					c.prunes(w, h, "s1")
					if c.rows == "feed|" { // a subscriber deletes the notification; another one comes
						w.forget("NOTIF")
					}
					was = c.says(w)
				}
				if _, err := zombie.Invoke(t.Context(), c.event(w, "s1", 13)); err != nil {
					t.Log(err)
				}
				if was == nil {
					t.Fatal("it did not sleep")
				}
				if now := c.says(w); !slices.Equal(now, was) {
					t.Errorf("a zombie leaves %q, before %q", now, was)
				}
			})
		})
	}
}

// TestNotYetDone: the position of a record that is counted stays in a row until its event is done, so
// the record counts once if its function dies between the two.
func TestNotYetDone(t *testing.T) {
	inCountings(t, func(t *testing.T, w *world, c *counting, h func() *lambda.Handler) {
		w.must(h(), c.event(w, "s1", 11))
		slow := &sleepy{Store: w, before: "check|", after: 1} // the end of its event
		dies := false
		slow.meets = func() {
			for n := 20; n < 30; n++ {
				w.must(h(), c.event(w, fmt.Sprint("s", n), n))
			}
			if !c.has(w, "s1") || c.has(w, "s21") {
				t.Errorf("positions: s1 %v, s21 %v; want only s1", c.has(w, "s1"), c.has(w, "s21"))
			}
			was := c.says(w)
			w.must(h(), c.event(w, "s1", 12))
			if now := c.says(w); !slices.Equal(now, was) {
				t.Errorf("delivered again: %q, before %q", now, was)
			}
			dies = true
		}
		w.must(w.over(slow), c.event(w, "s1", 12))
		if !dies {
			t.Error("it did not sleep")
		}
	})
}

// forget deletes rows of the model's table whose sort key begins so.
func (w *world) forget(sort string) {
	table := w.model.Tables[0]
	page, err := w.Query(w.t.Context(), store.Query{Table: table.Name})
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for _, row := range page.Rows {
		if key, _ := table.KeyOf(row); strings.Contains(key.Sort.Text(), sort) {
			if _, err := w.Write(w.t.Context(), []store.Write{{Ref: store.Ref{Table: table.Name, Key: key}, Delete: true}}); err != nil {
				w.t.Fatal(err)
			}
			n++
		}
	}
	if n == 0 {
		w.t.Fatal("nothing was sent")
	}
}

// TestShardsThatAreGone: the position of a shard whose row expired leaves a row. While the row of a
// shard cannot be read, its position stays, and others leave.
func TestShardsThatAreGone(t *testing.T) {
	inCountings(t, func(t *testing.T, w *world, c *counting, h func() *lambda.Handler) {
		at := func(shard string) store.Ref {
			return owntable.Checkpoint(c.model, w.model.Tables[0].Name, shard).Ref
		}
		w.must(h(), c.event(w, "s1", 11))
		w.set(at("s1"), "p", value.OfInt(7))
		for n := 12; n < 30; n++ {
			w.must(h(), c.event(w, fmt.Sprint("s", n), n))
		}
		if !c.has(w, "s1") || c.has(w, "s13") {
			t.Errorf("positions: s1 %v, s13 %v; want only s1", c.has(w, "s1"), c.has(w, "s13"))
		}
		if _, err := w.Write(t.Context(), []store.Write{{Ref: at("s1"), Delete: true}}); err != nil {
			t.Fatal(err)
		}
		for n := 30; n < 40; n++ {
			w.must(h(), c.event(w, fmt.Sprint("s", n), n))
		}
		if c.has(w, "s1") {
			t.Error("the position of a shard that is gone stays")
		}
	})
}
