package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/internal/measures"
)

// dashboardNames are what only the stack knows.
type dashboardNames struct {
	region         string
	schema, filter string // of weir's own metrics, in a search expression, as it stands in JSON
	function       func(*Function) string
	queue          func(string) string
}

// chart is one picture of a dashboard.
type chart struct {
	title   string
	metrics []any
	marks   []any // lines at a value
}

// dashboard is a model's dashboard, as CloudWatch reads it.
// The text is JSON once the names are put in. The same model gives the same text.
func (m *Model) dashboard(n dashboardNames) string {
	var all []chart
	age := chart{title: "Behind the stream (ms, of 24 hours)"}
	for _, percent := range measures.Warnings() {
		age.marks = append(age.marks, map[string]any{"label": fmt.Sprint(percent, " %"), "value": retention / 100 * percent})
	}
	errs, takes := chart{title: "Errors and throttles"}, chart{title: "Duration (ms)"}
	for _, f := range m.Functions {
		name, label := n.function(f), map[string]any{"label": string(f.Process)}
		with := func(stat string) map[string]any { return map[string]any{"label": label["label"], "stat": stat} }
		if f.Stream != nil {
			age.metrics = append(age.metrics, []any{"AWS/Lambda", "IteratorAge", "FunctionName", name, with("Maximum")})
		}
		errs.metrics = append(errs.metrics, []any{"AWS/Lambda", "Errors", "FunctionName", name, map[string]any{"label": string(f.Process) + " errors", "stat": "Sum"}},
			[]any{"AWS/Lambda", "Throttles", "FunctionName", name, map[string]any{"label": string(f.Process) + " throttles", "stat": "Sum"}})
		takes.metrics = append(takes.metrics, []any{"AWS/Lambda", "Duration", "FunctionName", name, with("p99")})
	}
	all = append(all, age, errs, takes)
	for _, of := range measures.All() {
		for _, l := range of.Log {
			search := fmt.Sprintf(`"SEARCH('{%s} %sModel=\"%s\" MetricName=\"%s\"', '%s')"`, n.schema, n.filter, m.Name, l.Name, l.Statistic)
			all = append(all, chart{title: l.Title(), metrics: []any{finished(`[{"expression": ` + search + `, "id": "e1"}]`)}})
		}
	}
	queues := chart{title: "Queues (messages)"}
	for _, q := range []struct{ id, label string }{{m.commands(), "commands"}, {m.refused(), "refused commands"}, {m.failures(), "given up by Lambda"}} {
		queues.metrics = append(queues.metrics, []any{"AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", n.queue(q.id), map[string]any{"label": q.label, "stat": "Maximum"}})
	}
	return widgets(append(all, queues), n.region)
}

// widgets lays charts out, two in a row, a line for each metric.
func widgets(all []chart, region string) string {
	var b strings.Builder
	b.WriteString(`{"widgets": [` + "\n")
	for i, c := range all {
		fmt.Fprintf(&b, `  {"type": "metric", "x": %d, "y": %d, "width": 12, "height": 6, "properties": {`+"\n", i%2*12, i/2*6)
		fmt.Fprintf(&b, `    "title": %s, "region": %s, "period": 60, "view": "timeSeries",`+"\n", oneLine(c.title), oneLine(region))
		if len(c.marks) > 0 {
			fmt.Fprintf(&b, `    "annotations": {"horizontal": %s},`+"\n", oneLine(c.marks))
		}
		b.WriteString(`    "metrics": [` + "\n")
		for j, m := range c.metrics {
			fmt.Fprintf(&b, "      %s%s\n", oneLine(m), comma(j, len(c.metrics)))
		}
		fmt.Fprintf(&b, "    ]}}%s\n", comma(i, len(all)))
	}
	b.WriteString("]}\n")
	return b.String()
}

// comma is what follows element i of a list.
func comma(i, of int) string {
	if i == of-1 {
		return ""
	}
	return ","
}

// finished is JSON as it is to be shown.
type finished string

// oneLine is a value as JSON.
// It ends with no line break, and escapes nothing for HTML.
func oneLine(v any) string {
	if f, ok := v.(finished); ok {
		return string(f)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // of maps, texts and numbers
	}
	return strings.TrimSpace(b.String())
}

// yamlBlock is a text of several lines.
type yamlBlock struct{ text string }

// node is the text as a block of YAML that keeps its lines.
func (b *yamlBlock) node() node {
	n := scalar(b.text)
	n.Style = yaml.LiteralStyle
	return n
}
