package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/catalog"
	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

const twoTables = `
model: halls
tables: {left: {key: [PK, SK]}, right: {key: [PK, SK]}}
entities:
  LeftBox: {table: left, where: {kind: Box}, key: {PK: "BOX#{box}", SK: META}, attributes: {box: string!}}
  LeftTag: {table: left, where: {kind: Tag}, key: {PK: "BOX#{box}", SK: "TAG#{tag}"}, attributes: {box: string!, tag: string!}}
  RightBox: {table: right, where: {kind: Box}, key: {PK: "BOX#{box}", SK: META}, attributes: {box: string!}}
  RightTag: {table: right, where: {kind: Tag}, key: {PK: "BOX#{box}", SK: "TAG#{tag}"}, attributes: {box: string!, tag: string!}}
derive:
  LeftBox.tags: {count: LeftTag}
  RightBox.tags: {count: RightTag}
queries:
  box: {get: LeftBox, with: [box]}
`

// halls are two tables of a model, with a process that follows both, and what may fail.
type halls struct {
	*testing.T
	store.Store
	run        *runner.Runner
	follows    *Leased
	streamless atomic.Bool  // the left table has no stream
	off        atomic.Bool  // the left table's stream is off, and can still be read
	second     atomic.Bool  // the left table has a second stream, with one shard, which may count from a lower number
	begun      atomic.Bool  // that shard was read
	denied     atomic.Bool  // records of the left table's stream cannot be read
	refuses    atomic.Bool  // the left table takes no writes
	ahead      atomic.Int64 // by how much the clock is ahead
	tags       int
}

// now is the time of the processes.
func (h *halls) now() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }

var (
	errNoStream = errors.New("the table has no stream")
	errDenied   = errors.New("reading its records is denied")
	errPolicy   = errors.New("a policy denies its writes")
)

func (h *halls) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if !h.refuses.Load() || !slices.ContainsFunc(ws, func(w store.Write) bool { return w.Table == "left" }) {
		return h.Store.Write(ctx, ws)
	}
	out := make([]store.Outcome, len(ws))
	for i := range ws {
		if ws[i].Table == "left" {
			out[i].Err = ws[i].Failed(errPolicy)
			continue
		}
		one, err := h.Store.Write(ctx, ws[i:i+1])
		if err != nil {
			return out, err
		}
		out[i] = one[0]
	}
	return out, store.FailedIn(errPolicy, "left")
}

func (h *halls) Read(ctx context.Context, table, shard string, after events.Position, limit int) (store.Records, error) {
	if h.denied.Load() && table == "left" {
		return store.Records{}, errDenied
	}
	if shard == ofSecond {
		h.begun.Store(true)
		return store.Records{}, nil
	}
	return h.Store.Read(ctx, table, shard, after, limit)
}

func (h *halls) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	if h.streamless.Load() && table == "left" {
		return nil, errNoStream
	}
	shards, err := h.Store.Shards(ctx, table)
	if h.second.Load() && table == "left" {
		return append(slices.Clone(shards), store.Shard{ID: ofSecond}), err
	}
	if h.off.Load() && table == "left" {
		shards = slices.Clone(shards)
		for i := range shards {
			shards[i].Closed = true
		}
	}
	return shards, err
}

func (h *halls) Identity(ctx context.Context, table string) (store.Identity, error) {
	is, err := h.Store.Identity(ctx, table)
	if h.off.Load() && table == "left" {
		is.Stream = ""
	}
	if h.second.Load() && table == "left" {
		is.Stream = ofSecond
	}
	return is, err
}

// ofSecond is the label of the second stream, and its shard.
const ofSecond = "shard-9"

func (h *halls) Streams(ctx context.Context, table string, _ ...string) ([]string, error) {
	is, err := h.Store.Identity(ctx, table)
	if labels := []string{is.Stream}; !h.second.Load() || table != "left" {
		return labels, err
	}
	return []string{is.Stream, ofSecond}, err
}

func (h *halls) Horizon(ctx context.Context, table, shard string) (events.Position, error) {
	if shard == ofSecond {
		return events.Position{}, nil
	}
	return h.Store.Horizon(ctx, table, shard)
}

func (h *halls) Continues(context.Context, string, string, string) (bool, error) { return false, nil }

func newHalls(t *testing.T) *halls {
	m, tables := hallTables(t)
	db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem(), Shards: 2})
	failtest.On(t, err)
	t.Cleanup(func() { db.Close() })
	return hallsIn(t, m, db)
}

// hallTables are the model and its tables, each with a stream but those named.
func hallTables(t *testing.T, streamless ...string) (*model.Model, []store.Table) {
	m, err := model.Parse("halls.yaml", []byte(twoTables))
	failtest.On(t, err)
	tables := []store.Table{owntable.Table()}
	for _, mt := range m.Tables {
		st := mt.Table
		st.Stream = !slices.Contains(streamless, st.Name)
		tables = append(tables, st)
	}
	return m, tables
}

func hallsIn(t *testing.T, m *model.Model, db store.Store) *halls {
	h := &halls{T: t, Store: db}
	h.run = &runner.Runner{Kinds: kinds.All(), Model: m, Store: h, Now: h.now}
	for _, table := range []string{"left", "right"} {
		for i := range 8 {
			h.put(table, fmt.Sprintf("BOX#%d", i), "META", "Box", fmt.Sprint(i), "")
		}
	}
	return h
}

// start begins to follow.
func (h *halls) start() {
	h.follows = NewLeased(h.run, Options{
		Lease: time.Second, Poll: 10 * time.Millisecond, List: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	h.follows.Start()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { h.follows.Apply(ctx); close(done) }()
	h.Cleanup(func() { cancel(); <-done; h.follows.Close() })
}

func (h *halls) put(table, pk, sk, kind, box, tag string) {
	h.Helper()
	attrs := []value.Attr{{Name: "PK", Value: value.OfString(pk)}, {Name: "SK", Value: value.OfString(sk)}, {Name: "kind", Value: value.OfString(kind)}, {Name: "box", Value: value.OfString(box)}}
	if tag != "" {
		attrs = append(attrs, value.Attr{Name: "tag", Value: value.OfString(tag)})
	}
	row := value.NewItem(attrs...)
	key, _ := h.run.Model.Table(table).KeyOf(row)
	_, err := h.Store.Write(h.Context(), []store.Write{{Ref: store.Ref{Table: table, Key: key}, Put: row}})
	failtest.On(h.T, err)
}

// tag puts one more tag on every box of a table.
func (h *halls) tag(table string) {
	h.tags++
	for i := range 8 {
		h.put(table, fmt.Sprintf("BOX#%d", i), fmt.Sprintf("TAG#%d", h.tags), "Tag", fmt.Sprint(i), fmt.Sprint(h.tags))
	}
}

// right reports how many boxes of a table show a number of tags.
func (h *halls) right(table string, tags int64) (n int) {
	for i := range 8 {
		rows, err := h.Get(context.Background(), []store.Ref{{Table: table, Key: store.Key{Partition: value.OfString(fmt.Sprintf("BOX#%d", i)), Sort: value.OfString("META")}}})
		failtest.On(h.T, err)
		if got, _ := rows[0].Get("tags").Int64(); got == tags {
			n++
		}
	}
	return n
}

// until waits for something.
func (h *halls) until(what string, is func() bool) {
	h.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("not within 20 s: %s; what stands still: %+v", what, h.follows.Stopped())
		}
	}
}

// TestTableWithoutStream: only that table stands still, and is named, until it has a stream
// again. That holds for a process that begins meanwhile too.
func TestTableWithoutStream(t *testing.T) {
	for _, from := range []string{"the beginning", "later"} {
		t.Run(from, func(t *testing.T) {
			h := newHalls(t)
			h.streamless.Store(from == "the beginning")
			h.tag("left")
			h.tag("right")
			h.start()
			h.until("the right table", func() bool { return h.right("right", 1) == 8 })
			if from == "later" {
				h.until("the left table", func() bool { return h.right("left", 1) == 8 })
				h.streamless.Store(true)
			}
			h.until("the left table stands still", func() bool {
				still := h.follows.Stopped()
				return len(still) == 1 && still[0].Table == "left" && still[0].Shard == "" && strings.Contains(still[0].Why, errNoStream.Error())
			})
			h.tag("right")
			h.until("the right table goes on", func() bool { return h.right("right", 2) == 8 })
			h.streamless.Store(false)
			h.until("the left table goes on", func() bool { return h.right("left", 1) == 8 && len(h.follows.Stopped()) == 0 })
		})
	}
}

// TestStreamOffWhileRunning: a stream that is switched off is named although its last day can still be read, and
// all else goes on. It is named no more when it is on.
func TestStreamOffWhileRunning(t *testing.T) {
	h := newHalls(t)
	h.run.Catalog = catalog.New(h.run.Model, h, time.Now, catalog.Options{})
	h.start()
	h.tag("left")
	h.until("the left table", func() bool { return h.right("left", 1) == 8 })
	h.off.Store(true)
	h.until("the left table stands still", func() bool {
		still := h.follows.Stopped()
		return len(still) == 1 && still[0].Table == "left" && strings.Contains(still[0].Why, "the stream of table left is off")
	})
	if names, err := h.run.Catalog.Unfinished(t.Context(), []string{"LeftBox", "RightBox"}); err != nil || !slices.Equal(names, []string{"LeftBox.tags"}) {
		t.Error(names, err)
	}
	h.tag("right")
	h.until("the right table", func() bool { return h.right("right", int64(h.tags-1)) == 8 || h.right("right", 1) == 8 })
	h.off.Store(false)
	h.until("the left table goes on", func() bool { return len(h.follows.Stopped()) == 0 })
	if names, err := h.run.Catalog.Unfinished(t.Context(), []string{"LeftBox", "RightBox"}); err != nil || len(names) > 0 {
		t.Error(names, err)
	}
}

// TestRestartedWhileRunning: of a stream that may count from a lower number nothing is read. That is said, and the other
// table goes on.
func TestRestartedWhileRunning(t *testing.T) {
	h := newHalls(t)
	h.run.Catalog = catalog.New(h.run.Model, h, time.Now, catalog.Options{})
	h.start()
	h.tag("left")
	h.until("the left table", func() bool { return h.right("left", 1) == 8 })
	h.second.Store(true)
	h.until("the left table stands still", func() bool {
		still := h.follows.Stopped()
		return len(still) == 1 && still[0].Table == "left" && strings.Contains(still[0].Why, "the stream of left was switched off and on again")
	})
	h.tag("right")
	h.until("the right table", func() bool { return h.right("right", int64(h.tags-1)) == 8 || h.right("right", 1) == 8 })
	if h.begun.Load() {
		t.Error("the second stream is read")
	}
}

// TestTableWithoutStreamOnDynamoDB is the same where DynamoDB says that there is no stream.
func TestTableWithoutStreamOnDynamoDB(t *testing.T) {
	cfg := dynamodbtest.Config(t)
	m, tables := hallTables(t, "left")
	h := hallsIn(t, m, dynamodbtest.Open(t, cfg, tables, dynamodb.Options{}))
	h.start()
	h.tag("right")
	h.until("the right table", func() bool { return h.right("right", 1) == 8 })
	h.until("the left table stands still", func() bool {
		still := h.follows.Stopped()
		return len(still) == 1 && still[0].Table == "left" && still[0].Shard == "" && strings.Contains(still[0].Why, "has no stream")
	})
	_, err := sdk.NewFromConfig(cfg).UpdateTable(t.Context(), &sdk.UpdateTableInput{TableName: aws.String("left"), StreamSpecification: &types.StreamSpecification{
		StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
	}})
	failtest.On(t, err)
	h.until("the left table goes on", func() bool { return len(h.follows.Stopped()) == 0 })
	h.tag("left")
	h.until("the left table counts", func() bool { return h.right("left", 1) == 8 })
}

// TestTableWithoutWrites: a table that takes no writes is named while the process waits for it. When it takes writes
// again, the rows of all tables show everything, without a command.
func TestTableWithoutWrites(t *testing.T) { withoutWrites(newHalls(t)) }

func TestTableWithoutWritesOnDynamoDB(t *testing.T) {
	m, tables := hallTables(t)
	withoutWrites(hallsIn(t, m, dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})))
}

func withoutWrites(h *halls) {
	h.start()
	h.tag("left")
	h.tag("right")
	h.until("all boxes", func() bool { return h.right("left", 1) == 8 && h.right("right", 1) == 8 })
	h.refuses.Store(true)
	h.tag("left")
	h.until("the left table is named", func() bool {
		still := h.follows.Stopped()
		return len(still) == 1 && still[0].Table == "left" && still[0].Shard == "" && strings.Contains(still[0].Why, errPolicy.Error())
	})
	for range 3 {
		h.tag("left")
		h.tag("right")
	}
	if n := h.right("left", 1); n != 8 {
		h.Errorf("%d boxes of the left table are as they were", n)
	}
	h.refuses.Store(false)
	h.until("both tables go on", func() bool {
		return h.right("left", 5) == 8 && h.right("right", 4) == 8 && len(h.follows.Stopped()) == 0
	})
}

// TestShardsThatCannotBeRead: shards of which no record can be read are named, and all else goes on. What they had may
// have expired after a day, which a dead letter says once, although processes have listed them all the time.
func TestShardsThatCannotBeRead(t *testing.T) {
	h := newHalls(t)
	h.denied.Store(true)
	h.tag("right")
	h.start()
	shards, err := h.Shards(t.Context(), "left")
	failtest.On(t, err)
	named := func() bool {
		still := h.follows.Stopped()
		return len(still) == len(shards) && !slices.ContainsFunc(still, func(s Stopped) bool {
			return s.Table != "left" || s.Shard == "" || !strings.Contains(s.Why, errDenied.Error())
		})
	}
	h.until("the shards of the left table are named", named)
	h.until("the right table", func() bool { return h.right("right", 1) == 8 })
	letters := func() (all []deadletter.Letter) {
		failtest.On(t, h.run.EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
			all = append(all, d)
			return nil
		}))
		return all
	}
	for range 22 {
		h.ahead.Add(int64(time.Hour))
		time.Sleep(100 * time.Millisecond) // shards are listed some times in each hour
	}
	if all := letters(); len(all) > 0 {
		t.Errorf("no record can have expired, and weir says %+v", all)
	}
	h.ahead.Add(int64(2 * time.Hour))
	h.until("a letter", func() bool { return len(letters()) > 0 })
	h.denied.Store(false)
	h.tag("left")
	h.until("the left table goes on", func() bool { return h.right("left", 1) == 8 && len(h.follows.Stopped()) == 0 })
	all := letters()
	if len(all) != 1 || all[0].Kind != deadletter.Gap || all[0].Target != "stream of left" || !strings.Contains(all[0].Reason, "projector build MODEL --again") {
		t.Fatalf("weir says %+v", all)
	}
	for _, s := range shards {
		if !strings.Contains(all[0].Reason, s.ID) {
			t.Errorf("%s is not named: %s", s.ID, all[0].Reason)
		}
	}
}
