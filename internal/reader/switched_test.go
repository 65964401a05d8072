package reader_test

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
)

// turn switches the stream on or off.
func (w *watched) turn(on bool) {
	w.Helper()
	spec := &types.StreamSpecification{StreamEnabled: aws.Bool(on)}
	if on {
		spec.StreamViewType = types.StreamViewTypeNewAndOldImages
	}
	_, err := awsdb.NewFromConfig(w.cfg).UpdateTable(w.Context(), &awsdb.UpdateTableInput{TableName: aws.String("gallery"), StreamSpecification: spec})
	failtest.On(w.T, err)
}

// process is one that knows of streams only what it finds; way carries its requests.
func (w *watched) process(way http.RoundTripper) *watched {
	p, run := *w, *w.run
	run.Store = dynamodb.Open(w.cfg, []store.Table{owntable.Table(), w.table.Table}, dynamodb.Options{
		ReadInterval: -1, Lag: 300 * time.Millisecond, Patience: 500 * time.Millisecond, Transport: way,
	})
	p.run = &run
	return &p
}

// onlySwitched says that nothing is missing but what was written between two streams.
func (w *watched) onlySwitched() {
	w.Helper()
	var gaps []string
	failtest.On(w.T, w.run.EachDeadLetter(w.Context(), func(d deadletter.Letter) error {
		gaps = append(gaps, d.Target+": "+d.Reason)
		return nil
	}))
	if len(gaps) != 1 || !strings.HasPrefix(gaps[0], "stream of gallery: the stream of gallery was switched off and on again") {
		w.Errorf("kept: %q", gaps)
	}
}

// TestSwitchedOffAndOnOnDynamoDB says that who follows a table goes over to the stream
// that it has after the one it had was switched off, and names what is in neither.
func TestSwitchedOffAndOnOnDynamoDB(t *testing.T) {
	w := watch(t)
	stop := w.follow(0)
	w.put("m1", "m2")
	w.until("records applied", w.applied, 2)
	w.turn(false)
	w.put("m3")
	w.turn(true)
	w.put("m4")
	w.until("records applied", w.applied, 3)
	w.onlySwitched()
	stop()
	defer w.follow(0)()
	w.put("m5")
	w.until("records applied", w.applied, 4)
	w.onlySwitched()
}

// TestRestOfSwitchedOnDynamoDB says that who was not there when the stream was switched
// off and on reads what is left of the old one.
func TestRestOfSwitchedOnDynamoDB(t *testing.T) {
	w := watch(t)
	stop := w.process(nil).follow(time.Millisecond)
	w.put("m1")
	w.until("records applied", w.applied, 1)
	stop()
	w.put("m2")
	w.turn(false)
	w.put("m3")
	w.turn(true)
	w.put("m4")
	stop = w.process(nil).follow(time.Millisecond)
	w.until("records applied", w.applied, 3)
	w.onlySwitched()
	stop()
	defer w.process(nil).follow(time.Millisecond)()
	w.put("m5")
	w.until("records applied", w.applied, 4)
	w.onlySwitched()
}

// line is a process's connection, which may be cut.
type line struct{ cut atomic.Bool }

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.cut.Load() {
		return nil, &net.OpError{Op: "dial", Err: errors.New("cut off")}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// TestCutOffWhileSwitchedOnDynamoDB says that a shard of the old stream is not counted
// again by who was cut off, while others forgot what is over who were not there when
// the stream was switched off.
func TestCutOffWhileSwitchedOnDynamoDB(t *testing.T) {
	w, l := watch(t), &line{}
	defer w.process(l).follow(time.Millisecond)()
	w.put("m1", "m2")
	w.until("records applied", w.applied, 2)
	w.turn(false)
	w.turn(true)
	w.put("m3")
	w.until("records applied", w.applied, 3)
	l.cut.Store(true)
	stop := w.process(nil).follow(time.Millisecond)
	w.put("m4")
	w.until("records applied", w.applied, 4)
	time.Sleep(time.Second) // many lists
	w.put("m5")
	w.until("records applied", w.applied, 5)
	l.cut.Store(false)
	stop()
	w.put("m6") // who was cut off applies it
	w.until("records applied", w.applied, 6)
	time.Sleep(time.Second)
	if n := w.applied(); n != 6 {
		t.Errorf("%d records are applied, want 6", n)
	}
}
