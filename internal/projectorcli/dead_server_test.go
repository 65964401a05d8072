package projectorcli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"weir/internal/console"
	"weir/internal/deadletter"
	"weir/internal/failtest"
)

// TestDeadOfServer: the commands on dead letters ask the process that has the directory, with its key. A console that
// only reads shows them and refuses actions; one that writes retries and discards, and says what stays.
func TestDeadOfServer(t *testing.T) {
	t.Setenv("WEIR_KEYS", "first-key-0123456789")
	dir := t.TempDir()
	s := openGallery(t, dir)
	for _, d := range []deadletter.Letter{{Kind: deadletter.Gap, Target: "shard a", Reason: "records are missing"}, {Kind: deadletter.Gap, Target: "shard b", Reason: "records are missing"}} {
		if _, err := s.Models[0].Runner.Letters().Keep(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	failtest.On(t, s.Close())
	asks := func(base string, args ...string) (code int, out, said string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		code = run(context.Background(), append([]string{"dead"}, append(args, "--server", base)...), strings.NewReader(""), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	var ids []string
	t.Run("reads", func(t *testing.T) {
		base := strings.TrimSuffix(serve(t, nil, exitInterrupted, "run", "gallery", "--data", dir, "--addr", "127.0.0.1:0"), "/v1")
		code, out, said := asks(base, "list", "gallery", "-o", "json")
		var all []console.Letter
		if err := json.Unmarshal([]byte(out), &all); err != nil || code != exitGood || len(all) != 2 {
			t.Fatalf("%d %s %s", code, out, said)
		}
		for _, l := range all {
			ids = append(ids, l.ID)
		}
		if code, out, said := asks(base, "list", "gallery"); code != exitGood || strings.Count(out, "records are missing") != 2 {
			t.Errorf("%d %s %s", code, out, said)
		}
		if code, out, said := asks(base, "show", "gallery", ids[0]); code != exitGood || !strings.Contains(out, `"kind": "gap"`) {
			t.Errorf("%d %s %s", code, out, said)
		}
		if code, _, said := asks(base, "show", "gallery", "nothing"); code != exitUsage || !strings.Contains(said, "no dead letter with this id") {
			t.Errorf("%d %s", code, said)
		}
		if code, _, said := asks(base, "discard", "gallery", ids[0]); code != exitUsage || !strings.Contains(said, "--console=write") {
			t.Errorf("%d %s", code, said)
		}
		if code, _, said := asks(base, "list", "gallery", "Album:a1"); code != exitUsage || !strings.Contains(said, "name no rows") {
			t.Errorf("%d %s", code, said)
		}
		t.Setenv("WEIR_KEYS", "")
		if code, _, said := asks(base, "list", "gallery"); code != exitUsage || !strings.Contains(said, "needs a key") {
			t.Errorf("%d %s", code, said)
		}
	})
	t.Run("writes", func(t *testing.T) {
		base := strings.TrimSuffix(serve(t, nil, exitInterrupted, "run", "gallery", "--data", dir, "--addr", "127.0.0.1:0", "--console", "write"), "/v1")
		for name, value := range map[string]string{"Content-Type": "text/plain", "Sec-Fetch-Site": "cross-site"} {
			r, err := http.NewRequest("POST", base+"/console/gallery/letter.json?id="+ids[0], strings.NewReader(`{"action":"discard"}`))
			failtest.On(t, err)
			r.Header.Set("Authorization", "Bearer first-key-0123456789")
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set(name, value)
			res, err := http.DefaultClient.Do(r)
			failtest.On(t, err)
			if res.Body.Close(); res.StatusCode != http.StatusForbidden {
				t.Errorf("with %s %s: %s", name, value, res.Status)
			}
		}
		if code, _, said := asks(base, "retry", "gallery", "--all"); code != exitCheck || !strings.Contains(said, "0 applied, 2 dead letters stay") {
			t.Errorf("%d %s", code, said)
		}
		if code, _, said := asks(base, "discard", "gallery", ids[0]); code != exitGood || said != "discarded\n" {
			t.Errorf("%d %s", code, said)
		}
		if code, out, _ := asks(base, "list", "gallery", "-o", "jsonl"); code != exitGood || strings.Contains(out, ids[0]) || strings.Count(out, "\n") != 1 {
			t.Errorf("%d %s", code, out)
		}
	})
}
