package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"weir/scripts/planted/mistakes"
)

const (
	nothing = "**nothing**"
	untried = "not tried"
)

// readTable returns the table's results for the mistakes that exist, by name.
func readTable(all []mistakes.Mistake) (map[string]finding, error) {
	b, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	out := map[string]finding{}
	for line := range strings.Lines(string(b)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		known := len(cells) == 5 && slices.ContainsFunc(all, func(m mistakes.Mistake) bool { return "`"+m.Name+"`" == cells[0] })
		if !known || cells[3] == untried {
			continue
		}
		f := finding{tried: true}
		if by, seed, ok := strings.Cut(cells[3], ", seed "); ok {
			if f.seed, err = strconv.Atoi(seed); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", table, line, err)
			}
			f.model, f.class = by, cells[4]
		} else if cells[3] != nothing {
			f.model, f.seed, f.class = strings.Trim(cells[3], "`"), byTest, cells[4]
		}
		out[strings.Trim(cells[0], "`")] = f
	}
	return out, nil
}

// sorted holds the results grouped by outcome: found, missed, and left (not tried).
type sorted struct {
	runs         []int // how many seeds it took, of those that the simulator noticed, in order
	tests        int   // how many a test noticed
	missed, left []string
}

func sortFindings(all []mistakes.Mistake, found []finding) (s sorted) {
	for i, f := range found {
		switch {
		case !f.tried:
			s.left = append(s.left, all[i].Name)
		case f.model == "":
			s.missed = append(s.missed, all[i].Name)
		case f.seed == byTest:
			s.tests++
		default:
			s.runs = append(s.runs, f.seed+1)
		}
	}
	slices.Sort(s.runs)
	return s
}

func (s *sorted) median() int {
	if len(s.runs) == 0 {
		return 0
	}
	return s.runs[len(s.runs)/2]
}

// saveTable writes the table.
func saveTable(all []mistakes.Mistake, found []finding, seeds int) error {
	var rows strings.Builder
	for i, m := range all {
		f := found[i]
		by := fmt.Sprintf("%s, seed %d", f.model, f.seed)
		switch {
		case !f.tried:
			by = untried
		case f.model == "":
			by = nothing
		case f.seed == byTest:
			by = "`" + f.model + "`"
		}
		fmt.Fprintf(&rows, "| `%s` | %s | `%s` | %s | %s |\n", m.Name, m.Sentence, m.File, by, f.class)
	}
	s := sortFindings(all, found)
	text := fmt.Sprintf(`# Planted bugs

Mistakes that a developer would make, each planted by itself, and the first seed of the simulator that notices it. Seeds are tried
from 0 on, each on all models in which the mistake can be seen; mistakes of builds, and of replays in bulk, are tried in
runs with these. A mistake in code that the simulator does not run, or seldom reaches, is noticed by a test, which the table names. *As* is how the run fails.

§make planted§ makes this page. A seed is that of the simulator when its row was made: what a seed does changes with the simulator, and
§go run ./scripts/planted NAME§ looks for the present one. [testdata/planted.txt](../testdata/planted.txt) has each mistake as a piece of
the code as it is and as the mistake has it. A test compares these with the code, and
[the page about the simulator](simulator.md#how-it-is-made) says how they are planted.

Of %d mistakes the simulator notices %d, half of these within %d seeds, and tests %d; %d are not noticed within %d, %d are not tried.

| name | mistake | where | noticed by | as |
|---|---|---|---|---|
%s`, len(all), len(s.runs), s.median(), s.tests, len(s.missed), seeds, len(s.left), rows.String())
	return os.WriteFile(table, []byte(strings.ReplaceAll(text, "§", "`")), 0o644)
}

// checkFindings returns an error unless every mistake was found, half of them within mostMedian seeds.
func checkFindings(all []mistakes.Mistake, found []finding, seeds int) error {
	s := sortFindings(all, found)
	if len(s.missed) > 0 {
		return fmt.Errorf("not noticed within %d seeds of each model: %s", seeds, strings.Join(s.missed, " "))
	}
	if len(s.left) > 0 {
		return fmt.Errorf("%d of %d are left to be tried: -left goes on with them", len(s.left), len(all))
	}
	if s.median() > mostMedian {
		return fmt.Errorf("half of the mistakes take more than %d seeds", mostMedian)
	}
	return nil
}

const mostMedian = 20
