package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/projections/kinds"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/runner/runnertest"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/embedded"
	"weir/internal/system"
	"weir/internal/value"
)

// Processes of which one reads. DynamoDB Local makes few shards, so the stream is simulated in
// front of the store: any number of shards, which have the records of a recording, each album
// in one of them. Rows, ledgers, leases and checkpoints are in DynamoDB Local, or in a store in
// memory that takes as long for a request as a DynamoDB does and does 32 at a time for each
// process: DynamoDB Local and the processes share the processors of one machine, so that
// more processes do not make it faster.

// sharedStream is the simulated stream of a table.
type sharedStream struct {
	table string
	mu    sync.Mutex
	recs  [][]events.Record // of each shard
	shown bool
	due   int           // if above 0, how many records of the whole recording exist by now
	more  chan struct{} // closed when there are records
}

func (s *sharedStream) showMore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = true
	close(s.more)
	s.more = make(chan struct{})
}

// backend is a store of one process behind the simulated stream. A killed one answers nothing.
type backend struct {
	store.Store
	stream *sharedStream
	wait   time.Duration // for each request
	dead   atomic.Bool
}

var errDead = errors.New("the process is dead")

// waitRequests waits as long as so many requests take, 32 at a time.
func (b *backend) waitRequests(requests int) error {
	if b.dead.Load() {
		return errDead
	}
	if b.wait > 0 {
		time.Sleep(b.wait * time.Duration((requests+concurrency-1)/concurrency))
	}
	return nil
}

func (b *backend) Get(ctx context.Context, refs []store.Ref) ([]value.Item, error) {
	if err := b.waitRequests((len(refs) + 99) / 100); err != nil {
		return nil, err
	}
	return b.Store.Get(ctx, refs)
}

func (b *backend) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	if err := b.waitRequests(len(ws)); err != nil {
		return nil, err
	}
	return b.Store.Write(ctx, ws)
}

func (b *backend) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if err := b.waitRequests(1); err != nil {
		return store.Page{}, err
	}
	return b.Store.Query(ctx, q)
}

func (b *backend) Transact(ctx context.Context, ws []store.Write) error {
	if err := b.waitRequests(1); err != nil {
		return err
	}
	return b.Store.Transact(ctx, ws)
}

func (b *backend) Streams(ctx context.Context, table string, also ...string) ([]string, error) {
	if table != b.stream.table {
		return b.Store.Streams(ctx, table, also...)
	}
	return []string{"2025-03-01T00:00:00.000"}, b.waitRequests(1)
}

func (b *backend) Shards(ctx context.Context, table string) ([]store.Shard, error) {
	if table != b.stream.table {
		return b.Store.Shards(ctx, table)
	}
	b.stream.mu.Lock()
	defer b.stream.mu.Unlock()
	out := make([]store.Shard, len(b.stream.recs))
	for i := range out {
		out[i].ID = fmt.Sprintf("shard-%04d", i)
	}
	return out, b.waitRequests((len(out) + 99) / 100)
}

func (b *backend) Read(ctx context.Context, table, shard string, after events.Position, limit int) (out store.Records, err error) {
	if table != b.stream.table {
		return b.Store.Read(ctx, table, shard, after, limit)
	}
	if err := b.waitRequests(1); err != nil {
		return out, err
	}
	b.stream.mu.Lock()
	defer b.stream.mu.Unlock()
	if !b.stream.shown {
		return out, nil
	}
	var at int
	fmt.Sscanf(shard, "shard-%d", &at)
	recs := b.stream.recs[at]
	first := sort.Search(len(recs), func(i int) bool { return recs[i].Position.Compare(after) > 0 })
	for _, r := range recs[first:] {
		if b.stream.due > 0 && r.Position.Compare(events.PositionOf(uint64(b.stream.due))) > 0 || len(out.Records) == limit {
			break
		}
		out.Records = append(out.Records, r)
	}
	return out, nil
}

func (b *backend) Horizon(context.Context, string, string) (events.Position, error) {
	return events.Position{}, nil
}
func (b *backend) Trim(context.Context, string, string, events.Position) error { return nil }
func (b *backend) Tip() store.Tip                                              { return store.Tip{} }

func (b *backend) Changed(string) (<-chan struct{}, error) {
	b.stream.mu.Lock()
	defer b.stream.mu.Unlock()
	return b.stream.more, nil
}

// sharing is processes of which one reads a simulated stream.
type sharing struct {
	model  *model.Model
	work   workload
	stream *sharedStream
	open   func() store.Store
	wait   time.Duration
	lease  time.Duration
	procs  []*sharer
	failed atomic.Int64 // the batches that failed
}

// sharer is one of the processes.
type sharer struct {
	*backend
	following *reader.Leased
	stop      context.CancelFunc
	over      chan struct{}
}

func newSharing(ctx context.Context, m *model.Model, w workload, shards int, wait, lease time.Duration) (*sharing, error) {
	s := &sharing{model: m, work: w, wait: wait, lease: lease, stream: &sharedStream{table: m.Tables[0].Name, recs: make([][]events.Record, shards), more: make(chan struct{})}}
	for i, r := range w.records {
		at := w.target[i] % shards
		s.stream.recs[at] = append(s.stream.recs[at], r)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		db, err := embedded.Open("store", tables, embedded.Options{FS: vfs.NewMem()})
		if err != nil {
			return nil, err
		}
		s.open = func() store.Store { return db }
	} else {
		cfg, err := dynamodb.Config(ctx)
		if err != nil {
			return nil, err
		}
		cfg.Credentials = credentials.NewStaticCredentialsProvider(rand.Text(), "x", "")
		s.open = func() store.Store { return dynamodb.Open(cfg, tables, dynamodb.Options{Concurrency: concurrency}) }
		db := dynamodb.Open(cfg, tables, dynamodb.Options{})
		for _, t := range tables {
			if _, err := db.Deploy(ctx, t.Name, true); err != nil {
				return nil, err
			}
		}
	}
	ws := make([]store.Write, len(w.rows))
	for i, row := range w.rows {
		ws[i] = store.Write{Ref: refOf(m, row), Put: row}
	}
	if _, err := s.open().Write(ctx, ws); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *sharing) newRunner(db store.Store) *runner.Runner {
	return &runner.Runner{Kinds: kinds.All(), Model: s.model, Store: db, Now: time.Now, Mover: &ingest.Mover{Model: s.model, Store: db}}
}

// startProcess starts a process.
func (s *sharing) startProcess() {
	p := &sharer{backend: &backend{Store: s.open(), stream: s.stream, wait: s.wait}, over: make(chan struct{})}
	f := reader.NewLeased(s.newRunner(p.backend), reader.Options{Lease: s.lease, Log: slog.New(&failures{&s.failed})})
	f.Start()
	ctx, stop := context.WithCancel(context.Background())
	p.following, p.stop = f, stop
	go func() {
		defer close(p.over)
		f.Apply(ctx)
	}()
	s.procs = append(s.procs, p)
}

// failures is a log that only counts the batches that failed.
type failures struct{ n *atomic.Int64 }

func (f *failures) Enabled(context.Context, slog.Level) bool { return true }
func (f *failures) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f *failures) WithGroup(string) slog.Handler            { return f }

func (f *failures) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "applying" {
		f.n.Add(1)
	}
	return nil
}

func (s *sharing) endAll() {
	for _, p := range s.procs {
		p.dead.Store(true)
		p.stop()
		p.following.Close()
		<-p.over
	}
}

// awaitCondition waits until a condition holds, and returns how long that took.
func awaitCondition(ctx context.Context, most time.Duration, is func() (bool, error)) (time.Duration, error) {
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		ok, err := is()
		if ok || err != nil {
			return time.Since(start), err
		}
		if err := ctx.Err(); err != nil || time.Since(start) > most {
			return 0, errors.Join(err, fmt.Errorf("nothing happened for %v", most))
		}
	}
}

// awaitReader waits until one of the processes that live reads all shards.
func (s *sharing) awaitReader(ctx context.Context) (time.Duration, error) {
	return awaitCondition(ctx, 5*time.Minute, func() (bool, error) {
		all := 0
		for _, p := range s.procs {
			if !p.dead.Load() {
				all += len(p.following.Status())
			}
		}
		return all == len(s.stream.recs), nil
	})
}

// awaitApplied waits until all records are applied.
func (s *sharing) awaitApplied(ctx context.Context) (time.Duration, error) {
	run := s.newRunner(s.open())
	took, err := awaitCondition(ctx, 10*time.Minute, func() (bool, error) {
		n, err := runnertest.Counted(ctx, run)
		return n.Applied+n.Skipped+n.Dead >= len(s.work.records), err
	})
	if err != nil {
		return 0, err
	}
	wd := &world{model: s.model, work: s.work}
	return took, wd.checkIn(ctx, s.open())
}
