package projectorcli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/search/opensearch/opensearchtest"
)

// types types the commands that a section of docs/guide/operations.md has as an example, in their order.
func (l *life) types(section, model, cluster string) {
	l.Helper()
	page, err := os.ReadFile("../../docs/guide/operations.md")
	failtest.On(l, err)
	_, text, found := strings.Cut(string(page), "\n### "+section+"\n")
	if !found {
		l.Fatalf("there is no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n#")
	typed := 0
	for _, line := range regexp.MustCompile(`(?m)^    weir (.*)$`).FindAllStringSubmatch(text, -1) {
		args := strings.Fields(strings.NewReplacer("MODEL", model, "URL", cluster).Replace(line[1]))
		switch args[0] {
		case "deploy": // it needs no directory
			without := *l
			without.flags = nil
			without.ends(exitGood, args)
		case "run":
			l.runs(model, map[string]int{"orders": len(l.orders), "total": l.want()["total"]}, args[2:]...)
		default:
			l.ends(exitGood, args)
		}
		typed++
	}
	if typed == 0 {
		l.Errorf("section %q has no command", section)
	}
}

// TestRestoreOnServices types the recipes for an own table that is lost, and for a cluster that is replaced by an empty one.
func TestRestoreOnServices(t *testing.T) {
	cluster := opensearchtest.URL(t)
	l := recipe(t)
	m := l.model(lifeModel + lifeCount + lifeSum)
	l.deploys(m)
	l.flags = []string{"--data", l.at.Data}
	on := []string{"--aws", "--opensearch", cluster}
	found := func() {
		t.Helper()
		l.ends(exitGood, append([]string{"query", m, "find", "q=Ida"}, on...), `"name":"Ida"`)
	}
	l.write(4)
	for range 3 { // so that versions are above those with which a new ledger begins
		l.write(3)
		l.runs(m, map[string]int{"orders": len(l.orders)}, on...)
	}
	found()

	l.write(3) // which weir has not derived
	_, err := l.db.DeleteTable(t.Context(), &sdk.DeleteTableInput{TableName: aws.String(owntable.TableName)})
	failtest.On(t, err)
	l.types("The own table is lost", m, cluster)
	found()

	var out bytes.Buffer
	if code := run(t.Context(), append([]string{"status", m, "-o", "json", "--data", l.at.Data}, on...), strings.NewReader(""), &out, io.Discard); code != exitGood {
		t.Fatalf("status: exit code %d: %s", code, &out)
	}
	var is struct{ Search []struct{ Place string } }
	failtest.On(t, json.Unmarshal(out.Bytes(), &is))
	asks := func(method, path string, answer any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, cluster+"/"+path, nil)
		failtest.On(t, err)
		res, err := http.DefaultClient.Do(req)
		failtest.On(t, err)
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(answer); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s, %v", method, path, res.Status, err)
		}
	}
	for _, x := range is.Search {
		var indexes, ok map[string]any // behind the alias
		asks(http.MethodGet, x.Place, &indexes)
		for name := range indexes {
			asks(http.MethodDelete, name, &ok)
		}
	}
	if code := run(t.Context(), append([]string{"query", m, "find", "q=Ida", "--data", l.at.Data}, on...), strings.NewReader(""), io.Discard, io.Discard); code == exitGood {
		t.Error("an index that is gone answers")
	}
	l.types("The cluster is replaced by an empty one", m, cluster)
	found()
}

// TestKeyRotated rotates the key of the HTTP API as docs/guide/operations.md says, under a server that runs.
func TestKeyRotated(t *testing.T) {
	l := &life{T: t}
	l.at.Data = t.TempDir()
	m := l.model(lifeModel + lifeCount)
	l.write(2)
	const before, after = "the-key-of-before-123456", "the-key-of-afterwards-123"
	keys := filepath.Join(t.TempDir(), "keys")
	has := func(all ...string) { failtest.On(t, os.WriteFile(keys, []byte(strings.Join(all, "\n")+"\n"), 0o600)) }
	has(before)
	var said buffer
	ended := make(chan int, 1)
	ctx, end := context.WithCancelCause(t.Context())
	go func() {
		ended <- run(ctx, []string{"run", m, "--data", l.at.Data, "--addr", "127.0.0.1:0", "--keys-file", keys}, strings.NewReader(""), io.Discard, &said)
	}()
	await := func(key string, want int) {
		t.Helper()
		got := 0
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			base := regexp.MustCompile(`http://\S+/v1`).FindString(said.text())
			if base == "" {
				continue
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/shop/customer?id=1", nil)
			failtest.On(t, err)
			req.Header.Set("Authorization", "Bearer "+key)
			res, err := http.DefaultClient.Do(req)
			failtest.On(t, err)
			res.Body.Close()
			if got = res.StatusCode; got == want {
				return
			}
		}
		t.Fatalf("%s: %d, want %d: %s", key, got, want, said.text())
	}
	await(before, http.StatusOK)
	await(after, http.StatusUnauthorized)
	has(before, after)
	await(after, http.StatusOK)
	await(before, http.StatusOK)
	has(after)
	await(before, http.StatusUnauthorized)
	await(after, http.StatusOK)
	end(errTerminated)
	if code := <-ended; code != exitGood {
		t.Errorf("exit code %d: %s", code, said.text())
	}
}
