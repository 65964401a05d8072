package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/internal/web/webtest"
)

// self is the test program under the name that makes it the program itself.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "projector")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// TestIdleConnectionsTakeNoFiles: more connections than the process may have files
// open, each silent, cost neither the store and the indexes their files nor anybody
// an answer.
func TestIdleConnectionsTakeNoFiles(t *testing.T) {
	const files = 320
	cmd := webtest.Limited(files, self(t), "dev", "gallery", "--data", t.TempDir(), "--addr", "127.0.0.1:0")
	var talk strings.Builder
	addr, err := webtest.Serving(cmd, &talk)
	if err != nil {
		t.Fatal(err, talk.String())
	}
	defer cmd.Process.Kill()
	stop, err := webtest.Idle(addr, files+80)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for i := range 30 {
		body := fmt.Sprintf(`{"id": "a%d", "title": "title %[1]d", "isPublic": true, "createdAt": "2026-01-31T12:00:00Z"}`, i)
		res, err := http.Post("http://"+addr+"/v1/gallery/Album", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if answer, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusCreated {
			t.Fatalf("write %d: %s %s", i, res.Status, answer)
		}
		res.Body.Close()
		if i%10 == 0 {
			http.DefaultClient.CloseIdleConnections()
		}
	}
	if _, err := getPage("http://" + addr + "/v1/gallery/search-albums?q=title"); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestTooFewFiles: where a server could take no connections it says so, and how many
// files it needs.
func TestTooFewFiles(t *testing.T) {
	out, err := webtest.Limited(180, self(t), "run", "gallery", "--data", t.TempDir(), "--addr", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "exit status 2") && !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(string(out), "ulimit -n") {
		t.Errorf("%v: %s", err, out)
	}
	for _, files := range []int{24, 26, 100} { // a replay waited for ever, and said nothing
		out, err := webtest.Limited(files, self(t), "replay", "gallery", "../../testdata/streams/gallery/stream.jsonl.gz", "--data", t.TempDir()).CombinedOutput()
		if err == nil || !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(string(out), "ulimit -n") {
			t.Errorf("%d files: %v: %s", files, err, out)
		}
	}
}
