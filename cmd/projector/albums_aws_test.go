package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/search/opensearch/opensearchtest"
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

func (w *albumsWorld) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.bin, append(args, "--aws", "--opensearch", w.url)...)
	cmd.Env = append(os.Environ(), w.env...)
	return cmd
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
