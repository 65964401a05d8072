package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/ingest"
	"weir/internal/lambda"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
)

// picture is a record that puts a picture into an album, with more in its image.
func picture(seq string, more ...string) string {
	row := `"PK":{"S":"ALBUM#a"},"SK":{"S":"MEDIA#` + seq + `"}`
	return `{"eventID":"e` + seq + `","eventName":"INSERT","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1",` +
		`"eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/gallery/stream/x","dynamodb":{"ApproximateCreationDateTime":1767225600.5,"Keys":{` + row +
		`},"SequenceNumber":"` + seq + `","SizeBytes":1,"StreamViewType":"NEW_AND_OLD_IMAGES","NewImage":{` + row +
		`,"EntityType":{"S":"AlbumMedia"},"albumId":{"S":"a"},"mediaId":{"S":"m"},"addedAt":{"S":"2025-01-01T00:00:00Z"}` + strings.Join(more, "") + `}}}`
}

func recordsOf(records ...string) string { return `{"Records":[` + strings.Join(records, ",") + `]}` }

// inWindow is an event of a tumbling window; rest has its other members.
func inWindow(rest string) string {
	return `{"window":{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:05:00Z"},"shardId":"shardId-1","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/gallery/stream/x"` + rest + `}`
}

// over is a handler over a store.
func (w *world) over(s store.Store) *lambda.Handler {
	run := &runner.Runner{Kinds: kinds.All(), Model: w.model, Store: s, Now: func() time.Time { return w.now }, Mover: &ingest.Mover{Model: w.model, Store: s}}
	return lambda.New(run, func(context.Context) error { return nil })
}

// ofShard is an event with records of a shard, as a mapping with a tumbling window sends it.
func ofShard(event string) string { return inWindow("," + event[1:len(event)-1]) }

// TestShapes: each record of any event that an event source mapping can send is applied
// or kept. An event that cannot be used is refused, so that it is delivered again; so is
// one with records that names no shard.
func TestShapes(t *testing.T) {
	const plain, windowed = `{"batchItemFailures":[]}`, `{"batchItemFailures":[],"state":{}}`
	one := recordsOf(picture("77"))
	edit := func(old, new string) string { return strings.Replace(one, old, new, 1) }
	change := func(fields string) string {
		return `{"Records":[{"eventID":"e","eventName":"MODIFY","eventSource":"aws:dynamodb","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/gallery/stream/x","dynamodb":` + fields + `}]}`
	}
	records := "," + one[1:len(one)-1]
	type want struct {
		answer        string // "" is ErrEvent
		applied, kept int
	}
	for name, c := range map[string]struct {
		payload string
		want    want
	}{
		"a record":                      {one, want{plain, 1, 0}},
		"no records":                    {`{"Records":[]}`, want{plain, 0, 0}},
		"records that are null":         {`{"Records":null}`, want{}},
		"nothing":                       {``, want{}},
		"not JSON":                      {`Records`, want{}},
		"cut off":                       {one[:len(one)-40], want{}},
		"cut off behind a record":       {`{"Records":[` + picture("77") + `,{"eve`, want{}},
		"numbers for people":            {recordsOf(picture("77", `,"n":{"N":"-0.00"},"s":{"NS":["1e2","3.50"]}`)), want{plain, 1, 0}},
		"a number beyond 38 digits":     {recordsOf(picture("76"), picture("77", `,"n":{"N":"`+strings.Repeat("9", 400)+`"}`)), want{plain, 1, 1}},
		"a number beyond its range":     {recordsOf(picture("77", `,"n":{"N":"1e999"}`)), want{plain, 0, 1}},
		"a number that is none":         {recordsOf(picture("77", `,"n":{"N":12}`)), want{plain, 0, 1}},
		"binary":                        {recordsOf(picture("77", `,"b":{"B":"AAEC/w=="},"s":{"BS":["AA==","/w=="]}`)), want{plain, 1, 0}},
		"binary that is not base64":     {recordsOf(picture("77", `,"b":{"B":"*"}`)), want{plain, 0, 1}},
		"an old image that is null":     {edit(`"NewImage"`, `"OldImage":null,"NewImage"`), want{plain, 1, 0}},
		"images that are null":          {change(`{"SequenceNumber":"7","Keys":{"PK":{"S":"ALBUM#a"},"SK":{"S":"x"}},"NewImage":null,"OldImage":null}`), want{plain, 0, 1}},
		"keys that are null":            {change(`{"SequenceNumber":"7","Keys":null}`), want{plain, 0, 1}},
		"a change that is null":         {change(`null`), want{plain, 0, 1}},
		"no sequence number":            {recordsOf(picture("76"), strings.Replace(picture("77"), `"SequenceNumber":"77",`, ``, 1)), want{plain, 1, 1}},
		"an empty sequence number":      {edit(`"SequenceNumber":"77"`, `"SequenceNumber":""`), want{plain, 0, 1}},
		"a sequence number too long":    {edit(`"SequenceNumber":"77"`, `"SequenceNumber":"`+strings.Repeat("9", 41)+`"`), want{plain, 0, 1}},
		"a sequence number of words":    {edit(`"SequenceNumber":"77"`, `"SequenceNumber":"seven"`), want{plain, 0, 1}},
		"another table":                 {edit("table/gallery", "table/users"), want{}},
		"a queue":                       {`{"Records":[{"messageId":"m","receiptHandle":"r","body":"{}","attributes":{},"eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:1:q"}]}`, want{}},
		"a topic":                       {`{"Records":[{"EventVersion":"1.0","EventSource":"aws:sns","EventSubscriptionArn":"x","Sns":{"Message":"x"}}]}`, want{}},
		"a bucket":                      {`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{}}]}`, want{}},
		"a Kinesis stream of others":    {`{"Records":[{"kinesis":{"data":"SGVsbG8="},"eventSource":"aws:kinesis","eventID":"shardId-1:49","eventSourceARN":"arn:aws:kinesis:eu-west-1:1:stream/s"}]}`, want{}},
		"an HTTP API":                   {`{"version":"2.0","routeKey":"$default","rawPath":"/","requestContext":{"http":{"method":"GET"}},"isBase64Encoded":false}`, want{}},
		"a REST API":                    {`{"resource":"/","path":"/","httpMethod":"POST","body":` + string(must(json.Marshal(one))) + `}`, want{}},
		"a window":                      {inWindow(records + `,"state":{"a":"b"},"isFinalInvokeForWindow":false,"isWindowTerminatedEarly":false`), want{windowed, 1, 0}},
		"a window's first":              {inWindow(records + `,"state":null`), want{windowed, 1, 0}},
		"a window without a state":      {inWindow(records), want{windowed, 1, 0}},
		"a window ended early":          {inWindow(records + `,"state":{},"isFinalInvokeForWindow":true,"isWindowTerminatedEarly":true`), want{windowed, 1, 0}},
		"a state above 1 MB":            {inWindow(records + `,"state":{"x":"` + strings.Repeat("y", 3<<20) + `"}`), want{windowed, 1, 0}},
		"a window's end":                {inWindow(`,"Records":[],"state":{},"isFinalInvokeForWindow":true`), want{windowed, 0, 0}},
		"a window's end with null":      {inWindow(`,"Records":null,"state":{},"isFinalInvokeForWindow":true`), want{windowed, 0, 0}},
		"a window's end without a list": {inWindow(`,"state":{},"isFinalInvokeForWindow":true`), want{windowed, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := w.over(w)
			var got want
			h.Report = func(r lambda.Report) { got.applied, got.kept = r.Applied, r.Dead }
			if c.want.answer == plain && c.want.applied+c.want.kept > 0 {
				out, err := h.Invoke(t.Context(), []byte(c.payload))
				if !errors.Is(err, lambda.ErrOrder) || got != (want{}) {
					t.Errorf("without a window it is answered %s, %+v: %v", out, got, err)
				}
				c.payload, c.want.answer = ofShard(c.payload), windowed
			}
			out, err := h.Invoke(t.Context(), []byte(c.payload))
			if got.answer = string(out); got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
			if (err != nil) != (c.want.answer == "") || err != nil && !errors.Is(err, lambda.ErrEvent) {
				t.Error(err)
			}
		})
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// due is a context that has a deadline but does not end at it, so that the test does
// not depend on how busy the machine is.
type due struct {
	context.Context
	at time.Time
}

func (d due) Deadline() (time.Time, bool) { return d.at, true }

// late is a store that ends the time for the work when a write contains a word.
type late struct {
	*world
	word string
	over time.Time // when the time for the work was over
}

func (l *late) Write(ctx context.Context, ws []store.Write) ([]store.Outcome, error) {
	defer l.see(ctx, fmt.Sprint(ws))
	return l.world.Write(ctx, ws)
}

func (l *late) Transact(ctx context.Context, ws []store.Write) error {
	defer l.see(ctx, fmt.Sprint(ws))
	return l.world.Transact(ctx, ws)
}

func (l *late) see(ctx context.Context, writes string) {
	if strings.Contains(writes, l.word) {
		<-ctx.Done()
		l.over, _ = ctx.Deadline()
	}
}

// TestPartOfAnEvent: an invocation that runs out of time names the record to continue
// from, by the event's own text for it, and has applied everything before.
func TestPartOfAnEvent(t *testing.T) {
	var records []string
	for _, n := range []int{5, 6, 7, 8, 9, 10} {
		r := strings.ReplaceAll(picture(fmt.Sprintf("%021d", n)), `"ALBUM#a"`, fmt.Sprintf(`"ALBUM#n%d"`, n))
		records = append(records, strings.ReplaceAll(r, `"albumId":{"S":"a"}`, fmt.Sprintf(`"albumId":{"S":"n%d"}`, n)))
	}
	event := []byte(ofShard(recordsOf(records...)))
	for _, c := range []struct {
		word    string
		again   string
		applied int
	}{
		{"n5", "", 0},
		{"n8", "000000000000000000007", 2},
	} {
		t.Run(c.word, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			late := &late{world: w, word: c.word}
			h := w.over(late)
			h.Portion = 2
			var report lambda.Report
			h.Report = func(r lambda.Report) { report = r }
			ctx := due{t.Context(), time.Now().Add(10 * time.Second)}
			out, err := h.Invoke(ctx, event)
			if left := ctx.at.Sub(late.over); left < time.Second {
				t.Errorf("it stopped with %v left", left)
			}
			var a struct {
				Failures []struct {
					Item string `json:"itemIdentifier"`
				} `json:"batchItemFailures"`
			}
			switch {
			case c.again == "":
				if err == nil {
					t.Errorf("answered %s", out)
				}
			case err != nil:
				t.Error(err)
			case json.Unmarshal(out, &a) != nil || len(a.Failures) != 1 || a.Failures[0].Item != c.again:
				t.Errorf("answered %s, want %s", out, c.again)
			case report.Applied != c.applied || report.Again != 6-c.applied || !errors.Is(report.Why, context.DeadlineExceeded):
				t.Errorf("%+v", report)
			}
			// What comes again is then applied once, like the rest.
			again := w.over(w)
			if _, err := again.Invoke(t.Context(), event); err != nil {
				t.Fatal(err)
			}
			for _, n := range []string{"n5", "n6", "n7", "n8", "n9", "n10"} {
				if got, _ := w.ledger(n); got != 1 {
					t.Errorf("album %s has %d pictures", n, got)
				}
			}
		})
	}
}

// TestSlowEvent: an event that is not done in time comes again, and is then applied in parts, so that what was done counts.
func TestSlowEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var records []string
	for n := range 8 {
		r := strings.ReplaceAll(picture(fmt.Sprintf("%021d", n+1)), `"ALBUM#a"`, fmt.Sprintf(`"ALBUM#n%d"`, n+1))
		records = append(records, strings.ReplaceAll(r, `"albumId":{"S":"a"}`, fmt.Sprintf(`"albumId":{"S":"n%d"}`, n+1)))
	}
	event := []byte(ofShard(recordsOf(records...)))
	h := w.over(&late{world: w, word: "n5"})
	for i, want := range []string{"", `{"batchItemFailures":[{"itemIdentifier":"000000000000000000005"}],"state":{}}`} {
		out, err := h.Invoke(due{t.Context(), time.Now().Add(5 * time.Second)}, event)
		if string(out) != want || err == nil != (want != "") {
			t.Errorf("the %d. time: %s, %v", i+1, out, err)
		}
	}
}
