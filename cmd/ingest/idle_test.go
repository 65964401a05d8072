package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"weir/internal/model"
	"weir/internal/system"
	"weir/internal/web/webtest"
)

// TestIdleConnectionsTakeNoFiles: more connections than the process may have files
// open, each silent, cost neither the store its files nor anybody a write.
func TestIdleConnectionsTakeNoFiles(t *testing.T) {
	const files, writes = 200, 60
	dir := t.TempDir()
	cmd := webtest.Limited(files, self(t), "serve", "gallery", "--data", dir, "--addr", "127.0.0.1:0")
	var talk strings.Builder
	addr, err := webtest.Serving(cmd, &talk)
	check(t, err)
	defer cmd.Process.Kill()
	for i := range writes {
		if i == 0 {
			stop, err := webtest.Idle(addr, files+50)
			check(t, err)
			defer stop()
		}
		body := fmt.Sprintf(`{"id": "a%d", "title": "%s", "createdAt": "2026-01-31T12:00:00Z"}`, i, strings.Repeat("x", 50000))
		res, err := http.Post("http://"+addr+"/v1/gallery/Album", "application/json", strings.NewReader(body))
		check(t, err)
		if res.Body.Close(); res.StatusCode != http.StatusCreated {
			t.Fatalf("write %d: %s", i, res.Status)
		}
		if i%10 == 0 {
			http.DefaultClient.CloseIdleConnections()
		}
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid))
	if err == nil && len(entries) > files-20 {
		t.Errorf("%d of %d files are open", len(entries), files)
	}
	check(t, cmd.Process.Signal(syscall.SIGTERM))
	check(t, cmd.Wait())
	m, err := model.Load("gallery")
	check(t, err)
	withStore(t, dir, m, func(s *system.System) {
		if n := len(all(t, s, "gallery")); n != writes {
			t.Errorf("%d rows of %d", n, writes)
		}
	})
}
