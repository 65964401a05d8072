package deploy

import (
	"fmt"

	"weir/internal/measures"
)

// retention is how long a DynamoDB stream keeps a record, in milliseconds.
const retention = measures.Retention * 1000

// alarm is an alarm on one metric.
// ID is unique in a template, since the function or queue begins it. Changing one makes CloudFormation delete the
// alarm and create another.
// An alarm fires when the metric is at the threshold or above it in each of Minutes periods of a
// minute. A period without data is no alarm: a function that gets no records writes no metric. With Gauge, the metric comes from
// the schedule, every five minutes: then periods are as long, and one without data counts as bad.
type alarm struct {
	ID, Help  string
	Runbook   string // its section in operations.md, which Help names too
	Metric    metric
	Threshold int // above or at it
	Minutes   int // in each of so many minutes
	Gauge     bool
}

// periodSeconds is the length of a period, and evaluationPeriods is how many of them must be bad.
func (a *alarm) periodSeconds() int {
	if a.Gauge {
		return 300
	}
	return 60
}
func (a *alarm) evaluationPeriods() int { return a.Minutes * 60 / a.periodSeconds() }

// treatMissingData is what a period without data counts as.
func (a *alarm) treatMissingData() string {
	if a.Gauge {
		return "breaching"
	}
	return "notBreaching"
}

// metric is a metric of CloudWatch.
// Exactly one of Function, Queue and Table with Function decides the dimensions.
type metric struct {
	Namespace, Name, Statistic string
	// One of the following says what it is of.
	Function *Function
	Queue    string // a resource
	Table    *Table // with the function of the group: weir's own metrics, and those of its mapping of the table's stream
}

// ofMapping reports whether it is a metric of an event source mapping.
func (m *metric) ofMapping() bool { return m.Table != nil && m.Namespace == lambdaMetrics }

// mappingID is the resource of a function's event source mapping of the stream of a table.
func (f *Function) mappingID(t *Table) string { return f.ID + t.ID + "Stream" }

const lambdaMetrics = "AWS/Lambda"

// failures, commands and refused are the queues of a model.
func (m *Model) failures() string { return m.ID + "Failures" }

// commands is the identity of the queue that takes commands, in every template.
func (m *Model) commands() string { return m.ID + "Commands" }

// refused is the identity of the queue that commands go to when they were refused as often as the
// queue allows.
func (m *Model) refused() string { return m.ID + "RefusedCommands" }

// namespace is that of the metrics in the functions' logs.
const namespace = measures.Namespace

// alarms are the alarms of a model. Lambda never reports expired records: the age of what it
// reads is the only warning before a gap.
// Their order is that of the functions, then the queues, and is part of the template: the same model gives the same.
// Each names the section of operations.md that says what to do.
func (m *Model) alarms() (out []alarm) {
	for _, f := range m.Functions {
		if f.readsStreams() {
			for _, percent := range measures.Warnings() {
				out = append(out, alarm{
					ID: fmt.Sprint(f.ID, "Age", percent), Runbook: "Behind the stream", Minutes: 1, Threshold: retention / 100 * percent,
					Help:   fmt.Sprintf("The function that %s is behind by %d %% of the 24 hours that a stream keeps records. At 100 %% records are lost. See Behind the stream in operations.md.", f.does(), percent),
					Metric: metric{Namespace: lambdaMetrics, Name: "IteratorAge", Statistic: "Maximum", Function: f},
				})
			}
		}
		out = append(out, alarm{
			ID: f.ID + "Errors", Runbook: "A function fails", Minutes: 5, Threshold: 1,
			Help:   fmt.Sprintf("The function that %s fails for five minutes. Its log says why. See A function fails in operations.md.", f.does()),
			Metric: metric{Namespace: lambdaMetrics, Name: "Errors", Statistic: "Sum", Function: f},
		})
		out = append(out, alarm{
			ID: f.ID + "Throttles", Runbook: "A function is throttled", Minutes: 5, Threshold: 1,
			Help:   fmt.Sprintf("The function that %s is refused for five minutes: concurrency is used up. See A function is throttled in operations.md.", f.does()),
			Metric: metric{Namespace: lambdaMetrics, Name: "Throttles", Statistic: "Sum", Function: f},
		})
		if f.readsStreams() {
			out = append(out, m.own(f)...)
		}
	}
	queue := func(id, of, runbook, help string) {
		out = append(out, alarm{ID: of + id, Runbook: runbook, Minutes: 1, Threshold: 1, Help: help,
			Metric: metric{Namespace: "AWS/SQS", Name: "ApproximateNumberOfMessagesVisible", Statistic: "Maximum", Queue: of}})
	}
	queue("Any", m.failures(), "Lambda gave records up", "Lambda gave up a part of a stream of model "+m.Name+". Records are missing: see Lambda gave records up in operations.md.")
	queue("Any", m.refused(), "Commands are refused", "Commands of model "+m.Name+" were refused. See Commands are refused in operations.md.")
	return out
}

// own are the alarms on what the function itself reports, and on what its mappings count.
// There is one of each kind for each table.
func (m *Model) own(f *Function) (out []alarm) {
	for _, t := range m.Tables {
		for _, a := range []struct {
			name, statistic, runbook, help string
			threshold, minutes             int
			gauge                          bool
		}{
			{"Lag", "Maximum", "Nothing is read", "Table %s is not read for 6 hours, or nothing says how far it is read (model %s): see Nothing is read in operations.md.", retention / 4, 15, true},
			{"OpenDeadLetters", "Maximum", "Records cannot be applied", "Records of table %s could not be applied, and wait (model %s): see Records cannot be applied in operations.md.", 1, 1, false},
			{"Refused", "Sum", "A table refuses calls", "Table %s refuses calls, so records of model %s wait: see A table refuses calls in operations.md.", 1, 1, false},
			{"OutOfOrder", "Sum", "Events are out of order", "Events of table %s were refused (model %s): see Events are out of order in operations.md.", 1, 1, false},
		} {
			out = append(out, alarm{ID: f.ID + t.ID + a.name, Runbook: a.runbook, Minutes: a.minutes, Threshold: a.threshold, Gauge: a.gauge, Help: fmt.Sprintf(a.help, t.Def.Name, m.Name),
				Metric: metric{Namespace: namespace, Name: a.name, Statistic: a.statistic, Function: f, Table: t}})
		}
		out = append(out, alarm{ID: f.ID + t.ID + "Dropped", Runbook: "Lambda gave records up", Minutes: 1, Threshold: 1,
			Help:   fmt.Sprintf("Lambda gave up records of table %s (model %s): see Lambda gave records up in operations.md.", t.Def.Name, m.Name),
			Metric: metric{Namespace: lambdaMetrics, Name: "DroppedEventCount", Statistic: "Sum", Function: f, Table: t}})
	}
	return out
}
