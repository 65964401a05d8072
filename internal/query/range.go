package query

import (
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// A range is a part of a list, in the order of the list (order.go): a row is in it by what its sort key has from the name of
// the range on, whatever its attributes say. So what is not below a bound is at least the bound, and only rows of the range
// are read. A range of times may read other rows of the seconds at its ends, and a range of numbers up to 1 more.

// bounds are the sort keys of a range, by what stands in them behind the fixed names: a Missing one bounds nothing.
type bounds struct{ from, below value.Value }

// behind is the range of keys that begin with the base.
func (b bounds) behind(base string) store.Range {
	if b.from.Kind() == value.Number || b.below.Kind() == value.Number {
		return store.Range{From: b.from, Below: b.below}
	}
	r := store.Range{Below: behindPrefix(base)}
	if from := base + b.from.Text(); from != "" {
		r.From = value.OfString(fitting(from))
	}
	switch below := base + b.below.Text(); {
	case b.below.IsMissing(): // all behind the base
	case len(below) > store.MaxSortBytes:
		r.Below = behindPrefix(fitting(below))
	default:
		r.Below = value.OfString(below)
	}
	return r
}

// limit is what a term of the range bounds by; ok is false where it asks for nothing, since an optional parameter was not given.
func (s *step) limit(i int, sc scope) (v value.Value, ok bool) {
	t := &s.Range[i]
	if t.Prior != nil && sc.alone {
		return v, false
	}
	v = s.value(&t.Bind, sc)
	return v, !v.IsMissing() || t.Param == ""
}

// bounds are those of all terms together. ok is false where no term asks for anything.
func (s *step) bounds(sc scope) (all bounds, ok bool) {
	for i := range s.Range {
		if limit, asks := s.limit(i, sc); asks {
			all, ok = all.within(s.boundsOf(&s.Range[i], limit)), true
		}
	}
	return all, ok
}

// boundsOf are those of one term.
func (s *step) boundsOf(t *model.RangeTerm, limit value.Value) bounds {
	switch {
	case s.sort.attr.Type == value.Number:
		return s.numbers(t, limit)
	case s.timed(t, limit):
		return s.seconds(t.Op, t.Field.Name, limit.Text())
	}
	return s.texts(t.Op, t.Field.Name, limit)
}

// timed reports whether a term bounds times, whose order is not that of their bytes.
func (s *step) timed(t *model.RangeTerm, limit value.Value) bool {
	return instant(limit) && t.Op != value.Begins && !s.sort.lower()
}

// within is the part of both.
func (b bounds) within(o bounds) bounds {
	p := keyRange{from: b.from, below: b.below}.within(keyRange{from: o.from, below: o.below})
	return bounds{p.from, p.below}
}

// numbers are the bounds of a key that is a number. The end of a range is not in it, so a number that is needs one above.
func (s *step) numbers(t *model.RangeTerm, limit value.Value) bounds {
	stored := limit
	if t.Field.Declared != nil {
		stored = t.Field.Declared.Store(limit)
	}
	n := s.sort.convert(stored)
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
	return bounds{below: unless(err != nil, next)}
}

// texts are the bounds of texts. Rows of one text stand together, before what is added behind its end.
func (s *step) texts(op value.Op, name string, limit value.Value) bounds {
	text := s.inKey(name, value.Scalar(limit))
	at, end := value.OfString(text), behindPrefix(text+s.sort.after(name))
	if s.sort.after(name) == "" {
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

// instant reports whether a value is a time in UTC, or a date, in a form whose order is that of time.
func instant(v value.Value) bool {
	_, ok := value.Instant(v)
	return ok && (strings.HasSuffix(v.Text(), "Z") || len(v.Text()) == len(day))
}

// seconds are the bounds of times: the seconds at both ends are in them as a whole, since bytes do not order the times
// of one. A date is its midnight.
func (s *step) seconds(op value.Op, name, at string) bounds {
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
	if text = s.spell(&s.sort, name, value.OfString(text), nil).Text(); s.sort.lower() {
		return strings.ToLower(text)
	}
	return text
}

// lower reports whether the keys are in lower case.
func (k *keyPart) lower() bool { return k.tmpl != nil && k.tmpl.IsLower() }

// after is what ends a name's text in the key, "" for nothing.
func (k *keyPart) after(name string) string {
	if k.tmpl == nil {
		return ""
	}
	return k.tmpl.After(name)
}

// from is what stands in a row's key from a name on; ok is false where the name is not in it.
func (k *keyPart) from(name string, row value.Item) (rest string, ok bool) {
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

// beyond says which bounds can be no part of a key: they have what ends the name there.
func (p *plan) beyond(args map[string]value.Value, say func(name, format string, args ...any)) {
	for _, s := range p.steps {
		for i := range s.Range {
			t, k := &s.Range[i], &s.sort
			text := value.Scalar(args[t.Param])
			if k.tmpl != nil && !slices.Contains(k.typed, t.Field.Name) && k.tmpl.Ends(t.Field.Name, text) {
				say(t.Param, "must not have %q, which ends it in the key %s: %.60q", k.after(t.Field.Name), k.tmpl, text)
			}
		}
	}
}

// inRange reports whether a row is in the range.
func (s *step) inRange(row value.Item, sc scope) bool {
	for i := range s.Range {
		limit, asks := s.limit(i, sc)
		if asks && (limit.IsMissing() || !s.passes(&s.Range[i], limit, row)) {
			return false
		}
	}
	return true
}

// passes reports whether a row is in the range of one term.
func (s *step) passes(t *model.RangeTerm, limit value.Value, row value.Item) bool {
	if s.sort.attr.Type == value.Number {
		is := value.Term{Op: t.Op, Values: []value.Value{limit}}
		if instant(limit) {
			is.As = value.AsTimes
		}
		return is.Holds(s.typed(t.Field, row))
	}
	rest, ok := s.sort.from(t.Field.Name, row)
	if !ok {
		return false
	}
	if !s.timed(t, limit) {
		b := s.texts(t.Op, t.Field.Name, limit)
		return inRange(store.Range{From: b.from, Below: b.below}, value.OfString(rest))
	}
	at := s.sort.read(t.Field.Name, row)
	if c, _ := value.CompareTimes(at, limit); instant(at) {
		return t.Op.Admits(c)
	}
	return t.Op.Admits(compareTimes(at.Text(), limit.Text())) // it stands where its text puts it
}
