package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/seq"
	"weir/internal/value"
)

// This file has the one rule of types. A field that a derivation reads of a row with a declared type must
// have that type: a row that has another one there counts for nothing in that derivation, and its
// record is a dead letter that names field, found and expected. NULL is absent. Lengths, enums and
// bounds are for commands, and are no types; but a number that is added up must be one that a sum can
// take (summable).

// As is the form in which rows have an attribute, where that is not the form of its type.
type As string

// The forms.
const (
	AsText         As = "text"         // of a number: its digits
	AsSeconds      As = "seconds"      // of a time: a number of seconds since 1970 in UTC
	AsMilliseconds As = "milliseconds" // of a time: a number of milliseconds since 1970 in UTC
)

// forms are the forms that a type has besides its own.
var forms = map[Type][]As{TypeNumber: {AsText}, TypeTime: {AsSeconds, AsMilliseconds}}

// Unfit is a field whose value a derivation cannot use.
type Unfit struct {
	Field *Field
	Value value.Value // Missing for a number that no Number can hold
	Want  string
}

// String is the reason in a dead letter, such as: quantity is the string "3", not a number. It does not
// tell a hidden value.
func (u *Unfit) String() string {
	found := "a " + u.Value.Kind().String()
	switch s := value.Scalar(u.Value); {
	case u.Value.IsMissing():
		found = "a number with too many digits"
	case u.Field.Declared != nil && u.Field.Declared.Hidden:
		found = fmt.Sprintf("the %s (hidden)", u.Value.Kind())
	case s != "":
		found = fmt.Sprintf("the %s %s", u.Value.Kind(), value.QuoteShort(s))
	case u.Value.Kind() == value.String:
		found = "an empty string"
	}
	return fmt.Sprintf("%s is %s, not %s", u.Field.Name, found, u.Want)
}

// Input is the part of the rows of one entity that a derivation reads.
type Input struct {
	Derivation string
	Where      []Test
	Fields     []*Field // the fields that it reads of rows that pass Where
}

// Take reports whether a row passes Where and can be used. A row that has another type than declared
// in one of the fields cannot: unfit is then the first of them. A row counts for nothing, and nothing
// is unfit, if it fails a test of a field that has the right type.
func (in *Input) Take(row value.Item) (ok bool, unfit *Unfit) {
	note := func(f *Field) (value.Value, bool) {
		v, want := f.Read(row)
		if want != "" && unfit == nil {
			unfit = f.unfit(row, want)
		}
		return v, want == ""
	}
	for i := range in.Where {
		t := &in.Where[i]
		if v, fits := note(t.Field); fits && !t.Is.Holds(v) {
			return false, nil
		}
	}
	for _, f := range in.Fields {
		if unfit != nil {
			break
		}
		note(f)
	}
	return unfit == nil, unfit
}

// unfit returns a row's value where the field is read, and the form that it must have.
func (f *Field) unfit(row value.Item, want string) *Unfit {
	if f.Formula != nil {
		if _, unfit := f.Formula.readValue(row); unfit != nil {
			return unfit
		}
	}
	if f.misfitsKey(row) {
		return &Unfit{f, row.Get(f.Attr), want}
	}
	return &Unfit{f, f.Stored(row), want}
}

// misfitsKey reports whether a row has a key of the field's index that its template did not make.
func (f *Field) misfitsKey(row value.Item) bool {
	v := row.Get(f.Attr)
	return f.Sparse && !v.IsMissing() && (v.Kind() != value.String || !f.Key.Match(v.Text(), make([]string, len(f.Key.names))))
}

// Uses reports whether a row passes Where and can be used.
func (in *Input) Uses(row value.Item) bool {
	ok, _ := in.Take(row)
	return ok
}

// reads returns all fields that are read.
func (in *Input) reads() []*Field {
	return append(seq.Map(in.Where, func(t Test) *Field { return t.Field }), in.Fields...)
}

// inputs sets the fields that each derivation reads, and returns all of them. TestInputsAreWhole finds a field that is missing there.
func (m *Model) inputs() []reading {
	all := slices.Concat(seq.Map(m.Tallies, (*Tally).inputs), seq.Map(m.Statuses, (*Status).inputs), seq.Map(m.Latest, (*Latest).inputs),
		seq.Map(m.Rows, (*RowRule).inputs), seq.Map(m.Follows, (*Follow).inputs), seq.Map(m.Searches, (*Search).inputs))
	return slices.Concat(all...)
}

// assignedFields returns the fields of the source row that assignments read.
func assignedFields(lists ...[]Assign) (out []*Field) {
	for _, a := range slices.Concat(lists...) {
		switch x := &a.Expr; {
		case x.Field != nil:
			out = append(out, x.Field)
		case x.Bucket != nil:
			out = append(out, x.Bucket.Of)
		case x.Follow != nil:
			out = append(out, assignedFields(x.Follow.Key)...)
		case x.Map != nil:
			out = append(out, assignedFields(x.Map)...)
		}
	}
	return out
}

// Read returns the field's value as its declared type has it. want is the form that it must have, if it is
// something else; the value is then as the row has it.
func (f *Field) Read(row value.Item) (v value.Value, want string) {
	if f.Formula == nil {
		v = f.Stored(row)
	} else if of, unfit := f.Formula.readValue(row); unfit == nil {
		v = of
	} else {
		return v, unfit.Want
	}
	if f.Declared != nil {
		v, want = f.Declared.Read(v, f.Key != nil)
	}
	if f.misfitsKey(row) {
		want = "a " + f.Attr + " like " + f.Key.text
	}
	if f.Summed && want == "" {
		want = checkSummable(v, f.isWhole())
	}
	return v, want
}

// isWhole reports whether the field is declared as a whole number.
func (f *Field) isWhole() bool { return f.Declared != nil && f.Declared.Whole }

// A sum of 10^9 rows is exact: it needs 38 digits at most, which DynamoDB's numbers have. A number
// that is not declared as whole is below 10^summedPlaces and has at most summedDecimals decimals, which
// are those that a float64 prints. A whole one is below 10^wholePlaces.
const (
	summedPlaces, summedDecimals, wholePlaces = 12, 17, 27

	wantSummed = "a number below 10^12 in size with at most 17 decimals"
	wantWhole  = "a whole number below 10^27 in size"
)

// checkSummable returns the form of a number that can be added up, "" if it can be, or if v is
// no number.
func checkSummable(v value.Value, whole bool) (want string) {
	if n, ok := v.Int64(); v.Kind() != value.Number || ok && n > -1e12 && n < 1e12 { // as nearly always
		return ""
	}
	_, digits, places := v.Decimal()
	switch decimals := len(digits) - places; {
	case whole && (places > wholePlaces || decimals > 0 && digits != ""):
		return wantWhole
	case !whole && (places > summedPlaces || decimals > summedDecimals):
		return wantSummed
	}
	return ""
}

// Get is Read for a caller that can use a value of any type.
// Several goroutines may call it. The value shares the row's memory.
func (f *Field) Get(row value.Item) value.Value {
	v, _ := f.Read(row)
	return v
}

// Read returns a value that rows have in the attribute as its type has it: a number that is stored
// as text is a number, and every time is a text of RFC 3339 or a date. want is the form that the value
// must be, if it is something else. A value from a key is a text whatever its type.
func (a *Attribute) Read(v value.Value, inKey bool) (_ value.Value, want string) {
	k := v.Kind()
	if k == value.Missing || k == value.Null {
		return v, ""
	}
	switch a.Type {
	case TypeTime:
		if t, ok := a.time(v, inKey); ok {
			return t, ""
		}
		return v, a.wantTime()
	case TypeNumber:
		n := v
		if k == value.String && (inKey || a.As == AsText) {
			n, _ = value.ParseNumber(v.Text())
		}
		switch {
		case n.Kind() != value.Number && a.As == AsText:
			return v, "a number as text"
		case n.Kind() != value.Number:
			return v, "a number"
		case a.Whole && checkSummable(n, true) != "":
			return v, wantWhole
		case inKey: // Field.Number says where it is read as one
			return v, ""
		}
		return n, ""
	}
	if fit, limited := fits[a.Type]; limited && !slices.Contains(fit.kinds, k) && !(inKey && k == value.String) {
		return v, fit.want
	}
	return v, ""
}

// fits are the kinds of values that rows may have in an attribute of a type, and the form of a value; a set and a list are
// both lists, as JSON and the SDKs mix them. Any kind will do for a type that is not here.
var fits = map[Type]struct {
	want  string
	kinds []value.Kind
}{
	TypeString:  {"a string", []value.Kind{value.String}},
	TypeCommas:  {"a string", []value.Kind{value.String}},
	TypeBoolean: {"a boolean", []value.Kind{value.Bool}},
	TypeFlag:    {"a flag", []value.Kind{value.String, value.Bool}},
	TypeBinary:  {"binary", []value.Kind{value.Binary}},
	TypeMap:     {"a map", []value.Kind{value.Map}},
	TypeList:    {"a list", []value.Kind{value.List, value.StringSet, value.NumberSet, value.BinarySet}},
	TypeStrings: {"a set of strings", []value.Kind{value.StringSet, value.List}},
	TypeNumbers: {"a set of numbers", []value.Kind{value.NumberSet, value.List}},
}

// wantTime is the form of a value of a time attribute.
func (a *Attribute) wantTime() string {
	switch {
	case a.As != "":
		return "a number of " + string(a.As) + " since 1970"
	case a.Zone == nil:
		return "a time with a zone like 2026-01-31T12:00:00Z, or a date"
	}
	return "a time like 2026-01-31T12:00:00, or a date"
}

// time returns a value as a time. A text that is one already stays as it is.
func (a *Attribute) time(v value.Value, inKey bool) (value.Value, bool) {
	if a.As != "" {
		if inKey && v.Kind() == value.String {
			v, _ = value.ParseNumber(v.Text())
		}
		if v.Kind() != value.Number {
			return v, false
		}
		text, ok := a.As.text(v)
		return value.OfString(text), ok
	}
	if v.Kind() != value.String {
		return v, false
	}
	text, ok := value.ReadTime(v.Text(), a.Zone)
	if text == v.Text() {
		return v, ok
	}
	return value.OfString(text), ok
}

// compileForm compiles how rows have an attribute: as a text or a number of another type, as a whole number, and in
// which zone times are that name none.
func (c *compiler) compileForm(a *Attribute, d *attributeDecl) {
	a.Whole = d.Whole
	if of := forms[a.Type]; d.As.isGiven() && len(of) > 0 && !c.refuseUnknown(d.As, seq.Map(of, func(as As) string { return string(as) }), "a %s is not stored as %q", a.Type, d.As.text) {
		a.As = As(d.As.text)
	}
	if !d.Zone.isGiven() || a.Type != TypeTime {
		return
	}
	zone, err := zoneOf(d.Zone.text)
	switch {
	case a.As != "":
		c.addFlaw(d.Zone.pos, "leave zone out", "numbers since 1970 are in UTC")
	case err != nil:
		c.refuseUnknown(d.Zone, zoneNames(), "%v", err)
	default:
		a.Zone, a.zoneRules = zone, rulesOf(zone)
	}
}

// Store returns a value of the attribute's type in the form in which rows have it.
func (a *Attribute) Store(v value.Value) value.Value {
	switch t, ok := value.Time(v); {
	case a.As == AsText && v.Kind() == value.Number:
		return value.OfString(v.Text())
	case ok && a.As == AsSeconds:
		return value.OfInt(t.Unix())
	case ok && a.As == AsMilliseconds:
		return value.OfInt(t.UnixMilli())
	}
	return v
}

// SameForm reports whether rows have another attribute, which may be nil, in the same form, so that a copy is the
// value as it is.
func (a *Attribute) SameForm(b *Attribute) bool {
	return b != nil && a.Type == b.Type && a.As == b.As && a.zoneRules == b.zoneRules
}

// addUsable appends the rules for values of the field that a derivation can use, and their meaning. It is
// one word, so that it is not taken for the name of an attribute.
func (f *Field) addUsable(x *defined) {
	if a := f.Declared; a != nil && a.Type != TypeAny && (f.Key == nil || a.Type == TypeNumber || a.Type == TypeTime) { // others are texts in a key
		typed := []string{"typed", string(a.Type), string(a.As), a.zoneRules}
		if a.Whole {
			typed = append(typed, "whole")
		}
		x.addLine(strings.Join(typed, ":"))
	}
}

// text is a number since 1970 as a time of RFC 3339. ok is false beyond the years from 0 to 9999.
func (as As) text(v value.Value) (text string, ok bool) {
	second := as.second(v)
	t := time.Unix(second, 0).UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return "", false
	}
	text = t.Format("2006-01-02T15:04:05")
	var rest value.Exact // the rest of a second
	scale := 0
	if as == AsMilliseconds {
		scale = -3
	}
	rest.Add(v, scale)
	rest.Add(value.OfInt(-second), 0)
	n, err := rest.Number()
	if err != nil {
		return "", false
	}
	if _, digits, exp := n.Decimal(); digits != "" {
		text += "." + strings.Repeat("0", max(0, -exp)) + digits
	}
	return text + "Z", true
}
