package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"weir/internal/deploy"
	"weir/internal/lambda/lambdatest"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/verify"
)

// TestLambdaOnDynamoDB has the built program, as a function, derive from a table in
// DynamoDB Local that another client writes, and search in OpenSearch where there is
// one. It is handed what GetRecords gives as it is, in windows; some
// of it comes again, whole or in part, and the process is killed now and then. What
// is derived is what a recount gives, and an event without a window is refused.
func TestLambdaOnDynamoDB(t *testing.T) {
	dynamodbtest.Config(t)
	bin := built(t)
	w := newLambdaWorld(t, bin)
	w.runInWindows()
	w.refuses(payload(t, event(w.seen[:3])))
}

// runInWindows is run with events of tumbling windows, some of which come again.
func (w *lambdaWorld) runInWindows() {
	state := map[string]json.RawMessage{}
	w.run(func(f *lambdatest.Function, r *mathrand.Rand, shard string, records []json.RawMessage) {
		state[shard] = byShard(w.T, f, r, shard, records, state[shard])
	})
}

// lambdaWorld is a table, who writes it, a function, and what hands it the stream.
type lambdaWorld struct {
	*testing.T
	cfg   aws.Config
	env   []string // that a program finds the tables by
	model *model.Model
	db    *dynamodb.Store
	f     *lambdatest.Function
	docs  *lambdatest.Function // has the documents, nil without a cluster
	arn   string
	at    map[string]string // the iterator of each shard
	seen  []json.RawMessage
}

func newLambdaWorld(t *testing.T, bin string, env ...string) *lambdaWorld {
	cfg, awsEnv := localAWS(t)
	w := &lambdaWorld{T: t, cfg: cfg, env: awsEnv, at: map[string]string{}}
	w.model, w.db = galleryTables(t, cfg)
	env = append(slices.Concat(awsEnv, []string{"WEIR_MODEL=gallery"}), env...)
	w.f = lambdatest.NewOf(t, bin, watched(t, deploy.Rows, env)...)
	if url := os.Getenv(opensearchtest.Endpoint); url != "" {
		w.docs = lambdatest.NewOf(t, bin, watched(t, deploy.Search, slices.Concat(env, []string{"WEIR_GROUP=search", "WEIR_OPENSEARCH=" + url}))...)
	}
	out, err := sdk.NewFromConfig(cfg).DescribeTable(t.Context(), &sdk.DescribeTableInput{TableName: aws.String("gallery")})
	if err != nil {
		t.Fatal(err)
	}
	w.arn = aws.ToString(out.Table.LatestStreamArn)
	if url := os.Getenv(opensearchtest.Endpoint); url != "" {
		cmd := exec.CommandContext(t.Context(), bin, "build", "gallery", "--aws", "--opensearch", url, "--data", t.TempDir())
		cmd.Env = append(os.Environ(), awsEnv...)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	return w
}

// run writes, and delivers all there is and all that comes of it.
func (w *lambdaWorld) run(deliver func(*lambdatest.Function, *mathrand.Rand, string, []json.RawMessage)) {
	rng, client := mathrand.New(mathrand.NewPCG(17, 3)), sdk.NewFromConfig(w.cfg)
	w.f.Start()
	if w.docs != nil {
		w.docs.Start()
		defer w.docs.Kill()
	}
	for quiet := 0; quiet < 3; {
		if len(w.seen) < 800 {
			for range 150 {
				if err := deed(w.Context(), client, "gallery", "", rng); err != nil {
					w.Fatal(err)
				}
			}
		}
		n := 0
		for shard, records := range w.read() {
			deliver(w.f, rng, shard, records)
			if w.docs != nil {
				answerTo(w.T, w.docs, payload(w.T, event(records))) // which needs no shard
			}
			w.seen, n = append(w.seen, records...), n+len(records)
		}
		if quiet++; n > 0 {
			quiet = 0
		} else {
			time.Sleep(100 * time.Millisecond)
		}
	}
	w.f.Kill()
	w.verify()
}

// refuses starts the function again, and sends what it does not take.
func (w *lambdaWorld) refuses(payload []byte) {
	w.Helper()
	w.f.Start()
	if a := w.f.Invoke(payload, time.Minute); a.Kind != "error" || !strings.Contains(a.Body, "names no shard") {
		w.Errorf("%s %s", a.Kind, a.Body)
	}
}

func (w *lambdaWorld) verify() {
	s, err := system.Over(context.Background(), w.db, "", []*model.Model{w.model}, system.Options{OpenSearch: os.Getenv(opensearchtest.Endpoint)})
	if err != nil {
		w.Fatal(err)
	}
	if err := s.Show(w.Context()); err != nil {
		w.Fatal(err)
	}
	v := s.Verify(s.Models[0])
	if err := v.Run(w.Context(), func(d verify.Difference) { w.Error(d) }); err != nil || v.Checked < 20 {
		w.Errorf("%d checked, %v", v.Checked, err)
	}
	err = s.Models[0].Runner.Dead(w.Context(), func(d runner.Dead) error { w.Errorf("kept: %s: %s", d.Target, d.Reason); return nil })
	if err != nil {
		w.Fatal(err)
	}
}

// read takes what is new in the stream, as the service sends it.
func (w *lambdaWorld) read() map[string][]json.RawMessage {
	var stream struct {
		StreamDescription struct {
			Shards []struct {
				ShardID string `json:"ShardId"`
			}
		}
	}
	w.ask("DescribeStream", map[string]any{"StreamArn": w.arn}, &stream)
	out := map[string][]json.RawMessage{}
	for _, s := range stream.StreamDescription.Shards {
		if _, known := w.at[s.ShardID]; !known {
			var it struct{ ShardIterator string }
			w.ask("GetShardIterator", map[string]any{"StreamArn": w.arn, "ShardId": s.ShardID, "ShardIteratorType": "TRIM_HORIZON"}, &it)
			w.at[s.ShardID] = it.ShardIterator
		}
		for w.at[s.ShardID] != "" {
			var page struct {
				Records           []json.RawMessage
				NextShardIterator string
			}
			w.ask("GetRecords", map[string]any{"ShardIterator": w.at[s.ShardID]}, &page)
			w.at[s.ShardID] = page.NextShardIterator
			if len(page.Records) == 0 {
				break
			}
			for _, r := range page.Records { // what Lambda adds
				r = append(r[:len(r)-1:len(r)-1], fmt.Sprintf(`,"eventSourceARN":%q}`, w.arn)...)
				out[s.ShardID] = append(out[s.ShardID], r)
			}
		}
	}
	return out
}

// ask asks the streams' service without the SDK.
func (w *lambdaWorld) ask(op string, in, out any) {
	w.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		w.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, os.Getenv(dynamodbtest.Endpoint), bytes.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	who, err := w.cfg.Credentials.Retrieve(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810."+op)
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+who.AccessKeyID+"/20260101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.Fatalf("%s: %s %s, %v", op, resp.Status, text, err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		w.Fatalf("%s: %v in %s", op, err, text)
	}
}
