package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/seq"
)

// Requests to DynamoDB in its own JSON. The recordings hold the bytes of its answers.

// obj is an object of a request; a row is one too.
type obj = map[string]any

const (
	tablesAPI  = "DynamoDB_20120810."
	streamsAPI = "DynamoDBStreams_20120810."

	// DynamoDB Local ignores signatures and keeps the tables of each access key apart. So a
	// recording does not disturb other users of the same endpoint.
	authorization = "AWS4-HMAC-SHA256 Credential=weirrecorder/20250101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=none"
)

// callService asks one thing, reads the answer into out, and returns its bytes.
func (a *app) callService(target string, in obj, out any) ([]byte, error) {
	body, err := compactJSON(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(a.ctx, http.MethodPost, a.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {target}, "Authorization": {authorization}}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", target, resp.Status, answer)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(answer, out)
	}
	return answer, err
}

// requestBody is an op as PutItem, UpdateItem, DeleteItem and transactions take it.
func (o op) requestBody() obj {
	switch o.kind {
	case "Put":
		return obj{"TableName": o.table, "Item": wireForm(o.row)}
	case "Delete":
		return obj{"TableName": o.table, "Key": wireForm(o.row)}
	}
	var sets, removes []string
	names, values := obj{}, obj{}
	for i, k := range sortedKeys(o.set) {
		names[fmt.Sprint("#s", i)], values[fmt.Sprint(":s", i)] = k, wireValue(o.set[k])
		sets = append(sets, fmt.Sprintf("#s%d = :s%[1]d", i))
	}
	for i, k := range o.remove {
		names[fmt.Sprint("#r", i)] = k
		removes = append(removes, fmt.Sprint("#r", i))
	}
	expression := "SET " + strings.Join(sets, ", ")
	if removes != nil {
		expression += " REMOVE " + strings.Join(removes, ", ")
	}
	return obj{"TableName": o.table, "Key": wireForm(o.row), "UpdateExpression": expression,
		"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
}

func (a *app) writeSingle(o op) error {
	_, err := a.callService(tablesAPI+o.kind+"Item", o.requestBody(), nil)
	return err
}

func (a *app) sendTransaction(ops []op) error {
	items := seq.Map(ops, func(o op) obj { return obj{o.kind: o.requestBody()} })
	_, err := a.callService(tablesAPI+"TransactWriteItems", obj{"TransactItems": items}, nil)
	return err
}

func (a *app) batchWrite(ops []op) error {
	requests := make(map[string][]obj)
	for _, o := range ops {
		r := o.requestBody()
		delete(r, "TableName")
		requests[o.table] = append(requests[o.table], obj{o.kind + "Request": r})
	}
	var out struct{ UnprocessedItems obj }
	_, err := a.callService(tablesAPI+"BatchWriteItem", obj{"RequestItems": requests}, &out)
	if err == nil && len(out.UnprocessedItems) > 0 {
		err = errors.New("the service left items of a batch unprocessed")
	}
	return err
}

// getRow reads one row, strongly; nil where there is none.
func (a *app) getRow(table string, key row) (row, error) {
	var out struct{ Item obj }
	if _, err := a.callService(tablesAPI+"GetItem", obj{"TableName": table, "Key": wireForm(a.tables[table].rowKey(key)), "ConsistentRead": true}, &out); err != nil {
		return nil, err
	}
	return rowOf(out.Item)
}

// An access is an access pattern of a document: a query of a table or an index. With no range condition it takes
// the whole partition; with table and key alone it is a GetItem.
type access struct {
	table, index string
	hash         string
	value        any
	rng          string
	op           string // "=", "<" or "begins"
	arg          any
	desc         bool
	keep         func(row) bool // the rows that the application keeps afterwards; nil keeps all
}

// readAccess does an access pattern through all its pages.
func (a *app) readAccess(by access) ([]row, error) {
	names, values := obj{"#h": by.hash}, obj{":h": wireValue(by.value)}
	in := obj{"TableName": by.table, "ScanIndexForward": !by.desc, "KeyConditionExpression": "#h = :h",
		"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
	if by.index != "" {
		in["IndexName"] = by.index
	}
	if by.op != "" {
		cond := fmt.Sprintf("#r %s :r", by.op)
		if by.op == "begins" {
			cond = "begins_with(#r, :r)"
		}
		in["KeyConditionExpression"] = "#h = :h AND " + cond
		names["#r"], values[":r"] = by.rng, wireValue(by.arg)
	}
	out, err := a.readPages("Query", in)
	if by.keep != nil {
		out = slices.DeleteFunc(out, func(r row) bool { return !by.keep(r) })
	}
	return out, err
}

// scanTable reads a whole table.
func (a *app) scanTable(table string) ([]row, error) {
	return a.readPages("Scan", obj{"TableName": table, "ConsistentRead": true})
}

func (a *app) readPages(target string, in obj) (rows []row, err error) {
	for {
		var page struct {
			Items            []obj
			LastEvaluatedKey any
		}
		if _, err := a.callService(tablesAPI+target, in, &page); err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			r, err := rowOf(item)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
		if page.LastEvaluatedKey == nil {
			return rows, nil
		}
		in["ExclusiveStartKey"] = page.LastEvaluatedKey
	}
}

// A tableSpec is a table of a model's document. Key attributes are strings unless numbers names them.
type tableSpec struct {
	name, hash, rng string
	gsis, lsis      []indexSpec
	numbers         []string
	ttl             string
}

type indexSpec struct {
	name, hash, rng string
	keysOnly        bool
}

func (a *app) createTable(t tableSpec) error {
	if err := a.dropTable(t); err != nil && !strings.Contains(err.Error(), "ResourceNotFoundException") { // a broken run left the table
		return err
	}
	in := obj{"TableName": t.name, "BillingMode": "PAY_PER_REQUEST", "KeySchema": keySchema(t.hash, t.rng),
		"AttributeDefinitions": t.definitions(),
		"StreamSpecification":  obj{"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}}
	for kind, indexes := range map[string][]indexSpec{"GlobalSecondaryIndexes": t.gsis, "LocalSecondaryIndexes": t.lsis} {
		var specs []obj
		for _, i := range indexes {
			specs = append(specs, i.requestSpec())
		}
		if specs != nil {
			in[kind] = specs
		}
	}
	_, err := a.callService(tablesAPI+"CreateTable", in, nil)
	return err
}

func (a *app) dropTable(t tableSpec) error {
	_, err := a.callService(tablesAPI+"DeleteTable", obj{"TableName": t.name}, nil)
	return err
}

// enableTTL lets the service sweep a table, from here on.
func (a *app) enableTTL(t tableSpec) error {
	_, err := a.callService(tablesAPI+"UpdateTimeToLive", obj{"TableName": t.name,
		"TimeToLiveSpecification": obj{"AttributeName": t.ttl, "Enabled": true}}, nil)
	return err
}

func (i indexSpec) requestSpec() obj {
	projection := "ALL"
	if i.keysOnly {
		projection = "KEYS_ONLY"
	}
	return obj{"IndexName": i.name, "KeySchema": keySchema(i.hash, i.rng), "Projection": obj{"ProjectionType": projection}}
}

func keySchema(hash, rng string) []obj {
	out := []obj{{"AttributeName": hash, "KeyType": "HASH"}}
	if rng != "" {
		out = append(out, obj{"AttributeName": rng, "KeyType": "RANGE"})
	}
	return out
}

// definitions names the type of every attribute that is part of a key.
func (t tableSpec) definitions() (out []obj) {
	names := []string{t.hash, t.rng}
	for _, i := range slices.Concat(t.gsis, t.lsis) {
		names = append(names, i.hash, i.rng)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		kind := "S"
		if slices.Contains(t.numbers, name) {
			kind = "N"
		}
		if name != "" {
			out = append(out, obj{"AttributeName": name, "AttributeType": kind})
		}
	}
	return out
}

// dropIndexes takes the global indexes off a table. It must not name their attributes any more: DynamoDB Local then
// never sweeps the table.
func (a *app) dropIndexes(t tableSpec) error {
	return a.changeIndexes(t, func(i indexSpec) obj {
		return obj{"TableName": t.name, "GlobalSecondaryIndexUpdates": []obj{{"Delete": obj{"IndexName": i.name}}}}
	})
}

// addIndexes puts them back.
func (a *app) addIndexes(t tableSpec) error {
	return a.changeIndexes(t, func(i indexSpec) obj {
		return obj{"TableName": t.name, "AttributeDefinitions": t.definitions(), "GlobalSecondaryIndexUpdates": []obj{{"Create": i.requestSpec()}}}
	})
}

// changeIndexes does one change for each, since a table takes one at a time, and waits until it is done.
func (a *app) changeIndexes(t tableSpec, change func(indexSpec) obj) error {
	for _, i := range t.gsis {
		if _, err := a.callService(tablesAPI+"UpdateTable", change(i), nil); err != nil {
			return err
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			d, err := a.describeTable(t)
			if err != nil {
				return err
			}
			if d.TableStatus == "ACTIVE" && !slices.ContainsFunc(d.GlobalSecondaryIndexes, func(i indexStatus) bool { return i.IndexStatus != "ACTIVE" }) {
				break
			}
			if time.Now().After(deadline) {
				return errors.New("still busy after a minute")
			}
		}
	}
	return nil
}

type indexStatus struct{ IndexStatus string }

type description struct {
	TableStatus, LatestStreamArn string
	GlobalSecondaryIndexes       []indexStatus
}

func (a *app) describeTable(t tableSpec) (description, error) {
	var out struct{ Table description }
	_, err := a.callService(tablesAPI+"DescribeTable", obj{"TableName": t.name}, &out)
	return out.Table, err
}

// A stream has the replies of GetRecords for one table, page by page, as their bytes.
type stream struct {
	table, arn string
	pages      [][]byte
	records    []json.RawMessage
}

// captureStreams reads the stream of every table of the model from its beginning, until it has as many records as were
// booked.
func (a *app) captureStreams() ([]stream, error) {
	want := make(map[string]int)
	for _, c := range a.log {
		want[c.table]++
	}
	var out []stream
	for _, t := range a.specs {
		d, err := a.describeTable(t)
		s := stream{table: t.name, arn: d.LatestStreamArn}
		if err == nil {
			err = a.readStream(&s, want[t.name])
		}
		if err != nil {
			return nil, fmt.Errorf("stream of %s: %w", t.name, err)
		}
		out = append(out, s)
	}
	return out, nil
}

func (a *app) readStream(s *stream, want int) error {
	shards, err := a.listShards(s.arn)
	if err != nil {
		return err
	}
	for _, shard := range shards {
		var it struct{ ShardIterator *string }
		_, err := a.callService(streamsAPI+"GetShardIterator", obj{"StreamArn": s.arn, "ShardId": shard.ShardID, "ShardIteratorType": "TRIM_HORIZON"}, &it)
		if err != nil {
			return err
		}
		if err := a.readShard(s, it.ShardIterator, want); err != nil {
			return err
		}
	}
	return nil
}

// readShard reads to the shard's end; an open one until the booked records are there and a page is empty.
func (a *app) readShard(s *stream, it *string, want int) error {
	for deadline := time.Now().Add(20 * time.Second); it != nil; {
		var page struct {
			Records           []json.RawMessage
			NextShardIterator *string
		}
		body, err := a.callService(streamsAPI+"GetRecords", obj{"ShardIterator": *it, "Limit": a.page}, &page)
		if err != nil {
			return err
		}
		it = page.NextShardIterator
		if len(page.Records) > 0 || len(s.records) >= want {
			s.records, s.pages = append(s.records, page.Records...), append(s.pages, body)
			if len(page.Records) == 0 {
				return nil // the empty page that says so
			}
			continue
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d records where %d were booked", len(s.records), want)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

type shard struct {
	ShardID  string `json:"ShardId"`
	ParentID string `json:"ParentShardId"`
}

// listShards lists the stream's shards, a parent before its children.
func (a *app) listShards(arn string) (out []shard, err error) {
	byID := make(map[string]shard)
	var all []shard
	for in := (obj{"StreamArn": arn}); ; {
		var d struct {
			StreamDescription struct {
				Shards               []shard
				LastEvaluatedShardID *string `json:"LastEvaluatedShardId"`
			}
		}
		if _, err := a.callService(streamsAPI+"DescribeStream", in, &d); err != nil {
			return nil, err
		}
		all = append(all, d.StreamDescription.Shards...)
		if d.StreamDescription.LastEvaluatedShardID == nil {
			break
		}
		in["ExclusiveStartShardId"] = *d.StreamDescription.LastEvaluatedShardID
	}
	for _, s := range all {
		byID[s.ShardID] = s
	}
	var visit func(shard)
	visit = func(s shard) {
		if parent, ok := byID[s.ParentID]; ok {
			visit(parent)
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, s := range all {
		visit(s)
	}
	return out, nil
}
