package owntable

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// The rows of footprint|MODEL, s DERIVATION HASH, list the values of a derivation by one definition: on which rows it
// shows which attributes, and its rows in our own table. A row is written before the derivation begins, so that
// its values are known when no model has it any more. `projector build --prune` notes when they were removed. A row
// has about 300 bytes. Nothing deletes it; there is one for each definition that a derivation has had.
const footprintIs = "v" // a Footprint, as JSON

// Footprint is the list of a derivation's values by one definition.
type Footprint struct {
	Name    string  `json:"-"` // of the derivation
	Hash    string  `json:"-"` // of the definition
	Table   string  `json:"table"`
	Rows    []Shape `json:"rows"`              // the rows on which it shows something, or that it makes
	Makes   bool    `json:"makes,omitempty"`   // it makes these rows
	Made    bool    `json:"made,omitempty"`    // weir alone makes such rows, it or another derivation
	History bool    `json:"history,omitempty"` // no row tells it again
	// Attrs are the attributes that only weir writes there, with its notes beside them. Covers are those in which it
	// shows another value than the application wrote.
	Attrs  []string `json:"attrs,omitempty"`
	Covers []string `json:"covers,omitempty"`
	// Counts says that such rows have ledgers, or nodes of a set, and Values names the distinct whose values are counted
	// beside them. Facts are the beginnings of names of lists of facts, and Lists those of partitions.
	Counts bool     `json:"counts,omitempty"`
	Values string   `json:"values,omitempty"`
	Facts  []string `json:"facts,omitempty"`
	Lists  []string `json:"lists,omitempty"`

	Removed time.Time `json:"-" row:"g"` // when all of it was removed; zero if it was not
}

// Footprints returns the query for all footprints of a model.
func Footprints(model string) store.Query {
	return RowsOf("footprint|" + model)
}

// Put returns the write of a model's footprint.
func (f Footprint) Put(model string) store.Write {
	at := Ref("footprint|"+model, f.Name+" "+f.Hash)
	text, _ := json.Marshal(f) // of texts
	attrs := append(writeTagged(f), newAttr(footprintIs, value.OfString(string(text))))
	return store.Write{Ref: at, Put: RefItem(at).With(attrs...)}
}

const footprintDo = "delete the row; what the derivation has shown then stays in the rows"

// DecodeFootprint decodes a row of Footprints. The error wraps ErrRow.
func DecodeFootprint(row value.Item) (f Footprint, err error) {
	at := strings.LastIndexByte(row.Get(Sort).Text(), ' ')
	if at < 0 || json.Unmarshal([]byte(row.Get(footprintIs).Text()), &f) != nil {
		return f, unreadableError(row, footprintIs, "what a derivation leaves", footprintDo)
	}
	f.Name, f.Hash = row.Get(Sort).Text()[:at], row.Get(Sort).Text()[at+1:]
	err = readTagged(row, &f, footprintDo)
	return f, err
}

// MatchesRow reports whether a row can be one of the footprint's. Of a row of which only the key is known, that decides.
func (f *Footprint) MatchesRow(table string, key store.Key, row value.Item) bool {
	return f.Table == table && slices.ContainsFunc(f.Rows, func(s Shape) bool { return s.matchesRow(key, row) })
}

// FitsText is MatchesRow for the text of a row (RowText). Of a long key it tells only the ends, so it may fit several footprints.
func (f *Footprint) FitsText(text string) bool {
	if at, told := RowOf(text); told {
		return f.MatchesRow(at.Table, at.Key, nil)
	}
	table, ends, ok := LongRowOf(text)
	return ok && f.Table == table && slices.ContainsFunc(f.Rows, ends.Overlaps)
}

// matchesRow reports whether a row has the shape.
func (s Shape) matchesRow(key store.Key, row value.Item) bool {
	for attr, values := range s.Is {
		if v := row.Get(attr); !v.IsMissing() && !slices.Contains(values, value.Scalar(v)) {
			return false
		}
	}
	return matchesPattern(s.Partition, value.Scalar(key.Partition)) && matchesPattern(s.Sort, value.Scalar(key.Sort))
}

// matchesPattern reports whether a text matches a pattern, in which * stands for any text.
func matchesPattern(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	last := len(parts) - 1
	if last == 0 {
		return ok && text == ""
	}
	for _, part := range parts[1:last] {
		_, rest, found := strings.Cut(text, part)
		text, ok = rest, ok && found
	}
	return ok && strings.HasSuffix(text, parts[last])
}

// Shape is rows of a table: those whose key matches the patterns, in which * stands for any text,
// and whose attributes have one of the values.
type Shape struct {
	Partition string              `json:"p"`
	Sort      string              `json:"s,omitempty"`
	Is        map[string][]string `json:"is,omitempty"`
}

// Overlaps reports whether a row can be of both shapes.
func (s Shape) Overlaps(o Shape) bool {
	for attr, values := range s.Is {
		if others, both := o.Is[attr]; both && !slices.ContainsFunc(values, func(v string) bool { return slices.Contains(others, v) }) {
			return false
		}
	}
	return patternsMeet(s.Partition, o.Partition) && patternsMeet(s.Sort, o.Sort)
}

// patternsMeet reports whether one text can match two patterns. It compares each rest of one with each
// rest of the other once.
func patternsMeet(a, b string) bool {
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
