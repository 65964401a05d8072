// Package metrics exports the state of a running projector to Prometheus:
//
//	weir_records_total{model,group,result}      records, each counted once: applied, skipped or dead
//	weir_batches_total{model,group}             batches of records applied
//	weir_dead_letters{model,kind}                       dead letters and gaps that wait for an operator
//	weir_gaps_total{model}                      gaps that this process found in a stream
//	weir_old_pages_total{model}                 pages read less than four hours before they expired
//	weir_errors_total{model,kind}               failures that are retried: list, lease, read, apply
//	weir_shard_read_age_seconds{model,table,shard}     how far the reader is behind the stream
//	weir_shard_unapplied_seconds{model,table,shard}    age of the oldest record read but not applied
//	weir_stopped{model,table,shard}              1 for a table, or one shard of it, that stands still
//	weir_spool_bytes{model,table,shard}         bytes of a shard's spool on disk
//	weir_write_units_total{table}               write units used on a table, as DynamoDB charges them
//	weir_throttled_writes_total{table}          writes that DynamoDB refused for now, and weir sends again
//	weir_write_wait_seconds_total{table}        for which writes waited for --write-budget, all added up
//	weir_write_budget{table}                    write units a second that this process may use, with --write-budget
//
// The shard metrics cover only the shards whose lease this process holds.
package metrics

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"weir/internal/budget"
	"weir/internal/live"
	"weir/internal/runner"
)

// Path is the URL path under which metrics are served.
const Path = "/metrics"

// Metrics are the metrics of one process, with a registry of their own. All methods may be
// called concurrently.
type Metrics struct {
	registry                            *prometheus.Registry
	records, batches, gaps, old, errors *prometheus.CounterVec

	mu     sync.Mutex
	models []*Model
	writes func() []budget.Use
}

// Model are the metrics of one model. All methods may be called concurrently.
type Model struct {
	all    *Metrics
	run    *runner.Runner
	shards func() []live.Status
	still  func() []live.Stopped

	mu     sync.Mutex
	dead   map[string]int
	counts time.Time // when dead was last counted
}

// New returns Metrics that have counted nothing yet.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"model"}, labels...))
		m.registry.MustRegister(c)
		return c
	}
	m.records = counter("weir_records_total", "Records of streams, each once, by what became of them.", "group", "result")
	m.batches = counter("weir_batches_total", "Batches of records applied.", "group")
	m.gaps = counter("weir_gaps_total", "Gaps found in streams: records gone before they were read.")
	m.old = counter("weir_old_pages_total", "Pages of streams read less than four hours before they would have been forgotten.")
	m.errors = counter("weir_errors_total", "What failed and is tried again, by kind.", "kind")
	m.registry.MustRegister((*gauges)(m))
	return m
}

// Handler serves the metrics. If one of them cannot be collected, the others are served all
// the same.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Of adds the metrics of a model. It creates all its counters but those of errors at zero,
// so that Prometheus sees them before their first event. Call it once for each model.
func (m *Metrics) Of(run *runner.Runner) *Model {
	o := &Model{all: m, run: run}
	name := run.Model.Name
	for _, g := range run.Groups() {
		g = runner.KindOf(g)
		m.batches.WithLabelValues(name, g)
		for _, r := range []string{"applied", "skipped", "dead"} {
			m.records.WithLabelValues(name, g, r)
		}
	}
	m.gaps.WithLabelValues(name)
	m.old.WithLabelValues(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.models = append(m.models, o)
	return o
}

// Applied counts one batch of a group and, by result, the records in it.
func (o *Model) Applied(group string, n runner.Counts) {
	name, group := o.run.Model.Name, runner.KindOf(group)
	o.all.batches.WithLabelValues(name, group).Inc()
	for result, n := range map[string]int{"applied": n.Applied, "skipped": n.Skipped, "dead": n.Dead} {
		o.all.records.WithLabelValues(name, group, result).Add(float64(n))
	}
}

// Noted counts what a stream reader reported: a gap, a page close to expiry, or a failure.
func (o *Model) Noted(n live.Note) {
	name := o.run.Model.Name
	switch n {
	case live.Gap:
		o.all.gaps.WithLabelValues(name).Inc()
	case live.Old:
		o.all.old.WithLabelValues(name).Inc()
	default:
		o.all.errors.WithLabelValues(name, string(n)).Inc()
	}
}

// Shards sets the function that reports the shards which this process holds. Every scrape
// calls it; until it is set, the shard metrics are left out.
func (o *Model) Shards(status func() []live.Status) {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.shards = status
}

// Stopped sets the function that reports what stands still. Every scrape calls it.
func (o *Model) Stopped(still func() []live.Stopped) {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.still = still
}

// Writes sets the function that reports the write units of each table. Every scrape calls it.
func (m *Metrics) Writes(uses func() []budget.Use) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes = uses
}

// gauges collects the metrics that are looked up when Prometheus scrapes.
type gauges Metrics

var (
	deadDesc  = prometheus.NewDesc("weir_dead_letters", "What could not be applied and waits to be looked at, by kind; 10,000 at the most.", []string{"model", "kind"}, nil)
	ageDesc   = prometheus.NewDesc("weir_shard_read_age_seconds", "How far the reader of a shard is behind the stream.", []string{"model", "table", "shard"}, nil)
	waitDesc  = prometheus.NewDesc("weir_shard_unapplied_seconds", "Age of the oldest record that is read and not applied.", []string{"model", "table", "shard"}, nil)
	stillDesc = prometheus.NewDesc("weir_stopped", "1 for a table, or one shard of it, that stands still while everything else goes on.", []string{"model", "table", "shard"}, nil)
	unitsDesc = prometheus.NewDesc("weir_write_units_total", "Write units used on a table.", []string{"table"}, nil)
	againDesc = prometheus.NewDesc("weir_throttled_writes_total", "Writes that DynamoDB refused for now, and that are sent again.", []string{"table"}, nil)
	delayDesc = prometheus.NewDesc("weir_write_wait_seconds_total", "For which writes waited for the write budget, all added up.", []string{"table"}, nil)
	shareDesc = prometheus.NewDesc("weir_write_budget", "Write units a second that this process may use on a table.", []string{"table"}, nil)
	spoolDesc = prometheus.NewDesc("weir_spool_bytes", "Bytes on disk of what was read of a shard.", []string{"model", "table", "shard"}, nil)
)

func (g *gauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{deadDesc, ageDesc, waitDesc, stillDesc, spoolDesc, unitsDesc, againDesc, delayDesc, shareDesc} {
		c <- d
	}
}

// Collect reads what has no counter when it is scraped, so that a gauge is never older than the
// request.
func (g *gauges) Collect(c chan<- prometheus.Metric) {
	g.mu.Lock()
	models, writes := g.models, g.writes
	g.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if writes != nil {
		for _, u := range writes() {
			counter := func(d *prometheus.Desc, v float64) {
				c <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, u.Table)
			}
			counter(unitsDesc, u.Units)
			counter(againDesc, float64(u.Throttled))
			counter(delayDesc, u.Waited.Seconds())
			if u.Share > 0 {
				gauge(shareDesc, u.Share, u.Table)
			}
		}
	}
	for _, o := range models {
		name := o.run.Model.Name
		dead, err := o.waiting()
		if err != nil {
			c <- prometheus.NewInvalidMetric(deadDesc, err)
		}
		for kind, n := range dead {
			gauge(deadDesc, float64(n), name, kind)
		}
		g.mu.Lock()
		status, still := o.shards, o.still
		g.mu.Unlock()
		if still != nil {
			for _, s := range still() {
				gauge(stillDesc, 1, name, s.Table, s.Shard)
			}
		}
		if status == nil {
			continue
		}
		for _, s := range status() {
			gauge(ageDesc, s.ReadAge.Seconds(), name, s.Table, s.Shard)
			gauge(waitDesc, s.Unapplied.Seconds(), name, s.Table, s.Shard)
			gauge(spoolDesc, float64(s.Bytes), name, s.Table, s.Shard)
		}
	}
}

// Limits of what waiting reads from the store, however often Prometheus scrapes.
const (
	deadEvery   = time.Minute
	deadTimeout = 5 * time.Second
	maxKept     = 10_000
)

var errEnough = errors.New("enough")

// waiting counts the dead letters by kind, up to maxKept. It reads them from the store at
// most once in deadEvery and otherwise returns the last count. After an error
// the next scrape reads again.
func (o *Model) waiting() (map[string]int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead != nil && time.Since(o.counts) < deadEvery {
		return o.dead, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadTimeout)
	defer cancel()
	dead, n := map[string]int{string(runner.DeadGap): 0, string(runner.DeadParked): 0}, 0
	err := o.run.Dead(ctx, func(d runner.Dead) error {
		dead[string(d.Kind)]++
		if n++; n == maxKept {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	o.dead, o.counts = dead, time.Now()
	return dead, nil
}
