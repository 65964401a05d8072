package dynamodb

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// switching is a service with a table whose stream was switched off and on.
type switching struct {
	latest  string            // label of the stream that is on, or was last
	streams map[string]string // the status of each, by label; its one shard is named by it
	ranges  map[string]string // what DescribeStream says of its sequence numbers, by label
	deleted bool              // the table is
}

const notFound = `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"not there"}`

func (s *switching) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	status, body := 400, notFound
	switch {
	case op == "DescribeTable" && !s.deleted:
		status, body = 200, `{"Table":{"LatestStreamArn":"arn/stream/`+s.latest+`","StreamSpecification":{"StreamEnabled":true}}}`
	case op == "DescribeStream":
		for label, is := range s.streams {
			if strings.Contains(string(b), `"arn/stream/`+label+`"`) {
				status, body = 200, `{"StreamDescription":{"StreamStatus":"`+is+`","Shards":[{"ShardId":"s`+label+`","SequenceNumberRange":{`+cmp.Or(s.ranges[label], `"StartingSequenceNumber":"1"`)+`}}]}}`
			}
		}
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}}, nil
}

func (s *switching) open() *Store {
	cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String("http://dynamodb.invalid"), Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	t := store.Table{Name: "things", Key: store.KeySchema{Partition: store.KeyAttr{Name: "PK", Type: value.String}}, Stream: true}
	return Open(cfg, []store.Table{t}, Options{Transport: s, ReadInterval: -1})
}

// TestSwitchedStream says whose shards are listed, step by step, of a table whose stream
// is switched off and on.
func TestSwitchedStream(t *testing.T) {
	s := &switching{latest: "1", streams: map[string]string{"1": "ENABLED"}}
	db := s.open()
	shards := func(db *Store, want ...string) {
		t.Helper()
		list, err := db.Shards(t.Context(), "things")
		var got []string
		for _, sh := range list {
			got = append(got, sh.ID)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("shards %v, want %v: %v", got, want, err)
		}
	}
	shards(db, "s1")
	s.latest, s.streams["1"], s.streams["2"] = "2", "DISABLED", "ENABLED"
	shards(db, "s1", "s2")
	if _, err := db.Read(t.Context(), "things", "gone", events.Position{}, 1); err == nil {
		t.Error("a shard was read that is not there")
	}
	shards(db, "s1", "s2")

	later := s.open()
	shards(later, "s2")
	labels, err := later.Streams(t.Context(), "things", "0", "1")
	if want := []string{"0", "1", "2"}; err != nil || !slices.Equal(labels, want) {
		t.Errorf("labels %v, want %v: %v", labels, want, err)
	}
	shards(later, "s1", "s2")

	delete(s.streams, "1")
	for _, db := range []*Store{db, later} {
		shards(db, "s2")
		if labels, err := db.Streams(t.Context(), "things"); err != nil || !slices.Equal(labels, []string{"2"}) {
			t.Errorf("labels %v: %v", labels, err)
		}
	}
	s.deleted, s.streams["2"] = true, "DISABLED"
	shards(db, "s2")
	delete(s.streams, "2")
	if list, err := db.Shards(t.Context(), "things"); err == nil {
		t.Errorf("shards of what is not there: %v", list)
	}
	s.deleted, s.latest, s.streams["3"] = false, "3", "ENABLED"
	shards(db, "s3")
}

// TestContinues says when a stream that was switched on again certainly counts on.
func TestContinues(t *testing.T) {
	for _, c := range []struct {
		was, is string
		want    bool
	}{
		{`"StartingSequenceNumber":"5","EndingSequenceNumber":"900"`, `"StartingSequenceNumber":"901"`, true},
		{`"StartingSequenceNumber":"5","EndingSequenceNumber":"900"`, `"StartingSequenceNumber":"1000000000000000000000"`, true}, // as integers
		{`"StartingSequenceNumber":"5","EndingSequenceNumber":"900"`, `"StartingSequenceNumber":"900"`, false},
		{`"StartingSequenceNumber":"5","EndingSequenceNumber":"900"`, `"StartingSequenceNumber":"6"`, false},
		{`"StartingSequenceNumber":"5"`, `"StartingSequenceNumber":"901"`, false}, // it is not said where the first ends
		{`"StartingSequenceNumber":"5","EndingSequenceNumber":"900"`, `"EndingSequenceNumber":"902"`, false},
	} {
		s := &switching{latest: "2", streams: map[string]string{"1": "DISABLED", "2": "ENABLED"}, ranges: map[string]string{"1": c.was, "2": c.is}}
		if got, err := s.open().Continues(t.Context(), "things", "1", "2"); got != c.want || err != nil {
			t.Errorf("%s after %s: %v %v", c.is, c.was, got, err)
		}
		delete(s.streams, "1")
		if got, err := s.open().Continues(t.Context(), "things", "1", "2"); got || err != nil {
			t.Errorf("the first is gone: %v %v", got, err)
		}
	}
	s := &switching{latest: "2", streams: map[string]string{"1": "DISABLED"}}
	if _, err := s.open().Continues(t.Context(), "things", "1", "2"); err == nil {
		t.Error("the stream that is on is gone, and nothing says so")
	}
}
