package projectorcli

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/scratch"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/system/systemtest"
)

// takeoverLease is what the processes of TestTakeoverOnDynamoDB run with.
const takeoverLease = 2 * time.Second

// TestTakeoverOnDynamoDB has two processes of the built program follow a table in DynamoDB
// Local while another client writes. In turn one of them is killed with -9 and
// started again, or stopped for longer than its lease. In the end what is derived is
// right, and nothing is missing. WEIR_TAKEOVER_ROUNDS says how many times.
func TestTakeoverOnDynamoDB(t *testing.T) {
	rounds := 2
	if s := os.Getenv("WEIR_TAKEOVER_ROUNDS"); s != "" {
		var err error
		if rounds, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	cfg, env := localAWS(t)
	w := &takeover{T: t, bin: built(t), env: append(os.Environ(), env...)}
	m, db := galleryTables(t, cfg)
	w.start(0)
	w.start(1)
	stop := w.client(cfg)
	for round := range rounds {
		i := round / 2 % 2
		if round%2 == 0 {
			w.signal(i, syscall.SIGKILL)
			w.procs[i].Wait()
			time.Sleep(takeoverLease + takeoverLease/2)
			w.start(i)
		} else {
			w.signal(i, syscall.SIGSTOP)
			time.Sleep(2 * takeoverLease)
			w.signal(i, syscall.SIGCONT)
		}
		time.Sleep(takeoverLease / 4)
	}
	written := stop()
	w.settles(m, db)
	run := &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now}
	failtest.On(t, run.EachDeadLetter(t.Context(), func(d deadletter.Letter) error { t.Errorf("kept: %s %s: %s", d.Kind, d.Target, d.Reason); return nil }))
	for i := range w.procs {
		w.signal(i, syscall.SIGTERM)
		if err := w.procs[i].Wait(); err != nil {
			t.Errorf("a process that was told to stop ended with %v:\n%s", err, w.tail(i))
		}
	}
	t.Logf("%d rounds, %d writes", rounds, written)
}

// localAWS is a world of its own in DynamoDB Local, for the SDK and as an
// environment.
func localAWS(t *testing.T) (aws.Config, []string) {
	t.Helper()
	cfg := dynamodbtest.Config(t)
	key := rand.Text()
	cfg.Credentials = credentials.NewStaticCredentialsProvider(key, "x", "")
	endpoint := os.Getenv(dynamodbtest.Endpoint)
	return cfg, []string{"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=x", "AWS_ENDPOINT_URL_DYNAMODB=" + endpoint,
		"AWS_ENDPOINT_URL_DYNAMODB_STREAMS=" + endpoint}
}

// setEnv sets variables of the environment, NAME=VALUE, until the test ends.
func setEnv(t *testing.T, env []string) {
	t.Helper()
	for _, e := range env {
		name, v, _ := strings.Cut(e, "=")
		t.Setenv(name, v)
	}
}

// built is the program: the binary of the tests, under the name by which TestMain runs it.
func built(t *testing.T) string {
	t.Helper()
	bin, err := exec.LookPath("projector")
	failtest.On(t, err)
	return bin
}

func galleryTables(t *testing.T, cfg aws.Config) (*model.Model, *dynamodb.Store) {
	t.Helper()
	m, err := model.Load("gallery")
	failtest.On(t, err)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(t, err)
	db := dynamodbtest.Open(t, cfg, tables, dynamodb.Options{})
	systemtest.Made(t, db, m)
	return m, db
}

type takeover struct {
	*testing.T
	bin   string
	env   []string
	procs [2]*exec.Cmd
	logs  [2]bytes.Buffer
}

func (w *takeover) start(i int) {
	dir := filepath.Join(w.TempDir(), "..", fmt.Sprint("data", i))
	cmd := exec.Command(w.bin, "run", "gallery", "--aws", "--data", dir, "--addr", "127.0.0.1:0", "--lease", takeoverLease.String())
	cmd.Env, cmd.Stderr = w.env, &w.logs[i]
	failtest.On(w, cmd.Start())
	w.procs[i] = cmd
	w.Cleanup(func() { _ = cmd.Process.Kill() })
}

func (w *takeover) signal(i int, s os.Signal) {
	if err := w.procs[i].Process.Signal(s); err != nil {
		w.Fatalf("%v:\n%s", err, w.tail(i))
	}
}

func (w *takeover) tail(i int) []byte {
	b := w.logs[i].Bytes()
	return b[max(0, len(b)-2000):]
}

// client writes as people do, until stop, which says how often.
func (w *takeover) client(cfg aws.Config) (stop func() int) {
	db := sdk.NewFromConfig(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var counts [2]int
	for c := range counts {
		rng := mathrand.New(mathrand.NewPCG(uint64(c), 9))
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := deed(context.Background(), db, "gallery", "", rng); err != nil {
					w.Error(err)
					return
				}
				counts[c]++
				time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
			}
		})
	}
	return func() int { cancel(); wg.Wait(); return counts[0] + counts[1] }
}

// deed writes a row of a gallery in the table; the ids of its albums begin with whose.
func deed(ctx context.Context, db *sdk.Client, table, whose string, rng *mathrand.Rand) (err error) {
	a, m := fmt.Sprint(whose, "a", rng.IntN(20)), fmt.Sprint("m", rng.IntN(400))
	s := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	row := map[string]types.AttributeValue{"PK": s("ALBUM#" + a), "SK": s("MEDIA#" + m), "EntityType": s("AlbumMedia"), "albumId": s(a), "mediaId": s(m), "addedAt": s("2025-01-01T00:00:00Z")}
	n := rng.IntN(20)
	if n >= 16 {
		row = map[string]types.AttributeValue{"PK": s("ALBUM#" + a), "SK": s("METADATA"), "EntityType": s("Album"), "id": s(a), "title": s(fmt.Sprint("title ", rng.IntN(9))), "isPublic": s("true"), "createdAt": s("2025-01-01T00:00:00Z")}
	}
	if n < 11 || n >= 16 && n < 19 {
		_, err = db.PutItem(ctx, &sdk.PutItemInput{TableName: &table, Item: row})
		return err
	}
	_, err = db.DeleteItem(ctx, &sdk.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{"PK": row["PK"], "SK": row["SK"]}})
	return err
}

// settles waits until a recount finds nothing.
func (w *takeover) settles(m *model.Model, db *dynamodb.Store) {
	w.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var bad []scratch.Difference
		v := scratch.Verify{Model: m, Store: db}
		failtest.On(w, v.Run(w.Context(), func(d scratch.Difference) { bad = append(bad, d) }))
		if len(bad) == 0 && v.Checked > 0 {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%d of %d differ, such as %v\n%s\n%s", len(bad), v.Checked, bad[0], w.tail(0), w.tail(1))
		}
		time.Sleep(200 * time.Millisecond)
	}
}
