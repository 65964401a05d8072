package function

import (
	"time"

	"weir/internal/budget"
	"weir/internal/lambda"
	"weir/internal/runner"
)

// meter writes the reports of events to the log, as metrics: a line a minute for each table, since a busy function has
// several events a second, and CloudWatch charges by bytes. Its methods are called by one invocation at a time.
// Its values are lost if Lambda ends the process within the minute; nothing but metrics is.
type meter struct {
	by    dimensions
	model string
	every bool // a line for each event
	now   func() time.Time
	write func([]byte)

	tables map[string]*reported
	wrote  time.Time
}

// reported is the sum of reports of a table since the last line.
type reported struct {
	lambda.Report
	used budget.Use
}

// meterEvery is the longest that something stays out of the log while events come.
const meterEvery = time.Minute

// addReport takes a report. A value for which an alarm waits is written at once.
func (m *meter) addReport(r lambda.Report, used budget.Use) {
	sum := m.tables[r.Table]
	if sum == nil {
		sum = &reported{Report: lambda.Report{Table: r.Table, By: map[string]runner.Counts{}}}
		m.tables[r.Table] = sum
	}
	sum.Records, sum.Applied, sum.Skipped, sum.Dead = sum.Records+r.Records, sum.Applied+r.Applied, sum.Skipped+r.Skipped, sum.Dead+r.Dead
	sum.Again, sum.Old, sum.Age = sum.Again+r.Again, sum.Old+r.Old, max(sum.Age, r.Age)
	sum.OutOfOrder, sum.Refused = sum.OutOfOrder || r.OutOfOrder, append(sum.Refused, r.Refused...)
	sum.used = budget.Use{Units: sum.used.Units + used.Units, Throttled: sum.used.Throttled + used.Throttled, Waited: sum.used.Waited + used.Waited}
	for name, n := range r.By {
		is := sum.By[name]
		is.Add(n)
		sum.By[name] = is
	}
	alarming := r.Dead > 0 || r.Old > 0 || r.OutOfOrder || len(r.Refused) > 0 || used.Throttled > 0
	if m.every || alarming || m.now().Sub(m.wrote) >= meterEvery {
		m.writeLines()
	}
}

// writeLines writes a line for each table that has reported.
func (m *meter) writeLines() {
	m.wrote = m.now()
	for _, sum := range m.tables {
		m.write(metricLines(m.by, m.model, sum.Report, sum.used, m.wrote))
	}
	clear(m.tables)
}
