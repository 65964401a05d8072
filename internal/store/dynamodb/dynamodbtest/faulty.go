package dynamodbtest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
)

// Faults says which share of the requests goes wrong, and how. The zero Faults is a proxy
// that only passes on.
type Faults struct {
	Dropped   float64 // happened, and the connection is closed without an answer
	Silent    float64 // happened, and no answer comes, ever
	Broken    float64 // answered with 500; every other one has happened
	Throttled float64 // refused for now
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

// Close ends the proxy and its connections.
func (f *Faulty) Close() {
	f.server.CloseClientConnections()
	f.server.Close()
}

// outcome is what becomes of a request.
type outcome struct{ happens, dropped, silent, broken, throttled bool }

func (f *Faulty) roll() (o outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o.happens = true
	switch u, n := f.dice.Float64(), f.faults; {
	case u < n.Dropped:
		o.dropped = true
	case u < n.Dropped+n.Silent:
		o.silent = true
	case u < n.Dropped+n.Silent+n.Broken:
		o.broken, o.happens = true, f.dice.IntN(2) == 0
	case u < n.Dropped+n.Silent+n.Broken+n.Throttled:
		o.throttled, o.happens = true, false
	default:
		return o
	}
	f.Struck.Add(1)
	return o
}

var direct = &http.Transport{MaxIdleConnsPerHost: 256}

// ServeHTTP passes a request on, or lets it go wrong.
func (f *Faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := f.roll()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	limit := f.faults.Partition
	f.mu.Unlock()
	key, throttled := "", []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"a planted fault"}`)
	if limit > 0 && o.happens {
		with, refused, ok := []byte(nil), []byte(nil), false
		if key, with, refused, ok = f.partitions.admit(r, body, limit); ok {
			body = with
		} else {
			o.happens, o.throttled = false, true
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
	if o.happens {
		if status, header, answer, err = f.pass(r, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		f.partitions.paid(key, answer)
	}
	switch {
	case o.dropped:
		panic(http.ErrAbortHandler) // closes the connection
	case o.silent:
		<-r.Context().Done()
		return
	case o.broken:
		status, header = http.StatusInternalServerError, http.Header{}
		answer = []byte(`{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"a planted fault"}`)
	case o.throttled:
		status, answer = http.StatusBadRequest, throttled
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
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
