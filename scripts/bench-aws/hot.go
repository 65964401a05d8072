package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/budget"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/runner/runnertest"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// One hot target: pictures come into one album, from all shards, while the application writes the
// album too. A proxy in front of DynamoDB Local refuses writes of a partition key beyond
// DynamoDB's documented 1,000 units a second. The album is large, so that its partition takes few
// writes.

const (
	partitionUnits = 1000 // "Best practices for designing and using partition keys effectively"
	hotRate        = 5000 // pictures a second
	hotShards      = 20
	hotSeconds     = 20
	hotKilobytes   = 100
	hotEntries     = 3 // of the album in indexes, each as large as it
	appRate        = 4 // writes of the album that the application makes in a second
	hotBudget      = 400
)

// hot is a run, and its result.
type hot struct {
	processes int // or 0: a function, with one invocation for each shard
	budget    float64

	applied, writes int           // records and writes of the album by weir, per second
	lag             time.Duration // the most that the album was behind
	refused         int64         // writes of weir
	app             appWrites
}

func (h *hot) name() string {
	if h.processes == 0 {
		return "function"
	}
	return fmt.Sprint("processes: ", h.processes)
}

// appWrites are the writes of the application: those refused, and how long each took with the
// SDK's own retries.
type appWrites struct {
	refused atomic.Int64
	mu      sync.Mutex
	failed  int
	took    []time.Duration
}

// quantile is the time in which so many of the writes were done.
func (a *appWrites) quantile(q float64) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.took)
	if len(a.took) == 0 {
		return 0
	}
	return a.took[min(len(a.took)-1, int(q*float64(len(a.took))))].Round(time.Millisecond)
}

// measureHot prints the results with and without a budget.
func measureHot(ctx context.Context) error {
	m, err := model.Load("gallery")
	if err != nil {
		return err
	}
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "reader\tbudget\trecords/s\tmost lag\talbum writes/s\tweir refused\tapplication: writes\trefused\tfailed\tmedian\t99 %\t")
	for _, h := range []*hot{{processes: 1}, {processes: 4}, {}} {
		for _, budget := range []float64{0, hotBudget} {
			h := &hot{processes: h.processes, budget: budget}
			if err := h.runHot(ctx, m); err != nil {
				return fmt.Errorf("%s, budget %v: %w", h.name(), budget, err)
			}
			fmt.Fprintf(tw, "%s\t%.0f\t%d\t%.1f s\t%d\t%d\t%d\t%d\t%d\t%v\t%v\t\n", h.name(), budget, h.applied, h.lag.Seconds(), h.writes, h.refused,
				len(h.app.took)+h.app.failed, h.app.refused.Load(), h.app.failed, h.app.quantile(0.5), h.app.quantile(0.99))
			if err := tw.Flush(); err != nil { // each takes half a minute
				return err
			}
		}
	}
	return tw.Flush()
}

func (h *hot) runHot(ctx context.Context, m *model.Model) error {
	proxy, end := startProxy()
	defer end()
	var refused atomic.Int64
	proxy.Refused = func(_ *http.Request, body []byte) {
		if bytes.Contains(body, []byte("appWrote")) {
			h.app.refused.Add(1)
		} else {
			refused.Add(1)
		}
	}
	cfg, err := dynamodb.Config(ctx)
	if err != nil {
		return err
	}
	cfg.Credentials = credentials.NewStaticCredentialsProvider(rand.Text(), "x", "")
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		return err
	}
	db := dynamodb.Open(cfg, tables, dynamodb.Options{})
	for _, t := range tables {
		if _, err := db.Deploy(ctx, t.Name, true); err != nil {
			return err
		}
	}
	row := albumRow(0).With(value.Attr{Name: "notes", Value: value.OfString(strings.Repeat("x", hotKilobytes<<10-700))})
	if _, err := db.Write(ctx, []store.Write{{Ref: refOf(m, row), Put: row}}); err != nil {
		return err
	}
	w := workload{rows: []value.Item{row}, attr: "mediaCount"}
	for i := range hotRate * hotSeconds {
		w.insertRecord(m, i, 0, stringItem("PK", "ALBUM#a0", "SK", fmt.Sprintf("MEDIA#m%d", i), "EntityType", "AlbumMedia", "albumId", "a0", "mediaId", fmt.Sprintf("m%d", i), "addedAt", timeStamp(i)))
	}
	var uses []*budget.Writes
	among := h.processes
	if among == 0 {
		among = hotShards
	}
	s := &sharing{model: m, work: w, lease: 10 * time.Second, stream: dealtStream(m, &w)}
	s.open = func() store.Store {
		writes := budget.New(h.budget, owntable.TableName)
		writes.Share([]string{m.Tables[0].Name}, among)
		uses = append(uses, writes)
		return dynamodb.Open(cfg, tables, dynamodb.Options{Concurrency: concurrency, Writes: writes})
	}
	defer s.endAll()
	for range h.processes {
		s.startProcess()
	}
	if h.processes > 0 {
		if _, err := s.awaitReader(ctx); err != nil {
			return err
		}
	}
	proxy.Set(dynamodbtest.Faults{Partition: partitionUnits})
	s.stream.upTo(1)
	s.stream.showMore()
	over, stop := context.WithCancel(ctx)
	defer stop()
	begin := time.Now()
	due := func() int { return min(len(w.records), 1+int(time.Since(begin).Seconds()*hotRate)) }
	if h.processes == 0 {
		h.invokeShards(over, s, due)
	}
	h.app.writeAlbum(over, sdk.NewFromConfig(cfg, func(o *sdk.Options) { o.Retryer, o.DisableValidateResponseChecksum = retry.NewStandard(), true }), m.Tables[0].Name)
	if err := h.followHot(ctx, s.newRunner(db), s.stream, due); err != nil {
		return err
	}
	took := time.Since(begin).Seconds()
	stop()
	h.refused, h.applied = refused.Load(), int(float64(len(w.records))/took)
	units := 0.0
	for _, u := range uses {
		for _, u := range u.Uses() {
			if u.Table == m.Tables[0].Name {
				units += u.Units
			}
		}
	}
	h.writes = int(math.Round(units / (hotKilobytes * (1 + hotEntries)) / took))
	return (&world{model: m, work: w}).checkIn(ctx, db)
}

// dealtStream is a stream whose shards have the records in turn.
func dealtStream(m *model.Model, w *workload) *sharedStream {
	recs := make([][]events.Record, hotShards)
	for i, r := range w.records {
		recs[i%hotShards] = append(recs[i%hotShards], r)
	}
	return &sharedStream{table: m.Tables[0].Name, recs: recs, more: make(chan struct{})}
}

// followHot lets the stream grow, and notes how far the album is behind, until it shows everything.
func (h *hot) followHot(ctx context.Context, run *runner.Runner, stream *sharedStream, due func() int) error {
	ref := refOf(run.Model, albumRow(0))
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		stream.upTo(due())
		rows, err := run.Store.Get(ctx, []store.Ref{ref})
		if err != nil {
			return err
		}
		shown, _ := rows[0].Get("mediaCount").Int64()
		h.lag = max(h.lag, time.Duration(float64(due()-int(shown))/hotRate*float64(time.Second)))
		if int(shown) == hotRate*hotSeconds {
			return nil
		}
		if time.Since(begin) > 3*time.Minute {
			n, err := runnertest.Counted(ctx, run)
			return errors.Join(fmt.Errorf("it does not catch up: it shows %d, %+v", shown, n), err)
		}
	}
}

// eventRecords is the batch size of the mapping; Lambda allows 10,000.
const eventRecords = 5000

// invokeShards handles the records of each shard as Lambda does: one invocation at a time, with what
// there is.
func (h *hot) invokeShards(ctx context.Context, s *sharing, due func() int) {
	for shard, recs := range s.stream.recs {
		run, table := s.newRunner(s.open()), s.model.Tables[0]
		go func() {
			for done := 0; done < len(recs) && ctx.Err() == nil; {
				n := min(done+eventRecords, due()/hotShards)
				if due() == len(s.work.records) {
					n = min(done+eventRecords, len(recs))
				}
				if n <= done {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				b := runner.Batch{ShardKey: owntable.ShardKey(table.Name, fmt.Sprint("shard-", shard))}
				for i := done; i < n; i++ {
					c, _ := projections.NewChange(table, &recs[i])
					b.Changes = append(b.Changes, c)
				}
				if _, err := run.ApplyRows(ctx, b); err == nil {
					done = n
				}
			}
		}()
	}
}

// writeAlbum writes the album as the application does, until ctx is done.
func (a *appWrites) writeAlbum(ctx context.Context, app *sdk.Client, table string) {
	one := func() {
		start := time.Now()
		_, err := app.UpdateItem(ctx, &sdk.UpdateItemInput{
			TableName: aws.String(table), Key: map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: "ALBUM#a0"}, "SK": &types.AttributeValueMemberS{Value: "METADATA"}},
			UpdateExpression: aws.String("SET appWrote = :t"), ExpressionAttributeValues: map[string]types.AttributeValue{":t": &types.AttributeValueMemberS{Value: start.String()}},
		})
		if ctx.Err() != nil {
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if err != nil {
			a.failed++
		} else {
			a.took = append(a.took, time.Since(start))
		}
	}
	go func() {
		tick := time.NewTicker(time.Second / appRate)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			go one()
		}
	}()
}

// upTo shows the first records of a recording, by their positions, dealt to all shards.
func (s *sharedStream) upTo(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = n
}
