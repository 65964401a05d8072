package projectorcli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/deploy"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/lambda/lambdatest"
	"weir/internal/model"
	"weir/internal/search/opensearch/opensearchtest"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

// TestTemplateOnServices makes the tables that templates describe, in a stage with names of its
// own, and runs the functions with the environment that the templates give: rows are written,
// their streams are delivered as the mappings say, and what is derived is what a recount gives.
// A proxy notes what each kind of function asks of DynamoDB and OpenSearch. The roles allow all
// of that, and nothing that no function asks.
func TestTemplateOnServices(t *testing.T) {
	dynamodbtest.Config(t)
	bin := t.TempDir()
	for _, name := range []string{"projector", "ingest"} {
		if out, err := exec.Command("go", "build", "-o", bin+"/", "../../cmd/"+name).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	used := &usedGrants{has: map[string]bool{}}
	t.Run("models", func(t *testing.T) {
		for _, m := range []string{"gallery", "wardrobe", "movienight", "viewing", "watchlists"} {
			t.Run(m, func(t *testing.T) {
				t.Parallel()
				newTemplateWorld(t, bin, m, used).run()
			})
		}
	})
	if t.Failed() {
		return
	}
	if used.pending.Load() == 0 && os.Getenv(opensearchtest.Endpoint) != "" {
		t.Error("no document was pending while the cluster was down")
	}
	for _, p := range []deploy.Process{deploy.Rows, deploy.Ingest, deploy.Query} {
		for _, g := range deploy.Grants(p) {
			if g.On == deploy.Domain && os.Getenv(opensearchtest.Endpoint) == "" {
				continue
			}
			for _, a := range g.Actions {
				asked, seldom := used.has[grantKey(p, g.ID, a)], g.Seldom[a]
				if g.Service == "" && !asked && seldom == "" {
					t.Errorf("%s: %s is allowed by %s, and no function asked for it", p, a, g.ID)
				}
			}
		}
	}
}

// usedGrants are the actions of grants that functions asked for.
type usedGrants struct {
	mu      sync.Mutex
	has     map[string]bool
	pending atomic.Int64 // models with documents that were pending
}

func grantKey(p deploy.Process, grant, action string) string {
	return fmt.Sprint(p, " ", grant, " ", action)
}

// templateWorld is what a template makes of one model.
type templateWorld struct {
	*testing.T
	model   *model.Model
	bin     string
	lambdas *lambdaWorld // asks the service without the SDK
	env     []string
	stack   *stackTemplate
	streams map[string]string // by the table's resource
	flags   []string          // that name the stage
	search  string
	cluster *clusterRecorder
	asks    *clusterRecorder // what the function of queries asks of the cluster
	said    string           // by the last command, on stderr
	used    *usedGrants
}

func newTemplateWorld(t *testing.T, bin, name string, used *usedGrants) *templateWorld {
	m, err := model.Load(name)
	failtest.On(t, err)
	cfg, env := localAWS(t)
	w := &templateWorld{T: t, model: m, bin: bin, env: env, used: used, streams: map[string]string{}, lambdas: &lambdaWorld{T: t, cfg: cfg, env: env, at: map[string]string{}}}
	parameters := map[string]string{"Stage": "prod", "CodeBucket": "packages", "Release": "r1", "Queries": "true"}
	if url := os.Getenv(opensearchtest.Endpoint); len(m.Searches) > 0 {
		w.cluster = newClusterRecorder(url)
		w.asks = newClusterRecorder(url)
		t.Cleanup(w.cluster.server.Close)
		t.Cleanup(w.asks.server.Close)
		w.search = url
		parameters["OpenSearchUrl"], parameters["OpenSearchDomainArn"] = w.cluster.server.URL, "arn:aws:es:eu-west-1:"+testAccount+":domain/d"
	}
	var tables []string
	var renamed []string
	for _, table := range m.Tables {
		renamed = append(renamed, table.Name+"="+table.Name+"-x1")
		tables = append(tables, table.Name)
	}
	text := w.command(nil, "deploy", "template", name)
	for _, table := range tables {
		for p, n := range pairs(readTemplate(t, text, parameters).sections["Parameters"]) {
			if strings.HasSuffix(p, "TableName") && pairs(n)["Default"].Value == table {
				parameters[p] = table + "-x1"
			}
		}
	}
	w.flags = []string{"--stage", "prod", "--tables", strings.Join(renamed, ",")}
	w.stack = readTemplate(t, text, parameters)
	w.stack.attribute = func(resource, name string) string {
		switch {
		case name == "StreamArn":
			return w.streams[resource]
		case name == "Arn":
			return "arn:aws:made:" + resource
		}
		return "made-" + resource
	}
	w.make()
	return w
}

// command runs the projector and returns what it prints.
func (w *templateWorld) command(more []string, args ...string) []byte {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), filepath.Join(w.bin, "projector"), append(args, more...)...)
	cmd.Env = append(os.Environ(), w.env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("%v: %v: %s%s", args, err, out, &said)
	}
	w.said = said.String()
	return out
}

// post asks DynamoDB without the SDK.
func (w *templateWorld) post(op string, in, out any) {
	w.Helper()
	body, err := json.Marshal(in)
	failtest.On(w, err)
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, os.Getenv(dynamodbtest.Endpoint), bytes.NewReader(body))
	failtest.On(w, err)
	is, err := w.lambdas.cfg.Credentials.Retrieve(w.Context())
	failtest.On(w, err)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+is.AccessKeyID+"/20260101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(req)
	failtest.On(w, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode == http.StatusOK {
		err = json.Unmarshal(text, out)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		w.Fatalf("%s: %s %s, %v", op, resp.Status, text, err)
	}
}

// make makes the tables, as CloudFormation does.
func (w *templateWorld) make() {
	all := w.stack.resources("AWS::DynamoDB::Table")
	if len(all) != len(w.model.Tables)+2 {
		w.Fatalf("the template makes the tables %v", slices.Sorted(maps.Keys(all)))
	}
	for name, r := range all {
		in := maps.Clone(r.Properties)
		for _, later := range []string{"TimeToLiveSpecification", "PointInTimeRecoverySpecification", "DeletionProtectionEnabled"} {
			delete(in, later)
		}
		if s, has := in["StreamSpecification"].(map[string]any); has {
			s["StreamEnabled"] = true
		}
		var made struct {
			TableDescription struct{ LatestStreamArn string }
		}
		w.post("CreateTable", in, &made)
		w.streams[name] = made.TableDescription.LatestStreamArn
		if ttl := r.Properties["TimeToLiveSpecification"]; ttl != nil {
			w.post("UpdateTimeToLive", map[string]any{"TableName": in["TableName"], "TimeToLiveSpecification": ttl}, &struct{}{})
		}
	}
}

// same asks the program what it would have made otherwise.
func (w *templateWorld) same() {
	said := string(w.command(w.flags, "deploy", "tables", w.model.Name, "--aws"))
	if strings.Count(said, ": exists\n") != len(w.model.Tables)+1 || strings.Contains(said, "created") {
		w.Errorf("deploy tables: %s", said)
	}
}

// function is a function of the template, with what it asks for.
type templateFunction struct {
	*lambdatest.Function
	process  deploy.Process
	name     string
	calls    *dynamodbtest.Recorder
	mappings map[string]map[string]any // by stream
	window   map[string]json.RawMessage
}

// function prepares one of the template's functions.
func (w *templateWorld) function(p deploy.Process, program string) *templateFunction {
	for name, r := range w.stack.resources("AWS::Lambda::Function") {
		if !strings.HasSuffix(name, map[deploy.Process]string{deploy.Rows: "Rows", deploy.Ingest: "Ingest", deploy.Query: "Query"}[p]) {
			continue
		}
		f := &templateFunction{process: p, name: name, calls: dynamodbtest.NewRecorder(os.Getenv(dynamodbtest.Endpoint)), mappings: map[string]map[string]any{}, window: map[string]json.RawMessage{}}
		w.Cleanup(f.calls.Close)
		env := append(slices.Clone(w.env), "AWS_ENDPOINT_URL_DYNAMODB="+f.calls.URL, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS="+f.calls.URL)
		for k, v := range r.Properties["Environment"].(map[string]any)["Variables"].(map[string]any) {
			if k == "WEIR_OPENSEARCH" && p == deploy.Query {
				v = w.asks.server.URL
			}
			env = append(env, fmt.Sprintf("%s=%v", k, v))
		}
		f.Function = lambdatest.NewOf(w.T, filepath.Join(w.bin, program), env...)
		for _, m := range w.stack.resources("AWS::Lambda::EventSourceMapping") {
			if m.Properties["FunctionName"] == "made-"+name+"Live" {
				f.mappings[fmt.Sprint(m.Properties["EventSourceArn"])] = m.Properties
			}
		}
		f.Start()
		f.Ready() // so it is the first, if it is, that claims the tables
		return f
	}
	w.Fatalf("the template has no function for %s", p)
	return nil
}

func (w *templateWorld) run() {
	var functions []*templateFunction
	var takes *templateFunction
	answers := w.function(deploy.Query, "projector") // it needs nothing of the others
	if find := w.find(nil); find != "" {
		if code, said := w.get(answers, find); code != http.StatusServiceUnavailable || !strings.Contains(said, "problem:building") {
			w.Errorf("%s before the build: %d %s", find, code, said)
		}
		if asked := w.asks.methods(); len(asked) > 0 {
			w.Errorf("before the build it asks the cluster for %v", asked)
		}
	}
	// The first process of a stage claims its tables, whichever it is.
	commands := func() { takes = w.function(deploy.Ingest, "ingest"); w.commands(takes) }
	if len(w.model.Tables) > 1 && w.search != "" {
		commands()
	}
	functions = append(functions, w.function(deploy.Rows, "projector"))
	if w.search != "" {
		w.command(append(w.flags, "--opensearch", w.search, "--data", w.TempDir()), "build", w.model.Name, "--aws")
	}
	if takes == nil {
		commands()
	}
	w.record()
	delivered := 0
	for quiet := 0; quiet < 3; quiet++ {
		for _, stream := range w.streams {
			if stream == "" {
				continue
			}
			w.lambdas.arn = stream
			for shard, records := range w.lambdas.read() {
				if delivered++; w.cluster != nil { // rows do not wait for it
					w.cluster.down.Store(delivered%3 == 1)
				}
				for _, f := range functions {
					w.deliver(f, stream, shard, records)
				}
				quiet = 0
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.ticks(functions[len(functions)-1])
	more := w.flags
	if w.search != "" {
		more = append(slices.Clone(w.flags), "--opensearch", w.search, "--data", w.TempDir())
	}
	w.same()
	w.command(more, "verify", w.model.Name, "--aws")
	checked, before := 0, strings.Index(w.said, " derived values checked, 0 differ\n") // lines before it say other things
	if fmt.Sscan(w.said[strings.LastIndex(w.said[:max(before, 0)], "\n")+1:], &checked); before < 0 || checked < 20 {
		w.Errorf("verify: %s", w.said)
	}
	w.queries(answers)
	for _, f := range append(functions, takes, answers) {
		f.Kill()
		w.permissions(f)
	}
}

// ticks invokes the function that derives rows as the template's schedule does: all is applied.
func (w *templateWorld) ticks(f *templateFunction) {
	rules := w.stack.resources("AWS::Events::Rule")
	for _, r := range rules {
		if to := fmt.Sprint(r.Properties["Targets"]); len(rules) != 1 || r.Properties["ScheduleExpression"] != "rate(1 minute)" || !strings.Contains(to, f.name) {
			w.Errorf("a schedule invokes %s: %v", to, r.Properties)
		}
	}
	const event = `{"version":"0","detail-type":"Scheduled Event","source":"aws.events","time":"2026-01-01T00:05:00Z","resources":[],"detail":{}}`
	ticks := 1
	if w.cluster != nil {
		w.cluster.down.Store(true)
		switch r := f.Invoke([]byte(event), time.Minute); {
		case r.Kind == "error" && strings.Contains(r.Body, "documents are pending"):
			w.used.pending.Add(1)
		case r.Body != "{}": // of a model none of whose documents came while it was down
			w.Errorf("a schedule while the cluster is down: %s %s", r.Kind, r.Body)
		}
		ticks++
		w.cluster.down.Store(false)
	}
	if r := f.Invoke([]byte(event), time.Minute); r.Kind != "response" || r.Body != "{}" || len(rules) == 0 {
		w.Errorf("a schedule: %s %s", r.Kind, r.Body)
	}
	f.Kill() // what it writes is whole then
	if said := f.Stdout.String(); strings.Count(said, `"Lag":0`) != ticks*len(w.model.Tables) {
		w.Errorf("the schedule says %s", said)
	}
}

// record writes rows that were recorded, as the application did.
func (w *templateWorld) record() {
	paths, err := filepath.Glob("../../testdata/streams/" + w.model.Name + "/*.json*")
	failtest.On(w, err)
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.Contains(p, "expected") })
	files, err := events.Open(paths...)
	failtest.On(w, err)
	db := w.open()
	defer db.Close()
	written := map[string]int{}
	for batch, err := range files.Batches(w.Context()) {
		failtest.On(w, err)
		for _, e := range batch {
			r := e.Record
			table := w.model.Table(r.Table)
			if table == nil && len(w.model.Tables) == 1 {
				table = w.model.Tables[0]
			}
			if e.Bad != nil || table == nil || written[table.Name] >= max(600/len(w.model.Tables), 100) {
				continue
			}
			key, ok := table.KeyOf(r.Keys)
			if !ok {
				continue
			}
			wr := store.Write{Ref: store.Ref{Table: table.Name + "-x1", Key: key}, Put: r.New, Delete: r.New == nil}
			if out, err := db.Write(w.Context(), []store.Write{wr}); err != nil || out[0].Err != nil {
				w.Fatal(err, out)
			}
			written[table.Name]++
		}
	}
	if len(written) < len(w.model.Tables) {
		w.Fatalf("rows were written into %v only", written)
	}
}

// open opens the store, with the tables' real names.
func (w *templateWorld) open() store.Store {
	var tables []store.Table
	for _, t := range w.model.Tables {
		def := t.Table
		def.Name += "-x1"
		tables = append(tables, def)
	}
	return dynamodb.Open(w.lambdas.cfg, tables, dynamodb.Options{})
}

// queries asks every query that a row of its entity has the parameters of, and finds that row: among them the search, from
// when the indexes are built.
func (w *templateWorld) queries(f *templateFunction) {
	db := w.open()
	defer db.Close()
	rows := map[*model.Entity][]value.Item{}
	for _, t := range w.model.Tables {
		for page, err := range store.Pages(w.Context(), db, store.Query{Table: t.Name + "-x1"}) {
			failtest.On(w, err)
			for _, row := range page {
				e := t.Classify(row)
				rows[e] = append(rows[e], row)
			}
		}
	}
	asked := 0
	ask := func(path string) {
		code, said := w.get(f, path)
		for tries := 0; code == http.StatusServiceUnavailable && tries < 30; tries++ { // it asks every 10 seconds whether indexes are built
			time.Sleep(500 * time.Millisecond)
			code, said = w.get(f, path)
		}
		if code != http.StatusOK || !strings.Contains(said, `{"items":[{`) {
			w.Errorf("%s: %d %.300s", path, code, said)
		}
		asked++
	}
	for _, q := range w.model.Queries {
		if q.Search != nil || len(q.Steps[0].Range) > 0 || len(q.Steps[0].Any) > 0 || len(q.Steps) > 1 || len(q.Return) > 0 {
			continue
		}
		step := q.Steps[0]
		for _, row := range rows[step.Entity] {
			if path, ok := pathOf(w.model, q, step.With, row); ok && inIndex(step, row) {
				ask(path)
				break
			}
		}
	}
	if find := w.find(rows); find != "" {
		ask(find)
	}
	if asked < 2 {
		w.Errorf("%d queries were asked", asked)
	}
}

// pathOf is the path of a query whose required parameters are the values that a row has in the fields that they fix.
func pathOf(m *model.Model, q *model.Query, with []model.Bind, row value.Item) (path string, ok bool) {
	values := url.Values{}
	for _, b := range with {
		v := b.Field.Stored(row)
		switch {
		case b.Param == "" && !value.Equal(v, b.Const), v.IsMissing():
			return "", false
		case slices.ContainsFunc(q.Params, func(p model.Param) bool { return p.Name == b.Param && !p.Optional }):
			values.Set(b.Param, v.Text())
		}
	}
	return "/v1/" + m.Name + "/" + q.Name + "?" + values.Encode(), true
}

// inIndex reports whether a row has the key of the index that a step reads.
func inIndex(s *model.Step, row value.Item) bool {
	return s.Index == nil || !row.Get(s.Index.Key.Partition.Name).IsMissing() && (s.Index.Key.Sort.Name == "" || !row.Get(s.Index.Key.Sort.Name).IsMissing())
}

// find is a search that finds a row, by a word of it; "" for a model without searches. Without rows it finds none.
func (w *templateWorld) find(rows map[*model.Entity][]value.Item) string {
	for _, q := range w.model.Queries {
		if q.Search == nil || w.search == "" {
			continue
		}
		for _, row := range rows[q.Search.Of] {
			word, _, _ := strings.Cut(q.Search.Text[0].Stored(row).Text(), " ")
			if path, ok := pathOf(w.model, q, q.With, row); ok && len(word) > 2 {
				return path + "&q=" + url.QueryEscape(word)
			}
		}
		if rows == nil {
			values := url.Values{"q": {"x"}}
			for _, p := range q.Params {
				if !p.Optional {
					values.Set(p.Name, "x")
				}
			}
			return "/v1/" + w.model.Name + "/" + q.Name + "?" + values.Encode()
		}
	}
	return ""
}

// get asks a function by an event of its URL.
func (w *templateWorld) get(f *templateFunction, at string) (code int, said string) {
	w.Helper()
	path, query, _ := strings.Cut(at, "?")
	r := f.Invoke(payload(w.T, map[string]any{
		"version": "2.0", "rawPath": path, "rawQueryString": query, "headers": map[string]string{"host": "f.lambda-url.eu-west-1.on.aws"},
		"requestContext": map[string]any{"http": map[string]string{"method": "GET", "path": path, "sourceIp": "192.0.2.1"}},
	}), time.Minute)
	var a struct {
		StatusCode int
		Body       string
	}
	if err := json.Unmarshal([]byte(r.Body), &a); err != nil || r.Kind != "response" {
		w.Fatalf("%s: %s %s", at, r.Kind, r.Body)
	}
	return a.StatusCode, a.Body
}

// deliver gives a function the records of a shard, as its mapping says, and again those for which its
// time did not suffice.
func (w *templateWorld) deliver(f *templateFunction, stream, shard string, records []json.RawMessage) {
	w.Helper()
	m := f.mappings[stream]
	if m == nil {
		w.Fatalf("no mapping gives %s the stream %s; it has %v", f.name, stream, slices.Collect(maps.Keys(f.mappings)))
	}
	batch, _ := m["BatchSize"].(int)
	for part := range slices.Chunk(records, batch) {
		for len(part) > 0 {
			e := event(part)
			if m["TumblingWindowInSeconds"] != nil {
				e = windowed(shard, part, f.window[shard])
				e["eventSourceARN"] = stream
			}
			a := answerTo(w.T, f.Function, payload(w.T, e))
			f.window[shard] = a.State
			if len(*a.Failures) == 0 {
				break
			}
			part = again(w.T, part, a)
		}
	}
}

// permissions holds what a function asked for to its role.
func (w *templateWorld) permissions(f *templateFunction) {
	role := w.stack.statements(f.name + "Role")
	calls, odd := f.calls.Calls()
	if len(odd) > 0 || len(calls) == 0 {
		w.Errorf("%s: %d calls, and %v", f.name, len(calls), odd)
	}
	for c := range calls {
		if !allowed(role, c.Action, "arn:aws:dynamodb:eu-west-1:"+testAccount+":"+c.Resource) {
			w.Errorf("%s asks for %s on %s, and its role does not allow that", f.name, c.Action, c.Resource)
		}
	}
	if cluster := map[deploy.Process]*clusterRecorder{deploy.Rows: w.cluster, deploy.Query: w.asks}[f.process]; cluster != nil {
		for action, path := range cluster.methods() {
			if !allowed(role, action, w.stack.parameters["OpenSearchDomainArn"]+path) {
				w.Errorf("%s asks for %s on %s, and its role does not allow that", f.name, action, path)
			}
		}
	}
	w.used.mu.Lock()
	defer w.used.mu.Unlock()
	for _, s := range role {
		for a := range s.used {
			w.used.has[grantKey(f.process, s.Sid, a)] = true
		}
	}
}

// clusterRecorder is a proxy in front of a cluster that notes the methods of requests.
type clusterRecorder struct {
	server *httptest.Server
	mu     sync.Mutex
	asked  map[string]string // by action, a path
	down   atomic.Bool       // it answers nothing
}

func newClusterRecorder(to string) *clusterRecorder {
	u, err := url.Parse(to)
	if err != nil {
		panic(err)
	}
	c := &clusterRecorder{asked: map[string]string{}}
	next := httputil.NewSingleHostReverseProxy(u)
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.asked["es:ESHttp"+r.Method[:1]+strings.ToLower(r.Method[1:])] = r.URL.Path
		c.mu.Unlock()
		if c.down.Load() {
			http.Error(w, "{}", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	}))
	return c
}

func (c *clusterRecorder) methods() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.asked)
}

// commands writes rows by the function that takes commands: over HTTP and by messages.
func (w *templateWorld) commands(f *templateFunction) {
	if w.model.Entity("User") == nil || w.model.Entity("Album") == nil {
		return
	}
	ask := func(status int, method, path, query, body string) {
		w.Helper()
		headers := map[string]string{"content-type": "application/json"}
		if method == "POST" {
			headers["idempotency-key"] = path + body[:min(len(body), 40)]
		}
		r := f.Invoke(payload(w.T, map[string]any{
			"version": "2.0", "rawPath": path, "rawQueryString": query, "body": body, "headers": headers,
			"requestContext": map[string]any{"http": map[string]string{"method": method, "path": path, "sourceIp": "192.0.2.1"}},
		}), time.Minute)
		var a struct {
			StatusCode int
			Body       string
		}
		if err := json.Unmarshal([]byte(r.Body), &a); err != nil || r.Kind != "response" || a.StatusCode != status {
			w.Fatalf("%s %s: %s %s", method, path, r.Kind, r.Body)
		}
	}
	at := "/v1/" + w.model.Name
	album := `{"id":"sea","title":"The sea","createdAt":"2026-01-31T12:00:00Z"}`
	user := `{"userId":"u1","email":"a@example.com","createdAt":"2026-01-31T12:00:00Z"}`
	ask(201, "POST", at+"/Album", "", album)
	ask(409, "POST", at+"/Album", "", strings.Replace(album, "The", "A", 1))
	ask(200, "PATCH", at+"/Album", "id=sea", `{"title":"Sea"}`)
	ask(200, "GET", at+"/Album", "id=sea", "")
	ask(201, "POST", at+"/User", "", user)
	ask(409, "POST", at+"/User", "", strings.Replace(user, "u1", "u2", 1))
	ask(200, "PATCH", at+"/User", "userId=u1", `{"email":"b@example.com"}`)
	ask(204, "DELETE", at+"/User", "userId=u1", "")
	ask(200, "PUT", at+"/Album", "", album)
	ask(204, "DELETE", at+"/Album", "id=sea", "")
	messages := []map[string]any{}
	for i := range 20 {
		messages = append(messages, map[string]any{"messageId": fmt.Sprint(i), "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:q", "attributes": map[string]string{},
			"body": fmt.Sprintf(`{"op":"put","entity":"Album","item":{"id":"q%d","title":"t","createdAt":"2026-01-31T12:00:00Z"}}`, i)})
	}
	if r := f.Invoke(payload(w.T, map[string]any{"Records": messages}), time.Minute); r.Kind != "response" || !strings.Contains(r.Body, `"batchItemFailures":[]`) {
		w.Errorf("messages: %s %s", r.Kind, r.Body)
	}
}
