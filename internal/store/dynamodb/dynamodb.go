// Package dynamodb is the store driver for DynamoDB and its streams.
//
// Each Write is one UpdateItem, PutItem or DeleteItem. A Transact is one
// TransactWriteItems. Writes to different keys run in parallel, at most
// Options.Concurrency of them over all calls. Writes of one call to one key run one
// after the other.
//
// A failed request is sent again (retry.go) in two cases. First, if it certainly did
// nothing: it was throttled, was never connected, or was a single write that met a
// transaction. Second, if its outcome is unknown but doing it twice is the same as
// doing it once, in the table and in the result: reads, writes without a condition that
// add nothing, and transactions, which carry a token. The same holds for writes whose
// caller says so (store.Write.Repeatable). The rest of the call goes on meanwhile. Any
// other unknown outcome is left to the caller, as the contract says.
//
// A Write's Origin is carried through the stream in the images (origin.go).
//
// The files: get.go and query.go read; write.go and transact.go write, with values
// from values.go; retry.go decides which requests are sent again, and hot.go
// spaces writes of rows that are refused for their rate; stream.go reads streams; deploy.go makes
// tables, and differ.go says how one differs.
package dynamodb

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/logging"

	"weir/internal/budget"
	"weir/internal/store"
)

// Options of a store; the zero Options are good for production.
type Options struct {
	// Concurrency is the maximum of requests that run at the same time; 0 is 32.
	Concurrency int
	// ReadInterval is the minimum time between two reads of one shard; 0 is 200 ms, a
	// negative one is none.
	ReadInterval time.Duration
	// Lag is how long after a write its record may be missing from the stream; 0 is 3
	// s.
	Lag time.Duration
	// Patience is how long a request is retried before its error is returned; 0 is 30
	// s.
	Patience time.Duration
	// Writes, when set, counts the write units of each table, and the writes that were refused
	// for now. Writes wait for its budget. Their cost is known afterwards, so the budget is
	// exact over some seconds, not within each.
	Writes *budget.Writes
	// Consumed, when set, is called with the use of each request, in capacity units.
	// It is called from many goroutines at the same time.
	Consumed func(Capacity)
	// Observe, when set, is told of each call.
	Observe store.Observer
	// Now is the clock of this machine; nil is time.Now.
	Now func() time.Time
	// Transport, when set, carries the requests: for tests.
	Transport http.RoundTripper
}

// Capacity is a request's use of a table.
// One of Read and Write is 0, unless the service tells both.
type Capacity struct {
	Table string
	Op    string // the API's name of the operation
	Read  float64
	Write float64
}

// withDefaults replaces zero options: 32 requests at a time, 200 ms between two reads
// of one shard (DynamoDB allows five a second), and a record that may be missing from its
// stream for 3 s after its write.
func (o Options) withDefaults() Options {
	if o.Concurrency <= 0 {
		o.Concurrency = 32
	}
	if o.ReadInterval == 0 {
		o.ReadInterval = 200 * time.Millisecond
	}
	if o.Lag == 0 {
		o.Lag = 3 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	return o
}

// Config is the SDK's configuration from its own environment: AWS_REGION,
// AWS_PROFILE, AWS_ENDPOINT_URL_DYNAMODB and the rest.
func Config(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return cfg, fmt.Errorf("the AWS environment: %w", err)
	}
	if cfg.Region == "" {
		return cfg, fmt.Errorf("the AWS environment names no region: set AWS_REGION")
	}
	return cfg, nil
}

// LogTo has the SDK's own lines go to a log, and not to stderr as text.
func LogTo(cfg *aws.Config, log *slog.Logger) {
	cfg.Logger = logging.LoggerFunc(func(is logging.Classification, format string, v ...any) {
		level := slog.LevelDebug
		if is == logging.Warn {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "AWS SDK: "+fmt.Sprintf(format, v...))
	})
}

// Store is a store in DynamoDB. It has no state that a crash could lose.
// It may be used by many goroutines. Its memory, such as iterators and hot rows, only saves requests: a new
// Store behaves the same.
type Store struct {
	db      *dynamodb.Client
	streams *dynamodbstreams.Client
	opts    Options
	tables  map[string]*store.Table
	slots   chan struct{} // one for each running request
	closed  atomic.Bool
	latency latency
	clock   clock
	hot     hotRows

	mu     sync.Mutex
	arns   map[string][]string          // by table, of its streams, the latest last
	shards map[string]map[string]string // by table and shard, the stream that the shard belongs to
	lines  map[line]*cursor             // how far shards have been read
}

var _ store.Store = (*Store)(nil)

// Open returns a store with the tables described. The tables must exist; Deploy makes
// them.
// It sends no request, so a table that does not exist is noticed by the first call that uses it.
func Open(cfg aws.Config, tables []store.Table, o Options) *Store {
	o = o.withDefaults()
	s := &Store{opts: o, tables: map[string]*store.Table{}, slots: make(chan struct{}, o.Concurrency), arns: map[string][]string{}, shards: map[string]map[string]string{}, lines: map[line]*cursor{}}
	for i := range tables {
		t := tables[i]
		s.tables[t.Name] = &t
	}
	s.clock.now = o.Now
	s.hot.now, s.hot.of = o.Now, map[rowID]*hotRow{}
	s.db, s.streams = newClients(cfg, o, &s.clock)
	return s
}

// requestTimeout limits one request. A connection that hangs is then one more unknown
// outcome.
const requestTimeout = 20 * time.Second

// newClients makes SDK clients that never retry, because whether a retry is safe depends
// on the write.
func newClients(cfg aws.Config, o Options, c *clock) (*dynamodb.Client, *dynamodbstreams.Client) {
	cfg = cfg.Copy()
	cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	if o.Transport != nil {
		cfg.HTTPClient = &http.Client{Transport: o.Transport, Timeout: requestTimeout}
	} else {
		cfg.HTTPClient = awshttp.NewBuildableClient().WithTimeout(requestTimeout).WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = o.Concurrency
			t.MaxIdleConns = 2 * o.Concurrency
		})
	}
	cfg.HTTPClient = &clocked{cfg.HTTPClient, c}
	db := dynamodb.NewFromConfig(cfg, func(do *dynamodb.Options) {
		// The transport already checks the data. The client does not read an error
		// response to its end, takes its checksum for wrong, and logs a warning.
		do.DisableValidateResponseChecksum = true
	})
	return db, dynamodbstreams.NewFromConfig(cfg, func(so *dynamodbstreams.Options) {
		if so.BaseEndpoint == nil {
			so.BaseEndpoint = streamsEndpoint(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"))
		}
	})
}

// streamsEndpoint is the endpoint of the streams if DynamoDB has a custom endpoint: the
// same one, unless it is AWS's own, which has the streams elsewhere.
func streamsEndpoint(db string) *string {
	u, err := url.Parse(db)
	if db == "" || err != nil || strings.HasSuffix(u.Hostname(), ".amazonaws.com") || strings.HasSuffix(u.Hostname(), ".api.aws") {
		return nil
	}
	return &db
}

// beginCall begins a call: it returns ErrClosed or the context's error if the call must do
// nothing.
func (s *Store) beginCall(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closed.Load() {
		return store.ErrClosed
	}
	return nil
}

// table is the definition that Open was given; ErrNoTable if it has none of this name.
func (s *Store) table(name string) (*store.Table, error) {
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("table %q: %w", name, store.ErrNoTable)
}

// awaitSlot waits until another request may run; the caller calls release afterwards.
func (s *Store) awaitSlot(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// releaseSlot gives a slot back.
func (s *Store) releaseSlot() { <-s.slots }

// Sync returns at once: everything that DynamoDB acknowledged is durable.
func (s *Store) Sync(ctx context.Context) error { return s.beginCall(ctx) }

// Close ends the store.
// Calls that run go on to their end; later ones return store.ErrClosed.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

// Tip has no positions: DynamoDB has no order over all streams.
func (s *Store) Tip() store.Tip { return store.Tip{Lag: s.opts.Lag, Ahead: s.clock.by()} }

// Sweep deletes nothing: DynamoDB deletes expired rows by itself.
func (s *Store) Sweep(ctx context.Context, _ time.Time, _ int, _ store.Prepare) (int, error) {
	return 0, s.beginCall(ctx)
}

// Load returns none: DynamoDB takes rows only with their stream records.
func (s *Store) Load(ctx context.Context, _ store.LoadOptions) (store.Load, error) {
	return nil, s.beginCall(ctx)
}

// returnCapacity is the value of ReturnConsumedCapacity in requests.
func (s *Store) returnCapacity() types.ReturnConsumedCapacity {
	if s.opts.Consumed == nil && s.opts.Writes == nil {
		return types.ReturnConsumedCapacityNone
	}
	return types.ReturnConsumedCapacityTotal
}

// noteConsumed adds the units that a response says it used to the write budget of its table, and
// tells Options.Consumed. Answers that give only a total are of one kind: reads or writes.
func (s *Store) noteConsumed(ctx context.Context, op string, write bool, cs ...types.ConsumedCapacity) {
	for _, c := range cs {
		n := Capacity{Table: aws.ToString(c.TableName), Op: op, Read: aws.ToFloat64(c.ReadCapacityUnits), Write: aws.ToFloat64(c.WriteCapacityUnits)}
		if n.Read == 0 && n.Write == 0 {
			if units := aws.ToFloat64(c.CapacityUnits); write {
				n.Write = units
			} else {
				n.Read = units
			}
		}
		if write {
			s.opts.Writes.Spent(ctx, n.Table, n.Write)
		} else {
			s.opts.Writes.Read(ctx, n.Table, n.Read)
		}
		if s.opts.Consumed != nil {
			s.opts.Consumed(n)
		}
	}
}

// consumedOne is noteConsumed for an answer about one table, nil if it says nothing.
func (s *Store) consumedOne(ctx context.Context, op string, write bool, c *types.ConsumedCapacity) {
	if c != nil {
		s.noteConsumed(ctx, op, write, *c)
	}
}
