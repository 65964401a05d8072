package events

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"

	"weir/internal/value"
)

// scanner reads JSON in one pass from a buffer that may hold only the beginning of the
// input. It is as strict as encoding/json about syntax. A read that fails sets stop, and
// nothing may be read after that: the caller starts again, with more bytes, from a place
// that it remembers.
//
// A well-formed value that is invalid for DynamoDB (a number "abc") does not stop the scan.
// The scanner notes the first such problem with its path and goes on.
type scanner struct {
	b    []byte
	i    int
	stop stopped
	why  string // for stopSyntax
	at   int    // for stopSyntax, where in b

	prob *problem // the first one

	stack []value.Attr // attributes of the objects being read
	slab  []value.Attr // from which items are cut, so that a record costs few allocations
	text  []byte       // from which unescaped strings and binaries are cut

	arn, arnTable string // the last stream's ARN and its table
	source        string // the first eventSource, whose record it may be
}

// stopped says why the scanner stopped. Nothing may be read unless it is going.
type stopped uint8

const (
	going      stopped = iota
	stopShort          // the buffer ends inside a value
	stopSyntax         // this is not JSON
)

// problem is a value that JSON allows and DynamoDB does not.
type problem struct{ path, msg string }

// Error begins with where in the record the problem is.
func (e *problem) Error() string {
	if e.path == "" {
		return e.msg
	}
	return e.path + ": " + e.msg
}

// resetTo makes the scanner read buf, beginning at i.
func (p *scanner) resetTo(buf []byte, i int) {
	p.b, p.i, p.stop, p.prob = buf, i, going, nil
	p.stack = p.stack[:0]
}

// syntaxError stops the scanner because of a syntax error, unless it has stopped already.
func (p *scanner) syntaxError(at int, why string) {
	if p.stop == going {
		p.stop, p.at, p.why = stopSyntax, at, why
	}
}

// stopShort stops the scanner because the buffer ends too early, unless it has stopped already.
func (p *scanner) stopShort() {
	if p.stop == going {
		p.stop = stopShort
	}
}

// noteProblem records a problem, unless one is recorded already.
func (p *scanner) noteProblem(format string, args ...any) {
	if p.prob == nil {
		p.prob = &problem{msg: fmt.Sprintf(format, args...)}
	}
}

// addPath adds the enclosing name to the path of a problem, if the problem is new since
// before.
func (p *scanner) addPath(name string, before *problem) {
	if p.prob == before {
		return
	}
	switch path := p.prob.path; {
	case path == "":
		p.prob.path = name
	case path[0] == '[':
		p.prob.path = name + path
	default:
		p.prob.path = name + "." + path
	}
}

// skipSpace skips white space and returns the byte after it. At the end it sets stop and returns
// 0.
func (p *scanner) skipSpace() byte {
	b, i := p.b, p.i
	for i < len(b) {
		if c := b[i]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			p.i = i
			return c
		}
		i++
	}
	p.i = i
	p.stopShort()
	return 0
}

// skipByte skips white space and the byte c.
func (p *scanner) skipByte(c byte, after string) {
	if got := p.skipSpace(); got == c {
		p.i++
	} else {
		p.syntaxError(p.i, fmt.Sprintf("expected %q %s, found %s", c, after, p.describeInput(p.i)))
	}
}

// describeInput describes the input at i, for messages.
func (p *scanner) describeInput(i int) string {
	if i >= len(p.b) {
		return "the end"
	}
	if c := p.b[i]; c >= utf8.RuneSelf {
		return fmt.Sprintf("byte 0x%02X", c)
	}
	return fmt.Sprintf("%q", p.b[i])
}

// enterBracket goes into an object or an array and reports whether it has members. The scanner must
// be at the opening bracket.
func (p *scanner) enterBracket(end byte) bool {
	p.i++
	if p.skipSpace() == end {
		p.i++
		return false
	}
	return p.stop == going
}

// nextMember skips the comma before the next member and reports true, or skips the closing bracket
// and reports false.
func (p *scanner) nextMember(end byte) bool {
	if p.i >= len(p.b) || p.b[p.i] != ',' {
		if c := p.skipSpace(); c != ',' {
			if c == end {
				p.i++
			} else {
				p.syntaxError(p.i, fmt.Sprintf("expected ',' or %q, found %s", end, p.describeInput(p.i)))
			}
			return false
		}
	}
	p.i++
	return true
}

// readName reads a member's name and the colon, and stops before its value.
func (p *scanner) readName() string {
	if c := p.skipSpace(); c != '"' {
		p.syntaxError(p.i, "expected a name in quotes, found "+p.describeInput(p.i))
		return ""
	}
	s := p.readString()
	if p.i < len(p.b) && p.b[p.i] == ':' {
		p.i++
	} else {
		p.skipByte(':', "after a name")
	}
	if p.i >= len(p.b) || p.b[p.i] <= ' ' {
		p.skipSpace()
	}
	return s
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// readString reads a string. The scanner must be at its quote. The result shares the buffer's memory
// unless the string has escapes or bytes that are not UTF-8.
func (p *scanner) readString() string {
	b, start := p.b, p.i+1
	i := start
	for i+8 <= len(b) {
		// A byte's high bit is set for a quote, a backslash, a control character
		// and a byte outside ASCII; above the first such byte bits may be wrong.
		w := binary.LittleEndian.Uint64(b[i:])
		m := (w | (w - ' '*lows) | ((w ^ '"'*lows) - lows) | ((w ^ '\\'*lows) - lows)) & highs
		if m != 0 {
			i += bits.TrailingZeros64(m) >> 3
			if b[i] == '"' {
				p.i = i + 1
				return stringOf(b[start:i])
			}
			return p.strOdd(start, i)
		}
		i += 8
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '\\' && b[i] < utf8.RuneSelf {
		if b[i] == '"' {
			p.i = i + 1
			return stringOf(b[start:i])
		}
		i++
	}
	return p.strOdd(start, i)
}
