package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"time"

	runtime "github.com/aws/aws-lambda-go/lambda"

	"weir/internal/catalog"
	"weir/internal/cli"
	"weir/internal/lambda"
	"weir/internal/stage"
	"weir/internal/system"
)

// The environment of a function.
const (
	envModel      = "WEIR_MODEL"      // a built-in name or a path
	envOpenSearch = "WEIR_OPENSEARCH" // URL of the search cluster, if the model searches
	envOrder      = "WEIR_ORDER"      // item or shard; without it, as the mapping delivers
	envDrained    = "WEIR_DRAINED"    // the reader before, once the stream has run empty
	envData       = "WEIR_DATA"       // an embedded store instead of DynamoDB, for tests
)

// serveLambda handles events until Lambda ends the process.
func serveLambda(ctx context.Context, stdout, stderr io.Writer) int {
	p := &program{ctx: ctx, stdout: stdout, stderr: stderr}
	h, s, err := p.handler()
	if err != nil {
		return p.fail(err)
	}
	defer s.Close()
	runtime.StartWithOptions(h, runtime.WithContext(ctx))
	return exitGood
}

func (p *program) handler() (*lambda.Handler, *system.System, error) {
	name := os.Getenv(envModel)
	if name == "" {
		return nil, nil, usage("%s is not set: it names the model, a built-in one or a path", envModel)
	}
	order, err := lambda.ParseOrder(os.Getenv(envOrder))
	if err != nil {
		return nil, nil, usage("%s: %v", envOrder, err)
	}
	var drained catalog.Reader
	if d := os.Getenv(envDrained); d != "" {
		if drained, err = catalog.ParseReader(d); err != nil {
			return nil, nil, usage("%s: %v", envDrained, err)
		}
	}
	in, err := cli.StageOfEnvironment()
	if err != nil {
		return nil, nil, err
	}
	d := data{Data: os.Getenv(envData), AWS: os.Getenv(envData) == "", OpenSearch: os.Getenv(envOpenSearch), StageFlags: in}
	s, err := p.open(d, []string{name}, system.Options{Writes: true})
	if err != nil {
		return nil, nil, err
	}
	h := lambda.New(s.Models[0].Runner, order, drained, s.Gate(s.Models[0]).Pass)
	h.Names = s.Names
	model := s.Models[0].Model.Name
	log := slog.New(slog.NewJSONHandler(p.stderr, nil))
	h.Report = func(r lambda.Report) {
		if r.Why != nil {
			log.Warn("part of an event is applied, the rest comes again", "model", model, "table", r.Table, "again", r.Again, "error", r.Why.Error())
		}
		p.stdout.Write(embedded(d.Deployment(), model, r, time.Now()))
	}
	return h, s, nil
}

// embedded is a report as a line of CloudWatch's embedded metric format, by which
// whatever stands in a function's log becomes metrics. The table is the model's name of
// it. A stage other than the default one is a dimension, since two stages of a model
// would share their metrics otherwise.
func embedded(in stage.Stage, model string, r lambda.Report, now time.Time) []byte {
	type metric struct{ Name, Unit string }
	line, by := map[string]any{"Model": model, "Table": r.Table}, []string{"Model", "Table"}
	if !in.IsDefault() {
		line["Stage"], by = in.Name, []string{"Stage", "Model", "Table"}
	}
	var metrics []metric
	add := func(name, unit string, n int64) {
		line[name] = n
		metrics = append(metrics, metric{name, unit})
	}
	add("Applied", "Count", int64(r.Applied))
	add("Skipped", "Count", int64(r.Skipped))
	add("DeadLetters", "Count", int64(r.Dead))
	add("Again", "Count", int64(r.Again))
	add("Old", "Count", int64(r.Old))
	outOfOrder := int64(0)
	if r.OutOfOrder {
		outOfOrder = 1
	}
	add("OutOfOrder", "Count", outOfOrder)
	add("Age", "Milliseconds", r.Age.Milliseconds())
	line["_aws"] = map[string]any{
		"Timestamp": now.UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace": "weir", "Dimensions": [][]string{by}, "Metrics": metrics,
		}},
	}
	b, _ := json.Marshal(line) // of strings and numbers
	return append(b, '\n')
}
