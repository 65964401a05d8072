package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"weir/internal/store/dynamodb/dynamodbtest"
)

// dumped is a row of a table as testdata/formats has it.
type dumped struct {
	Table string   `json:"table"`
	Row   typedRow `json:"row"`
}

// TestLastFormatsOnDynamoDB: this program opens tables that the last release wrote, the
// model's and weir's own. Their values are right, and a wrong one is found and repaired, so
// that ledgers of that format are written too. The catalog names the tables that the rows were
// put in.
func TestLastFormatsOnDynamoDB(t *testing.T) {
	dynamodbtest.Config(t)
	_, env := localAWS(t)
	setEnv(t, env)
	model := formats + "/chat.yaml"
	results(t, "deploy", "tables", model, "--aws")
	if *writeFormats {
		writeTables(t, model)
	}
	rows, catalogs := 0, 0
	dec := json.NewDecoder(readPacked(t, formats+"/tables.jsonl.gz"))
	for ; dec.More(); rows++ {
		var d dumped
		if err := dec.Decode(&d); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(stringIn(d.Row["k"]), "catalog|") {
			catalogs++
			pinned(t, &d)
		}
		call(t, "PutItem", map[string]any{"TableName": d.Table, "Item": d.Row}, nil)
	}
	if rows < 100 || catalogs != 1 {
		t.Fatalf("there are %d rows, %d catalogs", rows, catalogs)
	}
	at := []string{"--aws", "--data", t.TempDir()}
	results(t, append([]string{"verify", model}, at...)...)
	call(t, "UpdateItem", map[string]any{"TableName": "chat", "Key": typedRow{"PK": typedAs("S", "PERSON#p3"), "SK": typedAs("S", "PERSON")},
		"UpdateExpression": "ADD messages :n", "ExpressionAttributeValues": typedRow{":n": typedAs("N", "5")}}, nil)
	var out, talk bytes.Buffer
	if code := run(t.Context(), append([]string{"verify", model}, at...), strings.NewReader(""), &out, &talk); code != exitCheck {
		t.Errorf("a wrong value: exit code %d: %s%s", code, out.String(), talk.String())
	}
	results(t, append([]string{"repair", model}, at...)...)
	results(t, append([]string{"verify", model}, at...)...)
}

// typedRow is a row with the types of its values, as DynamoDB's own JSON has them.
type typedRow map[string]json.RawMessage

func typedAs(kind, v string) json.RawMessage { return json.RawMessage(fmt.Sprintf("{%q:%q}", kind, v)) }

func stringIn(v json.RawMessage) string {
	var s struct{ S string }
	_ = json.Unmarshal(v, &s) // of another type: no text
	return s.S
}

// pinned gives a row of the catalog the pins of the tables that weir has just made.
func pinned(t *testing.T, d *dumped) {
	t.Helper()
	var now struct{ Item typedRow }
	call(t, "GetItem", map[string]any{"TableName": d.Table, "Key": typedRow{"k": d.Row["k"], "s": d.Row["s"]}}, &now)
	for name, v := range now.Item {
		if strings.HasPrefix(name, "t:") {
			d.Row[name] = v
		}
	}
}

// call asks DynamoDB Local, which looks at no signature.
func call(t *testing.T, operation string, in, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+os.Getenv("AWS_ACCESS_KEY_ID")+"/20260101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, answer)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(answer, out)
	}
	if err != nil {
		t.Fatalf("%s: %v", operation, err)
	}
}

// writeTables writes the first part of the recording as an application, lets a process derive
// from it, and writes all rows into testdata/formats.
func writeTables(t *testing.T, model string) {
	for dec := json.NewDecoder(readPacked(t, formats+"/chat-1.jsonl.gz")); dec.More(); {
		var r struct {
			DynamoDB struct{ Keys, NewImage typedRow } `json:"dynamodb"`
		}
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.DynamoDB.NewImage != nil {
			call(t, "PutItem", map[string]any{"TableName": "chat", "Item": r.DynamoDB.NewImage}, nil)
		} else {
			call(t, "DeleteItem", map[string]any{"TableName": "chat", "Key": r.DynamoDB.Keys}, nil)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended, dir := make(chan int, 1), t.TempDir()
	go func() {
		ended <- run(ctx, []string{"run", model, "--aws", "--data", dir, "--addr", "127.0.0.1:0"}, strings.NewReader(""), &buffer{}, &buffer{})
	}()
	verified := func() bool {
		var out, talk bytes.Buffer
		return run(t.Context(), []string{"verify", model, "--aws", "--data", t.TempDir()}, strings.NewReader(""), &out, &talk) == exitGood
	}
	time.Sleep(2 * time.Second)
	for deadline := time.Now().Add(time.Minute); !verified(); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatal("the process does not derive")
		}
	}
	stop()
	<-ended
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	enc := json.NewEncoder(gz)
	for _, table := range []string{"chat", "weir"} {
		in, answer := map[string]any{"TableName": table}, struct {
			Items            []typedRow
			LastEvaluatedKey typedRow
		}{}
		for {
			call(t, "Scan", in, &answer)
			for _, r := range answer.Items {
				if err := enc.Encode(dumped{table, r}); err != nil {
					t.Fatal(err)
				}
			}
			if answer.LastEvaluatedKey == nil {
				break
			}
			in["ExclusiveStartKey"] = answer.LastEvaluatedKey
			answer.LastEvaluatedKey = nil
		}
	}
	if err := errors.Join(gz.Close(), os.WriteFile(formats+"/tables.jsonl.gz", out.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
}
