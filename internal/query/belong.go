package query

import (
	"slices"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/value"
)

// rowBelongs reports whether a row is one that the step asks for.
// Every row of an answer passes it, by whatever read it was found, so an index that lags or a key
// with two readings never adds a row.
func (s *step) rowBelongs(row value.Item, sc scope, now time.Time) bool {
	if len(s.kinds) > 0 {
		return slices.ContainsFunc(s.kinds, func(k *step) bool { return k.rowBelongs(row, sc, now) })
	}
	if s.sparse && !s.matchesKeys(row) || !s.sparse && s.Entity.Table.Classify(row) != s.Entity {
		return false
	}
	if !s.Expired && s.isExpired(row, now) {
		return false
	}
	row = s.rowAsRead(row, now)
	for i := range s.With {
		if !s.holdsBinds(&s.With[i], row, sc) {
			return false
		}
	}
	if !s.anyHolds(row, sc) {
		return false
	}
	for i := range s.Where {
		if f := &s.Where[i]; !f.Holds(s.readTyped(f.Field, row), sc.args) {
			return false
		}
	}
	return s.inRange(row, sc)
}

// matchesKeys is Classify for a row of which there are only keys: a condition that these do
// not decide is taken to hold.
func (s *step) matchesKeys(row value.Item) bool {
	if !s.Entity.MatchKey(row) {
		return false
	}
	for _, k := range [...]*keyPart{&s.partition, &s.sort} {
		if k.attr.Name != "" && !k.matchesShape(row) {
			return false
		}
	}
	return !slices.ContainsFunc(s.Entity.Where, func(t model.Test) bool {
		return !t.Field.Get(row).IsMissing() && !model.Holds([]model.Test{t}, row)
	})
}

// holdsBinds reports whether a row has the values that a step binds. A parameter that is optional and not given
// binds nothing. An index of keys alone may lack the attribute; then the key, in any spelling
// that it may have, decides.
func (s *step) holdsBinds(b *model.Bind, row value.Item, sc scope) bool {
	if b.Prior != nil && sc.alone {
		return true
	}
	want := s.fixedValue(b, sc)
	if want.IsMissing() {
		return b.Param != "" // only an optional one is not given
	}
	have := b.Field.Elements(s.readField(b.Field, row))
	return s.sparse && (have.IsMissing() || s.maySpell(b.Field, row, want)) || value.Asked(have, want) || sameTyped(b.Field, have, want) || s.sameKey(b.Field.Name, have, want)
}

// sameTyped reports whether two values are the same as the declared type of a field reads them: a time with
// another offset, a number that is stored as text.
func sameTyped(f *model.Field, have, want value.Value) bool {
	if f.Declared == nil {
		return false
	}
	have, _ = f.Declared.Read(have, f.Key != nil)
	want, _ = f.Declared.Read(want, true)
	if c, times := value.CompareTimes(have, want); times {
		return c == 0
	}
	return value.Asked(have, want)
}

// sameKey reports whether two values of a name are one in the keys that the step reads by, which are in lower case.
func (s *step) sameKey(name string, have, want value.Value) bool {
	for _, k := range append([]keyPart{s.partition, s.sort}, s.primary...) {
		if k.tmpl != nil && k.tmpl.IsLower() && k.tmpl.Slot(name) >= 0 {
			is, asked := strings.ToLower(have.Text()), strings.ToLower(value.Scalar(want)) // as keys are made, not strings.EqualFold
			return have.Kind() == value.String && is == asked
		}
	}
	return false
}

// readTyped is read, with the value as the declared type of the field has it.
func (s *step) readTyped(f *model.Field, row value.Item) value.Value {
	v := s.readField(f, row)
	if f.Declared != nil {
		v, _ = f.Declared.Read(v, f.Key != nil)
	}
	return v
}

// maySpell reports whether the keys of a row of which there is nothing else may have
// the value escaped.
func (s *step) maySpell(f *model.Field, row value.Item, want value.Value) bool {
	raw := f.Raw(row)
	if f.Key == nil || want.Kind() != value.String {
		return false
	}
	asked := value.OfString(f.Key.Escape(want.Text()))
	return value.Equal(raw, asked) || s.sameKey(f.Name, raw, asked)
}

// readField is a field of a row that the step read. A name that is no attribute of the
// row is taken from the key that the step reads by.
func (s *step) readField(f *model.Field, row value.Item) value.Value {
	if f.Formula != nil {
		return f.Stored(row)
	}
	if own := row.Get(f.Name); s.Entity.Derived && f.Key == nil && !own.IsMissing() {
		return own // the key may have it otherwise
	}
	if f.Key == nil || f.Sparse && !s.Entity.Derived {
		if v := f.Stored(row); !v.IsMissing() {
			return v
		}
	}
	for i := range s.keys {
		k := &s.keys[i]
		switch {
		case f.Key == nil || k.attr.Name != f.Attr || !row.Has(f.Attr):
		case row.Has(f.Name):
			return f.Stored(row)
		default:
			return k.readName(f.Name, row)
		}
	}
	for _, k := range [...]*keyPart{&s.partition, &s.sort} {
		if k.attr.Name == "" {
			continue
		}
		if v := k.readName(f.Name, row); !v.IsMissing() {
			return v
		}
	}
	return value.Value{}
}

// isExpired reports whether a row is past its TTL, or its entity's expiry.
func (s *step) isExpired(row value.Item, now time.Time) bool {
	if ttl := s.Entity.Table.TTL; ttl != "" && isPast(row.Get(ttl), now) {
		return true
	}
	return s.Entity.Expires != nil && isPast(s.readTyped(s.Entity.Expires, row), now)
}

// isPast reports whether a time, in epoch seconds or as a text (value.Time), has come.
// A value that is no time is never past. A number is compared to the second, a text to its fraction.
func isPast(v value.Value, now time.Time) bool {
	switch v.Kind() {
	case value.Number:
		return value.Compare(v, value.OfInt(now.Unix())) <= 0
	case value.String:
		t, ok := value.Time(v)
		return ok && !now.Before(t)
	}
	return false
}
