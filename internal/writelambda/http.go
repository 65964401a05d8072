package writelambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// asked is a request, whatever the form of its event.
type asked struct {
	method, path, query string
	header              http.Header
	body                string
	encoded             bool
	from                string
}

// http2 is for function URLs and HTTP APIs, whose events have the same form.
func (h *Handler) http2(ctx context.Context, payload []byte) ([]byte, error) {
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
	w, err := h.serve(ctx, asked{e.RequestContext.HTTP.Method, path, e.RawQueryString, header, e.Body, e.IsBase64Encoded, e.RequestContext.HTTP.SourceIP})
	if err != nil {
		return nil, err
	}
	return json.Marshal(events.APIGatewayV2HTTPResponse{StatusCode: w.status, Headers: w.single(), Body: w.body.String()})
}

// http1 is for REST APIs, and HTTP APIs that send their form.
func (h *Handler) http1(ctx context.Context, payload []byte) ([]byte, error) {
	var e events.APIGatewayProxyRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	query, header := url.Values(merged(e.QueryStringParameters, e.MultiValueQueryStringParameters)), headers(e.Headers, e.MultiValueHeaders)
	w, err := h.serve(ctx, asked{e.HTTPMethod, e.Path, query.Encode(), header, e.Body, e.IsBase64Encoded, e.RequestContext.Identity.SourceIP})
	if err != nil {
		return nil, err
	}
	return json.Marshal(events.APIGatewayProxyResponse{StatusCode: w.status, Headers: w.single(), MultiValueHeaders: w.header, Body: w.body.String()})
}

// balanced is for target groups of an Application Load Balancer. Other than a REST
// API's, a query string comes as it was sent; and an answer has the headers in the
// form that the request had them in.
func (h *Handler) balanced(ctx context.Context, payload []byte) ([]byte, error) {
	var e events.ALBTargetGroupRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	var query []string
	for name, vs := range merged(e.QueryStringParameters, e.MultiValueQueryStringParameters) {
		for _, v := range vs {
			query = append(query, name+"="+v)
		}
	}
	header := headers(e.Headers, e.MultiValueHeaders)
	from, _, _ := strings.Cut(header.Get("X-Forwarded-For"), ",")
	w, err := h.serve(ctx, asked{e.HTTPMethod, e.Path, strings.Join(query, "&"), header, e.Body, e.IsBase64Encoded, from})
	if err != nil {
		return nil, err
	}
	out := events.ALBTargetGroupResponse{StatusCode: w.status, StatusDescription: fmt.Sprint(w.status, " ", http.StatusText(w.status)), Body: w.body.String()}
	if e.MultiValueHeaders != nil {
		out.MultiValueHeaders = w.header
	} else {
		out.Headers = w.single()
	}
	return json.Marshal(out)
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

// headers joins what the two payload formats of API Gateway call headers and multiValueHeaders.
// A name in both has the values of the second, which has all of them.
func headers(single map[string]string, multi map[string][]string) http.Header {
	out := http.Header{}
	for name, vs := range merged(single, multi) {
		for _, v := range vs {
			out.Add(name, v)
		}
	}
	return out
}

// serve has the handler answer.
func (h *Handler) serve(ctx context.Context, a asked) (*answer, error) {
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
		Body: readCloser{bytes.NewReader(body)}, ContentLength: int64(len(body)), RemoteAddr: a.from,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RequestURI: a.path,
	}).WithContext(ctx)
	w := &answer{header: http.Header{}, status: http.StatusOK}
	h.HTTP.ServeHTTP(w, r)
	return w, nil
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// answer takes what the handler writes.
type answer struct {
	header http.Header
	status int
	begun  bool
	body   strings.Builder
}

func (w *answer) Header() http.Header { return w.header }

func (w *answer) WriteHeader(status int) {
	if !w.begun {
		w.status, w.begun = status, true
	}
}

func (w *answer) Write(b []byte) (int, error) {
	w.begun = true
	return w.body.Write(b)
}

// single returns the answer's headers with one text each: values of one name are joined by
// commas (RFC 9110, section 5.3).
func (w *answer) single() map[string]string {
	out := map[string]string{}
	for name, vs := range w.header {
		out[name] = strings.Join(vs, ", ")
	}
	return out
}
