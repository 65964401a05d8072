package system

import (
	"context"
	"fmt"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Census counts the rows of each entity and summarizes what was derived on them, in one line
// each. It reads every row.
func (s *System) Census(ctx context.Context, p *Part) ([]string, error) {
	rows := map[*model.Entity]int{}
	sums := map[*model.Tally]value.Value{}
	for _, t := range p.Model.Tables {
		q := store.Query{Table: t.Name}
		for {
			page, err := s.Store.Query(ctx, q)
			if err != nil {
				return nil, fmt.Errorf("counting the rows of %s: %w", t.Name, err)
			}
			for _, row := range page.Rows {
				e := t.Classify(row)
				rows[e]++
				if e != nil {
					addShown(sums, e, row)
				}
			}
			if page.Next == nil {
				break
			}
			q.After = page.Next
		}
	}
	return lines(p.Model, rows, sums), nil
}

func addShown(sums map[*model.Tally]value.Value, e *model.Entity, row value.Item) {
	for _, t := range e.Values {
		n := row.Get(t.Attr)
		if t.Hidden || !t.Kind.Totals || n.Kind() != value.Number {
			continue
		}
		if sum, err := value.AddNumbers(sums[t], n); err == nil {
			sums[t] = sum
		}
	}
}

func lines(m *model.Model, rows map[*model.Entity]int, sums map[*model.Tally]value.Value) []string {
	var out []string
	for _, e := range m.Entities {
		line := fmt.Sprintf("%-24s %8d rows", e.Name, rows[e])
		if e.Derived {
			line += ", made by weir"
		}
		for _, t := range e.Values {
			if n := sums[t]; !n.IsMissing() {
				line += fmt.Sprintf(", %s %s in all", t.Attr, n.Text())
			}
		}
		for _, s := range e.Search {
			line += ", searched as " + s.Name
		}
		out = append(out, line)
	}
	if n := rows[nil]; n > 0 {
		out = append(out, fmt.Sprintf("%-24s %8d rows", "(of no entity)", n))
	}
	return out
}
