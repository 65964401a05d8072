package ingestcli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/cli"
	"weir/internal/lambda/lambdatest"
)

const functionKey = "a-key-of-the-function"

// start starts the function on a directory of its own.
func start(t *testing.T, env ...string) *lambdatest.Function {
	t.Helper()
	f := lambdatest.New(t, "ingest", append([]string{"WEIR_MODEL=gallery", "WEIR_DATA=" + t.TempDir()}, env...)...)
	f.Start()
	return f
}

// answered is the answer to an HTTP event.
type answered struct {
	StatusCode        int
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	Body              string
}

func ask(t *testing.T, f *lambdatest.Function, event any) (a answered) {
	t.Helper()
	b, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	r := f.Invoke(b, time.Minute)
	if err := json.Unmarshal([]byte(r.Body), &a); err != nil || r.Kind != "response" {
		t.Fatalf("%s %s: %v", r.Kind, r.Body, err)
	}
	if a.Headers == nil {
		a.Headers = map[string]string{}
	}
	for name, vs := range a.MultiValueHeaders {
		a.Headers[name] = strings.Join(vs, ", ")
	}
	return a
}

// request is a request in the forms that events have.
type request struct {
	method, path, query, body string
	header                    map[string]string
}

func (q request) headers() map[string]string {
	h := map[string]string{"host": "abc.lambda-url.eu-west-1.on.aws", "content-type": "application/json", "authorization": "Bearer " + functionKey}
	maps.Copy(h, q.header)
	return h
}

// functionURL is its event of a function URL or of an HTTP API.
func (q request) functionURL(stage string) map[string]any {
	path := q.path
	if stage != "$default" {
		path = "/" + stage + path
	}
	return map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": q.query, "headers": q.headers(),
		"requestContext":  map[string]any{"stage": stage, "http": map[string]string{"method": q.method, "path": path, "sourceIp": "192.0.2.1"}},
		"body":            base64.StdEncoding.EncodeToString([]byte(q.body)),
		"isBase64Encoded": true,
	}
}

// rest is its event of a REST API.
func (q request) rest() map[string]any {
	single, multi := map[string]string{}, map[string][]string{}
	for pair := range strings.SplitSeq(q.query, "&") {
		if name, v, ok := strings.Cut(pair, "="); ok {
			single[name], multi[name] = v, append(multi[name], v)
		}
	}
	headers := map[string][]string{}
	for name, v := range q.headers() {
		headers[name] = []string{v}
	}
	return map[string]any{
		"resource": "/{proxy+}", "path": q.path, "httpMethod": q.method, "headers": q.headers(), "multiValueHeaders": headers,
		"queryStringParameters": single, "multiValueQueryStringParameters": multi,
		"requestContext": map[string]any{"stage": "prod", "identity": map[string]string{"sourceIp": "192.0.2.1"}},
		"body":           q.body, "isBase64Encoded": false,
	}
}

// balanced is its event of a load balancer, whose query strings come as they are.
func (q request) balanced(multi bool) map[string]any {
	e := q.rest()
	e["requestContext"] = map[string]any{"elb": map[string]string{"targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/f/1"}}
	delete(e, "resource")
	if multi {
		delete(e, "headers")
		delete(e, "queryStringParameters")
	} else {
		delete(e, "multiValueHeaders")
		delete(e, "multiValueQueryStringParameters")
	}
	return e
}

// TestLambdaHTTP: the same requests in every form of event have the same answers.
func TestLambdaHTTP(t *testing.T) {
	for name, form := range map[string]func(request) map[string]any{
		"function URL":                          func(q request) map[string]any { return q.functionURL("$default") },
		"HTTP API":                              func(q request) map[string]any { return q.functionURL("prod") },
		"REST API":                              request.rest,
		"load balancer":                         func(q request) map[string]any { return q.balanced(false) },
		"load balancer, headers more than once": func(q request) map[string]any { return q.balanced(true) },
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, "WEIR_KEYS="+functionKey)
			create := request{method: "POST", path: "/v1/gallery/Album", body: `{"id":"a b","title":"Ümläute","createdAt":"2026-01-31T12:00:00Z"}`}
			a := ask(t, f, form(create))
			if a.StatusCode != 201 || a.Headers["Location"] != "/v1/gallery/Album?id=a+b" || !strings.Contains(a.Body, `"title":"Ümläute"`) {
				t.Fatalf("%+v", a)
			}
			if again := ask(t, f, form(create)); again.StatusCode != 409 || again.Headers["Content-Type"] != "application/problem+json" {
				t.Errorf("%+v", again)
			}
			query := "id=a%20b"
			if name == "REST API" {
				query = "id=a b" // which comes decoded
			}
			patch := request{method: "PATCH", path: "/v1/gallery/Album", query: query, body: `{"title":"x"}`, header: map[string]string{"if-match": a.Headers["Etag"]}}
			if got := ask(t, f, form(patch)); got.StatusCode != 200 {
				t.Errorf("%+v", got)
			}
			if got := ask(t, f, form(patch)); got.StatusCode != 412 {
				t.Errorf("%+v", got)
			}
			if got := ask(t, f, form(request{method: "DELETE", path: "/v1/gallery/Album", query: query})); got.StatusCode != 204 || got.Body != "" {
				t.Errorf("%+v", got)
			}
			locked := create
			locked.header = map[string]string{"authorization": "Bearer another-key-than-this"}
			if got := ask(t, f, form(locked)); got.StatusCode != 401 {
				t.Errorf("%+v", got)
			}
			if got := ask(t, f, form(request{method: "GET", path: "/openapi.json"})); got.StatusCode != 200 || !strings.Contains(got.Body, "securitySchemes") {
				t.Errorf("%.200s", got.Body)
			}
		})
	}
}

// Without keys a function lets nobody in, unless it is told that somebody else
// decides.
func TestLambdaWithoutKeys(t *testing.T) {
	get := request{method: "GET", path: "/openapi.json"}.functionURL("$default")
	if a := ask(t, start(t), get); a.StatusCode != 401 {
		t.Errorf("%+v", a)
	}
	if a := ask(t, start(t, "WEIR_OPEN=1"), get); a.StatusCode != 200 {
		t.Errorf("%+v", a)
	}
}

type queued struct{ id, group, body string }

// deliver gives a function messages of a queue and tells which failed.
func deliver(t *testing.T, f *lambdatest.Function, queue string, ms ...queued) string {
	t.Helper()
	records := []map[string]any{}
	for _, m := range ms {
		attributes := map[string]string{"ApproximateReceiveCount": "1"}
		if m.group != "" {
			attributes["MessageGroupId"] = m.group
		}
		records = append(records, map[string]any{
			"messageId": m.id, "receiptHandle": "h", "body": m.body, "attributes": attributes, "messageAttributes": map[string]any{},
			"eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:" + queue, "awsRegion": "eu-west-1",
		})
	}
	b, err := json.Marshal(map[string]any{"Records": records})
	if err != nil {
		t.Fatal(err)
	}
	r := f.Invoke(b, time.Minute)
	var got struct {
		Failures *[]struct {
			Item string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal([]byte(r.Body), &got); err != nil || r.Kind != "response" || got.Failures == nil {
		t.Fatalf("%s %s: %v", r.Kind, r.Body, err)
	}
	ids := []string{}
	for _, one := range *got.Failures {
		ids = append(ids, one.Item)
	}
	return strings.Join(ids, " ")
}

func album(op, id, title string) string {
	return fmt.Sprintf(`{"op":%q,"entity":"Album","item":{"id":%q,"title":%q,"createdAt":"2026-01-31T12:00:00Z"}}`, op, id, title)
}

// TestLambdaQueue: the messages that cannot be done are answered as failed, with the
// reason in the log, and the others are done.
func TestLambdaQueue(t *testing.T) {
	f := start(t, "WEIR_OPEN=1")
	if got := deliver(t, f, "commands",
		queued{id: "m1", body: album("create", "sea", "The sea")},
		queued{id: "m2", body: album("create", "sea", "Another sea")},
		queued{id: "m3", body: `no JSON`},
		queued{id: "m4", body: album("make", "x", "x")},
		queued{id: "m5", body: album("put", "hills", "Hills")},
	); got != "m2 m3 m4" {
		t.Errorf("failed: %s", got)
	}
	get := func(id string) answered {
		return ask(t, f, request{method: "GET", path: "/v1/gallery/Album", query: "id=" + id}.functionURL("$default"))
	}
	if a := get("sea"); !strings.Contains(a.Body, `"The sea"`) {
		t.Errorf("%+v", a)
	}
	if a := get("hills"); a.StatusCode != 200 {
		t.Errorf("%+v", a)
	}
	f.Kill()
	for _, want := range []string{`"message":"m2"`, "there is such a row", `"message":"m3"`, "is not JSON"} {
		if !strings.Contains(f.Stderr.String(), want) {
			t.Errorf("the log has no %s: %s", want, f.Stderr.String())
		}
	}
}

// TestLambdaStage: messages and requests are of the stage that the environment says, and a
// stage that cannot be stops the function.
func TestLambdaStage(t *testing.T) {
	dir := t.TempDir()
	f := start(t, "WEIR_OPEN=1", "WEIR_DATA="+dir, "WEIR_STAGE=prod", "WEIR_TABLES=gallery=gallery-prod")
	if got := deliver(t, f, "commands", queued{id: "m1", body: album("create", "sea", "The sea")}); got != "" {
		t.Errorf("failed: %s", got)
	}
	get := request{method: "GET", path: "/v1/gallery/Album", query: "id=sea"}.functionURL("$default")
	if a := ask(t, f, get); !strings.Contains(a.Body, `"The sea"`) {
		t.Errorf("%+v", a)
	}
	f.Kill()
	if _, err := os.Stat(filepath.Join(dir, "stage-prod", "store")); err != nil {
		t.Error(err)
	}
	plain := start(t, "WEIR_OPEN=1", "WEIR_DATA="+dir)
	if a := ask(t, plain, get); a.StatusCode != 404 {
		t.Errorf("the default stage has %+v", a)
	}
	plain.Kill()
	for env, want := range map[string]string{
		"WEIR_STAGE=":            "WEIR_STAGE: the name of the stage is empty",
		"WEIR_STAGE=Prod":        "WEIR_STAGE: the stage",
		"WEIR_TABLES=":           "WEIR_TABLES: the map of tables is empty",
		"WEIR_TABLES=albums=xyz": "the table albums is mapped to xyz",
		"WEIR_TABLES=@no-file":   "WEIR_TABLES: ",
	} {
		f := start(t, "WEIR_OPEN=1", env)
		select {
		case <-f.Done:
		case <-time.After(time.Minute):
			t.Errorf("%s: the function runs", env)
		}
		if f.Kill(); !strings.Contains(f.Stderr.String(), want) {
			t.Errorf("%s: %s, not %s", env, f.Stderr.String(), want)
		}
	}
}

// In a FIFO queue what comes after a message that failed waits, in its group.
func TestLambdaFIFOQueue(t *testing.T) {
	f := start(t, "WEIR_OPEN=1")
	if got := deliver(t, f, "commands.fifo",
		queued{"m1", "a", album("create", "sea", "One")},
		queued{"m2", "b", album("update", "hills", "None")},
		queued{"m3", "a", album("put", "sea", "Two")},
		queued{"m4", "b", album("create", "hills", "Behind")},
		queued{"m5", "a", album("put", "sea", "Three")},
	); got != "m2 m4" {
		t.Errorf("failed: %s", got)
	}
	a := ask(t, f, request{method: "GET", path: "/v1/gallery/Album", query: "id=sea"}.functionURL("$default"))
	if !strings.Contains(a.Body, `"Three"`) {
		t.Errorf("%+v", a)
	}
}

// Events of another kind, and functions that are put together wrongly.
func TestLambdaMistakes(t *testing.T) {
	f := start(t)
	for _, bad := range []string{``, `null`, `{}`, `[]`, `no JSON`, `{"Records":[{"eventSource":"aws:dynamodb"}]}`, `{"Records":[{"eventSource":"aws:sqs","body":"x"}]}`} {
		if r := f.Invoke([]byte(bad), time.Minute); r.Kind != "error" {
			t.Errorf("%s: %s %s", bad, r.Kind, r.Body)
		}
	}
	two := start(t, "WEIR_MODEL=gallery,wardrobe")
	r := two.Invoke([]byte(`{"Records":[{"eventSource":"aws:sqs","messageId":"m","body":"{}"}]}`), time.Minute)
	if r.Kind != "error" || !strings.Contains(r.Body, "WEIR_MODEL") {
		t.Errorf("%s %s", r.Kind, r.Body)
	}
	for _, env := range []string{"WEIR_MODEL=", "WEIR_MODEL=nosuchmodel", "WEIR_KEYS=short"} {
		f := start(t, env)
		if code := f.ExitCode(); code != cli.Mistake || f.Stderr.Len() == 0 {
			t.Errorf("%s: exit %d: %s", env, code, f.Stderr.String())
		}
	}
}
