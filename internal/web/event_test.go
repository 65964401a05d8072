package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"weir/internal/failtest"
)

// eventForms are events of GET or HEAD /x with a header, by what sends them.
var eventForms = map[string]string{
	"function URL": `{"version":"2.0","rawPath":"/x","rawQueryString":"a=1","headers":{"accept-encoding":"gzip"},"requestContext":{"http":{"method":"METHOD"}}}`,
	"REST API":     `{"httpMethod":"METHOD","path":"/x","queryStringParameters":{"a":"1"},"headers":{"accept-encoding":"gzip"},"requestContext":{"identity":{}}}`,
	"balancer":     `{"httpMethod":"METHOD","path":"/x","queryStringParameters":{"a":"1"},"headers":{"accept-encoding":"gzip"},"requestContext":{"elb":{"targetGroupArn":"t"}}}`,
}

type eventReply struct {
	StatusCode      int
	Headers         map[string]string
	Body            string
	IsBase64Encoded bool
}

// asEvent has a handler answer an event.
func asEvent(t *testing.T, h http.Handler, text string) (a eventReply) {
	t.Helper()
	out, err := AnswerEvent(t.Context(), h, []byte(text))
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	failtest.On(t, err)
	return a
}

// TestEvents: what is compressed comes as base64, where what passes it on undoes that, and the answer to HEAD has no body.
func TestEvents(t *testing.T) {
	const long = `"äöü" `
	zip, err := gzhttp.NewWrapper(gzhttp.MinSize(1024))
	failtest.On(t, err)
	h := zip(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, r.URL.Path+"?"+r.URL.RawQuery+strings.Repeat(long, 1000))
	}))
	want := "/x?a=1" + strings.Repeat(long, 1000)
	for name, form := range eventForms {
		a := asEvent(t, h, strings.Replace(form, "METHOD", "GET", 1))
		body := a.Body
		if a.IsBase64Encoded != (name != "REST API") || a.IsBase64Encoded != (a.Headers["Content-Encoding"] == "gzip") {
			t.Errorf("%s: base64 %v, headers %v", name, a.IsBase64Encoded, a.Headers)
		}
		if a.IsBase64Encoded {
			packed, err := base64.StdEncoding.DecodeString(body)
			failtest.On(t, err)
			r, err := gzip.NewReader(bytes.NewReader(packed))
			failtest.On(t, err)
			whole, err := io.ReadAll(r)
			if body = string(whole); err != nil {
				t.Fatal(err)
			}
		}
		if body != want || a.StatusCode != 200 {
			t.Errorf("%s: %d %.100s", name, a.StatusCode, body)
		}
		if a := asEvent(t, h, strings.Replace(form, "METHOD", "HEAD", 1)); a.StatusCode != 200 || a.Body != "" {
			t.Errorf("%s: HEAD has %d %.100s", name, a.StatusCode, a.Body)
		}
	}
}

// TestEventsTooLarge: an answer that Lambda would not pass on gives way to a problem that says what to do.
func TestEventsTooLarge(t *testing.T) {
	for name, form := range eventForms {
		most := mostAnswer
		if name == "balancer" {
			most = mostBalanced
		}
		for size, status := range map[int]int{most - 1000: 200, most + 1: 422} {
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(bytes.Repeat([]byte("x"), size)) })
			if a := asEvent(t, h, strings.Replace(form, "METHOD", "GET", 1)); a.StatusCode != status || (status == 200) != (len(a.Body) == size) {
				t.Errorf("%s: %d bytes: %d %.300s", name, size, a.StatusCode, a.Body)
			} else if status == 422 && (!strings.Contains(a.Body, "problem:too-much") || a.Headers["Content-Type"] != "application/problem+json") {
				t.Errorf("%s: %v %s", name, a.Headers, a.Body)
			}
		}
	}
}

// TestNoEvents: what is no request is refused, and nothing is asked.
func TestNoEvents(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("it is asked") })
	for _, text := range []string{``, `{}`, `null`, `[]`, `x`, `{"Records":[{"eventSource":"aws:dynamodb"}]}`, `{"httpMethod":3}`,
		`{"rawPath":"/x","isBase64Encoded":true,"body":"%","requestContext":{"http":{"method":"GET"}}}`} {
		if out, err := AnswerEvent(t.Context(), h, []byte(text)); !errors.Is(err, ErrEvent) {
			t.Errorf("%s: %s, %v", text, out, err)
		}
	}
}

// TestInTime: a part of an invocation's time is left for the answer.
func TestInTime(t *testing.T) {
	for whole, want := range map[time.Duration]time.Duration{time.Minute: 59 * time.Second, 2 * time.Second: 1600 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), whole)
		ends, stop := InTime(ctx)
		deadline, _ := ends.Deadline()
		if left := time.Until(deadline); left > want || left < want-500*time.Millisecond {
			t.Errorf("of %v, %v are left", whole, left)
		}
		stop()
		cancel()
	}
	if ctx, stop := InTime(t.Context()); ctx != t.Context() {
		t.Error("an invocation without an end gets one")
	} else {
		stop()
	}
}

// TestOpenBehindABalancer: nothing asks who sends what a load balancer hands on, so it needs a key though the function is open.
func TestOpenBehindABalancer(t *testing.T) {
	h := Access{Open: true, Burst: 1}.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for kind, want := range map[string]string{
		`{"httpMethod":"GET","path":"/v1","requestContext":{"elb":{"targetGroupArn":"t"}}}`:      `"statusCode":401`,
		`{"httpMethod":"GET","path":"/healthz","requestContext":{"elb":{"targetGroupArn":"t"}}}`: `"statusCode":200`,
		`{"httpMethod":"GET","path":"/v1","requestContext":{}}`:                                  `"statusCode":200`,
		`{"rawPath":"/v1","requestContext":{"http":{"method":"GET"}}}`:                           `"statusCode":200`,
	} {
		if got, err := AnswerEvent(t.Context(), h, []byte(kind)); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
}
