package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"weir/internal/measures"
)

// chart is one picture of a dashboard.
type chart struct {
	title   string
	metrics []any
	marks   []any // lines at a value
}

// dashboard is a model's dashboard, as CloudWatch reads it.
// The text is JSON once CloudFormation has put the names in; Schema and Filter are those of weir's own metrics in a search
// expression. The same model gives the same text.
func (m *Model) dashboard() string {
	var all []chart
	age := chart{title: "Behind the stream (ms, of 24 hours)"}
	for _, percent := range measures.Warnings() {
		age.marks = append(age.marks, map[string]any{"label": fmt.Sprint(percent, " %"), "value": retention / 100 * percent})
	}
	errs, takes := chart{title: "Errors and throttles"}, chart{title: "Duration (ms)"}
	for _, f := range m.Functions {
		name := "${" + f.ID + "}"
		if f.When != "" { // it may not be there: see stack.addDashboard
			name = "${" + string(f.Process) + "}"
		}
		with := func(stat string) map[string]any { return map[string]any{"label": string(f.Process), "stat": stat} }
		if f.readsStreams() {
			age.metrics = append(age.metrics, []any{"AWS/Lambda", "IteratorAge", "FunctionName", name, with("Maximum")})
		}
		errs.metrics = append(errs.metrics, []any{"AWS/Lambda", "Errors", "FunctionName", name, map[string]any{"label": string(f.Process) + " errors", "stat": "Sum"}},
			[]any{"AWS/Lambda", "Throttles", "FunctionName", name, map[string]any{"label": string(f.Process) + " throttles", "stat": "Sum"}})
		takes.metrics = append(takes.metrics, []any{"AWS/Lambda", "Duration", "FunctionName", name, with("p99")})
	}
	all = append(all, age, errs, takes)
	for _, of := range measures.All() {
		for _, l := range of.Log {
			search := fmt.Sprintf(`"SEARCH('{${Schema}} ${Filter}Model=\"%s\" MetricName=\"%s\"', '%s')"`, m.Name, l.Name, l.Statistic)
			all = append(all, chart{title: l.Title(), metrics: []any{finished(`[{"expression": ` + search + `, "id": "e1"}]`)}})
		}
	}
	queues := chart{title: "Queues (messages)"}
	for _, q := range []struct{ id, label string }{{m.commands(), "commands"}, {m.refused(), "refused commands"}, {m.failures(), "given up by Lambda"}} {
		queues.metrics = append(queues.metrics, []any{"AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "${" + q.id + ".QueueName}", map[string]any{"label": q.label, "stat": "Maximum"}})
	}
	return widgets(append(all, queues))
}

// widgets lays charts out, two in a row, a line for each metric.
func widgets(all []chart) string {
	var b strings.Builder
	b.WriteString(`{"widgets": [` + "\n")
	for i, c := range all {
		fmt.Fprintf(&b, `  {"type": "metric", "x": %d, "y": %d, "width": 12, "height": 6, "properties": {`+"\n", i%2*12, i/2*6)
		fmt.Fprintf(&b, `    "title": %s, "region": "${AWS::Region}", "period": 60, "view": "timeSeries",`+"\n", oneLine(c.title))
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

// comma is the text after element i of a list.
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
