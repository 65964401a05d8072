package deploy

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/internal/measures"
)

// Grafana is a dashboard of processes for Grafana, with Prometheus as its source of data: a panel for each metric
// that a process serves, and for the ratios of two of them. models are the names that it offers first.
// The same models give the same text.
func Grafana(models []string) []byte {
	var panels []any
	add := func(title, asks, unit string, marks bool, queries ...query) {
		id := len(panels)
		targets := []any{}
		for i, q := range queries {
			targets = append(targets, map[string]any{"refId": string(rune('A' + i)), "expr": q.expr, "legendFormat": q.legend})
		}
		thresholds := []any{map[string]any{"color": "green", "value": nil}}
		if marks {
			for i, percent := range measures.Warnings() {
				thresholds = append(thresholds, map[string]any{"color": []string{"yellow", "orange", "red"}[i], "value": measures.Retention / 100 * percent})
			}
		}
		panels = append(panels, map[string]any{
			"id": id + 1, "type": "timeseries", "title": title, "description": asks,
			"datasource":  map[string]any{"type": "prometheus", "uid": "${datasource}"},
			"gridPos":     map[string]any{"x": id % 2 * 12, "y": id / 2 * 8, "w": 12, "h": 8},
			"fieldConfig": map[string]any{"defaults": map[string]any{"unit": unit, "min": 0, "thresholds": map[string]any{"mode": "absolute", "steps": thresholds}, "custom": map[string]any{"thresholdsStyle": map[string]any{"mode": styleOf(marks)}}}, "overrides": []any{}},
			"targets":     targets,
		})
	}
	for _, m := range measures.All() {
		if m.Name != "" {
			add(m.Title(), plain(m.Asks), unitOf(m), m.Ageing, queriesOf(m)...)
		}
	}
	for _, r := range measures.Ratios() {
		add(r.Title, plain(r.Asks), "short", false, query{ratio(r), "weir"})
	}
	first := ""
	if len(models) > 0 {
		first = models[0]
	}
	text, err := json.MarshalIndent(map[string]any{
		"title": "weir", "uid": "weir", "schemaVersion": 39, "editable": true, "refresh": "1m",
		"time": map[string]any{"from": "now-6h", "to": "now"},
		"templating": map[string]any{"list": []any{
			map[string]any{"name": "datasource", "type": "datasource", "query": "prometheus"},
			map[string]any{
				"name": "model", "type": "query", "datasource": map[string]any{"type": "prometheus", "uid": "${datasource}"},
				"query": fmt.Sprintf("label_values(%s, model)", measures.Records.Name), "includeAll": true, "allValue": ".*", "multi": true, "refresh": 2,
				"current": map[string]any{"text": first, "value": first},
			},
		}},
		"panels": panels,
	}, "", "  ")
	if err != nil {
		panic(err) // of maps, texts and numbers
	}
	return append(text, '\n')
}

// query is a query of Prometheus, and how its answers are named.
type query struct{ expr, legend string }

// chosen are the models that the dashboard shows.
func chosen(m *measures.Metric) string {
	if m.Has("model") {
		return m.Name + `{model=~"$model"}`
	}
	return m.Name
}

// queriesOf are the queries that show a metric: of a counter its rate, of a gauge the worst process, of a histogram
// the middle and the worst.
func queriesOf(m *measures.Metric) []query {
	by, legend := strings.Join(m.Names(), ", "), ""
	for i, name := range m.Names() {
		if i > 0 {
			legend += " "
		}
		legend += "{{" + name + "}}"
	}
	switch m.Type {
	case measures.Counter:
		return []query{{fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", by, chosen(m)), legend}}
	case measures.Histogram:
		var out []query
		bucket := *m
		bucket.Name += "_bucket"
		for _, q := range []string{"0.5", "0.99"} {
			out = append(out, query{fmt.Sprintf("histogram_quantile(%s, sum by (%s, le) (rate(%s[$__rate_interval])))", q, by, chosen(&bucket)), legend + " " + q})
		}
		return out
	default:
		how := "max"
		if m.Sums {
			how = "sum"
		}
		return []query{{fmt.Sprintf("%s by (%s) (%s)", how, by, chosen(m)), legend}}
	}
}

func ratio(r measures.Ratio) string {
	return fmt.Sprintf("sum(rate(%s[$__rate_interval])) / sum(rate(%s{%s}[$__rate_interval]))", r.Of.Name, r.Per.Name, r.Where)
}

// unitOf returns the name that Grafana has for a metric's unit. A counter of seconds is shown as
// a rate, which has none.
func unitOf(m *measures.Metric) string {
	switch {
	case m.Unit == "seconds" && m.Type != measures.Counter:
		return "s"
	case m.Unit == "bytes":
		return "bytes"
	}
	return "short"
}

// styleOf says whether Grafana draws a panel's thresholds, the alarms at 25, 50 and 80 %, as lines.
func styleOf(marks bool) string {
	if marks {
		return "line"
	}
	return "off"
}

// plain is Markdown as a description shows it: without its backticks, which Grafana and Alertmanager
// would print.
func plain(s string) string { return strings.ReplaceAll(s, "`", "") }

// PrometheusRules are rules of Prometheus that raise the alarms of processes: at the parts of the 24 hours that a
// stream keeps records, and for each metric that must not grow or be above 0.
// Those of metrics by model are on the named models alone.
func PrometheusRules(models []string) ([]byte, error) {
	type rule struct {
		Alert       string            `yaml:"alert"`
		Expr        string            `yaml:"expr"`
		For         string            `yaml:"for"`
		Labels      map[string]string `yaml:"labels"`
		Annotations map[string]string `yaml:"annotations"`
	}
	var rules []rule
	add := func(name, expr, severity, says, runbook string) {
		rules = append(rules, rule{name, expr, "5m", map[string]string{"severity": severity}, map[string]string{
			"summary": says, "runbook": runbook + " in docs/guide/operations.md",
		}})
	}
	for _, m := range measures.All() {
		by, series := strings.Join(m.Names(), ", "), m.Name
		if m.Has("model") {
			series = fmt.Sprintf("%s{model=~%q}", m.Name, strings.Join(models, "|"))
		}
		switch {
		case m.Name == "":
		case m.Ageing:
			for i, percent := range measures.Warnings() {
				add(fmt.Sprint(camel(m.Name), percent), fmt.Sprintf("max by (%s) (%s) > %d", by, series, measures.Retention/100*percent), []string{"info", "warning", "critical"}[i],
					fmt.Sprintf("%s: %d %% of the 24 hours that a stream keeps records.", m.Title(), percent), m.Runbook)
			}
		case m.Runbook != "" && m.Type == measures.Counter:
			add(camel(m.Name), fmt.Sprintf("sum by (%s) (increase(%s[15m])) > 0", by, series), "warning", m.Help, m.Runbook)
		case m.Runbook != "":
			add(camel(m.Name), fmt.Sprintf("max by (%s) (%s) > 0", by, series), "warning", m.Help, m.Runbook)
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "weir", "rules": rules}}})
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return text, nil
}

// camel is a name of a metric as a name of an alert.
func camel(name string) (out string) {
	for _, word := range strings.Split(strings.TrimSuffix(name, "_total"), "_") {
		out += strings.ToUpper(word[:1]) + word[1:]
	}
	return out
}
