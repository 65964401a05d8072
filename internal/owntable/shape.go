package owntable

import "slices"

// Shape is rows of a table: those whose key matches the patterns, in which * stands for any text,
// and whose attributes have one of the values.
type Shape struct {
	Partition string              `json:"p"`
	Sort      string              `json:"s,omitempty"`
	Is        map[string][]string `json:"is,omitempty"`
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
