package projectorcli

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/failtest"
	"weir/internal/system"
)

// recipe is a deployment on DynamoDB Local, for the recipes of the runbook in docs/guide/operations.md.
func recipe(t *testing.T) *life {
	cfg, env := localAWS(t)
	setEnv(t, env)
	l := &life{T: t, at: system.Place{AWS: true, Data: t.TempDir()}, db: sdk.NewFromConfig(cfg), env: env}
	l.flags = []string{"--aws", "--data", l.at.Data}
	return l
}

// scraped returns the sum of a metric of a program that has said where it serves.
func scraped(t *testing.T, said, metric string) (sum float64) {
	t.Helper()
	base := regexp.MustCompile(`http://[^/\s]+`).FindString(said)
	if base == "" {
		return 0
	}
	res, err := http.Get(base + "/metrics")
	failtest.On(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	failtest.On(t, err)
	for _, m := range regexp.MustCompile(`(?m)^`+metric+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(string(body), -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		failtest.On(t, err)
		sum += n
	}
	return sum
}

// TestBehindOnDynamoDB follows the recipe of "behind the stream": a write budget that is too low is seen in the metric
// that the recipe names, and with a higher one the age falls and nothing differs.
func TestBehindOnDynamoDB(t *testing.T) {
	l := recipe(t)
	m := l.model(recipeModel)
	l.deploys(m)
	l.write(1)
	ctx, end := context.WithCancelCause(t.Context())
	var said buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"run", m, "--addr", "127.0.0.1:0", "--write-budget", "1"}, l.flags...), strings.NewReader(""), io.Discard, &said)
	}()
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s", what, said.text())
			}
		}
	}
	await("it serves", func() bool { return strings.Contains(said.text(), "serving") })
	l.write(60) // a copy of each order is a row of its own
	await("writes wait for the budget", func() bool { return scraped(t, said.text(), "weir_write_wait_seconds_total") > 1 })
	await("records are not applied", func() bool { return scraped(t, said.text(), "weir_unapplied_seconds") > 1 })
	end(errTerminated)
	if code := <-ended; code != exitGood {
		t.Fatalf("exit code %d: %s", code, said.text())
	}
	until, stop := l.begins(m, "--write-budget", "4000")
	until(map[string]int{"orders": len(l.orders), "total": l.want()["total"]})
	await("all copies are made", func() bool { // the customer's row shows its values before
		isSlip := func(row map[string]types.AttributeValue) bool {
			pk, ok := row["PK"].(*types.AttributeValueMemberS)
			return ok && strings.HasPrefix(pk.Value, "SLIP#")
		}
		return len(slices.DeleteFunc(l.rows(), func(row map[string]types.AttributeValue) bool { return !isSlip(row) })) == len(l.orders)
	})
	stop()
	l.exact(m)
}
