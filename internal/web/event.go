package web

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
	"weir/internal/seq"

	"github.com/aws/aws-lambda-go/events"
)

// ErrEvent says that an event of Lambda is not a request.
var ErrEvent = errors.New("the event is not one of a function URL, of API Gateway or of a load balancer")

// Answers above these bytes are not passed on: those of a function, and those to a load balancer.
const (
	mostAnswer   = 6 << 20
	mostBalanced = 1 << 20
)

// InTime is the context of an invocation that ends before that does: a second, or a fifth of the time, is left to answer.
func InTime(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(deadline)
	return context.WithDeadline(ctx, deadline.Add(-min(time.Second, left/5)))
}

// AnswerEvent has a handler answer the request that an event of Lambda is: of a function URL, an API Gateway HTTP API (payload
// 2.0 and 1.0), an API Gateway REST API or an Application Load Balancer. The work has the time that InTime leaves. An error
// that wraps ErrEvent is about an event of another kind.
func AnswerEvent(ctx context.Context, h http.Handler, payload []byte) ([]byte, error) {
	var kind struct {
		HTTPMethod     string `json:"httpMethod"`
		RequestContext struct {
			HTTP struct {
				Method string `json:"method"`
			} `json:"http"`
			ELB json.RawMessage `json:"elb"`
		} `json:"requestContext"`
	}
	if err := json.Unmarshal(payload, &kind); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	ctx, cancel := InTime(ctx)
	defer cancel()
	e := event{h}
	switch {
	case kind.RequestContext.HTTP.Method != "":
		return e.http2(ctx, payload)
	case kind.HTTPMethod != "":
		return e.http1(ctx, payload, kind.RequestContext.ELB != nil)
	}
	return nil, fmt.Errorf("%w: %.200q", ErrEvent, payload)
}

// event is the answer to an event, in each of its forms.
type event struct{ handler http.Handler }

// request is a request, whatever the form of its event.
type request struct {
	method, path, query string
	header              http.Header
	body                string
	encoded             bool
	from                string
}

// http2 is for function URLs and HTTP APIs, whose events have the same form.
func (h event) http2(ctx context.Context, payload []byte) ([]byte, error) {
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	path := e.RawPath
	if stage := e.RequestContext.Stage; stage != "" && stage != "$default" {
		if rest, ok := strings.CutPrefix(path, "/"+stage); ok && (rest == "" || rest[0] == '/') {
			path = rest
		}
	}
	header := http.Header{}
	for name, v := range e.Headers {
		header.Set(name, v)
	}
	w, err := h.serve(ctx, request{e.RequestContext.HTTP.Method, path, e.RawQueryString, header, e.Body, e.IsBase64Encoded, e.RequestContext.HTTP.SourceIP})
	if err != nil {
		return nil, err
	}
	return w.within(mostAnswer, func() any {
		body, encoded := w.text()
		return events.APIGatewayV2HTTPResponse{StatusCode: w.status, Headers: w.single(), Body: body, IsBase64Encoded: encoded}
	})
}

// http1 is for REST APIs, HTTP APIs that send their form, and target groups of an Application Load Balancer, whose events
// have the same form. A REST API passes on base64 as it is, unless it is told otherwise: so nothing is compressed.
// From a balancer a query string comes as it was sent, and it takes headers in the form that the request had them in.
func (h event) http1(ctx context.Context, payload []byte, balanced bool) ([]byte, error) {
	var e events.APIGatewayProxyRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	params, header := merged(e.QueryStringParameters, e.MultiValueQueryStringParameters), joinHeaders(e.Headers, e.MultiValueHeaders)
	query, from, most := url.Values(params).Encode(), e.RequestContext.Identity.SourceIP, mostAnswer
	if balanced {
		var raw []string
		for name, vs := range params {
			raw = append(raw, seq.Map(vs, func(v string) string { return name + "=" + v })...)
		}
		query, most = strings.Join(raw, "&"), mostBalanced
		from, _, _ = strings.Cut(header.Get("X-Forwarded-For"), ",")
		ctx = context.WithValue(ctx, balancedKey{}, true)
	} else {
		header.Del("Accept-Encoding")
	}
	w, err := h.serve(ctx, request{e.HTTPMethod, e.Path, query, header, e.Body, e.IsBase64Encoded, from})
	if err != nil {
		return nil, err
	}
	return w.within(most, func() any {
		body, encoded := w.text()
		if !balanced {
			return events.APIGatewayProxyResponse{StatusCode: w.status, Headers: w.single(), MultiValueHeaders: w.header, Body: body, IsBase64Encoded: encoded}
		}
		out := events.ALBTargetGroupResponse{StatusCode: w.status, StatusDescription: fmt.Sprint(w.status, " ", http.StatusText(w.status)), Body: body, IsBase64Encoded: encoded}
		if e.MultiValueHeaders != nil {
			out.MultiValueHeaders = w.header
		} else {
			out.Headers = w.single()
		}
		return out
	})
}

// merged are values of names given once and given more than once; where an event has
// both, the latter are all.
func merged(single map[string]string, multi map[string][]string) map[string][]string {
	out := map[string][]string{}
	for name, v := range single {
		out[name] = []string{v}
	}
	maps.Copy(out, multi)
	return out
}

// joinHeaders joins the fields that the two payload formats of API Gateway call headers and multiValueHeaders.
// A name in both has the values of the second, which has all of them.
func joinHeaders(single map[string]string, multi map[string][]string) http.Header {
	out := http.Header{}
	for name, vs := range merged(single, multi) {
		for _, v := range vs {
			out.Add(name, v)
		}
	}
	return out
}

// serve has the handler answer.
func (h event) serve(ctx context.Context, a request) (*eventAnswer, error) {
	body := []byte(a.body)
	if a.encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(a.body); err != nil {
			return nil, fmt.Errorf("%w: its body is not base64: %w", ErrEvent, err)
		}
	}
	path := a.path
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	r := (&http.Request{
		Method: a.method, URL: &url.URL{Path: path, RawQuery: a.query}, Header: a.header, Host: a.header.Get("Host"),
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), RemoteAddr: a.from,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RequestURI: a.path,
	}).WithContext(ctx)
	w := &eventAnswer{header: http.Header{}, status: http.StatusOK}
	h.handler.ServeHTTP(w, r)
	if a.method == http.MethodHead {
		w.body.Reset()
	}
	return w, nil
}

// eventAnswer takes the handler's writes.
type eventAnswer struct {
	header http.Header
	status int
	begun  bool
	body   strings.Builder
}

func (w *eventAnswer) Header() http.Header { return w.header }

func (w *eventAnswer) WriteHeader(status int) {
	if !w.begun {
		w.status, w.begun = status, true
	}
}

func (w *eventAnswer) Write(b []byte) (int, error) {
	w.begun = true
	return w.body.Write(b)
}

// text is the body as an event has it. A compressed body is no text, and base64.
func (w *eventAnswer) text() (body string, encoded bool) {
	if w.header.Get("Content-Encoding") == "" {
		return w.body.String(), false
	}
	return base64.StdEncoding.EncodeToString([]byte(w.body.String())), true
}

// within is the answer as JSON. One that is too large to be passed on gives way to a problem.
func (w *eventAnswer) within(most int, form func() any) ([]byte, error) {
	out, err := json.Marshal(form())
	if err != nil || len(out) <= most {
		return out, err
	}
	*w = eventAnswer{header: http.Header{}}
	ProblemOf(http.StatusUnprocessableEntity, "too-much", fmt.Sprintf("the answer has more than the %d MB that a function may answer here; ask for less, with limit or select, or for a compressed one", most>>20)).Write(w)
	return json.Marshal(form())
}

// single returns the answer's headers with one text each: values of one name are joined by
// commas (RFC 9110, section 5.3).
func (w *eventAnswer) single() map[string]string {
	out := map[string]string{}
	for name, vs := range w.header {
		out[name] = strings.Join(vs, ", ")
	}
	return out
}
