package projectorcli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"weir/internal/failtest"
	"weir/internal/store/dynamodb/dynamodbtest"
)

// lambdaWorld reads the stream of a table as Lambda does.
type lambdaWorld struct {
	*testing.T
	cfg aws.Config
	env []string // that a program finds the tables by
	arn string
	at  map[string]string // the iterator of each shard
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
	failtest.On(w, err)
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, os.Getenv(dynamodbtest.Endpoint), bytes.NewReader(body))
	failtest.On(w, err)
	who, err := w.cfg.Credentials.Retrieve(w.Context())
	failtest.On(w, err)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDBStreams_20120810."+op)
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+who.AccessKeyID+"/20260101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(req)
	failtest.On(w, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.Fatalf("%s: %s %s, %v", op, resp.Status, text, err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		w.Fatalf("%s: %v in %s", op, err, text)
	}
}
