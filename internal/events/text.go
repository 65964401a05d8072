package events

import (
	"encoding/base64"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// stringOf returns a string that shares b's memory.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// strOdd continues to read a string at i, where it is not plain ASCII.
// Bytes that are no UTF-8 become U+FFFD, as in encoding/json.
func (p *scanner) strOdd(start, i int) string {
	b := p.b
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			p.i = i + 1
			return stringOf(b[start:i])
		case c == '\\':
			return p.strCopy(start, i)
		case c < ' ':
			p.syntaxError(i, "a control character inside a string: "+p.describeInput(i))
			return ""
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				if !utf8.FullRune(b[i:]) {
					p.stopShort()
					return ""
				}
				return p.strCopy(start, i)
			}
			i += n
		}
	}
	p.stopShort()
	return ""
}

// strCopy continues to read a string at i, where its text differs from its JSON. It resolves
// escapes, and replaces each byte that is not UTF-8 and each unpaired surrogate by U+FFFD.
func (p *scanner) strCopy(start, i int) string {
	b := p.b
	out := append(p.bytesFor(2*(i-start)+64), b[start:i]...)
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			p.i = i + 1
			p.text = out[len(out):]
			return stringOf(out)
		case c < ' ':
			p.syntaxError(i, "a control character inside a string: "+p.describeInput(i))
			return ""
		case c == '\\':
			var n int
			if out, n = p.readEscape(out, i); n == 0 {
				return ""
			}
			i += n
		case c < utf8.RuneSelf:
			n := plainRun(b[i:])
			out = append(out, b[i:i+n]...)
			i += n
		default:
			r, n := utf8.DecodeRune(b[i:])
			out = utf8.AppendRune(out, r)
			i += n
		}
	}
	p.stopShort()
	return ""
}

// plainRun returns how many bytes at the beginning of b need no conversion.
func plainRun(b []byte) int {
	for i, c := range b {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return len(b)
}

// readEscape appends the text of the escape at i and returns its length in the JSON, 0 if it is
// not valid.
func (p *scanner) readEscape(out []byte, i int) ([]byte, int) {
	b := p.b[i:]
	if len(b) < 2 {
		p.stopShort()
		return out, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return append(out, b[1]), 2
	case 'b':
		return append(out, '\b'), 2
	case 'f':
		return append(out, '\f'), 2
	case 'n':
		return append(out, '\n'), 2
	case 'r':
		return append(out, '\r'), 2
	case 't':
		return append(out, '\t'), 2
	case 'u':
		r := decodeUnit16(b)
		if r < 0 {
			if len(b) < 6 {
				p.stopShort()
			} else {
				p.syntaxError(i, `\u without four hexadecimal digits`)
			}
			return out, 0
		}
		if !utf16.IsSurrogate(r) {
			return utf8.AppendRune(out, r), 6
		}
		if pair := utf16.DecodeRune(r, decodeUnit16(b[6:])); pair != utf8.RuneError {
			return utf8.AppendRune(out, pair), 12
		}
		return utf8.AppendRune(out, utf8.RuneError), 6
	}
	p.syntaxError(i, "an escape that JSON does not have: \\"+string(rune(b[1])))
	return out, 0
}

// decodeUnit16 is the number of an escape \uXXXX at the beginning of b, -1 for none.
// Half of a surrogate pair is returned as it is.
func decodeUnit16(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|' ' >= 'a' && c|' ' <= 'f':
			c = c | ' ' - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// bytesFor returns an empty slice with a capacity of at least n bytes. A small one is cut from a
// shared block; the caller must set p.text to the part that it does not use.
func (p *scanner) bytesFor(n int) []byte {
	if n > cap(p.text) {
		p.text = make([]byte, 0, max(n, 4<<10))
	}
	return p.text[:0]
}

// decodeBinary decodes base64 like encoding/json: with padding, and ignoring line breaks.
func (p *scanner) decodeBinary(s string) (string, bool) {
	n := base64.StdEncoding.DecodedLen(len(s))
	out := p.bytesFor(n)
	n, err := base64.StdEncoding.Decode(out[:n], unsafe.Slice(unsafe.StringData(s), len(s)))
	if err != nil {
		return "", false
	}
	p.text = out[n:n]
	return stringOf(out[:n]), true
}
