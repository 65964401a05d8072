package search

import (
	"fmt"
	"strings"
)

// PlainName returns a name for a place where only lower-case letters, digits, "-" and "_"
// are safe: every other byte is written in the given format. Different names stay
// different, because the format begins with a character that is never kept.
func PlainName(name, format string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, format, c)
		}
	}
	return b.String()
}
