package value

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// AppendPlain appends the value as plain JSON without types: numbers with all digits, sets
// as sorted arrays, binary as base64.
func AppendPlain(b []byte, v Value) []byte {
	switch v.Kind() {
	case Missing, Null:
		return append(b, "null"...)
	case Bool:
		return strconv.AppendBool(b, v.Bool())
	case Number:
		return append(b, v.text()...)
	case String:
		return appendQuoted(b, v.text())
	case Binary:
		return appendBase64(b, v.text())
	case Map:
		return AppendPlainItem(b, v.kids())
	default:
		b = append(b, '[')
		for i, e := range v.kids() {
			if i > 0 {
				b = append(b, ',')
			}
			b = AppendPlain(b, e.Value)
		}
		return append(b, ']')
	}
}

// AppendPlainItem appends the item as a plain JSON object, sorted by name.
func AppendPlainItem(b []byte, it Item) []byte { return appendObject(b, it, AppendPlain) }

// appendObject appends the item as a JSON object, with its values in a form.
func appendObject(b []byte, it Item, form func([]byte, Value) []byte) []byte {
	b = append(b, '{')
	for i, a := range it {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, a.Name), ':')
		b = form(b, a.Value)
	}
	return append(b, '}')
}

// AppendTyped appends the value in DynamoDB JSON, {"S":"…"}.
func AppendTyped(b []byte, v Value) []byte {
	b = append(b, `{"`...)
	b = append(b, v.Kind().Descriptor()...)
	b = append(b, `":`...)
	switch v.Kind() {
	case Null:
		b = append(b, "true"...)
	case Bool:
		b = strconv.AppendBool(b, v.Bool())
	case Number, String:
		b = appendQuoted(b, v.text())
	case Binary:
		b = appendBase64(b, v.text())
	case Map:
		b = AppendTypedItem(b, v.kids())
	default:
		b = append(b, '[')
		for i, e := range v.kids() {
			if i > 0 {
				b = append(b, ',')
			}
			switch {
			case v.Kind() == List:
				b = AppendTyped(b, e.Value)
			case v.Kind() == BinarySet:
				b = appendBase64(b, e.Value.Text())
			default:
				b = appendQuoted(b, e.Value.Text())
			}
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// AppendTypedItem appends the item in DynamoDB JSON, sorted by name.
func AppendTypedItem(b []byte, it Item) []byte { return appendObject(b, it, AppendTyped) }

// appendBase64 appends bytes as a JSON text in base64 (RFC 4648, with padding), as DynamoDB's JSON
// has them.
func appendBase64(b []byte, s string) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, []byte(s))
	return append(b, '"')
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string. Bytes that are not UTF-8 become the replacement
// character U+FFFD.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += n
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// MarshalJSON is AppendPlain. It lets encoding/json write a Value inside other JSON.
func (v Value) MarshalJSON() ([]byte, error) { return AppendPlain(nil, v), nil }

// MarshalJSON is AppendPlainItem. A nil Item, which means "no row", becomes null.
func (it Item) MarshalJSON() ([]byte, error) {
	if it == nil {
		return []byte("null"), nil
	}
	return AppendPlainItem(nil, it), nil
}
