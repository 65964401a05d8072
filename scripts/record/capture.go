package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// A stream is what GetRecords returned for one table, page by page, as the bytes of the replies.
type stream struct {
	table, arn string
	pages      [][]byte
	records    []json.RawMessage
}

// A tap is an HTTP client that keeps the body of the last reply, because the SDK's own types lose its exact form.
type tap struct {
	client http.Client
	body   []byte
}

func (t *tap) Do(req *http.Request) (*http.Response, error) {
	resp, err := t.client.Do(req)
	if err != nil {
		return nil, err
	}
	t.body, err = io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(t.body))
	return resp, err
}

// capture reads the stream of every table of the model from its beginning.
func (a *app) capture() ([]stream, error) {
	region, creds := clientOptions()
	t := &tap{client: http.Client{Timeout: 30 * time.Second}}
	client := dynamodbstreams.New(dynamodbstreams.Options{
		Region: region, Credentials: creds, BaseEndpoint: &a.endpoint, HTTPClient: t})
	want := make(map[string]int)
	for _, c := range a.log {
		want[c.table]++
	}
	var out []stream
	for _, spec := range a.model.tables {
		desc, err := a.db.DescribeTable(a.ctx, &dynamodb.DescribeTableInput{TableName: &spec.name})
		if err != nil {
			return nil, err
		}
		r := reader{app: a, client: client, tap: t, limit: a.model.page, want: want[spec.name],
			stream: stream{table: spec.name, arn: aws.ToString(desc.Table.LatestStreamArn)}}
		if err := r.read(); err != nil {
			return nil, fmt.Errorf("stream of %s: %w", spec.name, err)
		}
		out = append(out, r.stream)
	}
	return out, nil
}

// A reader follows one stream until it has as many records as were booked.
type reader struct {
	app    *app
	client *dynamodbstreams.Client
	tap    *tap
	limit  int32
	want   int
	stream stream
}

func (r *reader) read() error {
	shards, err := r.shards()
	if err != nil {
		return err
	}
	for _, shard := range shards {
		it, err := r.client.GetShardIterator(r.app.ctx, &dynamodbstreams.GetShardIteratorInput{
			StreamArn: &r.stream.arn, ShardId: shard.ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon})
		if err != nil {
			return err
		}
		if err := r.shard(it.ShardIterator); err != nil {
			return err
		}
	}
	return nil
}

// shard reads to the shard's end; an open one until the booked records are there and a page is empty.
func (r *reader) shard(it *string) error {
	deadline := time.Now().Add(20 * time.Second)
	for it != nil {
		out, err := r.client.GetRecords(r.app.ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: it, Limit: &r.limit})
		if err != nil {
			return err
		}
		var page struct{ Records []json.RawMessage }
		if err := json.Unmarshal(r.tap.body, &page); err != nil {
			return fmt.Errorf("a page of records: %w", err)
		}
		it = out.NextShardIterator
		if len(page.Records) > 0 {
			r.stream.records = append(r.stream.records, page.Records...)
			r.stream.pages = append(r.stream.pages, r.tap.body)
			continue
		}
		if len(r.stream.records) >= r.want {
			r.stream.pages = append(r.stream.pages, r.tap.body) // the empty page that says so
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d records where %d were booked", len(r.stream.records), r.want)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// shards lists the stream's shards, a parent before its children.
func (r *reader) shards() ([]types.Shard, error) {
	var all []types.Shard
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: &r.stream.arn}
	for {
		out, err := r.client.DescribeStream(r.app.ctx, in)
		if err != nil {
			return nil, err
		}
		all = append(all, out.StreamDescription.Shards...)
		if in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			break
		}
	}
	byID := make(map[string]types.Shard)
	for _, s := range all {
		byID[*s.ShardId] = s
	}
	var out []types.Shard
	seen := make(map[string]bool)
	var visit func(types.Shard)
	visit = func(s types.Shard) {
		if seen[*s.ShardId] {
			return
		}
		seen[*s.ShardId] = true
		if parent, ok := byID[aws.ToString(s.ParentShardId)]; ok {
			visit(parent)
		}
		out = append(out, s)
	}
	for _, s := range all {
		visit(s)
	}
	return out, nil
}
