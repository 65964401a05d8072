package dynamodbtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Call is a permission that a request needs: an action of IAM on a resource, which is
// table/NAME, table/NAME/index/INDEX or table/NAME/stream/LABEL.
type Call struct{ Action, Resource string }

// Recorder is a proxy in front of a DynamoDB that keeps the permissions which requests need.
// Its URL is an endpoint as the DynamoDB's own.
type Recorder struct {
	URL string

	to     string
	server *httptest.Server
	mu     sync.Mutex
	calls  map[Call]int
	odd    []string
}

// NewRecorder starts a proxy in front of the DynamoDB with this URL. The caller calls Close.
func NewRecorder(to string) *Recorder {
	r := &Recorder{to: to, calls: map[Call]int{}}
	r.server = httptest.NewServer(r)
	r.URL = r.server.URL
	return r
}

// Close ends the proxy and its connections.
func (r *Recorder) Close() {
	r.server.CloseClientConnections()
	r.server.Close()
}

// Calls are the permissions that were needed until now, and how often. odd are requests of
// which that is not known.
func (r *Recorder) Calls() (calls map[Call]int, odd []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls = map[Call]int{}
	for c, n := range r.calls {
		calls[c] = n
	}
	return calls, append(odd, r.odd...)
}

// ServeHTTP passes a request on.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	calls, err := needs(req.Header.Get("X-Amz-Target"), body)
	r.mu.Lock()
	for _, c := range calls {
		r.calls[c]++
	}
	if err != nil {
		r.odd = append(r.odd, err.Error())
	}
	r.mu.Unlock()
	out, err := http.NewRequestWithContext(req.Context(), req.Method, r.to+req.URL.Path, bytes.NewReader(body))
	if err == nil {
		out.Header = req.Header.Clone()
		var resp *http.Response
		if resp, err = direct.RoundTrip(out); err == nil {
			defer resp.Body.Close()
			for name, values := range resp.Header {
				w.Header()[name] = values
			}
			w.WriteHeader(resp.StatusCode)
			_, _ = io.Copy(w, resp.Body)
			return
		}
	}
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// needs are the permissions of one request. A transaction needs those of its parts.
func needs(target string, body []byte) (out []Call, err error) {
	_, op, ok := strings.Cut(target, ".")
	if !ok {
		return nil, fmt.Errorf("no operation: %q", target)
	}
	type part struct{ TableName string }
	var in struct {
		TableName, IndexName, StreamArn, ShardIterator string
		RequestItems                                   map[string]json.RawMessage
		TransactItems                                  []struct{ ConditionCheck, Delete, Get, Put, Update *part }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	add := func(op, resource string) { out = append(out, Call{"dynamodb:" + op, resource}) }
	switch {
	case len(in.TransactItems) > 0:
		for _, i := range in.TransactItems {
			for name, p := range map[string]*part{"ConditionCheckItem": i.ConditionCheck, "DeleteItem": i.Delete, "GetItem": i.Get, "PutItem": i.Put, "UpdateItem": i.Update} {
				if p != nil {
					add(name, "table/"+p.TableName)
				}
			}
		}
	case len(in.RequestItems) > 0:
		for table := range in.RequestItems {
			add(op, "table/"+table)
		}
	case in.StreamArn != "":
		_, resource, _ := strings.Cut(in.StreamArn, ":table/")
		add(op, "table/"+resource)
	case in.ShardIterator != "":
		// DynamoDB Local's iterators begin with a number and the stream's ARN.
		_, resource, ok := strings.Cut(in.ShardIterator, ":table/")
		resource, _, also := strings.Cut(resource, "|")
		if !ok || !also {
			return nil, fmt.Errorf("%s: the iterator is %.100q", op, in.ShardIterator)
		}
		add(op, "table/"+resource)
	case in.TableName != "" && in.IndexName != "":
		add(op, "table/"+in.TableName+"/index/"+in.IndexName)
	case in.TableName != "":
		add(op, "table/"+in.TableName)
	default:
		return nil, fmt.Errorf("%s of nothing: %.200s", op, body)
	}
	return out, nil
}
