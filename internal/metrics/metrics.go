// Package metrics exports the state of a running projector to Prometheus. The list of metrics, with its labels
// and help, is in package measures; here is where the values come from. The shard metrics cover only the shards
// whose lease this process holds, and of these measures.MaxShards of each model.
package metrics

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"weir/internal/budget"
	"weir/internal/deadletter"
	"weir/internal/measures"
	"weir/internal/projections/document"
	"weir/internal/reader"
	"weir/internal/runner"
	"weir/internal/status"
)

// Path is the URL path under which metrics are served.
const Path = "/metrics"

// Metrics are the metrics of one process, with a registry of their own. Its functions are set, and models added, before
// the metrics are served.
type Metrics struct {
	// Writes reports the units of each table, and why requests were sent again. Every scrape calls it; nil for nothing.
	Writes func() ([]budget.Use, map[budget.Cause]int64)
	// Builds reports the builds of a model. Every scrape calls it; nil for nothing.
	Builds func(ctx context.Context, model string) ([]status.Build, error)

	registry                                        *prometheus.Registry
	records, derivations, gaps, old, errors, leases *prometheus.CounterVec
	batches, delays                                 *prometheus.HistogramVec

	models []*Model
}

// Model are the metrics of one model. All methods may be called concurrently. The functions are set before the metrics are
// served.
type Model struct {
	// Shards reports the shards which this process holds. Every scrape calls it; nil leaves the shard metrics out.
	Shards func() []reader.Status
	// Stopped reports the parts that stand still. Every scrape calls it; nil for nothing.
	Stopped func() []reader.Stopped

	all   *Metrics
	run   *runner.Runner
	names []string // of the derivations

	mu      sync.Mutex
	dead    map[string]int
	pending int
	counts  time.Time // when dead and pending were last counted
}

// New returns Metrics that have counted nothing yet.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.records = m.counter(measures.Records)
	m.derivations = m.counter(measures.ByDerivation)
	m.batches = m.histogram(measures.Batches)
	m.delays = m.histogram(measures.Delay)
	m.leases = m.counter(measures.LeaseChanges)
	m.gaps = m.counter(measures.Gaps)
	m.old = m.counter(measures.OldPages)
	m.errors = m.counter(measures.Errors)
	m.registry.MustRegister((*gauges)(m))
	return m
}

// counter registers a counter of the list.
func (m *Metrics) counter(of measures.Metric) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: of.Name, Help: of.Help}, of.Names())
	m.registry.MustRegister(c)
	return c
}

// histogram registers a histogram of the list.
func (m *Metrics) histogram(of measures.Metric) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: of.Name, Help: of.Help, Buckets: of.Buckets}, of.Names())
	m.registry.MustRegister(h)
	return h
}

// Handler serves the metrics. If one of them cannot be collected, the others are served all
// the same. A client that asks for OpenMetrics gets that, with exemplars: the traces of batches.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}

// Of adds the metrics of a model. It creates all its counters but those of errors at zero,
// so that Prometheus sees them before their first event. Call it once for each model.
func (m *Metrics) Of(run *runner.Runner) *Model {
	o := &Model{all: m, run: run}
	name := run.Model.Name
	m.batches.WithLabelValues(name)
	m.delays.WithLabelValues(name)
	for _, r := range []string{"applied", "skipped", "dead"} {
		m.records.WithLabelValues(name, r)
	}
	for _, d := range run.Model.Derivations() {
		for _, r := range []string{"applied", "skipped", "dead"} {
			m.derivations.WithLabelValues(name, d.Name, r)
		}
		o.names = append(o.names, d.Name)
	}
	for _, n := range []reader.Note{reader.Taken, reader.Lost, reader.Released} {
		m.leases.WithLabelValues(name, string(n))
	}
	m.gaps.WithLabelValues(name)
	m.old.WithLabelValues(name)
	m.models = append(m.models, o)
	return o
}

// Applied counts the applied records of a shard.
func (o *Model) Applied(a reader.Applied) {
	name := o.run.Model.Name
	count := func(to *prometheus.CounterVec, n runner.Counts, labels ...string) {
		for result, n := range map[string]int{"applied": n.Applied, "skipped": n.Skipped, "dead": n.Dead} {
			to.WithLabelValues(append(labels, result)...).Add(float64(n))
		}
	}
	count(o.all.records, a.Counts, name)
	for _, d := range o.names {
		is := a.By[d]
		is.Skipped = a.Records - is.Applied - is.Dead
		count(o.all.derivations, is, name, d)
	}
	observeTraced(o.all.batches.WithLabelValues(name), float64(a.Records), a.Trace)
	if !a.Oldest.IsZero() {
		observeTraced(o.all.delays.WithLabelValues(name), max(0, o.run.Now().Sub(a.Oldest).Seconds()), a.Trace)
	}
}

// observeTraced adds a value to a histogram, with the trace of the batch as its exemplar if there is one.
func observeTraced(to prometheus.Observer, v float64, trace string) {
	if with, ok := to.(prometheus.ExemplarObserver); ok && trace != "" {
		with.ObserveWithExemplar(v, prometheus.Labels{measures.TraceID: trace})
		return
	}
	to.Observe(v)
}

// Noted counts the reports of a stream reader: a gap, a page close to expiry, the outcome of a lease, or a failure.
func (o *Model) Noted(n reader.Note) {
	name := o.run.Model.Name
	switch n {
	case reader.Gap:
		o.all.gaps.WithLabelValues(name).Inc()
	case reader.Old:
		o.all.old.WithLabelValues(name).Inc()
	case reader.Taken, reader.Lost, reader.Released:
		o.all.leases.WithLabelValues(name, string(n)).Inc()
	default:
		o.all.errors.WithLabelValues(name, string(n)).Inc()
	}
}

// gauges collects the metrics that are looked up when Prometheus scrapes.
type gauges Metrics

// looked are the metrics that are looked up when Prometheus scrapes, by name.
var looked = makeDescriptions(
	&measures.DeadLetters, &measures.Shards, &measures.Unapplied,
	&measures.ShardUnapplied, &measures.Stopped,
	&measures.Pending, &measures.Retries, &measures.BuildRows, &measures.BuildRowsOf, &measures.BuildLeft,
	&measures.WriteUnits, &measures.ReadUnits, &measures.Throttled, &measures.WriteWait, &measures.WriteBudget,
)

// makeDescriptions makes the descriptions that Prometheus wants from entries of the list, so that names,
// labels and help texts stand there alone.
func makeDescriptions(all ...*measures.Metric) map[string]*prometheus.Desc {
	out := map[string]*prometheus.Desc{}
	for _, m := range all {
		out[m.Name] = prometheus.NewDesc(m.Name, m.Help, m.Names(), nil)
	}
	return out
}

// Describe names everything that Collect may collect.
func (g *gauges) Describe(c chan<- *prometheus.Desc) {
	for _, d := range looked {
		c <- d
	}
}

// one is a value of a metric that is looked up.
func one(m *measures.Metric, v float64, labels ...string) prometheus.Metric {
	as := prometheus.GaugeValue
	if m.Type == measures.Counter {
		as = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(looked[m.Name], as, v, labels...)
}

// Collect reads values that have no counter when it is scraped, so that a gauge is never older than the
// request.
func (g *gauges) Collect(c chan<- prometheus.Metric) {
	if g.Writes != nil {
		uses, again := g.Writes()
		for why, n := range again {
			c <- one(&measures.Retries, float64(n), string(why))
		}
		for _, u := range uses {
			for purpose, units := range u.By {
				c <- one(&measures.WriteUnits, units.Write, u.Table, string(purpose))
				c <- one(&measures.ReadUnits, units.Read, u.Table, string(purpose))
			}
			c <- one(&measures.Throttled, float64(u.Throttled), u.Table)
			c <- one(&measures.WriteWait, u.Waited.Seconds(), u.Table)
			if u.Share > 0 {
				c <- one(&measures.WriteBudget, u.Share, u.Table)
			}
		}
	}
	for _, o := range g.models {
		o.collect(c)
		if g.Builds != nil {
			o.collectBuilds(g.Builds, c)
		}
	}
}

// collectBuilds collects how far the builds of a model are.
func (o *Model) collectBuilds(builds func(context.Context, string) ([]status.Build, error), c chan<- prometheus.Metric) {
	name := o.run.Model.Name
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	all, err := builds(ctx, name)
	if err != nil {
		c <- prometheus.NewInvalidMetric(looked[measures.BuildRows.Name], err)
	}
	for i := range all {
		b := &all[i]
		c <- one(&measures.BuildRows, float64(b.Rows), name, b.Entity, string(b.State))
		c <- one(&measures.BuildRowsOf, float64(b.Of), name, b.Entity, string(b.State))
		c <- one(&measures.BuildLeft, b.Left, name, b.Entity, string(b.State))
	}
}

// collect collects the values of a model that have to be read.
func (o *Model) collect(c chan<- prometheus.Metric) {
	name := o.run.Model.Name
	dead, pending, err := o.countWaiting()
	if err != nil {
		c <- prometheus.NewInvalidMetric(looked[measures.DeadLetters.Name], err)
	}
	for kind, n := range dead {
		c <- one(&measures.DeadLetters, float64(n), name, kind)
	}
	if err == nil && len(o.run.Model.Searches) > 0 {
		c <- one(&measures.Pending, float64(pending), name)
	}
	if o.Stopped != nil {
		all := o.Stopped()
		for _, s := range all[:min(len(all), measures.MaxShards)] {
			c <- one(&measures.Stopped, 1, name, s.Table, s.Shard)
		}
	}
	if o.Shards != nil {
		o.collectLag(o.Shards(), c)
	}
}

// collectLag collects how far shards are behind: by table, and of the worst ones by shard.
// It sorts all in place.
func (o *Model) collectLag(all []reader.Status, c chan<- prometheus.Metric) {
	name := o.run.Model.Name
	tables := map[string]*reader.Status{}
	held := map[string]int{}
	for _, t := range o.run.Model.Tables {
		tables[t.Name] = &reader.Status{}
	}
	for _, s := range all {
		t := tables[s.Table]
		if t == nil {
			continue
		}
		held[s.Table]++
		t.Unapplied = max(t.Unapplied, s.Unapplied)
	}
	for table, t := range tables {
		c <- one(&measures.Shards, float64(held[table]), name, table)
		c <- one(&measures.Unapplied, t.Unapplied.Seconds(), name, table)
	}
	slices.SortStableFunc(all, func(a, b reader.Status) int {
		return cmp.Compare(b.Unapplied, a.Unapplied)
	})
	for _, s := range all[:min(len(all), measures.MaxShards)] {
		c <- one(&measures.ShardUnapplied, s.Unapplied.Seconds(), name, s.Table, s.Shard)
	}
}

// Limits of a scrape's reads from the store, however often Prometheus scrapes.
const (
	deadEvery   = time.Minute
	lookTimeout = 5 * time.Second
	maxKept     = 10_000
	maxPending  = 1000
)

var errEnough = errors.New("enough")

// countWaiting counts the dead letters by kind, up to maxKept, and the documents that are pending. It reads them from the store at
// most once in deadEvery and otherwise returns the last count. After an error
// the next scrape reads again.
func (o *Model) countWaiting() (dead map[string]int, pending int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead != nil && time.Since(o.counts) < deadEvery {
		return o.dead, o.pending, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	dead = map[string]int{string(deadletter.Gap): 0, string(deadletter.Parked): 0}
	n := 0
	err = o.run.EachDeadLetter(ctx, func(d deadletter.Letter) error {
		dead[string(d.Kind)]++
		if n++; n == maxKept {
			return errEnough
		}
		return nil
	})
	if err == nil || errors.Is(err, errEnough) {
		pending, err = document.CountPending(ctx, o.run, maxPending)
	}
	if err != nil {
		return nil, 0, err
	}
	o.dead, o.pending, o.counts = dead, pending, time.Now()
	return dead, pending, nil
}
