package projectorcli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/failtest"
	"weir/internal/web/webtest"
)

// self is the test program under the name that makes it the program itself.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	failtest.On(t, err)
	link := filepath.Join(t.TempDir(), "projector")
	failtest.On(t, os.Symlink(path, link))
	return link
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
