package value

import (
	"encoding/base64"
	"fmt"
	"strconv"
)

// Scalar returns the text of a value for use inside a key: the text of a string or number,
// "true" or "false" for a boolean, and "" for any other kind.
func Scalar(v Value) string {
	switch v.Kind() {
	case String, Number:
		return v.Text()
	case Bool:
		if v.Bool() {
			return "true"
		}
		return "false"
	}
	return ""
}

// ParseAs returns the value of a kind that a text is: a number as people write it, a binary in base64, and for every other
// kind the text itself.
func ParseAs(kind Kind, text string) (Value, error) {
	switch kind {
	case Number:
		return ParseNumber(text)
	case Binary:
		b, err := base64.StdEncoding.DecodeString(text)
		return OfBinary(string(b)), err
	}
	return OfString(text), nil
}

// QuoteShort quotes a text for a message. One of more than 40 characters ends in …, since the beginning of a number is another number.
func QuoteShort(s string) string {
	if short := fmt.Sprintf("%.40s", s); short != s {
		s = short + "…"
	}
	return strconv.Quote(s)
}
