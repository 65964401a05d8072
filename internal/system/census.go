package system

import (
	"context"
	"encoding/json"
	"fmt"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Census counts the rows of each entity and summarizes the values that were derived on them, in one line
// each, and finds the targets for which rows count and that do not exist. It reads every row.
func (s *System) Census(ctx context.Context, p *Part) ([]Counted, []projections.Missing, error) {
	var targets projections.MissingTargets
	rows := map[*model.Entity]int{}
	sums := map[*model.Tally]value.Value{}
	for _, t := range p.Model.Tables {
		for row, err := range store.EachRow(ctx, s.Store, store.Query{Table: t.Name}) {
			if err != nil {
				return nil, nil, fmt.Errorf("counting the rows of %s: %w", t.Name, err)
			}
			e := t.Classify(row)
			rows[e]++
			targets.AddRow(e, row)
			if e != nil {
				addShown(sums, e, row)
			}
		}
	}
	return listCounted(p.Model, rows, sums), targets.Missing(), nil
}

// How much of each table MissingTargets reads.
const (
	sampledRows  = 10_000
	sampledPages = 4
)

// MissingTargets looks for targets for which rows count and that do not exist, among the first rows of each table: 10,000, or as
// many as 4 pages have. So it costs the same however large the tables are.
func (s *System) MissingTargets(ctx context.Context, p *Part) ([]projections.Missing, error) {
	targets := projections.MissingTargets{Sampled: true}
	for _, t := range p.Model.Tables {
		n := 0
		for page, err := range store.Pages(ctx, s.Store, store.Query{Table: t.Name, Limit: sampledRows / sampledPages}) {
			if err != nil {
				return nil, fmt.Errorf("looking at rows of %s: %w", t.Name, err)
			}
			for _, row := range page {
				targets.AddRow(t.Classify(row), row)
			}
			if n++; n == sampledPages {
				break
			}
		}
	}
	unseen := targets.Unseen()
	refs := seq.Map(unseen, func(t projections.Wanted) store.Ref { return t.Row })
	rows, err := s.Store.Get(ctx, refs)
	if err != nil {
		return nil, fmt.Errorf("looking for targets: %w", err)
	}
	for i, t := range unseen {
		if rows[i] != nil && t.Entity.Table.Classify(rows[i]) == t.Entity {
			targets.NoteExists(t)
		}
	}
	return targets.Missing(), nil
}

// addShown adds a row's values to the sums. A total that no number can hold stays as it was.
func addShown(sums map[*model.Tally]value.Value, e *model.Entity, row value.Item) {
	for _, t := range e.Values {
		n := row.Get(t.Attr)
		if t.Hidden || e.Hides(t.Attr) || !t.Kind.Totals || n.Kind() != value.Number {
			continue
		}
		if sum, err := value.AddNumbers(sums[t], n); err == nil {
			sums[t] = sum
		}
	}
}

// Counted is how many rows of an entity there are, and their values.
type Counted struct {
	Entity   string                     `json:"entity"` // "" for rows of no entity
	Rows     int                        `json:"rows"`
	Derived  bool                       `json:"derived,omitempty"`  // weir makes the rows
	Totals   map[string]json.RawMessage `json:"totals,omitempty"`   // by derived attribute, the sum over all rows
	Searches []string                   `json:"searches,omitempty"` // indexes that have the rows

	text string
}

// String is the count as a line of a table.
func (c Counted) String() string { return c.text }

// listCounted lists the entities in the order of the model, and last the rows of none.
// Sums are over the rows that were counted, by the attribute that shows them.
func listCounted(m *model.Model, rows map[*model.Entity]int, sums map[*model.Tally]value.Value) []Counted {
	var out []Counted
	for _, e := range m.Entities {
		c := Counted{Entity: e.Name, Rows: rows[e], Derived: e.Derived, text: fmt.Sprintf("%-24s %8d rows", e.Name, rows[e])}
		if e.Derived {
			c.text += ", made by weir"
		}
		for _, t := range e.Values {
			if n := sums[t]; !n.IsMissing() {
				if c.Totals == nil {
					c.Totals = map[string]json.RawMessage{}
				}
				c.Totals[t.Attr] = value.AppendPlain(nil, n)
				c.text += fmt.Sprintf(", %s %s in all", t.Attr, n.Text())
			}
		}
		for _, s := range e.Search {
			c.Searches = append(c.Searches, s.Name)
			c.text += ", searched as " + s.Name
		}
		out = append(out, c)
	}
	if n := rows[nil]; n > 0 {
		out = append(out, Counted{Rows: n, text: fmt.Sprintf("%-24s %8d rows", "(of no entity)", n)})
	}
	return out
}
