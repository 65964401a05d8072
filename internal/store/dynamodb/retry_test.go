package dynamodb

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// answer is what the fake service says to one request: a reply, or an error of
// the connection.
type answer struct {
	status int
	body   string
	err    error
}

var (
	good      = answer{200, `{}`, nil}
	throttled = answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`, nil}
	conflict  = answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"busy"}`, nil}
	refused   = answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#ValidationException","message":"no such thing"}`, nil}
	broken    = answer{500, `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"oops"}`, nil}
	cut       = answer{0, "", io.ErrUnexpectedEOF}
	mute      = answer{-1, "", nil} // no answer comes
	unreached = answer{0, "", &net.OpError{Op: "dial", Err: errors.New("refused")}}
	notHeld   = answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no","Item":{"PK":{"S":"a"},"n":{"N":"7"}}}`, nil}
)

// service answers requests in turn, with its last answer from then on, and keeps
// them.
type service struct {
	mu      sync.Mutex
	answers []answer
	seen    []string // operation and body
}

func (s *service) next(request string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[min(len(s.seen), len(s.answers)-1)]
	s.seen = append(s.seen, request)
	return a
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	a := s.next(op + " " + string(body))
	if a == mute {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(strings.NewReader(a.body)), Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}}, nil
}

func fake(answers ...answer) (*Store, *service) { return patient(time.Minute, answers...) }

func patient(patience time.Duration, answers ...answer) (*Store, *service) {
	sv := &service{answers: answers}
	return opened(sv, Options{Patience: patience}), sv
}

// opened is a store whose requests go to a fake service.
func opened(to http.RoundTripper, o Options) *Store {
	cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String("http://dynamodb.invalid"), Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	t := store.Table{Name: "things", Key: store.KeySchema{Partition: store.KeyAttr{Name: "PK", Type: value.String}}, Stream: true}
	o.Transport, o.ReadInterval = to, -1
	return Open(cfg, []store.Table{t}, o)
}

func thing(pk string) store.Ref {
	return store.Ref{Table: "things", Key: store.Key{Partition: value.OfString(pk)}}
}

func putThing(pk string) store.Write {
	return store.Write{Ref: thing(pk), Put: value.NewItem(value.Attr{Name: "PK", Value: value.OfString(pk)})}
}

func setThing(pk string) store.Write {
	return store.Write{Ref: thing(pk), Ops: []store.Op{{Kind: store.Set, Attr: "v", Value: value.OfInt(1)}}}
}

func addThing(pk string) store.Write {
	return store.Write{Ref: thing(pk), Ops: []store.Op{{Kind: store.Add, Attr: "v", Value: value.OfInt(1)}}, Return: true}
}

func onlyIf(w store.Write) store.Write {
	w.If, w.Return = store.Cond{{{Attr: "PK", Is: store.Absent}}}, true
	return w
}

func mayTwice(w store.Write) store.Write {
	w.Repeatable = true
	return w
}

// TestWritesSentAgain says, for a kind of write and what the service answers
// first, whether the write is sent again.
func TestWritesSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		write store.Write
		first answer
		again bool
	}{
		"a throttled addition":                 {addThing("a"), throttled, true},
		"an addition that met a transaction":   {addThing("a"), conflict, true},
		"an addition that never got there":     {addThing("a"), unreached, true},
		"an addition with an unknown outcome":  {addThing("a"), broken, false},
		"an addition whose answer was cut":     {addThing("a"), cut, false},
		"a condition with an unknown outcome":  {onlyIf(putThing("a")), broken, false},
		"a throttled condition":                {onlyIf(putThing("a")), throttled, true},
		"a put with an unknown outcome":        {putThing("a"), broken, true},
		"a set whose answer was cut":           {setThing("a"), cut, true},
		"a delete with an unknown outcome":     {store.Write{Ref: thing("a"), Delete: true}, broken, true},
		"a refused set":                        {setThing("a"), refused, false},
		"an addition that may happen twice":    {mayTwice(addThing("a")), broken, true},
		"a condition that may, and was cut":    {mayTwice(onlyIf(putThing("a"))), cut, true},
		"one that may, and has no answer":      {mayTwice(onlyIf(putThing("a"))), mute, true},
		"an addition for which there is no IP": {addThing("a"), answer{err: &net.OpError{Op: "dial", Err: &net.DNSError{Name: "x"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, sv := fake(c.first, good)
			out, err := s.Write(t.Context(), []store.Write{c.write})
			if sent := len(sv.seen); sent != map[bool]int{false: 1, true: 2}[c.again] {
				t.Errorf("sent %d times", sent)
			}
			switch {
			case c.again && (err != nil || out[0].Err != nil):
				t.Errorf("%v, %v", err, out[0].Err)
			case errors.Is(c.first.err, io.ErrUnexpectedEOF) || c.first.status == 500:
				if !c.again && (err == nil || out[0].Err == nil || errors.Is(err, store.ErrCondition) || errors.Is(err, store.ErrRefused)) {
					t.Errorf("an unknown outcome is said as %v, %v", err, out[0].Err)
				}
			}
		})
	}
}

// TestOneIsSettledAlone: a write without an answer holds up no other write of its call, and
// its own failed condition is for the caller to judge.
func TestOneIsSettledAlone(t *testing.T) {
	s, sv := fake(broken, notHeld)
	s.opts.Concurrency = 1
	out, err := s.Write(t.Context(), []store.Write{mayTwice(onlyIf(addThing("a"))), mayTwice(addThing("b"))})
	if err != nil || len(sv.seen) != 3 || !errors.Is(out[0].Err, store.ErrCondition) || out[0].Row.Get("n").Text() != "7" {
		t.Errorf("%v, %+v, %d requests", err, out, len(sv.seen))
	}
}

func TestPatienceEnds(t *testing.T) {
	s, sv := patient(time.Second, throttled)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := s.Write(ctx, []store.Write{addThing("a")})
	if err == nil || ctx.Err() != nil || len(sv.seen) < 2 {
		t.Errorf("%v after %d requests", err, len(sv.seen))
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Get(ctx, []store.Ref{thing("a")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get: %v", err)
	}
}

// TestFailedCallsNameTheirTable: whichever call a policy denies, the error tells of which table.
func TestFailedCallsNameTheirTable(t *testing.T) {
	for name, call := range map[string]func(s *Store) error{
		"put":    func(s *Store) error { _, err := s.Write(t.Context(), []store.Write{putThing("a")}); return err },
		"update": func(s *Store) error { _, err := s.Write(t.Context(), []store.Write{setThing("a")}); return err },
		"puts": func(s *Store) error {
			_, err := s.Write(t.Context(), []store.Write{putThing("a"), putThing("b")})
			return err
		},
		"transact": func(s *Store) error { return s.Transact(t.Context(), []store.Write{setThing("a")}) },
		"get":      func(s *Store) error { _, err := s.Get(t.Context(), []store.Ref{thing("a")}); return err },
	} {
		s, _ := patient(50*time.Millisecond, denied)
		if err := call(s); !slices.Equal(store.FailedTables(err), []string{"things"}) || !strings.Contains(err.Error(), "things") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailedConditionShowsTheRow(t *testing.T) {
	s, sv := fake(notHeld)
	out, err := s.Write(t.Context(), []store.Write{onlyIf(addThing("a"))})
	if err != nil || !errors.Is(out[0].Err, store.ErrCondition) || out[0].Row.Get("n").Text() != "7" || len(sv.seen) != 1 {
		t.Errorf("%v, %+v", err, out)
	}
	if !strings.Contains(sv.seen[0], `"ReturnValuesOnConditionCheckFailure":"ALL_OLD"`) {
		t.Errorf("sent %s", sv.seen[0])
	}
}

// TestUnknownEndsTheCall says that after an unknown outcome later writes of the
// same key are not sent: they would come before it if it is sent again.
func TestUnknownEndsTheCall(t *testing.T) {
	s, sv := fake(broken)
	out, err := s.Write(t.Context(), []store.Write{addThing("a"), addThing("a")})
	if err == nil || len(sv.seen) != 1 || out[0].Err == nil {
		t.Errorf("%v, %+v, %d requests", err, out, len(sv.seen))
	}
}

func TestGetAsksAgainForWhatIsLeft(t *testing.T) {
	row := func(pk string) string { return `{"PK":{"S":"` + pk + `"},"v":{"S":"` + pk + `"}}` }
	some := answer{200, `{"Responses":{"things":[` + row("b") + `]},"UnprocessedKeys":{"things":{"ConsistentRead":true,"Keys":[{"PK":{"S":"a"}}]}}}`, nil}
	rest := answer{200, `{"Responses":{"things":[` + row("a") + `]}}`, nil}
	s, sv := fake(some, throttled, broken, rest)
	got, err := s.Get(t.Context(), []store.Ref{thing("a"), thing("b"), thing("c"), thing("a")})
	if err != nil || len(sv.seen) != 4 {
		t.Fatalf("%v after %d requests", err, len(sv.seen))
	}
	for i, want := range []string{"a", "b", "", "a"} {
		if got[i].Get("v").Text() != want {
			t.Errorf("row %d: %v", i, got[i])
		}
	}
	if strings.Contains(sv.seen[1], `"b"`) {
		t.Errorf("asked again for %s", sv.seen[1])
	}
}

func cancelled(codes ...string) answer {
	var reasons []map[string]string
	for _, c := range codes {
		reasons = append(reasons, map[string]string{"Code": c, "Message": "because"})
	}
	b, _ := json.Marshal(map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "message": "no", "CancellationReasons": reasons})
	return answer{400, string(b), nil}
}

func token(request string) string {
	var in struct{ ClientRequestToken string }
	_ = json.Unmarshal([]byte(request[strings.Index(request, "{"):]), &in)
	return in.ClientRequestToken
}

func TestTransactions(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		want    error
		sent    int
	}{
		"condition":                 {[]answer{cancelled("None", "ConditionalCheckFailed")}, store.ErrCondition, 1},
		"refused":                   {[]answer{cancelled("ValidationError", "None")}, store.ErrRefused, 1},
		"conflict, then good":       {[]answer{cancelled("TransactionConflict", "None"), good}, nil, 2},
		"conflict and condition":    {[]answer{cancelled("TransactionConflict", "ConditionalCheckFailed")}, store.ErrCondition, 1},
		"throttled, then good":      {[]answer{cancelled("ThrottlingError", "None"), good}, nil, 2},
		"unknown, then good":        {[]answer{broken, cut, good}, nil, 3},
		"the whole request refused": {[]answer{refused}, store.ErrRefused, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, sv := fake(c.answers...)
			err := s.Transact(t.Context(), []store.Write{addThing("a"), addThing("b")})
			if !errors.Is(err, c.want) || len(sv.seen) != c.sent {
				t.Errorf("%v after %d requests", err, len(sv.seen))
			}
		})
	}
}

// TestTransactionTokens says that a transaction whose outcome is unknown is sent again as the same
// one, also after a later try was cancelled: the first may arrive after all. One of which nothing was
// lost is another when it was cancelled.
func TestTransactionTokens(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		another int // the first request with another token
	}{
		"lost, then cancelled":      {[]answer{broken, cancelled("TransactionConflict"), good}, 3},
		"cut, then cancelled twice": {[]answer{cut, cancelled("TransactionConflict"), cancelled("TransactionConflict"), good}, 4},
		"cancelled":                 {[]answer{cancelled("TransactionConflict"), good}, 1},
		"throttled, then cancelled": {[]answer{throttled, cancelled("TransactionConflict"), good}, 2},
		"cancelled, then lost":      {[]answer{cancelled("TransactionConflict"), broken, cancelled("TransactionConflict"), good}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, sv := fake(c.answers...)
			if err := s.Transact(t.Context(), []store.Write{addThing("a")}); err != nil {
				t.Fatal(err)
			}
			first := token(sv.seen[0])
			for i := range sv.seen {
				want := first
				if i >= c.another {
					want = token(sv.seen[c.another])
				}
				if got := token(sv.seen[i]); got == "" || got != want || i == c.another && got == first {
					t.Errorf("request %d has the token %q, the first one %q", i, got, first)
				}
			}
		})
	}
}

func TestConflictsEnd(t *testing.T) {
	s, _ := patient(time.Second, cancelled("TransactionConflict"))
	if err := s.Transact(t.Context(), []store.Write{addThing("a")}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("%v", err)
	}
}

func TestStrayBytesAreRefused(t *testing.T) {
	s, sv := fake(good)
	for _, w := range []store.Write{
		{Ref: thing("a"), Ops: []store.Op{{Kind: store.Set, Attr: "v", Value: value.OfString("\xff")}}},
		{Ref: thing("a"), Ops: []store.Op{{Kind: store.Set, Attr: "\xff", Value: value.OfInt(1)}}},
		{Ref: thing("\xff"), Delete: true, If: store.Cond{{{Attr: "PK", Is: store.Exists}}}},
	} {
		out, err := s.Write(t.Context(), []store.Write{w})
		if err != nil || !errors.Is(out[0].Err, store.ErrRefused) {
			t.Errorf("%v, %v", err, out[0].Err)
		}
	}
	if len(sv.seen) != 0 {
		t.Errorf("sent %q", sv.seen)
	}
}

const describeTable = `{"Table":{"TableName":"things","LatestStreamArn":"arn:stream","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}}`

func TestStreamErrors(t *testing.T) {
	page := answer{200, `{"Records":[{"eventName":"REMOVE","userIdentity":{"Type":"Service","PrincipalId":"dynamodb.amazonaws.com"},"dynamodb":{"SequenceNumber":"000000000000000000123","Keys":{"PK":{"S":"a"}},"OldImage":{"PK":{"S":"a"}},"ApproximateCreationDateTime":1.7e9}}],"NextShardIterator":"i2"}`, nil}
	expired := answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#ExpiredIteratorException","message":"old"}`, nil}
	trimmed := answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#TrimmedDataAccessException","message":"gone"}`, nil}
	iterator := answer{200, `{"ShardIterator":"i1"}`, nil}
	last := answer{200, `{"Records":[]}`, nil}
	s, sv := fake(answer{200, describeTable, nil}, iterator, page, expired, iterator, last, iterator, trimmed)
	got, err := s.Read(t.Context(), "things", "shard", events.Position{}, 10)
	if err != nil || len(got.Records) != 1 || got.End || !got.Records[0].Expired || got.Records[0].Position != events.PositionOf(123) || got.Records[0].New != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	got, err = s.Read(t.Context(), "things", "shard", events.PositionOf(123), 10)
	if err != nil || !got.End {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.Contains(sv.seen[4], "AFTER_SEQUENCE_NUMBER") || !strings.Contains(sv.seen[4], `"000000000000000000123"`) {
		t.Errorf("reopened with %s", sv.seen[4])
	}
	if got, err = s.Read(t.Context(), "things", "shard", events.PositionOf(123), 10); err != nil || !got.End || len(sv.seen) != 6 {
		t.Errorf("%+v, %v after %d requests", got, err, len(sv.seen))
	}
	if _, err = s.Read(t.Context(), "things", "shard", events.PositionOf(7), 10); !errors.Is(err, store.ErrTrimmed) {
		t.Errorf("%v", err)
	}
}

// TestOldestMoves says that a first read goes on where the oldest record went away
// between finding and reading it.
func TestOldestMoves(t *testing.T) {
	trimmed := answer{400, `{"__type":"com.amazonaws.dynamodb.v20120810#TrimmedDataAccessException","message":"gone"}`, nil}
	iterator := answer{200, `{"ShardIterator":"i1"}`, nil}
	s, sv := fake(answer{200, describeTable, nil}, iterator, trimmed, iterator, answer{200, `{"Records":[]}`, nil})
	if got, err := s.Read(t.Context(), "things", "shard", events.Position{}, 10); err != nil || !got.End || len(sv.seen) != 5 {
		t.Errorf("%+v, %v after %d requests", got, err, len(sv.seen))
	}
}

func TestShardsPage(t *testing.T) {
	shard := func(id, parent, end string) string {
		return `{"ShardId":"` + id + `","ParentShardId":"` + parent + `","SequenceNumberRange":{"StartingSequenceNumber":"1"` + end + `}}`
	}
	const ends = `,"EndingSequenceNumber":"2"`
	first := answer{200, `{"StreamDescription":{"LastEvaluatedShardId":"c","Shards":[` + shard("c", "a", "") + `,` + shard("b", "gone", ends) + `]}}`, nil}
	second := answer{200, `{"StreamDescription":{"Shards":[` + shard("a", "b", ends) + `]}}`, nil}
	s, _ := fake(answer{200, describeTable, nil}, first, throttled, second)
	got, err := s.Shards(t.Context(), "things")
	want := []store.Shard{{ID: "b", Parent: "gone", Closed: true}, {ID: "a", Parent: "b", Closed: true}, {ID: "c", Parent: "a"}}
	if err != nil || len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%+v, %v", got, err)
	}
}
