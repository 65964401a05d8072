// Package measures is the one list of weir's metrics. Everything that shows a metric is made from
// it: the metrics that a process serves for Prometheus (package metrics), those that a function writes in its log (package function),
// the tables of docs/guide/metrics.md, and the dashboards and alarms of package deploy.
//
// A metric's name, type, unit and labels are a contract: dashboards and alarms of others are built
// on them. A rename needs a line in CHANGELOG.md. A label may only have values that are bounded
// by the model or by the list (Label), never a key or a text from a row; series_test.go says how
// many series that makes.
package measures

import (
	"slices"
	"strings"

	"weir/internal/seq"
)

// Type is how the values of a metric are read.
type Type string

// The types. A counter only grows until its process ends; a gauge is the value at that moment; a histogram counts
// values by size.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric is one thing that is measured.
type Metric struct {
	// Name is that for Prometheus. It is empty if only functions measure it.
	Name   string
	Type   Type
	Unit   string // the name of one unit, in the plural
	Labels []Label
	// Help describes the metric, for Prometheus; Asks is the question that it answers.
	Help, Asks string
	// Alarm says when an operator has to look, in Markdown of the guide. Empty: never for its own sake.
	Alarm string
	// Runbook is the section of the guide that the alarm names, if every such metric has one.
	Runbook string
	// Sums says that a gauge is added up over processes; else the largest one counts.
	Sums bool
	// Ageing says that it is the age of records of a stream, with alarms at Warnings.
	Ageing bool
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
	// Log are the metrics in a function's log that say the same.
	Log []Logged
}

// Logged is a metric in a function's log, in CloudWatch's embedded metric format.
type Logged struct {
	Name string
	Unit string // one of CloudWatch's
	// Statistic is how values of several invocations become one.
	Statistic string
	Help      string
	Alarm     string // as of a Metric
}

// Label is a label of a metric, the meaning of its values, and how many there are at the most; 0 if the model decides that.
type Label struct {
	Name, Values string
	Most         int
}

// MaxShards is how many shards of a model have series of their own: those that are furthest behind. Shards come and go every
// few hours, so a series for each one of a large table would fill any Prometheus.
const MaxShards = 100

// The labels. No label has a value that rows decide.
var (
	byModel      = Label{"model", "the models of the process", 0}
	byResult     = Label{"result", "`applied`, `skipped` and `dead`", 3}
	byKind       = Label{"kind", "the [kinds of dead letters](#dead-letters)", 12}
	byError      = Label{"kind", "`list`, `lease`, `read` and `apply`", 4}
	byChange     = Label{"change", "`taken`, `lost` to another process and `released`", 3}
	byCause      = Label{"cause", "`throttled`, `conflict`, `server`, `connection` and `late`", 5}
	byPurpose    = Label{"purpose", "`rows`, `lease`, `build` and `other`", 4}
	byDerivation = Label{"derivation", "the derivations of the models", 0}
	byEntity     = Label{"entity", "the entities with a build that is not settled", 0}
	byState      = Label{"state", "the state of the build", 1}
	byTable      = Label{"table", "the tables of the models, and weir's own", 0}
	byShard      = Label{"shard", "the shards that the process reads; of a model, the 100 that are furthest behind", MaxShards}
)

// Namespace is that of the metrics in a function's log.
const Namespace = "weir"

// Retention is how long a stream keeps a record, in seconds.
const Retention = 24 * 60 * 60

// Warnings are the parts of Retention, in percent, at which alarms say how old the records are that wait.
func Warnings() []int { return []int{25, 50, 80} }

// The list, in the order in which the guide and the dashboards show it.
var (
	Records = Metric{
		Name: "weir_records_total", Type: Counter, Unit: "records", Labels: []Label{byModel, byResult},
		Help: "Records of streams, each once, by what became of them.",
		Asks: "How much is derived, and does all of it succeed?",
		Log: []Logged{
			{"Applied", "Count", "Sum", "records that were applied", ""},
			{"Skipped", "Count", "Sum", "records that change nothing derived", ""},
			{"DeadLetters", "Count", "Sum", "records that could not be applied", ""},
		},
	}
	ByDerivation = Metric{
		Name: "weir_derivation_records_total", Type: Counter, Unit: "records", Labels: []Label{byModel, byDerivation, byResult},
		Help: "Records by what became of them for a derivation: skipped are those that ask nothing of it.",
		Asks: "Which derivation has the work, and which one fails?",
	}
	Batches = Metric{
		Name: "weir_batch_records", Type: Histogram, Unit: "records", Labels: []Label{byModel},
		Help:    "Records of a shard that were applied at a time.",
		Asks:    "Are batches large, so that writes are few?",
		Buckets: []float64{1, 10, 100, 1000, 10_000},
		Log:     []Logged{{"Records", "Count", "Average", "records of an event", ""}},
	}
	Delay = Metric{
		Name: "weir_apply_delay_seconds", Type: Histogram, Unit: "seconds", Labels: []Label{byModel},
		Help:    "How old the oldest record of a batch was when it was applied.",
		Asks:    "How old are derived values?",
		Buckets: []float64{1, 2, 5, 15, 60, 300, 1800, 7200, 21_600, 43_200, 69_120},
	}
	Pending = Metric{
		Name: "weir_documents_pending", Type: Gauge, Unit: "documents", Labels: []Label{byModel},
		Help:  "Documents that the search indexes did not take in time and that are written later; 1,000 at the most.",
		Asks:  "Do searches lack something?",
		Alarm: "above 0 for long: the cluster is slow or down",
	}
	DeadLetters = Metric{
		Name: "weir_dead_letters", Type: Gauge, Unit: "dead letters", Labels: []Label{byModel, byKind},
		Help:    "What could not be applied and waits to be looked at, by kind; 10,000 at the most.",
		Asks:    "Does something wait for a person?",
		Alarm:   "above 0: see [dead letters](#dead-letters), and of the kind `gap` [after a gap](#after-a-gap)",
		Log:     []Logged{{"OpenDeadLetters", "Count", "Maximum", "what waits to be looked at, 1,000 at the most; every five minutes", "above 0: see [dead letters](#dead-letters)"}},
		Runbook: "Records cannot be applied",
	}
	Gaps = Metric{
		Name: "weir_gaps_total", Type: Counter, Unit: "gaps", Labels: []Label{byModel},
		Help:    "Gaps found in streams: records gone before they were read.",
		Asks:    "Were records lost?",
		Alarm:   "it grows: records expired before they were read; see [after a gap](#after-a-gap)",
		Runbook: "After a gap",
	}
	OldPages = Metric{
		Name: "weir_old_pages_total", Type: Counter, Unit: "pages", Labels: []Label{byModel},
		Help:    "Pages of streams read less than four hours before they would have been forgotten.",
		Asks:    "Are records about to be lost?",
		Alarm:   "it grows: weir reads records that are more than 20 hours old, and the stream keeps 24",
		Log:     []Logged{{"Old", "Count", "Sum", "records more than 20 hours old", "above 0"}},
		Runbook: "Behind the stream",
	}
	Shards = Metric{
		Name: "weir_shards", Type: Gauge, Unit: "shards", Labels: []Label{byModel, byTable},
		Help: "Shards that this process reads.",
		Asks: "Which process reads?",
		Sums: true,
	}
	LeaseChanges = Metric{
		Name: "weir_lease_changes_total", Type: Counter, Unit: "leases", Labels: []Label{byModel, byChange},
		Help:  "Leases of shards, by what became of them.",
		Asks:  "Do processes take over from each other?",
		Alarm: "`lost` grows: processes are paused for longer than `--lease`, or the own table is slow",
	}
	Unapplied = Metric{
		Name: "weir_unapplied_seconds", Type: Gauge, Unit: "seconds", Labels: []Label{byModel, byTable},
		Help:  "Age of the oldest record that is not applied.",
		Asks:  "How old are derived values at the most?",
		Alarm: "at 25, 50 and 80 % of 24 hours: see [behind the stream](#behind-the-stream)",
		Log: []Logged{
			{"Age", "Milliseconds", "Maximum", "age of the oldest record of an event", ""},
			{"Lag", "Milliseconds", "Maximum", "age of the oldest record that is not applied; every five minutes", "at 6 hours, or missing for 15 minutes: see [nothing is read](#nothing-is-read)"},
		},
		Ageing:  true,
		Runbook: "Behind the stream",
	}
	ShardUnapplied = Metric{
		Name: "weir_shard_unapplied_seconds", Type: Gauge, Unit: "seconds", Labels: []Label{byModel, byTable, byShard},
		Help: "Age of the oldest record of a shard that is not applied.",
		Asks: "Which shard is applied too slowly?",
	}
	Stopped = Metric{
		Name: "weir_stopped", Type: Gauge, Unit: "tables or shards", Labels: []Label{byModel, byTable, byShard},
		Help: "1 for a table, or one shard of it, that stands still.",
		Asks: "Does one part stand still?",
		Alarm: "above 0: one table, one shard or one job of a long list is stopped. The warning `stands still` in the log names it and its cause: " +
			"a table without a stream, a table that [refuses calls](#a-table-refuses-calls), for which all else of the model waits, a shard of which no record can be read for the time of a lease, a damaged lease or checkpoint, a job that fails, or a job that a newer version left. When the cause is gone, it continues by itself",
		Log:     []Logged{{"Refused", "Count", "Sum", "events that come again because a table refused a call", "above 0: see [a table refuses calls](#a-table-refuses-calls)"}},
		Runbook: "Behind the stream",
	}
	Errors = Metric{
		Name: "weir_errors_total", Type: Counter, Unit: "failures", Labels: []Label{byModel, byError},
		Help:  "What failed and is tried again, by kind.",
		Asks:  "Which step fails again and again?",
		Alarm: "it grows: that step fails and is tried again",
	}
	Retries = Metric{
		Name: "weir_retries_total", Type: Counter, Unit: "requests", Labels: []Label{byCause},
		Help: "Requests to DynamoDB that were sent again, by cause.",
		Asks: "Why is DynamoDB asked again?",
	}
	BuildRows = Metric{
		Name: "weir_build_rows", Type: Gauge, Unit: "rows", Labels: []Label{byModel, byEntity, byState},
		Help: "Rows that a build has read in its state.",
		Asks: "Does the build go on?",
	}
	BuildRowsOf = Metric{
		Name: "weir_build_expected_rows", Type: Gauge, Unit: "rows", Labels: []Label{byModel, byEntity, byState},
		Help: "Rows that a build is to read in its state, about.",
		Asks: "How much is left to build?",
	}
	BuildLeft = Metric{
		Name: "weir_build_left_seconds", Type: Gauge, Unit: "seconds", Labels: []Label{byModel, byEntity, byState},
		Help: "Time that the state of a build lasts yet, about.",
		Asks: "When is the build over?",
	}
	WriteUnits = Metric{
		Name: "weir_write_units_total", Type: Counter, Unit: "write units", Labels: []Label{byTable, byPurpose},
		Help: "Write units used on a table, by what for.",
		Asks: "What does deriving cost?",
		Log:  []Logged{{"WriteUnits", "Count", "Sum", "write units, as DynamoDB charges them", ""}},
	}
	ReadUnits = Metric{
		Name: "weir_read_units_total", Type: Counter, Unit: "read units", Labels: []Label{byTable, byPurpose},
		Help: "Read units used on a table, by what for. Reads of streams are not among them.",
		Asks: "What does deriving read?",
	}
	Throttled = Metric{
		Name: "weir_throttled_writes_total", Type: Counter, Unit: "writes", Labels: []Label{byTable},
		Help:  "Writes that DynamoDB refused for now, and that are sent again.",
		Asks:  "Has a table or a partition too little?",
		Alarm: "it grows: the table or a partition has too little",
		Log:   []Logged{{"Throttled", "Count", "Sum", "writes that DynamoDB refused for now", "above 0 for long"}},
	}
	WriteWait = Metric{
		Name: "weir_write_wait_seconds_total", Type: Counter, Unit: "seconds", Labels: []Label{byTable},
		Help:  "For which writes waited for the write budget, all added up.",
		Asks:  "Is `--write-budget` too small?",
		Alarm: "it grows by more than a second each second for long, and `weir_unapplied_seconds` grows: `--write-budget` is below what is needed",
		Log:   []Logged{{"BudgetWait", "Milliseconds", "Sum", "for which writes waited for the write budget, added up", "above 0 for long, and the age grows"}},
	}
	WriteBudget = Metric{
		Name: "weir_write_budget", Type: Gauge, Unit: "write units a second", Labels: []Label{byTable},
		Help: "Write units a second that this process may use on a table.",
		Asks: "What is the share of this process, with `--write-budget`?",
	}
	Again = Metric{
		Type: Counter, Unit: "records",
		Asks: "How much is delivered again?",
		Log:  []Logged{{"Again", "Count", "Sum", "records that come again", ""}},
	}
	OutOfOrder = Metric{
		Type: Counter, Unit: "events",
		Asks: "Is the mapping what the function relies on?",
		Log:  []Logged{{"OutOfOrder", "Count", "Sum", "events that were refused", "above 0: see [out of order](#out-of-order)"}},
	}
)

// Ratio is the quotient of two counters.
type Ratio struct {
	Title, Asks string
	Of, Per     *Metric
	Where       string // which of Per, as Prometheus chooses series
}

// Ratios are those that the dashboards show besides All.
func Ratios() []Ratio {
	return []Ratio{{
		Title: "Write units for each applied record", Asks: "How much is written for each record (write amplification)?",
		Of: &WriteUnits, Per: &Records, Where: `result="applied"`,
	}}
}

// All returns the list.
// They are the package's own variables, so a caller must not change them.
func All() []*Metric {
	return []*Metric{
		&Records, &ByDerivation, &Batches, &Delay, &Pending, &DeadLetters, &Gaps, &OldPages,
		&Shards, &LeaseChanges, &Unapplied, &ShardUnapplied, &Stopped,
		&Errors, &Retries, &BuildRows, &BuildRowsOf, &BuildLeft,
		&WriteUnits, &ReadUnits, &Throttled, &WriteWait, &WriteBudget,
		&Again, &OutOfOrder,
	}
}

// Names are the names of the labels.
func (m *Metric) Names() []string {
	return seq.Map(m.Labels, func(l Label) string { return l.Name })
}

// Has reports whether the metric has a label.
func (m *Metric) Has(label string) bool { return slices.Contains(m.Names(), label) }

// Title is the name of the metric as a heading: the help without its explanation.
func (m *Metric) Title() string {
	title, _, _ := strings.Cut(strings.TrimSuffix(m.Help, "."), ": ")
	return title
}

// Title is the name of the ratio as a heading.
func (l *Logged) Title() string {
	title, _, _ := strings.Cut(l.Help, ", ")
	if l.Unit != "Count" {
		title += " (" + strings.ToLower(l.Unit) + ")"
	}
	return strings.ToUpper(title[:1]) + title[1:]
}
