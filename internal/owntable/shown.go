package owntable

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// The rows of shown|TABLE say which models show values on rows of a table, or make such rows, and
// which rows these are. TABLE is its ARN, or its id in a store without ARNs; there is another row for each name that
// a model gives the table, which an older weir reads. Two models have ledgers of their own, and versions of them that mean
// nothing to each other, so no row may show values of both. A program writes what its own model
// has when it starts, and again when something of it begins, on condition that the row is as it was read.
// A row has about 100 bytes for each entity. Nothing deletes it, also when no model shows anything: its count is what tells a
// writer that another one was first, and a row that began to count again could be taken for one that was read before.
const (
	shownCount = Count
	shownOf    = "m:" // and a model's name: its shapes, as JSON
)

// Shape is rows of a table: those whose key matches the patterns, in which * stands for any text,
// and whose attributes have one of the values.
type Shape struct {
	Of        []string            `json:"of"`          // the derivations that show values on these rows, or make them
	Attrs     []string            `json:"a,omitempty"` // the attributes that they show; none of rows that are made, or where an older version has written the shape
	Partition string              `json:"p"`
	Sort      string              `json:"s,omitempty"`
	Is        map[string][]string `json:"is,omitempty"`
}

// Key returns the patterns of the row's keys, for people.
func (s Shape) Key() string {
	if s.Sort == "" {
		return s.Partition
	}
	return s.Partition + " and " + s.Sort
}

// Meets reports whether a row can be of both shapes.
func (s Shape) Meets(o Shape) bool {
	for attr, values := range s.Is {
		if others, both := o.Is[attr]; both && !slices.ContainsFunc(values, func(v string) bool { return slices.Contains(others, v) }) {
			return false
		}
	}
	return meet(s.Partition, o.Partition) && meet(s.Sort, o.Sort)
}

// meet reports whether one text can match two patterns. It compares each rest of one with each
// rest of the other once.
func meet(a, b string) bool {
	met := make([]bool, len(b)+1) // whether the rest of a meets each rest of b
	for i := len(a); i >= 0; i-- {
		before := slices.Clone(met) // of the rest of a behind its next sign
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				met[j] = true
			case i < len(a) && a[i] == '*':
				met[j] = before[j] || j < len(b) && met[j+1]
			case j < len(b) && b[j] == '*':
				met[j] = met[j+1] || i < len(a) && before[j]
			default:
				met[j] = i < len(a) && j < len(b) && a[i] == b[j] && before[j+1]
			}
		}
	}
	return met[0]
}

// ShownRow is which models show values on rows of a table. The zero ShownRow stands for one that
// does not exist.
type ShownRow struct {
	Models map[string][]Shape
	was    value.Value
}

// Shown refers to the row of a table, by its ARN or id, or by a name of it.
func Shown(table string) store.Ref { return Ref("shown|"+table, "") }

const shownDo = "delete the row, and start the programs of all models of the table again"

// DecodeShown decodes the row, nil if there is none. The error wraps ErrRow.
func DecodeShown(row value.Item) (is ShownRow, err error) {
	is = ShownRow{Models: map[string][]Shape{}, was: row.Get(shownCount)}
	for _, a := range row {
		model, ok := strings.CutPrefix(a.Name, shownOf)
		if !ok {
			continue
		}
		var shapes []Shape
		if a.Value.Kind() != value.String || json.Unmarshal([]byte(a.Value.Text()), &shapes) != nil {
			return is, unreadable(row, a.Name, "shapes of rows", shownDo)
		}
		is.Models[model] = shapes
	}
	return is, nil
}

// With replaces what a model shows, on condition that the row has not changed since it was read.
// differs is false if it says the same already; the write then only changes how often it was written.
func (s ShownRow) With(at store.Ref, model string, shapes []Shape) (w store.Write, differs bool) {
	text := func(s []Shape) string {
		b, _ := json.Marshal(s) // of texts
		return string(b)
	}
	n, _ := s.was.Int64()
	next := maps.Clone(s.Models)
	next[model] = shapes
	own := Table()
	attrs := []value.Attr{{Name: shownCount, Value: value.OfInt(n + 1)}}
	for name, of := range next {
		if len(of) > 0 {
			attrs = append(attrs, value.Attr{Name: shownOf + name, Value: value.OfString(text(of))})
		}
	}
	return store.Write{Ref: at, If: store.Cond{{store.AsRead(shownCount, s.was)}}, Put: value.NewItem(append(own.Item(at.Key), attrs...)...)}, text(s.Models[model]) != text(shapes)
}
