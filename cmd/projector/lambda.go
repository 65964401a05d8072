package main

import (
	"cmp"
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
	"weir/internal/runner"
	"weir/internal/stage"
	"weir/internal/system"
)

// The environment of a function.
const (
	envModel      = "WEIR_MODEL"      // a built-in name or a path
	envGroup      = "WEIR_GROUP"      // rows or search; rows if there is no cluster
	envOpenSearch = "WEIR_OPENSEARCH" // URL of the search cluster, for the group search
	envOrder      = "WEIR_ORDER"      // item or shard; without it, as the mapping delivers
	envDrained    = "WEIR_DRAINED"    // the reader before, once the stream has run empty
	envDeriveIn   = "WEIR_DERIVE_IN"  // the region that derives from global tables
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
	group, err := groupOfEnvironment()
	if err != nil {
		return nil, nil, err
	}
	d := data{Data: os.Getenv(envData), AWS: os.Getenv(envData) == "", OpenSearch: os.Getenv(envOpenSearch), DeriveIn: os.Getenv(envDeriveIn), StageFlags: in}
	s, err := p.open(d, []string{name}, system.Options{Writes: true, NoSearch: group == runner.GroupRows})
	if err != nil {
		return nil, nil, err
	}
	if len(s.Models[0].Model.Searches) == 0 && group == runner.GroupSearch {
		return nil, nil, usage("%s is %s, and model %s has no searches", envGroup, group, name)
	}
	h := lambda.New(s.Models[0].Runner, order, drained, s.Gate(s.Models[0], group == runner.GroupSearch).Pass)
	h.Names, h.Group = s.Names, group
	model := s.Models[0].Model.Name
	log := slog.New(slog.NewJSONHandler(p.stderr, nil))
	h.Report = func(r lambda.Report) {
		if r.Waits != nil {
			log.Error("a long list waits for a newer version of the function", "model", model, "table", r.Table, "error", r.Waits.Error())
		}
		if r.Why != nil {
			log.Warn("part of an event is applied, the rest comes again", "model", model, "table", r.Table, "again", r.Again, "error", r.Why.Error())
		}
		p.stdout.Write(embedded(d.Deployment(), model, cmp.Or(group, runner.GroupRows), r, time.Now()))
	}
	return h, s, nil
}

// groupOfEnvironment returns the consumer group that the function is, "" for both. A cluster
// may be down, and rows must not wait for it: so where there is one, rows and documents have
// functions of their own.
func groupOfEnvironment() (string, error) {
	switch g := os.Getenv(envGroup); {
	case g != "" && g != runner.GroupRows && g != runner.GroupSearch:
		return "", usage("%s is %q; it is %s or %s", envGroup, g, runner.GroupRows, runner.GroupSearch)
	case os.Getenv(envData) != "":
		return g, nil
	case g == "" && os.Getenv(envOpenSearch) != "":
		return "", usage("%s is set and %s is not. Rows must not wait for a cluster that is down, so they have a function of their own: one with %s=%s, and one with %s=%s and %s, each with its event source mappings (docs/guide/operations.md, Functions)",
			envOpenSearch, envGroup, envGroup, runner.GroupRows, envGroup, runner.GroupSearch, envOpenSearch)
	case g == runner.GroupSearch && os.Getenv(envOpenSearch) == "":
		return "", usage("%s is %s, and %s, the URL of the cluster, is not set", envGroup, g, envOpenSearch)
	case g == "":
		return runner.GroupRows, nil
	default:
		return g, nil
	}
}

// embedded is a report as a line of CloudWatch's embedded metric format, by which
// whatever stands in a function's log becomes metrics. The table is the model's name of
// it. A stage other than the default one is a dimension, since two stages of a model
// would share their metrics otherwise.
func embedded(in stage.Stage, model, group string, r lambda.Report, now time.Time) []byte {
	type metric struct{ Name, Unit string }
	line, by := map[string]any{"Model": model, "Table": r.Table, "Group": group}, []string{"Model", "Table", "Group"}
	if !in.IsDefault() {
		line["Stage"], by = in.Name, append([]string{"Stage"}, by...)
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
