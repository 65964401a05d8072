// This file computes the price of a model on AWS in a month, and of handlers that derive the same. Its formulas are
// those of docs/guide/cost.md; package build has the same prices.

package deploy

import (
	"math"
	"slices"

	"weir/internal/model"
	"weir/internal/seq"
)

// Prices on demand in us-east-1, in dollars.
const (
	WritePrice = 0.625 // a million write units of DynamoDB
	ReadPrice  = 0.125 // a million read units

	invocation  = 0.20      // a million invocations of Lambda
	memory      = 0.0133334 // a thousand GB-seconds of Lambda on arm64
	logs        = 0.50      // a GB of logs taken in
	metricPrice = 0.30      // a metric of one's own, a month
	alarmPrice  = 0.10      // an alarm on one metric, a month
	poll        = 0.20      // a million calls of GetRecords by a process
	process     = 7.21      // a task of Fargate with a quarter of a processor on arm64 and 0.5 GB, a month
	domain      = 26.28     // a t3.small.search instance, a month
	unit        = 175.20    // an OpenSearch Compute Unit, a month: the least that a pipeline of zero-ETL has
)

// Price returns the price of units, in dollars.
func Price(writes, reads float64) float64 { return (writes*WritePrice + reads*ReadPrice) / 1e6 }

// Load is the writes of an application, and how they are read.
type Load struct {
	Writes    float64 // of source rows, a second
	Shards    int
	Window    float64 // of batching, in seconds
	Targets   float64 // rows of each derivation that change, all alike often
	RowKB     float64 // of a row that weir writes
	Memory    float64 // of a function, in GB
	Processes int     // that run; 0 is functions
	EachEvent bool    // metrics are written for each event
	ByTable   bool    // metrics are kept for each table too
}

// Counts of CloudWatch: metrics that a function writes, and alarms of a model that are not of a table.
const ownMetrics, modelAlarms = 14.0, 16.0

// The work of a process in weir's table while nothing is written: how often a second the one that reads writes the row of its lease,
// and one that stands by reads it; how often each lists the checkpoints of all shards, of which so many are a read unit; and how
// often each asks for jobs.
const beats, listings, checkpointsPerUnit, jobQueries = 5.0 / 30, 1.0 / 12, 30, 1.0

// seconds of a month.
const month = 730 * 3600

// Line is one thing that costs.
type Line struct {
	What    string  `json:"what"`
	Count   float64 `json:"count"` // a month
	Unit    string  `json:"unit"`
	Dollars float64 `json:"dollars"`
}

// Way is one way to derive the model's values.
type Way struct {
	Name    string  `json:"name"`
	Lines   []Line  `json:"lines"`
	Dollars float64 `json:"dollars"`
}

// CostOf compares weir with a handler that adds for each record, with one that is correct by a marker in the same transaction, and,
// where the model searches, with a pipeline that copies rows to the index and derives nothing.
func CostOf(m *model.Model, l Load) []Way {
	events, records := l.events()
	w := shapeOf(m)
	each, tables := events*month, float64(len(m.Tables))
	metrics, alarms := ownMetrics, modelAlarms+tables
	if l.ByTable {
		metrics += ownMetrics * tables
	}
	per := records / max(w.entities, 1)       // of an event for one derivation
	targets := distinct(l.Targets, per)       // that they have together
	rows := per * (sum(w.rows, l) + w.slow*3) // one by one, as every way writes them
	adds, marks := per*sum(w.tallies, l), per*float64(len(w.tallies))
	reads := 1 + 7*per*w.slow // the catalog, and the reads of latest values and statuses
	if l.Shards >= 100 {
		reads += 2 * targets * float64(len(w.tallies)) // ledgers whose positions are removed
	}
	one := per * (float64(len(w.rows)) + w.slow)
	weir := Way{Name: "weir"}
	if l.Processes > 0 {
		weir.Lines = []Line{millions("write units", each*(w.counts(targets, l)+rows+1)+beats*month, WritePrice), millions("read units", each*reads+l.idleReads()*month, ReadPrice),
			millions("calls of GetRecords", l.polls()*month, poll), {"processes", float64(l.Processes), "tasks", float64(l.Processes) * process}}
	} else {
		weir.Lines = []Line{millions("write units", each*(w.counts(targets, l)+rows+2), WritePrice), millions("read units", each*reads+float64(l.Shards)*month/300, ReadPrice),
			millions("invocations", each+month/60, invocation), l.duration(each, 2*targets*float64(len(w.tallies))+one+4), l.logs(events, tables),
			{"metrics", metrics, "metrics", metrics * metricPrice}, {"alarms", alarms, "alarms", alarms * alarmPrice}}
	}
	handler := func(name string, writes float64) Way {
		return Way{Name: name, Lines: []Line{millions("write units", each*writes, WritePrice), millions("invocations", each, invocation), l.duration(each, marks+one),
			{"logs", each * lambdaLine / 1e9, "GB", each * lambdaLine / 1e9 * logs}}}
	}
	out := []Way{weir, handler("plain handler", adds+rows), handler("correct handler", 2*(adds+marks)+rows)}
	if w.searches {
		for i := range out {
			out[i].Lines = append(out[i].Lines, Line{"search domain", 1, "instances", domain})
		}
		out = append(out, Way{Name: "zero-ETL, search alone", Lines: []Line{{"pipeline", 1, "OCU", unit}, {"search domain", 1, "instances", domain}}})
	}
	for i := range out {
		for _, line := range out[i].Lines {
			out[i].Dollars += line.Dollars
		}
	}
	return out
}

// polls is how often a second a process asks shards. Of many it asks those that gave nothing less often: see package reader.
func (l Load) polls() float64 {
	n := float64(l.Shards)
	return n / min(max(1, n/150), 10)
}

// idleReads are the read units a second of all processes while nothing is written.
func (l Load) idleReads() float64 {
	each := jobQueries + listings*math.Ceil(float64(l.Shards)/checkpointsPerUnit)
	return float64(l.Processes)*(each+beats) - beats
}

// millions is a line of something that is charged by the million.
func millions(what string, n, price float64) Line { return Line{what, n, "", n * price / 1e6} }

// events are how many events a second all shards have, and how many records one has. An event begins with its first record and
// ends with the window, or at 1,000 records.
func (l Load) events() (events, records float64) {
	if l.Writes <= 0 {
		return 0, 0
	}
	shards := float64(max(l.Shards, 1))
	events = max(shards/(l.Window+shards/l.Writes), l.Writes/1000)
	return events, l.Writes / events
}

// distinct is how many of n rows, all alike often, are among so many records.
func distinct(n, records float64) float64 {
	if n < 1 {
		return 0
	}
	return n * (1 - math.Pow(1-1/n, records))
}

// Time of an invocation: its own, and of a request to DynamoDB, of which so many run at once.
const (
	ownTime     = 0.010
	requestTime = 0.005
	costAtOnce  = 32
)

// duration is the line of the time that functions run.
func (l Load) duration(invocations, requests float64) Line {
	n := invocations * (ownTime + math.Ceil(requests/costAtOnce)*requestTime) * l.Memory
	return Line{"time of functions", n, "GB-seconds", n * memory / 1000}
}

// Bytes of a line of metrics, and of Lambda's own lines of an event where these are kept.
const (
	metricLine = 900
	lambdaLine = 400
)

// logs is the line of the logs of functions: of metrics a line a minute, at most for each event, and the lines of the tick.
func (l Load) logs(events, tables float64) Line {
	lines := events
	if !l.EachEvent {
		lines = min(events, float64(l.Shards)/60)
	}
	gb := (lines*metricLine + tables*400/300) * month / 1e9
	return Line{"logs", gb, "GB", gb * logs}
}

// shape is the part of a model that costs: rows that are written for each target of a batch, and for each record.
type shape struct {
	entities float64 // whose rows are written by applications, and count
	tallies  []target
	rows     []target
	slow     float64 // latest values, statuses and followed values
	searches bool
}

// counts are the write units of an event whose records have so many targets of each row that shows counts: one for the
// ledger, and those of the row.
func (w *shape) counts(targets float64, l Load) float64 {
	return targets * (float64(len(w.tallies)) + sum(w.tallies, l))
}

// sum is the units of one write of each.
func sum(all []target, l Load) (n float64) {
	for _, t := range all {
		n += t.row(l)
	}
	return n
}

// target is a row that is written, with the indexes in which it is.
type target struct{ indexes float64 }

// row is the units of one write.
func (t target) row(l Load) float64 { return math.Ceil(max(l.RowKB, 0.001)) * (1 + t.indexes) }

// shapeOf reads a model. Counts of one row share one write.
func shapeOf(m *model.Model) (out shape) {
	into, from := map[string]bool{}, map[string]bool{}
	for _, d := range m.Derivations() {
		for _, f := range d.From {
			if e := m.Entity(f); e != nil && !e.Derived {
				from[f] = true
			}
		}
		t := target{indexesOf(m.Entity(d.Into))}
		switch d.Kind {
		case "search":
			out.searches = true
		case "copy", "history", "feed":
			out.rows = append(out.rows, t)
		case "follow", "status", "latest", "earliest", "max", "min":
			out.slow++
		default:
			if !into[d.Into] {
				into[d.Into] = true
				out.tallies = append(out.tallies, t)
			}
		}
	}
	out.entities = float64(len(from))
	return out
}

// indexesOf is in how many global indexes the rows of an entity are, whole.
func indexesOf(e *model.Entity) (n float64) {
	if e == nil {
		return 0
	}
	has := seq.Map(e.Attributes, func(a *model.Attribute) string { return a.Name })
	has = append(has, seq.Map(e.Keys, func(k *model.KeyTemplate) string { return k.Attr.Name })...)
	for _, ix := range e.Table.Indexes {
		if !ix.Local && slices.Contains(has, ix.Key.Partition.Name) && (ix.Key.Sort.Name == "" || slices.Contains(has, ix.Key.Sort.Name)) {
			n++
		}
	}
	return n
}
