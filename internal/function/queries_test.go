package function

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
	"weir/internal/web"
)

// kept is a store that others use too.
type kept struct{ store.Store }

func (kept) Close() error { return nil }

// shelf is a directory with a row of the gallery that searches may find, and no index.
func shelf(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	m := gallery(t)
	s, err := system.Open(t.Context(), dir, []*model.Model{m}, system.Options{NoSearch: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &ingest.Writer{Model: m, Store: s.Store}
	c, err := ingest.ReadCommand([]byte(`{"op":"put","entity":"Album","item":{"id":"sea","title":"The sea","isPublic":true,"createdAt":"2026-01-31T12:00:00Z"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if out := w.Do(t.Context(), []ingest.Command{c}); out[0].Err != nil {
		t.Fatal(out[0].Err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func gallery(t *testing.T) *model.Model {
	t.Helper()
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// environment sets the environment of a function that answers queries.
func environment(t *testing.T, more ...string) {
	t.Helper()
	for _, pair := range append([]string{"WEIR_QUERIES=1", "WEIR_MODEL=gallery", "WEIR_GROUP=", "WEIR_OPENSEARCH=", "WEIR_KEYS=", "WEIR_OPEN=1"}, more...) {
		name, v, _ := strings.Cut(pair, "=")
		t.Setenv(name, v)
	}
}

// get asks for a path and returns the status and the body.
func get(t *testing.T, q *queries, at string) (code int, body string) {
	t.Helper()
	path, query, _ := strings.Cut(at, "?")
	out, err := q.Invoke(t.Context(), fmt.Appendf(nil, `{"rawPath":%q,"rawQueryString":%q,"requestContext":{"http":{"method":"GET","sourceIp":"192.0.2.1"}}}`, path, query))
	var a struct {
		StatusCode int
		Body       string
	}
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, a.Body
}

// TestQueries: queries are answered from the start. Searches are answered once another program has built the indexes, and the function
// asks for that now and then only; it makes none itself.
func TestQueries(t *testing.T) {
	environment(t, "WEIR_DATA="+shelf(t))
	q, s, err := newQueries(t.Context(), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const find = "/v1/gallery/search-albums?q=sea"
	check := func(at string, code int, want string) {
		t.Helper()
		if got, body := get(t, q, at); got != code || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, should be %d with %s", at, got, body, code, want)
		}
	}
	check("/v1/gallery/album?albumId=sea", 200, `"title":"The sea"`)
	check("/v1/gallery/albums", 200, `"The sea"`)
	check("/v1/gallery/nothing", 404, `"search-albums"`)
	check("/healthz", 200, "ok")
	if !q.asked.IsZero() {
		t.Error("it asks for indexes that no search needs")
	}
	check(find, 503, "problem:building")
	before := q.asked
	check(find, 503, "problem:building")
	if before.IsZero() || q.asked != before {
		t.Errorf("it asks at %v and at %v", before, q.asked)
	}
	rows := func() int {
		page, err := s.Store.Query(t.Context(), store.Query{Table: owntable.TableName, Partition: value.OfString(owntable.Generations("gallery"))})
		if err != nil {
			t.Fatal(err)
		}
		return len(page.Rows)
	}
	if n := rows(); n > 0 {
		t.Errorf("it makes %d rows", n)
	}
	dir, _ := s.Room()
	builder, err := system.Over(t.Context(), kept{s.Store}, dir, []*model.Model{gallery(t)}, system.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := builder.Reach(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := builder.Close(); err != nil {
		t.Fatal(err)
	}
	check(find, 503, "problem:building")
	q.asked = time.Now().Add(-askEvery)
	check(find, 200, `"The sea"`)
	asked := q.asked
	q.asked = asked.Add(-askEvery)
	if check(find, 200, `"The sea"`); q.asked != asked.Add(-askEvery) {
		t.Error("it asks again for indexes that are built")
	}
	if _, err := q.Invoke(t.Context(), []byte(`{"Records":[{"eventSource":"aws:dynamodb"}]}`)); err == nil || !strings.Contains(err.Error(), web.ErrEvent.Error()) {
		t.Errorf("records of a stream: %v", err)
	}
}

// TestQueriesEnvironment: who may ask, and what cannot be.
func TestQueriesEnvironment(t *testing.T) {
	const key = "a-key-of-the-function"
	for _, c := range []struct {
		env  string
		code int
	}{{"WEIR_OPEN=", 401}, {"WEIR_OPEN=true", 401}, {"WEIR_OPEN=1", 200}, {"WEIR_KEYS=" + key, 401}} {
		environment(t, "WEIR_DATA="+t.TempDir(), c.env)
		q, s, err := newQueries(t.Context(), nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if code, body := get(t, q, "/v1"); code != c.code {
			t.Errorf("%s: %d %s", c.env, code, body)
		}
		s.Close()
	}
	for env, want := range map[string]string{
		"WEIR_GROUP=rows": "WEIR_GROUP is not needed any more", "WEIR_MODEL=": "WEIR_MODEL is not set", "WEIR_OPENSEARCH=search": "WEIR_OPENSEARCH: ",
		"WEIR_OPENSEARCH=https://u:p@h": "WEIR_OPENSEARCH has a password", "WEIR_OPENSEARCH=https://x.eu-west-1.aoss.amazonaws.com": "OpenSearch Serverless has no refresh", "WEIR_KEYS=short": "WEIR_KEYS: ",
		"WEIR_QUERIES=yes": `WEIR_QUERIES is "yes"`,
	} {
		environment(t, "WEIR_DATA="+t.TempDir(), env)
		if err := Serve(t.Context(), t.Output(), t.Output()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, should say %s", env, err, want)
		}
	}
}
