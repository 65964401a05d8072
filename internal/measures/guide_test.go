package measures_test

import (
	"fmt"
	"strings"
	"weir/internal/measures"
)

// guidePage is the part of docs/guide/metrics.md that lists the metrics: those in a function's log first, each with its
// alarm. A test compares it with the page, so no metric can be added without its line.
func guidePage() string {
	var b, processes strings.Builder
	var quiet []string
	b.WriteString("| in a function's log | unit | is | alarm when |\n|---|---|---|---|\n")
	for _, m := range measures.All() {
		for _, l := range m.Log {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", l.Name, l.Unit, l.Help, l.Alarm)
		}
		alarm, _, _ := strings.Cut(m.Alarm, ". ") // the page explains the rest below its tables
		if named := fmt.Sprintf("`%s`%s", m.Name, labelsOf(m)); alarm != "" {
			fmt.Fprintf(&processes, "| %s | %s |\n", named, alarm)
		} else if m.Name != "" {
			quiet = append(quiet, named)
		}
	}
	fmt.Fprintf(&b, "\n| metric of a process | alarm when |\n|---|---|\n%s", processes.String())
	fmt.Fprintf(&b, "\nWithout an alarm: %s.\n", strings.Join(quiet, "; "))
	b.WriteString("\n| label | its values |\n|---|---|\n")
	seen := map[measures.Label]bool{}
	for _, m := range measures.All() {
		for _, l := range m.Labels {
			if !seen[l] && l.Most > 1 { // the others have the names of what they are
				seen[l] = true
				fmt.Fprintf(&b, "| `%s`%s | %s |\n", l.Name, metricOf(l, m), l.Values)
			}
		}
	}
	return strings.ReplaceAll(b.String(), "](#", "](operations.md#")
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
