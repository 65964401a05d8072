package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// line is one comparison. A line without a goal is for information only.
type line struct {
	what         string
	figure, peer string
	ratio        string
	goal         string
	met          bool
}

// table is the output of the run.
type table struct{ lines []line }

func (t *table) add(l line) { t.lines = append(t.lines, l) }

// ratioText writes a ratio as a percentage or as a multiple.
func ratioText(r float64, unit string) string {
	if unit == "%" {
		return fmt.Sprintf("%.0f %%", 100*r)
	}
	return fmt.Sprintf("%.2f ×", r)
}

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "what\tweir\tpeer\tratio\tgoal\t")
	for _, l := range t.lines {
		verdict := ""
		if l.goal != "" && l.met {
			verdict = "met"
		} else if l.goal != "" {
			verdict = "MISSED"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", l.what, l.figure, l.peer, l.ratio, l.goal, verdict)
	}
	return tw.Flush()
}
