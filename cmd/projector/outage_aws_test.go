package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/lambda/lambdatest"
)

// cluster is a proxy in front of a cluster. It calls first with each request, which it passes
// on unless first answers it (true).
func cluster(t *testing.T, at string, first func(http.ResponseWriter, *http.Request) bool) (front string) {
	target, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of clients that were killed
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !first(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// outage is a cluster that can be down: then it ends every connection without an answer.
func outage(t *testing.T, at string) (front string, down *atomic.Bool) {
	down = &atomic.Bool{}
	return cluster(t, at, func(w http.ResponseWriter, _ *http.Request) bool {
		if !down.Load() {
			return false
		}
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
		return true
	}), down
}

// picture adds a picture to an album.
func (w *albumsWorld) picture(album, id string) {
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	_, err := w.db.PutItem(w.Context(), &sdk.PutItemInput{TableName: aws.String("gallery"), Item: map[string]types.AttributeValue{
		"PK": s("ALBUM#" + album), "SK": s("MEDIA#" + id), "EntityType": s("AlbumMedia"), "albumId": s(album), "mediaId": s(id), "addedAt": s("2026-01-01T00:00:00Z"),
	}})
	if err != nil {
		w.Error(err)
	}
}

// counts waits until an album shows its number of pictures.
func (w *albumsWorld) counts(album, want string, said func() string) {
	w.Helper()
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	var got string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		out, err := w.db.GetItem(w.Context(), &sdk.GetItemInput{TableName: aws.String("gallery"), ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{"PK": s("ALBUM#" + album), "SK": s("METADATA")}})
		if err != nil {
			w.Fatal(err)
		}
		if n, ok := out.Item["mediaCount"].(*types.AttributeValueMemberN); ok {
			got = n.Value
		}
		if got == want {
			return
		}
	}
	w.Fatalf("album %s has %s pictures, it should have %s\n%s", album, got, want, said())
}

// TestRowsDoNotWaitForSearchOnServices: a process that starts while the cluster is down, and
// one whose cluster goes down, apply rows. When the cluster answers, searches are answered,
// and have all that was written meanwhile.
func TestRowsDoNotWaitForSearchOnServices(t *testing.T) {
	w := newAlbums(t)
	front, down := outage(t, w.url)
	w.url = front
	down.Store(true)
	s := w.serve("gallery")
	w.put("a", "alpha")
	w.picture("a", "1")
	w.counts("a", "1", s.said.text)
	if res, err := http.Get(s.base + "/gallery/search-albums?q=alpha"); err != nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a search while the cluster is down: %+v, %v", res, err)
	}
	down.Store(false)
	s.finds("alpha", "a")
	down.Store(true)
	w.put("b", "beta")
	w.picture("b", "1")
	w.picture("b", "2")
	w.counts("b", "2", s.said.text)
	down.Store(false)
	s.finds("beta", "b")
	s.stop()
}

// TestEmbeddedRowsDoNotWaitForSearch: rows are applied on the embedded store too while a
// cluster of indexes is down.
func TestEmbeddedRowsDoNotWaitForSearch(t *testing.T) {
	dir := galleryRows(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	base := serve(t, errTerminated, exitGood, "run", "gallery", "--data", dir, "--opensearch", gone.URL, "--addr", "127.0.0.1:0")
	if _, err := getPage(base + "/gallery/search-albums?q=alpha"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a search while the cluster is down: %v", err)
	}
	counted := func() (n int64) {
		rows, err := ask(base+"/gallery/albums", nil, 97)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			of, _ := row["mediaCount"].(json.Number)
			one, _ := of.Int64()
			n += one
		}
		return n
	}
	for deadline := time.Now().Add(time.Minute); counted() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no album shows how many pictures it has")
		}
	}
}

// TestFunctionsDoNotWaitForSearchOnServices: the function of the rows acknowledges what the
// function of the documents cannot apply while the cluster is down, and gets later.
func TestFunctionsDoNotWaitForSearchOnServices(t *testing.T) {
	w := newAlbums(t)
	if said, err := w.command("build", "gallery", "--data", t.TempDir()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	front, down := outage(t, w.url)
	l := &lambdaWorld{T: t, cfg: w.cfg, at: map[string]string{}}
	out, err := w.db.DescribeTable(t.Context(), &sdk.DescribeTableInput{TableName: aws.String("gallery")})
	if err != nil {
		t.Fatal(err)
	}
	l.arn = aws.ToString(out.Table.LatestStreamArn)
	env := append(w.env, "WEIR_MODEL=gallery")
	l.f = lambdatest.NewOf(t, w.bin, env...)
	l.docs = lambdatest.NewOf(t, w.bin, append(env, "WEIR_GROUP=search", "WEIR_OPENSEARCH="+front)...)
	l.f.Start()
	l.docs.Start()
	w.put("a", "alpha")
	w.picture("a", "1")
	var all []json.RawMessage
	first := l.read()
	for _, records := range first {
		all = append(all, records...)
	}
	if a := l.docs.Invoke(payload(t, event(all)), time.Minute); a.Kind != "response" || strings.Contains(a.Body, "itemIdentifier") {
		t.Fatalf("%s %s", a.Kind, a.Body)
	}
	down.Store(true)
	w.put("b", "beta")
	w.picture("b", "1")
	var late []json.RawMessage
	second := l.read()
	for _, records := range second {
		late = append(late, records...)
	}
	if a := l.docs.Invoke(payload(t, event(late)), 5*time.Second); a.Kind == "response" && !strings.Contains(a.Body, "itemIdentifier") {
		t.Errorf("documents are acknowledged that the cluster does not have: %s", a.Body)
	}
	for _, read := range []map[string][]json.RawMessage{first, second} {
		for shard, records := range read {
			if a := l.f.Invoke(payload(t, windowed(shard, records, nil)), time.Minute); a.Kind != "response" || strings.Contains(a.Body, "itemIdentifier") {
				t.Errorf("rows: %s %s", a.Kind, a.Body)
			}
		}
	}
	w.counts("a", "1", l.f.Stderr.String)
	w.counts("b", "1", l.f.Stderr.String)
	down.Store(false)
	if a := l.docs.Invoke(payload(t, event(late)), time.Minute); a.Kind != "response" || strings.Contains(a.Body, "itemIdentifier") {
		t.Errorf("%s %s", a.Kind, a.Body)
	}
	for deadline := time.Now().Add(30 * time.Second); !maps.Equal(w.found("gallery"), w.at); { // the cluster shows it within about a second
		if time.Now().After(deadline) {
			t.Fatalf("a search finds %v, the table has %v", w.found("gallery"), w.at)
		}
	}
}

// TestFunctionGroups: a function that would have rows wait for a cluster does not begin.
func TestFunctionGroups(t *testing.T) {
	for _, c := range []struct{ env, says string }{
		{"WEIR_OPENSEARCH=http://127.0.0.1:9", "WEIR_GROUP=rows"},
		{"WEIR_GROUP=search", "WEIR_OPENSEARCH"},
		{"WEIR_GROUP=both", "rows or search"},
	} {
		var said bytes.Buffer
		cmd := exec.Command(self(t))
		cmd.Args[0] = "projector"
		cmd.Env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API=127.0.0.1:9", "WEIR_MODEL=gallery", c.env)
		cmd.Stderr = &said
		err := cmd.Run()
		if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(said.String(), c.says) {
			t.Errorf("%s: %v: %s", c.env, err, said.String())
		}
	}
}
