package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/model"
	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// albumsWorld is an account with albums, whose titles all have the word album.
type albumsWorld struct {
	*testing.T
	bin, url string
	env      []string
	cfg      aws.Config
	db       *sdk.Client
	at       map[string]string // by id, the title
}

func newAlbums(t *testing.T) *albumsWorld {
	at := opensearchtest.URL(t)
	cfg, env := localAWS(t)
	galleryTables(t, cfg)
	return &albumsWorld{T: t, bin: built(t), url: at, env: env, cfg: cfg, db: sdk.NewFromConfig(cfg), at: map[string]string{}}
}

// put writes an album, or deletes it if it has no title.
func (w *albumsWorld) put(id, title string) {
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	row := map[string]types.AttributeValue{"PK": s("ALBUM#" + id), "SK": s("METADATA")}
	var err error
	if title == "" {
		delete(w.at, id)
		_, err = w.db.DeleteItem(w.Context(), &sdk.DeleteItemInput{TableName: aws.String("gallery"), Key: row})
	} else {
		w.at[id] = "album " + title
		for name, v := range map[string]string{"EntityType": "Album", "id": id, "title": w.at[id], "isPublic": "true", "createdBy": "u", "createdAt": "2026-01-01T00:00:00Z"} {
			row[name] = s(v)
		}
		_, err = w.db.PutItem(w.Context(), &sdk.PutItemInput{TableName: aws.String("gallery"), Item: row})
	}
	if err != nil {
		w.Error(err)
	}
}

// fill writes albums, many at once.
func (w *albumsWorld) fill(n int) {
	w.Helper()
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	var batch []types.WriteRequest
	for i := range n {
		id := fmt.Sprint("a", i)
		w.at[id] = fmt.Sprint("album ", i)
		batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: map[string]types.AttributeValue{
			"PK": s("ALBUM#" + id), "SK": s("METADATA"), "EntityType": s("Album"), "id": s(id), "title": s(w.at[id]),
			"isPublic": s("true"), "createdBy": s("u"), "createdAt": s("2026-01-01T00:00:00Z"),
		}}})
		if len(batch) < 25 && i < n-1 {
			continue
		}
		out, err := w.db.BatchWriteItem(w.Context(), &sdk.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{"gallery": batch}})
		if err != nil || len(out.UnprocessedItems) > 0 {
			w.Fatal(err, len(out.UnprocessedItems))
		}
		batch = nil
	}
}

func (w *albumsWorld) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.bin, append(args, "--aws", "--opensearch", w.url)...)
	cmd.Env = append(os.Environ(), w.env...)
	return cmd
}

// finds compares what a search finds with the rows.
func (w *albumsWorld) finds(model string) {
	w.Helper()
	if got := w.found(model); !maps.Equal(got, w.at) {
		w.Errorf("a search finds %d albums, the table has %d: %v", len(got), len(w.at), slices.Sorted(maps.Keys(got)))
	}
}

// found are the albums that a search finds, by id their titles.
func (w *albumsWorld) found(model string) map[string]string {
	w.Helper()
	out, err := w.command("query", model, "search-albums", "q=album", "--data", w.TempDir()).Output()
	if err != nil {
		w.Fatal(err)
	}
	got := map[string]string{}
	for _, line := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		var row struct{ ID, Title string }
		if err := json.Unmarshal(line, &row); err != nil {
			w.Fatalf("%v: %s", err, line)
		}
		got[row.ID] = row.Title
	}
	return got
}

// killed starts a build again and again, and kills it with SIGKILL, until it was killed so many
// times while it filled. It returns how many rows were read when a build went on.
func killed(t *testing.T, times int, build func() *exec.Cmd, begun func(try int) bool) (wentOn []int) {
	t.Helper()
	rng := mathrand.New(mathrand.NewPCG(8, 8))
	goingOn := regexp.MustCompile(`going on after (\d+) rows`)
	for try := 0; len(wentOn) < times; try++ {
		if try > 60 {
			t.Fatalf("it went on %v", wentOn)
		}
		cmd := build()
		var said buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 20000 { // until it has read a page
			if strings.Contains(said.text(), "going on") || begun(try) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
		_ = cmd.Process.Signal(syscall.SIGKILL)
		if err := cmd.Wait(); err == nil {
			t.Fatalf("it was built before it was killed, and went on %v\n%s", wentOn, said.text())
		}
		if m := goingOn.FindStringSubmatch(said.text()); m != nil {
			var n int
			fmt.Sscan(m[1], &n)
			wentOn = append(wentOn, n)
		}
	}
	return wentOn
}

// TestBuildKilledOnServices: the program is killed while it fills an index, three times (each time
// the next one has to wait), while albums are written and deleted. The build that is not
// killed goes on, and has everything.
func TestBuildKilledOnServices(t *testing.T) {
	w := newAlbums(t)
	const rows = 7000
	w.fill(rows)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for rng := mathrand.New(mathrand.NewPCG(5, 5)); ; {
			select {
			case <-stop:
				return
			case <-t.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
			id, title := fmt.Sprint("a", rng.IntN(rows)), fmt.Sprint(rng.IntN(1000))
			if rng.IntN(3) == 0 {
				title = ""
			}
			w.put(id, title)
		}
	}()
	front, pages := slow(t, w.url)
	direct := w.url
	w.url = front
	build := func() *exec.Cmd {
		return w.command("build", "gallery", "search/albums", "--data", w.TempDir())
	}
	wentOn := killed(t, 3, build, func(try int) bool { return try == 0 && pages.Load() > 3 })
	w.url = direct
	close(stop)
	<-stopped
	if out, err := build().CombinedOutput(); err != nil || !bytes.Contains(out, []byte("going on after")) {
		t.Fatalf("%v: %s", err, out)
	}
	if !slices.IsSorted(wentOn) || wentOn[len(wentOn)-1] <= wentOn[0] {
		t.Errorf("it went on after %v rows", wentOn)
	}
	w.finds("gallery")
}

// slow is a cluster that takes a while to answer each bulk request, and how many it got.
func slow(t *testing.T, at string) (front string, bulks *atomic.Int64) {
	bulks = &atomic.Int64{}
	return cluster(t, at, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "_bulk") && (r.ContentLength < 0 || r.ContentLength > 10000) { // more than a trial
			bulks.Add(1)
			time.Sleep(200 * time.Millisecond)
		}
		return false
	}), bulks
}

// TestBuildKilled: the same on an embedded store, ten times. Only the build has it open. It takes enough rows for a build
// that is killed before its end, so it has no short form.
func TestBuildKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("a build that is killed while it runs takes many rows")
	}
	dir, bin := t.TempDir(), built(t)
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	s, err := system.Open(t.Context(), dir, []*model.Model{m}, system.Options{NoSearch: true})
	if err != nil {
		t.Fatal(err)
	}
	const rows = 60_000
	var ws []store.Write
	for i := range rows {
		var row value.Item
		for name, v := range map[string]string{
			"PK": fmt.Sprint("ALBUM#a", i), "SK": "METADATA", "EntityType": "Album", "id": fmt.Sprint("a", i), "title": fmt.Sprint("album ", i),
			"isPublic": "true", "createdBy": "u", "createdAt": "2026-01-01T00:00:00Z",
		} {
			row = row.With(value.Attr{Name: name, Value: value.OfString(v)})
		}
		ws = append(ws, store.Write{Ref: store.Ref{Table: "gallery", Key: store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}}, Put: row})
		if len(ws) == 500 || i == rows-1 {
			if _, err := s.Store.Write(t.Context(), ws); err != nil {
				t.Fatal(err)
			}
			ws = nil
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var start time.Time
	build := func() *exec.Cmd {
		start = time.Now()
		return exec.Command(bin, "build", "gallery", "search/albums", "--data", dir)
	}
	// On a busy machine, the first ones are killed before they have saved anything.
	wentOn := killed(t, 10, build, func(try int) bool { return time.Since(start) > 250*time.Millisecond<<min(try, 5) })
	if out, err := build().CombinedOutput(); err != nil || !bytes.Contains(out, []byte("going on after")) {
		t.Fatalf("%v: %s", err, out)
	}
	if !slices.IsSorted(wentOn) || wentOn[len(wentOn)-1] <= wentOn[0] {
		t.Errorf("it went on after %v rows", wentOn)
	}
	out, err := exec.Command(bin, "query", "gallery", "search-albums", "q=album", "--data", dir).Output()
	if n := bytes.Count(out, []byte("\n")); err != nil || n != rows {
		t.Errorf("a search finds %d albums of %d: %v", n, rows, err)
	}
}

// server is a process that answers queries.
type server struct {
	w    *albumsWorld
	cmd  *exec.Cmd
	said buffer
	base string
}

var serving = regexp.MustCompile(`serving .* on (http://\S+/v1)`)

func (w *albumsWorld) serve(model string) *server {
	w.Helper()
	s := &server{w: w, cmd: w.command("run", model, "--addr", "127.0.0.1:0", "--lease", "3s", "--data", w.TempDir())}
	s.cmd.Stderr = &s.said
	if err := s.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = s.cmd.Process.Kill() })
	for deadline := time.Now().Add(time.Minute); s.base == ""; time.Sleep(20 * time.Millisecond) {
		if m := serving.FindStringSubmatch(s.said.text()); m != nil {
			s.base = m[1]
		}
		if time.Now().After(deadline) {
			w.Fatalf("it does not serve: %s", s.said.text())
		}
	}
	return s
}

// finds waits until a search finds one album.
func (s *server) finds(q, id string) {
	s.w.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(s.w.Context(), 20*time.Second)
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/gallery/search-albums?q="+q, nil)
		res, err := http.DefaultClient.Do(req)
		var body []byte
		if err == nil {
			body, _ = io.ReadAll(res.Body)
			res.Body.Close()
		}
		cancel()
		if err == nil && res.StatusCode == http.StatusOK && bytes.Count(body, []byte(`"id":`)) == 1 && bytes.Contains(body, []byte(`"id":"`+id+`"`)) {
			return
		}
		if time.Now().After(deadline) {
			s.w.Fatalf("%s: %v %s\n%s", q, err, body, s.said.text())
		}
	}
}

func (s *server) stop() {
	s.w.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		s.w.Errorf("%v\n%s", err, s.said.text())
	}
}

// TestRollingDeployOnServices: the program with a changed search definition is started beside
// the one that runs, and takes its place; then the earlier one comes back. Each answers from
// an index that is up to date, and a recount of both finds nothing.
func TestRollingDeployOnServices(t *testing.T) {
	w := newAlbums(t)
	text, err := os.ReadFile("../../models/gallery.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "text: [title, tags]", "text: [title, createdBy]", 1)
	other := filepath.Join(t.TempDir(), "gallery.yaml")
	if changed == string(text) || os.WriteFile(other, []byte(changed), 0o600) != nil {
		t.Fatal("no other definition")
	}
	for i := range 20 {
		w.put(fmt.Sprint("a", i), fmt.Sprint("early", i))
	}
	old := w.serve("gallery")
	old.finds("early7", "a7")
	next := w.serve(other)
	next.finds("early7", "a7")
	for i := range 3 { // both run
		id := fmt.Sprint("b", i)
		w.put(id, "beside"+id)
		old.finds("beside"+id, id)
		next.finds("beside"+id, id)
	}
	old.stop()
	w.put("a3", "")
	w.put("c", "alone")
	next.finds("alone", "c")
	back := w.serve("gallery") // roll back
	back.finds("alone", "c")
	w.put("d", "back")
	back.finds("back", "d")
	next.finds("back", "d")
	next.stop()
	w.put("e", "last")
	back.finds("last", "e")
	w.finds("gallery")
	back.stop()
	for _, m := range []string{"gallery", other} {
		if out, err := w.command("build", m, "search/albums", "--data", t.TempDir()).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		w.finds(m)
		if out, err := w.command("verify", m, "--data", t.TempDir()).CombinedOutput(); err != nil || !bytes.Contains(out, []byte(" 0 differ")) {
			t.Errorf("%s: %v\n%s", m, err, out)
		}
	}
	out, err := w.command("status", other).CombinedOutput()
	if err != nil || bytes.Count(out, []byte("search/albums: live")) != 2 {
		t.Errorf("%v: %s", err, out)
	}
}
