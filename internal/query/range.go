package query

import (
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// A range is a part of a list, in the order of the list (order.go): a row is in it by the part of its sort key from the name of
// the range on, whatever its attributes say. So a row that is not below a bound is at least the bound, and only rows of the range
// are read. A range of times may read other rows of the seconds at its ends, and a range of numbers up to 1 more.

// bounds are the sort keys of a range, by the parts behind the fixed names: a Missing one bounds nothing.
type bounds struct{ from, below value.Value }

// beginsWith is the range of keys that begin with the base.
func (b bounds) beginsWith(base string) store.Range {
	if b.from.Kind() == value.Number || b.below.Kind() == value.Number {
		return store.Range{From: b.from, Below: b.below}
	}
	r := store.Range{Below: behindPrefix(base)}
	if from := base + b.from.Text(); from != "" {
		r.From = value.OfString(fittingText(from))
	}
	switch below := base + b.below.Text(); {
	case b.below.IsMissing(): // all behind the base
	case len(below) > store.MaxSortBytes:
		r.Below = behindPrefix(fittingText(below))
	default:
		r.Below = value.OfString(below)
	}
	return r
}

// termLimit is the bound of a term of the range; ok is false where it asks for nothing, since an optional parameter was not given.
func (s *step) termLimit(i int, sc scope) (v value.Value, ok bool) {
	t := &s.Range[i]
	if t.Prior != nil && sc.alone {
		return v, false
	}
	v = s.fixedValue(&t.Bind, sc)
	return v, !v.IsMissing() || t.Param == ""
}

// termBounds are those of all terms together. ok is false where no term asks for anything.
func (s *step) termBounds(sc scope) (all bounds, ok bool) {
	for i := range s.Range {
		if limit, asks := s.termLimit(i, sc); asks {
			all, ok = all.intersect(s.boundsOf(&s.Range[i], limit)), true
		}
	}
	return all, ok
}

// boundsOf are those of one term.
func (s *step) boundsOf(t *model.RangeTerm, limit value.Value) bounds {
	switch {
	case s.sort.attr.Type == value.Number:
		return s.numberBounds(t, limit)
	case s.boundsTimes(t, limit):
		return s.secondBounds(t.Op, t.Field.Name, limit.Text())
	}
	return s.textBounds(t.Op, t.Field.Name, limit)
}

// boundsTimes reports whether a term bounds times, whose order is not that of their bytes.
func (s *step) boundsTimes(t *model.RangeTerm, limit value.Value) bool {
	return isInstant(limit) && t.Op != value.Begins && !s.sort.isLower()
}

// intersect is the part of both.
func (b bounds) intersect(o bounds) bounds {
	p := keyRange{from: b.from, below: b.below}.intersect(keyRange{from: o.from, below: o.below})
	return bounds{p.from, p.below}
}

// numberBounds are the bounds of a key that is a number. The end of a range is not in it, so a number that is needs one above.
func (s *step) numberBounds(t *model.RangeTerm, limit value.Value) bounds {
	stored := limit
	if t.Field.Declared != nil {
		stored = t.Field.Declared.Store(limit)
	}
	n := s.sort.convertValue(stored)
	switch {
	case n.IsMissing() || t.Op == value.AtLeast || t.Op == value.Above:
		return bounds{from: n}
	case t.Op == value.Below && limit.Kind() == value.Number:
		return bounds{below: n}
	}
	var above value.Exact
	above.Add(n, 0)
	above.Add(value.OfInt(1), 0)
	next, err := above.Number()
	return bounds{below: valueUnless(err != nil, next)}
}

// textBounds are the bounds of texts. Rows of one text stand together, before those with more behind its end.
func (s *step) textBounds(op value.Op, name string, limit value.Value) bounds {
	text := s.inKey(name, value.Scalar(limit))
	at, end := value.OfString(text), behindPrefix(text+s.sort.endOf(name))
	if s.sort.endOf(name) == "" {
		end = value.OfString(text + "\x00")
	}
	switch op {
	case value.AtLeast:
		return bounds{from: at}
	case value.Above:
		return bounds{from: end}
	case value.AtMost:
		return bounds{below: end}
	case value.Begins:
		return bounds{at, behindPrefix(text)}
	}
	return bounds{below: at}
}

// isInstant reports whether a value is a time in UTC, or a date, in a form whose order is that of time.
func isInstant(v value.Value) bool {
	_, ok := value.Instant(v)
	return ok && (strings.HasSuffix(v.Text(), "Z") || len(v.Text()) == len(day))
}

// secondBounds are the bounds of times: the seconds at both ends are in them as a whole, since bytes do not order the times
// of one. A date is its midnight.
func (s *step) secondBounds(op value.Op, name, at string) bounds {
	const midnight = "T00:00:00"
	second := at[:min(len(at), len(day)+len(clock))]
	first := s.inKey(name, strings.TrimSuffix(second, midnight))
	switch whole := len(second) == len(day) || at == second+"Z"; {
	case op == value.AtLeast || op == value.Above:
		return bounds{from: value.OfString(first)}
	case op == value.Below && whole && len(second) > len(day):
		return bounds{below: value.OfString(s.inKey(name, second))}
	case op == value.Below && whole:
		return bounds{below: value.OfString(s.inKey(name, second+midnight))}
	}
	if len(second) == len(day) {
		second += midnight
	}
	return bounds{below: behindPrefix(s.inKey(name, second))}
}

// inKey is a limit's text as it stands in the sort key.
func (s *step) inKey(name, text string) string {
	if text = s.spellValue(&s.sort, name, value.OfString(text), nil).Text(); s.sort.isLower() {
		return strings.ToLower(text)
	}
	return text
}

// isLower reports whether the keys are in lower case.
func (k *keyPart) isLower() bool { return k.tmpl != nil && k.tmpl.IsLower() }

// endOf is the separator that ends a name's text in the key, "" for nothing.
func (k *keyPart) endOf(name string) string {
	if k.tmpl == nil {
		return ""
	}
	return k.tmpl.After(name)
}

// textFrom is the part of a row's key from a name on; ok is false where the name is not in it.
func (k *keyPart) textFrom(name string, row value.Item) (rest string, ok bool) {
	key := row.Get(k.attr.Name)
	if k.tmpl == nil || k.tmpl.Whole() {
		return key.Text(), key.Kind() == value.String
	}
	slot, values := k.tmpl.Slot(name), make([]string, len(k.tmpl.Names()))
	if key.Kind() != value.String || !k.tmpl.Match(key.Text(), values) || values[slot] == "" {
		return "", false
	}
	before, _ := k.tmpl.Prefix(func(n string) string {
		if i := k.tmpl.Slot(n); i < slot {
			return values[i]
		}
		return ""
	})
	return key.Text()[len(before):], true
}

// checkBeyond says which bounds can be no part of a key: they have the separator that ends the name there.
func (p *plan) checkBeyond(args map[string]value.Value, say func(name, format string, args ...any)) {
	for _, s := range p.steps {
		for i := range s.Range {
			t, k := &s.Range[i], &s.sort
			text := value.Scalar(args[t.Param])
			if k.tmpl != nil && !slices.Contains(k.typed, t.Field.Name) && k.tmpl.Ends(t.Field.Name, text) {
				say(t.Param, "must not have %q, which ends it in the key %s: %.60q", k.endOf(t.Field.Name), k.tmpl, text)
			}
		}
	}
}

// inRange reports whether a row is in the range.
func (s *step) inRange(row value.Item, sc scope) bool {
	for i := range s.Range {
		limit, asks := s.termLimit(i, sc)
		if asks && (limit.IsMissing() || !s.passesTerm(&s.Range[i], limit, row)) {
			return false
		}
	}
	return true
}

// passesTerm reports whether a row is in the range of one term.
func (s *step) passesTerm(t *model.RangeTerm, limit value.Value, row value.Item) bool {
	if s.sort.attr.Type == value.Number {
		is := value.Term{Op: t.Op, Values: []value.Value{limit}}
		if isInstant(limit) {
			is.As = value.AsTimes
		}
		return is.Holds(s.readTyped(t.Field, row))
	}
	rest, ok := s.sort.textFrom(t.Field.Name, row)
	if !ok {
		return false
	}
	if !s.boundsTimes(t, limit) {
		b := s.textBounds(t.Op, t.Field.Name, limit)
		return inRange(store.Range{From: b.from, Below: b.below}, value.OfString(rest))
	}
	at := s.sort.readName(t.Field.Name, row)
	if c, _ := value.CompareTimes(at, limit); isInstant(at) {
		return t.Op.Admits(c)
	}
	return t.Op.Admits(compareTimes(at.Text(), limit.Text())) // it stands where its text puts it
}
