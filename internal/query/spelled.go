package query

import (
	"cmp"
	"slices"

	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// A value may stand in keys in two ways: as it is, which is how most applications write
// it, and escaped, which is how weir writes typed values. A row that was written in
// one way may name one that was written in the other. They differ only where
// the value holds a sign that separates the parts of its key. A step reads the keys of
// both; which of the rows there belong is said by their own attributes.

// spelling is the names whose values stand escaped.
type spelling []string

// allSpellings are the ways in which the keys may hold the values, first that with all
// of them as they are.
func (s *step) allSpellings(keys []keyPart, get lookup) []spelling {
	var names []string
	for i := range keys {
		k := &keys[i]
		t := k.escapedTemplate()
		if t == nil {
			continue
		}
		for _, name := range k.names() {
			v := get(name)
			if v.Kind() == value.String && !slices.Contains(k.typed, name) && !slices.Contains(names, name) && t.Escape(v.Text()) != v.Text() {
				names = append(names, name)
			}
		}
	}
	return seq.Map(model.Spellings(names), func(as []string) spelling { return as })
}

// spelledValues are the values as they stand in a key.
func (s *step) spelledValues(k *keyPart, get lookup, as spelling) lookup {
	return func(name string) value.Value { return s.spellValue(k, name, get(name), as) }
}

// spellValue returns a value as it stands in a key: raw if it was read from a key, escaped if an
// application's own text may be in it.
func (s *step) spellValue(k *keyPart, name string, v value.Value, as spelling) value.Value {
	t := k.escapedTemplate()
	if t == nil || v.Kind() != value.String {
		return v
	}
	if slices.Contains(k.typed, name) || slices.Contains(as, name) {
		return value.OfString(t.Escape(v.Text()))
	}
	return v
}

// keysOf are the primary keys that a Get reads, in every spelling; none when no row can
// have one.
func (s *step) keysOf(get lookup) (keys []store.Key) {
	for _, as := range s.allSpellings(s.primary, get) {
		k, ok := store.Key{}, true
		for i := range s.primary {
			part := &s.primary[i]
			v, whole := part.buildKey(s.spelledValues(part, get, as))
			if ok = ok && whole; i == 0 {
				k.Partition = v
			} else {
				k.Sort = v
			}
		}
		same := func(have store.Key) bool { return compareKeys(have, k) == 0 }
		if ok && len(k.Partition.Text()) <= store.MaxPartitionBytes && len(k.Sort.Text()) <= store.MaxSortBytes && !slices.ContainsFunc(keys, same) {
			keys = append(keys, k)
		}
	}
	return keys
}

// reach is a read, and the beginning of the sort keys of all its rows.
type reach struct {
	store.Query
	base string
}

// scopeQueries are the reads that reach every row of the scope, one for each spelling. No
// two of them reach the same row, so that a row says which of them has come to it.
func (s *step) scopeQueries(sc scope) (out []reach) {
	get := s.lookupFor(sc)
	for _, as := range s.allSpellings([]keyPart{s.partition, s.sort}, get) {
		q := reach{Query: store.Query{Table: s.Entity.Table.Name, Reverse: s.Reverse}}
		if s.Index != nil {
			q.Index = s.Index.Name
		}
		var ok bool
		if q.Partition, ok = s.partition.buildPrefix(s.spelledValues(&s.partition, get, as)); !ok || len(q.Partition.Text()) > store.MaxPartitionBytes {
			continue
		}
		if s.sort.attr.Name != "" {
			q.Sort, q.base = s.sortRange(sc, get, as)
		}
		long := func(v value.Value) bool { return len(v.Text()) > store.MaxSortBytes }
		reached := slices.ContainsFunc(out, func(o reach) bool { return value.Equal(o.Partition, q.Partition) && coversRange(o.Sort, q.Sort) })
		if !reached && !long(q.Sort.Equal) && !long(q.Sort.Prefix) && !long(q.Sort.Below) {
			out = append(out, q)
		}
	}
	return out
}

// coversRange reports whether all of a range is in another: ranges of two spellings either
// have nothing in common, or one begins with the other.
func coversRange(r, in store.Range) bool {
	for _, v := range [...]value.Value{in.Equal, in.Prefix, in.From} {
		if !v.IsMissing() {
			return inRange(r, v)
		}
	}
	return r.Equal.IsMissing() && r.Prefix.IsMissing() && r.From.IsMissing() && r.Below.IsMissing()
}

// queryReaching is the query that reaches a row with these key values of the table or index
// that is read; -1 for none.
func queryReaching(qs []reach, k store.Key) int {
	return slices.IndexFunc(qs, func(q reach) bool { return value.Equal(q.Partition, k.Partition) && inRange(q.Sort, k.Sort) })
}

// inRange reports whether a sort key is in a range.
func inRange(r store.Range, v value.Value) bool {
	switch {
	case !r.Equal.IsMissing() && value.Compare(v, r.Equal) != 0,
		!r.From.IsMissing() && value.Compare(v, r.From) < 0,
		!r.Below.IsMissing() && value.Compare(v, r.Below) >= 0:
		return false
	}
	return r.Prefix.IsMissing() || v.Kind() == r.Prefix.Kind() && len(v.Text()) >= len(r.Prefix.Text()) && v.Text()[:len(r.Prefix.Text())] == r.Prefix.Text()
}

// escapedTemplate is the template by which values in the key may be escaped, nil where they
// never are.
func (k *keyPart) escapedTemplate() *model.Template {
	if k.name != "" {
		return k.via
	}
	return k.tmpl
}

// templateOf is the key template out of which the rules take a name.
func templateOf(e *model.Entity, name string) *model.Template {
	for _, rule := range e.MadeBy {
		for i := range rule.Fields {
			if x := &rule.Fields[i].Expr; rule.Fields[i].Name == name {
				if f := cmp.Or(x.Field, x.Subscriber); f != nil && f.Key != nil {
					return f.Key
				}
			}
		}
	}
	return nil
}

// escapedNames is those of the names whose values weir always escapes in the keys of the rows
// that it makes: the ones that every rule takes from typed values.
func escapedNames(e *model.Entity, names []string) []string {
	if e.Group != nil {
		return names
	}
	var out, not []string
	for _, rule := range e.MadeBy {
		for _, f := range rule.Fields {
			from := cmp.Or(f.Expr.Field, f.Expr.Subscriber)
			if from == nil || !slices.Contains(names, f.Name) {
				continue
			}
			if from.Typed() {
				out = append(out, f.Name)
			} else {
				not = append(not, f.Name)
			}
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return slices.Contains(not, name) })
}
