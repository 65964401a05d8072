package projectorcli

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"weir/internal/failtest"
	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
)

// TestServeOnServices: serve answers beside a process that derives, and writes no row of its own but the secret of cursors. Searches are
// refused until their index is built.
func TestServeOnServices(t *testing.T) {
	dynamodbtest.Config(t)
	cfg, env := localAWS(t)
	setEnv(t, env)
	url := os.Getenv(opensearchtest.Endpoint)
	if url == "" {
		t.Skip("no OpenSearch")
	}
	l := &life{T: t, at: system.Place{AWS: true, Data: t.TempDir()}, db: sdk.NewFromConfig(cfg), env: env}
	l.flags = []string{"--aws", "--opensearch", url}
	m := l.model(lifeModel + lifeCount)
	l.deploys(m)
	l.write(4)
	before := len(l.own())
	serve := *l
	serve.command = "serve"
	var said *buffer
	serve.says = func(b *buffer) { said = b }
	until, stop := serve.begins(m)
	until(nil)
	base := regexp.MustCompile(`http://\S+/v1`).FindString(said.text())
	find := func() (int, string) {
		res, err := http.Get(base + "/shop/find?q=Ida")
		failtest.On(t, err)
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(body)
	}
	if code, body := find(); code != http.StatusServiceUnavailable {
		t.Errorf("a search before its index is built: %d %s", code, body)
	}
	if after := len(l.own()); after > before+1 {
		t.Errorf("serve made %d rows", after-before)
	}
	l.runs(m, map[string]int{"orders": 4})
	until(map[string]int{"orders": 4})
	code, body := 0, ""
	for range 300 {
		if code, body = find(); code == http.StatusOK {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if code != http.StatusOK || !strings.Contains(body, "Ida") {
		t.Errorf("a search: %d %s\n%s", code, body, said.text())
	}
	stop()
	l.flags = nil
	l.ends(exitUsage, []string{"serve", m, "--data", t.TempDir()}, "serve is for --aws")
}
