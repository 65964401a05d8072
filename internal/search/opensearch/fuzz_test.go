package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/opensearch-project/opensearch-go/v2"

	"weir/internal/failtest"
	"weir/internal/search"
)

// answering gives every request the same answer.
type answering struct {
	status int
	body   []byte
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
	}
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r,
	}, nil
}

// FuzzBulkAnswer: whatever a cluster, or a proxy in front of it, answers to a bulk
// request: a change counts as written only if its own item of the answer says so, and
// as refused for good only if that says so.
func FuzzBulkAnswer(f *testing.F) {
	for _, body := range []string{
		`{"items":[{"update":{"status":200}},{"update":{"status":201}}]}`,
		`{"items":[{"update":{"status":200}}]}`,
		`{"items":[{"update":{"status":429,"error":{"type":"x","reason":"y"}}},{"update":{"status":409}}]}`,
		`{"items":[{"update":{"status":400,"error":{"type":"mapper_parsing_exception","reason":"r","caused_by":{"type":"t","reason":"deep"}}}},{"update":{"status":404}}]}`,
		`{"items":[{"index":{"status":200}},{}]}`, `{"items":[null,{"update":null}]}`, `{"items":[`, `<html>`, ``, `null`, `[]`, `{"items":null}`, `{"items":[{"update":{"status":"200"}},{"update":{"status":2e2}}]}`,
		`{"error":{"type":"some_exception","reason":"r","root_cause":[{"type":"a","reason":"b"}]},"status":503}`,
		`{"items":[{"update":{"status":200,"error":{"type":"x"}}},{"update":{"status":200}}]}`,
	} {
		for _, status := range []uint16{200, 400, 404, 413, 429, 503} {
			f.Add(status, []byte(body))
		}
	}
	sp := testSpace()
	docs := testDocs("a", "b")
	f.Fuzz(func(t *testing.T, status uint16, body []byte) {
		status = 200 + status%400
		client, err := opensearch.NewClient(opensearch.Config{Transport: answering{int(status), body}, DisableRetry: true})
		failtest.On(t, err)
		s := &server{client: client, patience: time.Nanosecond}
		notYet := errors.New("not answered")
		errs := []error{notYet, notYet}
		s.applyChanges(context.Background(), sp, newest(docs, []int{0, 1}), errs, time.Now())
		says := statuses(int(status), body)
		for i, err := range errs {
			switch {
			case err == notYet:
				t.Fatalf("change %d has no answer", i)
			case err == nil && (says == nil || says[i] < 200 || says[i] >= 300):
				t.Fatalf("%d %q: change %d is taken for written", status, body, i)
			case err != nil && says != nil && says[i] >= 200 && says[i] < 300:
				t.Fatalf("%d %q: change %d is written, and here: %v", status, body, i, err)
			case errors.Is(err, search.ErrRefused) && status != http.StatusRequestEntityTooLarge && (says == nil || says[i] != 400):
				t.Fatalf("%d %q: change %d is refused for good: %v", status, body, i, err)
			case err != nil && !strings.HasPrefix(err.Error(), "search index test: ") && !errors.Is(err, search.ErrRefused):
				t.Fatalf("the error does not name the index: %v", err)
			}
		}
	})
}

// statuses are those of the two changes as encoding/json reads them, nil when the
// answer is not one for two changes.
func statuses(status int, body []byte) []int {
	var got struct {
		Items []struct{ Update struct{ Status int } }
	}
	if status >= 300 || json.NewDecoder(bytes.NewReader(body)).Decode(&got) != nil || len(got.Items) != 2 {
		return nil
	}
	var raw map[string]any
	if json.NewDecoder(bytes.NewReader(body)).Decode(&raw) != nil {
		return nil
	}
	return []int{got.Items[0].Update.Status, got.Items[1].Update.Status}
}

// FuzzTarget: a URL can be used for requests, or is refused; and no printed message or
// name contains its password.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{
		"http://localhost:9200", "https://user:topsecret@host/prefix/", "https://a.eu-west-1.es.amazonaws.com", "http://h?sign=eu-west-1", "localhost:9200", "http://", "://x",
		"http://u:topsecret@h:port", "http://u:topsecret@h?sign=x", "u:topsecret@h", "http://u:topsecret@h#x", "http://u:top%73ecret@h/%zz", "http://[::1]:9200", "https://st/r:topsecret@host/prefix/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTarget(s)
		if err != nil && !errors.Is(err, ErrTarget) {
			t.Fatal(err)
		}
		said := got.Shown()
		if err != nil {
			said = err.Error()
		} else if r, err := http.NewRequest("GET", got.URL+"/_bulk", nil); err != nil || r.URL.Host == "" || r.URL.User != nil {
			t.Fatalf("%q is taken as %+v, %v", s, got, err)
		}
		at := max(0, strings.LastIndexByte(s, '@')) // what is behind it is the host
		if strings.Contains(s[:at], "topsecret") && !strings.Contains(s[at:], "topsecret") && strings.Contains(said, "topsecret") {
			t.Fatalf("%q is said with its password: %s", s, said)
		}
	})
}
