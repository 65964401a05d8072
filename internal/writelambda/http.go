package writelambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
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
	query := url.Values(e.MultiValueQueryStringParameters)
	if query == nil {
		query = url.Values{}
		for name, v := range e.QueryStringParameters {
			query.Set(name, v)
		}
	}
	header := http.Header{}
	for name, v := range e.Headers {
		header.Set(name, v)
	}
	for name, vs := range e.MultiValueHeaders {
		header.Del(name)
		for _, v := range vs {
			header.Add(name, v)
		}
	}
	w, err := h.serve(ctx, asked{e.HTTPMethod, e.Path, query.Encode(), header, e.Body, e.IsBase64Encoded, e.RequestContext.Identity.SourceIP})
	if err != nil {
		return nil, err
	}
	return json.Marshal(events.APIGatewayProxyResponse{StatusCode: w.status, Headers: w.single(), MultiValueHeaders: w.header, Body: w.body.String()})
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

func (w *answer) single() map[string]string {
	out := map[string]string{}
	for name, vs := range w.header {
		out[name] = strings.Join(vs, ", ")
	}
	return out
}
