// Package function is the projector as Lambda starts it: it reads the environment, opens
// the model that it names, and hands events to internal/lambda. Its report is a line in the
// function's log. A function that answers queries is in queries.go.
package function

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	runtime "github.com/aws/aws-lambda-go/lambda"

	"weir/internal/budget"
	"weir/internal/cli"
	"weir/internal/lambda"
	"weir/internal/measures"
	"weir/internal/model"
	"weir/internal/reader"
	"weir/internal/search/opensearch"
	"weir/internal/stage"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/traces"
)

// The environment of a function.
const (
	envModel      = "WEIR_MODEL"        // a built-in name or a path
	envGroup      = "WEIR_GROUP"        // refused
	envQueries    = "WEIR_QUERIES"      // 1: it answers queries, and derives nothing
	envOpen       = "WEIR_OPEN"         // 1, for queries: IAM or an authorizer decides before the function which requests are allowed
	envOpenSearch = "WEIR_OPENSEARCH"   // URL of the search cluster
	envDrained    = "WEIR_DRAINED"      // refused
	envDeriveIn   = "WEIR_DERIVE_IN"    // the region that derives from global tables
	envLetterTTL  = "WEIR_LETTER_TTL"   // how long dead letters have the rows that they are about
	envBudget     = "WEIR_WRITE_BUDGET" // write units in a second on each table, of all invocations together
	envTraces     = "WEIR_TRACES"       // otlp sends a trace of each event, by the OTEL_… variables
	envMetrics    = "WEIR_METRICS"      // minute (the default) writes metrics once a minute, event for each event; table keeps them for each table too
	envData       = "WEIR_DATA"         // an embedded store instead of DynamoDB, for tests

	envMemory = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE" // in MB, set by Lambda
)

// Serve handles events until Lambda ends the process or the context is done. Metrics go
// to stdout, one JSON object a line, and errors to stderr. An error means that the
// function could not begin: it has handled nothing, and Lambda keeps the records.
func Serve(ctx context.Context, stdout, stderr io.Writer) error {
	limitMemory()
	h, closing, err := Open(ctx, nil, stdout, stderr)
	if err != nil {
		return err
	}
	defer closing()
	runtime.StartWithOptions(h, runtime.WithContext(ctx))
	return nil
}

// Open makes the handler of a model, or of the one in the environment if m is nil. The caller calls closing when done.
func Open(ctx context.Context, m *model.Model, stdout, stderr io.Writer) (h runtime.Handler, closing func() error, err error) {
	log := measures.JSON(stderr, slog.LevelInfo)
	spans, err := traces.Open(ctx, traces.Mode(os.Getenv(envTraces)), "weir", cli.Version(), log)
	if err != nil {
		return nil, nil, cli.Usage("%s: %v", envTraces, err)
	}
	var s *system.System
	switch is := os.Getenv(envQueries); is {
	case "":
		h, s, err = newHandler(ctx, m, stdout, log, spans)
	case "1":
		h, s, err = newQueries(ctx, m, log)
	default:
		err = cli.Usage("%s is %q; it is 1, for a function that answers queries, or not set", envQueries, is)
	}
	if err != nil {
		spans.Close()
		return nil, nil, err
	}
	return traced(h, spans), func() error {
		defer spans.Close()
		return s.Close()
	}, nil
}

// limitMemory lets the heap grow to three quarters of the memory that Lambda gives before it is collected without delay:
// the rest is for the program itself, of which 25 MB are resident. Lambda kills a process that needs more than it has, and
// sends the event again. GOMEMLIMIT overrides it.
func limitMemory() {
	mb, err := strconv.ParseInt(os.Getenv(envMemory), 10, 32)
	if err == nil && mb > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(mb << 20 / 4 * 3)
	}
}

// flushTime is how long the answer to an event waits for its trace to be sent. A collector that is down delays each
// event by this much.
const flushTime = time.Second

// flushing is a handler that sends the trace of each event before it answers.
type flushing struct {
	runtime.Handler
	spans *traces.Tracing
}

// Invoke answers as the handler does, also where the trace could not be sent.
func (f flushing) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	defer f.spans.Flush(ctx, flushTime)
	return f.Handler.Invoke(ctx, payload)
}

// traced is a handler whose traces are sent, if there are any.
func traced(h runtime.Handler, spans *traces.Tracing) runtime.Handler {
	if spans == nil {
		return h
	}
	return flushing{h, spans}
}

// newHandler makes the function's handler from its environment, and opens the system that it works on, which the
// caller closes. A fault of the environment is a usage error that names the variable: the function then
// fails at its start, and Lambda keeps the records.
func newHandler(ctx context.Context, m *model.Model, stdout io.Writer, log *slog.Logger, spans *traces.Tracing) (*lambda.Handler, *system.System, error) {
	models, at, err := placeOfEnvironment(ctx, m, log)
	if err != nil {
		return nil, nil, err
	}
	if os.Getenv(envDrained) != "" {
		return nil, nil, cli.Usage("%s is not needed any more, delete it: functions and processes move the same checkpoints, so a function goes on where a process was", envDrained)
	}
	units, err := unitsOfEnvironment()
	if err != nil {
		return nil, nil, err
	}
	at.Writes = budget.New(units, at.Stage.Own())
	var ttl cli.TTL
	if err := ttl.UnmarshalText([]byte(os.Getenv(envLetterTTL))); err != nil {
		return nil, nil, cli.Usage("%s is %q; %v", envLetterTTL, os.Getenv(envLetterTTL), err)
	}
	o := system.Options{Writes: true, NoQueries: true, Late: true, DeriveIn: os.Getenv(envDeriveIn), LetterTTL: time.Duration(ttl), Log: log}
	if spans != nil {
		o.Tracer, at.Observe = spans, spans.Observer
	}
	s, err := cli.OpenModels(ctx, at, models, o)
	if err != nil {
		return nil, nil, err
	}
	sharing := invocations{system: s, writes: at.Writes}
	h := lambda.New(s.Models[0].Runner, func(ctx context.Context) error {
		if units > 0 {
			return sharing.count(ctx)
		}
		return nil
	})
	h.Names = s.Names
	called := s.Models[0].Model.Name
	each, by, err := metricsOfEnvironment(at.Stage)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	meter := &meter{by: by, model: called, every: each, now: time.Now, write: func(b []byte) { stdout.Write(b) }, tables: map[string]*reported{}}
	var before budget.Use
	h.Report = func(r lambda.Report) {
		if r.Waits != nil {
			log.Error("a long list waits for a newer version of the function", "model", called, "table", r.Table, "error", r.Waits)
		}
		if r.Pending > 0 {
			log.Warn("an index does not take documents; they are pending", "model", called, "documents", r.Pending)
		}
		for _, table := range r.Refused {
			log.Error("a table refuses calls; the records that need it come again", "model", called, "table", table)
		}
		if r.Why != nil {
			log.Warn("part of an event is applied, the rest comes again", "model", called, "table", r.Table, "again", r.Again, "error", r.Why)
		}
		now := sumOf(at.Writes)
		used := budget.Use{Units: now.Units - before.Units, Throttled: now.Throttled - before.Throttled, Waited: now.Waited - before.Waited}
		before = now
		meter.addReport(r, used)
	}
	h.Log = log
	h.Ticked = func(t lambda.Tick) {
		if t.Why != nil {
			log.Error("a scheduled invocation could not look or go on", "model", called, "error", t.Why)
		}
		for i := range t.Tables {
			stdout.Write(gaugeLines(by, s.Models[0].Model, &t, i, time.Now()))
		}
		meter.writeLines()
	}
	return h, s, nil
}

// placeOfEnvironment returns the model, which the environment names if m is nil, and where its rows and documents are.
func placeOfEnvironment(ctx context.Context, m *model.Model, log *slog.Logger) (models []*model.Model, at system.Place, err error) {
	name := os.Getenv(envModel)
	if name == "" && m == nil {
		return nil, at, cli.Usage("%s is not set: it names the model, a built-in one or a path", envModel)
	}
	if os.Getenv(envGroup) != "" {
		return nil, at, cli.Usage("%s is not needed any more, delete it: one function derives rows and, with %s, keeps documents too; delete the function that had the documents", envGroup, envOpenSearch)
	}
	cluster := os.Getenv(envOpenSearch)
	if cluster != "" {
		t, err := opensearch.ParseTarget(cluster)
		if err != nil {
			return nil, at, cli.Usage("%s: %v", envOpenSearch, err)
		}
		if t.Password != "" {
			return nil, at, cli.Usage("%s has a password, which everyone can read who may look at the function: keep it in AWS Secrets Manager or the Parameter Store, and name it, https://USER@HOST?secret=ARN", envOpenSearch)
		}
	}
	in, err := cli.StageOfEnvironment()
	if models = []*model.Model{m}; err == nil && m == nil {
		models, err = cli.Load(ctx, []string{name})
	}
	data := os.Getenv(envData)
	return models, system.Place{Data: data, AWS: data == "", OpenSearch: cluster, Stage: in.Deployment(), Log: log}, err
}

// metricsOfEnvironment returns whether metrics are written for each event, and for which dimensions CloudWatch keeps them.
func metricsOfEnvironment(in stage.Stage) (each bool, by dimensions, err error) {
	by.stage = in
	for word := range strings.SplitSeq(os.Getenv(envMetrics), ",") {
		switch word {
		case "", "minute":
		case "event":
			each = true
		case "table":
			by.tables = true
		default:
			return false, by, cli.Usage("%s is %q; it is minute, event, table or event,table", envMetrics, os.Getenv(envMetrics))
		}
	}
	return each, by, nil
}

// gaugeLines returns the log lines of the state of one table. The model has no lag while that of one of its tables is not known,
// so that the alarm tells. Work that waits for no table counts for the first one.
func gaugeLines(by dimensions, m *model.Model, t *lambda.Tick, i int, now time.Time) []byte {
	is, of := map[string]int64{}, &t.Tables[i]
	known := !slices.ContainsFunc(t.Tables, func(w reader.Watched) bool { return !w.Known })
	if known {
		is["Lag"] = of.Lag.Milliseconds()
	}
	if t.Counted {
		is["OpenDeadLetters"] = int64(t.Letters[of.Table])
		for table, n := range t.Letters {
			if i == 0 && m.Table(table) == nil {
				is["OpenDeadLetters"] += int64(n)
			}
		}
	}
	b := by.newLine(m.Name, of.Table).encodeMetrics(by.dimensionSets(), is, now)
	if by.tables && of.Known && !known {
		b = append(b, by.newLine(m.Name, of.Table).encodeMetrics(by.dimensionSets()[1:], map[string]int64{"Lag": of.Lag.Milliseconds()}, now)...)
	}
	return b
}

// unitsOfEnvironment returns the write budget, 0 for any number of units.
func unitsOfEnvironment() (float64, error) {
	text := os.Getenv(envBudget)
	if text == "" {
		return 0, nil
	}
	units, err := strconv.ParseFloat(text, 64)
	if err != nil || !(units >= 0) || math.IsInf(units, 0) {
		return 0, cli.Usage("%s is %q; it is a number of write units in a second, 0 for any number", envBudget, text)
	}
	if units > 0 && os.Getenv(envData) != "" {
		return 0, cli.Usage("%s is for DynamoDB", envBudget)
	}
	return units, nil
}

// sumOf is the use of all tables together.
func sumOf(writes *budget.Writes) (sum budget.Use) {
	for _, u := range writes.Uses() {
		sum.Units += u.Units
		sum.Throttled += u.Throttled
		sum.Waited += u.Waited
	}
	return sum
}

// invocations divide a budget. Lambda runs one invocation at a time for each open shard, so one
// has the share of a shard, and none needs to know of another.
// It counts at the first invocation and then every countEvery, so a reshard is noticed within that time. Its methods
// are called by one invocation at a time, as Lambda runs them.
type invocations struct {
	system  *system.System
	writes  *budget.Writes
	counted time.Time
}

// countEvery is how often the open shards are counted.
const countEvery = 5 * time.Minute

// count divides the budget of all tables of the model by the open shards of all its streams, as the schedule counted them last. It
// lists those of a stream that was never counted.
// On an error the budget stays as it was, and the invocation fails before it has written anything.
func (i *invocations) count(ctx context.Context) error {
	if !i.counted.IsZero() && time.Since(i.counted) < countEvery {
		return nil
	}
	open, part := 0, i.system.Models[0]
	for _, t := range part.Model.Tables {
		_, counted, err := reader.ReadStream(ctx, part.Runner, t.Name)
		if err == nil && counted.Open > 0 {
			open += counted.Open
			continue
		}
		var shards []store.Shard
		if err == nil {
			shards, err = i.system.Store.Shards(ctx, t.Name)
		}
		if err != nil {
			return fmt.Errorf("dividing the write budget: %w", err)
		}
		for _, s := range shards {
			if !s.Closed {
				open++
			}
		}
	}
	i.writes.Share(i.system.RealTables(part), open)
	i.counted = time.Now()
	return nil
}

// metricLines is a report as a line of CloudWatch's embedded metric format, by which
// whatever stands in a function's log becomes metrics. The table is the model's name of
// it: where it is no dimension, the log says of which table a value is.
// The list of metrics is in package measures; values has those of one report.
func metricLines(by dimensions, model string, r lambda.Report, used budget.Use, now time.Time) []byte {
	line := by.newLine(model, r.Table)
	if len(r.By) > 0 { // no metrics: each would be one for each derivation, and cost as much
		line["Derivations"] = r.By
	}
	b := line.encodeMetrics(by.dimensionSets(), values(r, used), now)
	for _, table := range r.Refused { // it need not be the table of the event
		b = append(b, by.newLine(model, table).encodeMetrics(by.dimensionSets(), map[string]int64{"Refused": 1}, now)...)
	}
	return b
}

// dimensions are those of a function's metrics. CloudWatch keeps a metric of the model, in which it merges the lines of the tables by
// the metric's statistic, and one of each table only if tables is set. A stage other than the default one is a dimension, since
// two stages of a model would share their metrics otherwise.
type dimensions struct {
	stage  stage.Stage
	tables bool
}

// dimensionSets returns each set of dimensions: the one of the model, then the one of the table.
func (d dimensions) dimensionSets() [][]string {
	model := []string{"Model"}
	if !d.stage.IsDefault() {
		model = []string{"Stage", "Model"}
	}
	if !d.tables {
		return [][]string{model}
	}
	return [][]string{model, append(slices.Clone(model), "Table")}
}

// newLine returns a line of the log without metrics.
func (d dimensions) newLine(model, table string) logLine {
	line := logLine{"Model": model, "Table": table}
	if !d.stage.IsDefault() {
		line["Stage"] = d.stage.Name
	}
	return line
}

// logLine is a line of the log: metrics, dimensions, and other facts for a search of the log.
type logLine map[string]any

// encodeMetrics adds the metrics that have a value, in each set of dimensions.
func (l logLine) encodeMetrics(sets [][]string, is map[string]int64, now time.Time) []byte {
	type metric struct{ Name, Unit string }
	var all []metric
	for _, m := range measures.All() {
		for _, logged := range m.Log {
			if n, has := is[logged.Name]; has {
				l[logged.Name] = n
				all = append(all, metric{logged.Name, logged.Unit})
			}
		}
	}
	l["_aws"] = map[string]any{
		"Timestamp": now.UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace": measures.Namespace, "Dimensions": sets, "Metrics": all,
		}},
	}
	b, _ := json.Marshal(l) // of strings and numbers
	return append(b, '\n')
}

// values are the values of each metric in a function's log.
func values(r lambda.Report, used budget.Use) map[string]int64 {
	outOfOrder := int64(0)
	if r.OutOfOrder {
		outOfOrder = 1
	}
	return map[string]int64{
		"Records": int64(r.Records), "Applied": int64(r.Applied), "Skipped": int64(r.Skipped), "DeadLetters": int64(r.Dead),
		"Again": int64(r.Again), "Old": int64(r.Old), "OutOfOrder": outOfOrder, "Refused": 0, // of the refused tables: metrics
		"Age":        r.Age.Milliseconds(),
		"WriteUnits": int64(math.Ceil(used.Units)), "Throttled": used.Throttled, "BudgetWait": used.Waited.Milliseconds(),
	}
}
