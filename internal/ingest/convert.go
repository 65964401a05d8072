package ingest

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/model"
	"weir/internal/value"
)

// convertValue turns a value as a command gives it into one as rows hold it. The reason says
// why it cannot, "" if it can; it does not tell a value of a hidden attribute.
// v is never changed; out may share its memory.
func convertValue(a *model.Attribute, v value.Value) (out value.Value, reason string) {
	if out, reason = readTyped(a, v); reason == "" {
		return a.Store(out), ""
	}
	if want, _, quotes := strings.Cut(reason, notThis); quotes && a.Hidden {
		reason = want + notThis + model.HiddenText
	}
	return out, reason
}

// notThis stands in a reason before the value that was given.
const notThis = ", not "

// readTyped turns a value as a command gives it into one of the attribute's type.
func readTyped(a *model.Attribute, v value.Value) (out value.Value, reason string) {
	switch a.Type {
	case model.TypeNumber:
		if bound := a.Outside(v); bound != "" {
			return v, reasonUnless(false, v, "must be "+bound)
		}
		if _, want := a.Read(a.Store(v), false); a.Whole && want != "" {
			return v, reasonUnless(false, v, "must be a whole number below 10^27 in size")
		}
		return v, reasonUnless(v.Kind() == value.Number, v, "must be a number")
	case model.TypeBoolean:
		return v, reasonUnless(v.Kind() == value.Bool, v, "must be true or false")
	case model.TypeFlag:
		return readFlag(v)
	case model.TypeTime:
		return readInstant(v)
	case model.TypeBinary:
		return readBinary(v)
	case model.TypeList:
		return v, reasonUnless(v.Kind() == value.List, v, "must be an array")
	case model.TypeMap:
		return v, reasonUnless(v.Kind() == value.Map, v, "must be an object")
	case model.TypeStrings:
		return readSet(value.StringSet, value.String, "texts", v)
	case model.TypeNumbers:
		return readSet(value.NumberSet, value.Number, "numbers", v)
	case model.TypeCommas:
		return splitCommas(v)
	case model.TypeString:
		return readText(a, v)
	}
	if v.Kind() == value.String {
		return readText(a, v)
	}
	return v, ""
}

// reasonUnless is the reason for refusing v, "" if ok.
func reasonUnless(ok bool, v value.Value, want string) string {
	if ok {
		return ""
	}
	return want + notThis + describeValue(v)
}

// readText reads a string attribute: it replaces legacy words by today's, and checks the
// enum and the maximum length.
func readText(a *model.Attribute, v value.Value) (value.Value, string) {
	if v.Kind() != value.String {
		return v, reasonUnless(false, v, "must be a text")
	}
	s := v.Text()
	if a.Reading != nil {
		if today, old := a.Reading.Legacy[s]; old {
			s, v = today, value.OfString(today)
		}
	}
	if len(a.Enum) > 0 && !slices.Contains(a.Enum, s) {
		if meant := model.Meant(s, a.Enum); meant != "" && !a.Hidden {
			return v, "is never " + value.QuoteShort(s) + meant
		}
		return v, "must be one of " + strings.Join(a.Enum, ", ") + notThis + value.QuoteShort(s)
	}
	if a.Max == 0 || len(s) <= a.Max {
		return v, ""
	}
	switch n := utf8.RuneCountInString(s); {
	case n > a.Max && a.Hidden:
		return v, "has more than the " + formatNumber(a.Max) + " characters that are possible"
	case n > a.Max:
		return v, "has " + formatNumber(n) + " characters, " + formatNumber(a.Max) + " are possible"
	}
	return v, ""
}

// readFlag reads a boolean that rows hold as a text.
func readFlag(v value.Value) (value.Value, string) {
	s := value.Scalar(v)
	if v.Kind() == value.Number || s != "true" && s != "false" {
		return v, reasonUnless(false, v, "must be true or false")
	}
	return value.OfString(s), ""
}

// readInstant reads a time. A time in another zone is converted to UTC, so that times sort
// as texts.
func readInstant(v value.Value) (value.Value, string) {
	const want = "must be a time like 2026-01-31T12:00:00Z"
	if v.Kind() != value.String {
		return v, reasonUnless(false, v, want)
	}
	t, err := time.Parse(time.RFC3339Nano, v.Text())
	if text := v.Text(); err != nil || strings.Contains(text, ",") || text[len("2006-01-02T15")] != ':' {
		return v, reasonUnless(false, v, want)
	}
	if strings.HasSuffix(v.Text(), "Z") {
		return v, ""
	}
	t = t.UTC()
	if t.Year() < 0 || t.Year() > 9999 {
		return v, reasonUnless(false, v, want)
	}
	return value.OfString(t.Format(time.RFC3339Nano)), ""
}

// readBinary reads base64, as rows hold bytes.
func readBinary(v value.Value) (value.Value, string) {
	b, err := base64.StdEncoding.Strict().DecodeString(v.Text())
	if v.Kind() != value.String || err != nil {
		return v, reasonUnless(false, v, "must be a text in base64")
	}
	return value.OfBinary(string(b)), ""
}

// readSet reads an array as a set. Rows cannot hold an empty set.
// An element that comes twice is refused and not dropped, because the caller may have meant another
// one.
func readSet(kind, of value.Kind, name string, v value.Value) (value.Value, string) {
	if v.Kind() != value.List {
		return v, reasonUnless(false, v, "must be an array of "+name)
	}
	if v.Len() == 0 {
		return v, "must have an element: no table holds an empty set"
	}
	for _, e := range v.Elements() {
		if e.Value.Kind() != of {
			return v, reasonUnless(false, e.Value, "must be an array of "+name)
		}
	}
	out, ok := value.OfElements(kind, slices.Clone(v.Elements()))
	if !ok {
		return v, "has an element twice"
	}
	return out, ""
}

// splitCommas reads a text that lists values with commas between them, or an array of texts.
// The text is stored as it was given, blanks included.
func splitCommas(v value.Value) (value.Value, string) {
	if v.Kind() == value.String {
		return v, ""
	}
	if v.Kind() != value.List {
		return v, reasonUnless(false, v, "must be a text with commas, or an array of texts")
	}
	var parts []string
	for _, e := range v.Elements() {
		if e.Value.Kind() != value.String || strings.Contains(e.Value.Text(), ",") {
			return v, reasonUnless(false, e.Value, "must be an array of texts without commas")
		}
		parts = append(parts, e.Value.Text())
	}
	return value.OfString(strings.Join(parts, ",")), ""
}

// describeValue names a value for an error message.
func describeValue(v value.Value) string {
	switch v.Kind() {
	case value.Null:
		return "null"
	case value.Map:
		return "an object"
	case value.List:
		return "an array"
	case value.String:
		return value.QuoteShort(v.Text())
	}
	return string(value.AppendPlain(nil, v))
}

// formatNumber is a number for a message.
func formatNumber(n int) string { return strconv.Itoa(n) }
