package projectorcli

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
)

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
		failtest.On(t, err)
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

// TestFunctionGroups: a function that was one of two says what took their place.
func TestFunctionGroups(t *testing.T) {
	for _, c := range []struct{ env, says string }{
		{"WEIR_GROUP=rows", "one function derives rows and, with WEIR_OPENSEARCH, keeps documents too"},
		{"WEIR_GROUP=search", "delete the function that had the documents"},
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
