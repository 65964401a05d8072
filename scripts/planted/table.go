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

// readTable is what the table says of mistakes that there are, by name.
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
		}
		out[strings.Trim(cells[0], "`")] = f
	}
	return out, nil
}

// write makes the table, and fails where it is not as it must be: all noticed, half
// of them within mostMedian seeds.
func write(all []mistakes.Mistake, found []finding, seeds int) error {
	var runs []int
	var missed, left []string
	var rows strings.Builder
	for i, m := range all {
		f := found[i]
		by := fmt.Sprintf("%s, seed %d", f.model, f.seed)
		switch {
		case !f.tried:
			by, left = untried, append(left, m.Name)
		case f.model == "":
			by, missed = nothing, append(missed, m.Name)
		default:
			runs = append(runs, f.seed+1)
		}
		fmt.Fprintf(&rows, "| `%s` | %s | `%s` | %s | %s |\n", m.Name, m.Sentence, m.File, by, f.class)
	}
	slices.Sort(runs)
	median, last := 0, 0
	if len(runs) > 0 {
		median, last = runs[len(runs)/2], runs[len(runs)-1]
	}
	text := fmt.Sprintf(`# Planted bugs

Mistakes that somebody would make, each planted by itself, and the first seed of the simulator that notices it: seeds are tried
from 0 on, each on all models that the mistake can be seen on. Made by §make planted§; the mistakes, as text and text, are in
§testdata/planted.txt§, and how they are planted is decision 55.

Of %d mistakes %d are noticed, half of them within %d seeds, all of these within %d; %d are not within %d.

| name | mistake | where | noticed by | as |
|---|---|---|---|---|
%s`, len(all), len(runs), median, last, len(missed), seeds, rows.String())
	if err := os.WriteFile(table, []byte(strings.ReplaceAll(text, "§", "`")), 0o644); err != nil {
		return err
	}
	switch {
	case len(missed) > 0:
		return fmt.Errorf("not noticed within %d seeds of each model: %s", seeds, strings.Join(missed, " "))
	case len(left) > 0:
		return fmt.Errorf("%d of %d are left to be tried", len(left), len(all))
	case median > mostMedian:
		return fmt.Errorf("half of the mistakes take more than %d seeds", median)
	}
	return nil
}

const mostMedian = 20
