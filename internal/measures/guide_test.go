package measures_test

import (
	"fmt"
	"strings"
	"weir/internal/measures"
)

// guidePage is the part of docs/guide/operations.md that lists the metrics.
// A test compares it with the page, so no metric can be added without its line.
func guidePage() string {
	var b strings.Builder
	b.WriteString("| metric, by its labels | of | question | alarm when |\n|---|---|---|---|\n")
	for _, m := range measures.All() {
		if m.Name == "" {
			continue
		}
		fmt.Fprintf(&b, "| `%s`%s | %s, %s | %s | %s |\n", m.Name, labelsOf(m), m.Type, m.Unit, m.Asks, m.Alarm)
	}
	b.WriteString("\n| in a function's log | unit | is | question | alarm when |\n|---|---|---|---|---|\n")
	for _, m := range measures.All() {
		for _, l := range m.Log {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", l.Name, l.Unit, l.Help, m.Asks, l.Alarm)
		}
	}
	b.WriteString("\n| label | its values |\n|---|---|\n")
	seen := map[measures.Label]bool{}
	for _, m := range measures.All() {
		for _, l := range m.Labels {
			if !seen[l] {
				seen[l] = true
				fmt.Fprintf(&b, "| `%s`%s | %s |\n", l.Name, metricOf(l, m), l.Values)
			}
		}
	}
	all, shards := measures.Series(measures.Sizes{Models: 1, Tables: 3, Shards: 1000, Derivations: 20, Builds: 2})
	fmt.Fprintf(&b, "\nNo label has a value that rows decide. A process that holds 1,000 shards of a model with 3 tables and 20 derivations has at most\n%d series, of which %d are by shard: the other shards are in the totals alone.\n", all, shards)
	return b.String()
}

// labelsOf says by which labels a metric is divided, for the page's table.
func labelsOf(m *measures.Metric) string {
	if len(m.Labels) == 0 {
		return ""
	}
	return " by " + strings.Join(m.Names(), ", ")
}

// metricOf says which metric a label is of, where several labels have the same name.
// It is "" for a label whose name means the same everywhere.
func metricOf(l measures.Label, m *measures.Metric) string {
	for _, other := range measures.All() {
		for _, o := range other.Labels {
			if o.Name == l.Name && o != l {
				return " of `" + m.Name + "`"
			}
		}
	}
	return ""
}
