package dynamodbtest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"
)

// Fault is what becomes of one request.
type Fault uint8

// The faults. Of an unknown outcome there are two of each kind: the request has happened, or
// it has not.
const (
	Passed            Fault = iota
	DroppedAfter            // happened, and the connection is closed without an answer
	DroppedBefore           // the connection is closed, and nothing happens
	SilentAfter             // happened, and no answer comes, ever
	BrokenAfter             // happened, and is answered with 500
	BrokenBefore            // only answered with 500
	UnavailableAfter        // happened, and is answered with 503
	UnavailableBefore       // only answered with 503
	Throttled               // refused for now
)

func (f Fault) happens() bool {
	return f == Passed || f == DroppedAfter || f == SilentAfter || f == BrokenAfter || f == UnavailableAfter
}

// Faults says which share of the requests goes wrong, and how. The zero Faults is a proxy
// that only passes on.
type Faults struct {
	Dropped   float64 // the connection is closed without an answer; every other one has happened
	Silent    float64 // happened, and no answer comes, ever
	Broken    float64 // answered with 500 or 503; every other one has happened
	Throttled float64 // refused for now
	// Delay is how long each request waits before it is passed on, as on a network.
	Delay time.Duration
	// Partition is how many write units a second each partition key has; 0 is no limit. Writes of
	// one row beyond it are refused for now.
	Partition float64
}

// Faulty is a proxy in front of a DynamoDB. Its URL is an endpoint as the DynamoDB's own.
type Faulty struct {
	URL string
	// Struck is the number of requests that went wrong.
	Struck atomic.Int64
	// Refused, if set, is called with each request that is beyond Faults.Partition.
	Refused func(r *http.Request, body []byte)

	to     string
	server *httptest.Server
	mu     sync.Mutex
	faults Faults
	next   []Fault
	dice   *rand.Rand

	partitions partitions
}

// NewFaulty starts a proxy in front of the DynamoDB with this URL. The same seed gives the
// same run of faults. The caller calls Close.
func NewFaulty(to string, seed uint64) *Faulty {
	f := &Faulty{to: to, dice: rand.New(rand.NewPCG(seed, 0x6661756c7479))}
	f.server = httptest.NewServer(f)
	f.URL = f.server.URL
	return f
}

// Set sets the faults from now on.
func (f *Faulty) Set(faults Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// Next says what becomes of the next requests, one after the other, before Set decides again.
func (f *Faulty) Next(next ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = next
}

// Close ends the proxy and its connections.
func (f *Faulty) Close() {
	f.server.CloseClientConnections()
	f.server.Close()
}

// roll decides about a request.
func (f *Faulty) roll() (is Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.next) > 0 {
		is, f.next = f.next[0], f.next[1:]
	} else {
		is = f.drawn()
	}
	if is != Passed {
		f.Struck.Add(1)
	}
	return is
}

func (f *Faulty) drawn() Fault {
	one := func(of ...Fault) Fault { return of[f.dice.IntN(len(of))] }
	switch u, n := f.dice.Float64(), f.faults; {
	case u < n.Dropped:
		return one(DroppedAfter, DroppedBefore)
	case u < n.Dropped+n.Silent:
		return SilentAfter
	case u < n.Dropped+n.Silent+n.Broken:
		return one(BrokenAfter, BrokenBefore, UnavailableAfter, UnavailableBefore)
	case u < n.Dropped+n.Silent+n.Broken+n.Throttled:
		return Throttled
	}
	return Passed
}

var direct = &http.Transport{MaxIdleConnsPerHost: 256}

// ServeHTTP passes a request on, or lets it go wrong.
func (f *Faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	is := f.roll()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	limit, delay := f.faults.Partition, f.faults.Delay
	f.mu.Unlock()
	time.Sleep(delay)
	key, throttled := "", fault("ProvisionedThroughputExceededException")
	if limit > 0 && is.happens() {
		with, refused, ok := []byte(nil), []byte(nil), false
		if key, with, refused, ok = f.partitions.admit(r, body, limit); ok {
			body = with
		} else {
			is = Throttled
			if refused != nil {
				throttled = refused
			}
			if f.Refused != nil {
				f.Refused(r, body)
			}
		}
	}
	var answer []byte
	status, header := http.StatusInternalServerError, http.Header{}
	if is.happens() {
		if status, header, answer, err = f.pass(r, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		f.partitions.paid(key, answer)
	}
	switch is {
	case DroppedAfter, DroppedBefore:
		panic(http.ErrAbortHandler) // closes the connection
	case SilentAfter:
		<-r.Context().Done()
		return
	case BrokenAfter, BrokenBefore:
		status, header, answer = http.StatusInternalServerError, nil, fault("InternalServerError")
	case UnavailableAfter, UnavailableBefore:
		status, header, answer = http.StatusServiceUnavailable, nil, fault("ServiceUnavailable")
	case Throttled:
		status, answer = http.StatusBadRequest, throttled
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// fault is the body of an error of DynamoDB.
func fault(code string) []byte {
	return []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"a planted fault"}`)
}

// pass sends a request to the DynamoDB, to the end, whatever becomes of its sender.
func (f *Faulty) pass(r *http.Request, body []byte) (status int, header http.Header, answer []byte, err error) {
	out, err := http.NewRequest(r.Method, f.to+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	out.Header = r.Header.Clone()
	out.Header.Del("Content-Length") // of the body as it came
	resp, err := direct.RoundTrip(out)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, answer, err
}
