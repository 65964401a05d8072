package sim

import (
	"strconv"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/value"
)

// fieldValue is the value that a row has for a field. A computed value, or one read from the key of an index, comes from the texts of the model
// alone: it is missing if the row lacks a part of it, and NULL if it is a number that no sum takes.
func fieldValue(f *model.Field, row value.Item) value.Value {
	switch a := f.Declared; {
	case f.Sparse && !row.Has(f.Name):
		return inIndex(f.Key.String(), f.Name, row.Get(f.Attr).Text())
	case f.Formula == nil:
		return f.Get(row)
	case a.In != "":
		till, from, _ := strings.Cut(a.Is, " - ")
		x, errX := time.Parse(time.RFC3339, row.Get(till).Text())
		y, errY := time.Parse(time.RFC3339, row.Get(from).Text())
		if errX != nil || errY != nil {
			return value.Value{}
		}
		return value.OfInt(int64(x.Sub(y) / map[string]time.Duration{"minutes": time.Minute, "days": 24 * time.Hour}[a.In]))
	default:
		words := strings.Fields(a.Is)
		if of := func(w string) value.Value { return partValue(w, row) }; len(words) > 1 {
			return computeAmount(words, of, func(string) bool { return false })
		}
		return partValue(words[0], row)
	}
}

// partValue is the value of a path into a row: more.k, tags[0], or size(tags).
func partValue(path string, row value.Item) value.Value {
	if of, ok := strings.CutPrefix(path, "size("); ok {
		if v := row.Get(strings.TrimSuffix(of, ")")); v.Kind() == value.List {
			return value.OfInt(int64(v.Len()))
		}
		return value.Value{}
	}
	name, member, _ := strings.Cut(path, ".")
	name, at, element := strings.Cut(name, "[")
	switch v := row.Get(name); {
	case element:
		if i, _ := strconv.Atoi(strings.TrimSuffix(at, "]")); i < v.Len() {
			return v.At(i)
		}
		return value.Value{}
	case member != "":
		return v.Item().Get(member)
	default:
		return v
	}
}

// inIndex is the text of a name in a key that its template made: behind the text before it, up to the text after it.
func inIndex(template, name, key string) value.Value {
	before, after, _ := strings.Cut(template, "{"+name+"}")
	after, _, _ = strings.Cut(after, "{")
	if at := strings.Index(before, "{"); at >= 0 { // one name before it
		key, before = key[min(len(key), strings.Index(key+before, before[strings.Index(before, "}")+1:])):], before[strings.Index(before, "}")+1:]
	}
	key, ok := strings.CutPrefix(key, before)
	if after != "" {
		key, _, ok = strings.Cut(key, after)
	}
	if !ok || key == "" {
		return value.Value{}
	}
	return value.OfString(key)
}
