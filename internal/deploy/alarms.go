package deploy

import (
	"fmt"
	"strings"

	"weir/internal/measures"
	"weir/internal/seq"
)

// retention is how long a DynamoDB stream keeps a record, in milliseconds.
const retention = measures.Retention * 1000

// alarm is an alarm on one metric.
// ID is unique in a template, since the function or queue begins it. Changing one makes CloudFormation delete the
// alarm and create another.
// An alarm fires when the metric is at the threshold or above it in When.Bad of the last When.Of periods.
type alarm struct {
	ID, Help  string
	Runbook   string // its section in operations.md
	Metric    metric
	Threshold any // a number, or a parameter
	When      periods
}

// periods say how CloudWatch looks at a metric. Missing is the meaning of a period without data.
type periods struct {
	Seconds, Bad, Of int
	Missing          string
}

var (
	// A failure comes again only after Lambda has waited for longer and longer, so bad minutes do not follow each other.
	failing = periods{Seconds: 60, Bad: 3, Of: 10, Missing: "notBreaching"}
	// A single event is enough, and stays an alarm for a quarter of an hour: it does not go off and on with each.
	happened = periods{Seconds: 60, Bad: 1, Of: 15, Missing: "notBreaching"}
	// A load that lasts.
	lasting = periods{Seconds: 60, Bad: 10, Of: 15, Missing: "notBreaching"}
	// The schedule writes this every five minutes, and must write it.
	silent = periods{Seconds: 300, Bad: 3, Of: 3, Missing: "breaching"}
	// The same, where one that was not written says nothing: the alarm stays as it is.
	standing = periods{Seconds: 300, Bad: 1, Of: 1, Missing: "ignore"}
)

// anchor is the section of the alarm in an address, as GitHub makes it.
func (a *alarm) anchor() string { return strings.ReplaceAll(strings.ToLower(a.Runbook), " ", "-") }

// metric is a metric of CloudWatch.
// Without a function and a queue it is of the account. In weir's own namespace it is of the function's model.
type metric struct {
	Namespace, Name, Statistic string
	// One of the following says its subject.
	Function *Function
	Queue    string // a resource
	Table    *Table // with a function: of its mapping of the table's stream
}

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

// alarms are the alarms of all models, and one of the account.
func (p *Plan) alarms() []alarm {
	return append(seq.Flat(p.Models, (*Model).alarms), alarm{ID: "AccountConcurrency", Runbook: "The account has no concurrency left", When: failing, Threshold: ref(paramConcurrency),
		Help:   "The functions of the account use most of its concurrency; the next are throttled.",
		Metric: metric{Namespace: lambdaMetrics, Name: "ClaimedAccountConcurrency", Statistic: "Maximum"}})
}

// alarms are the alarms of a model. Lambda never reports expired records: the age of the record that it
// reads is the only warning before a gap.
// Their order is that of the functions, then the queues, and is part of the template: the same model gives the same.
// Each names the section of operations.md that says what to do.
func (m *Model) alarms() (out []alarm) {
	for _, f := range m.Functions {
		if f.readsStreams() {
			for _, percent := range measures.Warnings() {
				out = append(out, alarm{
					ID: fmt.Sprint(f.ID, "Age", percent), Runbook: "Behind the stream", When: failing, Threshold: retention / 100 * percent,
					Help:   fmt.Sprintf("The function that %s is behind by %d %% of the 24 hours that a stream keeps records.", f.does(), percent),
					Metric: metric{Namespace: lambdaMetrics, Name: "IteratorAge", Statistic: "Maximum", Function: f},
				})
			}
		}
		for _, a := range []alarm{
			{ID: "Errors", Runbook: "A function fails", Help: "The function that %s fails again and again. Its log says why."},
			{ID: "Throttles", Runbook: "A function is throttled", Help: "The function that %s is refused again and again: concurrency is used up."},
		} {
			out = append(out, alarm{ID: f.ID + a.ID, Runbook: a.Runbook, When: failing, Threshold: 1, Help: fmt.Sprintf(a.Help, f.does()),
				Metric: metric{Namespace: lambdaMetrics, Name: a.ID, Statistic: "Sum", Function: f}})
		}
		if f.readsStreams() {
			out = append(out, m.own(f)...)
		}
	}
	queue := func(id, of, runbook, name string, threshold int, when periods, help string) {
		out = append(out, alarm{ID: of + id, Runbook: runbook, When: when, Threshold: threshold, Help: fmt.Sprintf(help, m.Name),
			Metric: metric{Namespace: "AWS/SQS", Name: name, Statistic: "Maximum", Queue: of}})
	}
	queue("Any", m.failures(), "Lambda gave records up", "ApproximateNumberOfMessagesVisible", 1, happened, "Lambda gave up a part of a stream of model %s. Records are missing.")
	queue("Any", m.refused(), "Commands are refused", "ApproximateNumberOfMessagesVisible", 1, happened, "Commands of model %s were refused.")
	queue("Age", m.commands(), "Commands wait", "ApproximateAgeOfOldestMessage", commandAge, failing, "Commands of model %s wait in their queue.")
	return out
}

// commandAge is the age in seconds at which a command has waited too long: it was tried at least twice.
const commandAge = 600

// own are the alarms on the function's own metrics, one of each kind for the model, and on the metrics of its mappings, one for
// each table.
func (m *Model) own(f *Function) (out []alarm) {
	for _, a := range []alarm{
		{Metric: metric{Name: "Lag", Statistic: "Maximum"}, Runbook: "Nothing is read", Threshold: retention / 4, When: silent,
			Help: "A table of model %s is not read for 6 hours, or nothing says how far it is read."},
		{Metric: metric{Name: "OpenDeadLetters", Statistic: "Maximum"}, Runbook: "Records cannot be applied", Threshold: 1, When: standing,
			Help: "Records of model %s could not be applied, and wait."},
		{Metric: metric{Name: "Refused", Statistic: "Sum"}, Runbook: "A table refuses calls", Threshold: 1, When: happened,
			Help: "A table refuses calls, so records of model %s wait."},
		{Metric: metric{Name: "Throttled", Statistic: "Sum"}, Runbook: "A table is throttled", Threshold: 1, When: lasting,
			Help: "DynamoDB refuses writes that records of model %s need."},
		{Metric: metric{Name: "OutOfOrder", Statistic: "Sum"}, Runbook: "Events are out of order", Threshold: 1, When: happened,
			Help: "Events of model %s were refused."},
	} {
		name := a.Metric.Name
		a.ID, a.Help = f.ID+name, fmt.Sprintf(a.Help+" The largest %s by Table in the log of %s names the table.", m.Name, name, f.log())
		a.Metric.Namespace, a.Metric.Function = namespace, f
		out = append(out, a)
	}
	return append(out, seq.Map(m.Tables, func(t *Table) alarm {
		return alarm{ID: f.ID + t.ID + "Dropped", Runbook: "Lambda gave records up", Threshold: 1, When: happened,
			Help:   fmt.Sprintf("Lambda gave up records of table %s (model %s).", t.Def.Name, m.Name),
			Metric: metric{Namespace: lambdaMetrics, Name: "DroppedEventCount", Statistic: "Sum", Function: f, Table: t}}
	})...)
}
