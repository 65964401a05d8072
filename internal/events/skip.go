package events

import "fmt"

// maxNesting is how deep skipped values may be nested. It is the limit of encoding/json.
const maxNesting = 10_000

// skipValue skips one value of any kind. The scanner must be at its first byte, or at space before it. What
// is no value stops the scanner with the offset at which it is not.
func (p *scanner) skipValue() { p.skipAt(0) }

// skipAt passes one value over, whatever it is, and holds it to JSON all the same. depth bounds the
// brackets that may be open, so a hostile document cannot exhaust the stack.
func (p *scanner) skipAt(depth int) {
	switch c := p.skipSpace(); {
	case c == '"':
		p.readString()
	case c == '{' && depth < maxNesting:
		for more := p.enterBracket('}'); more; more = p.nextMember('}') {
			if p.readName(); p.stop != going {
				return
			}
			if p.skipAt(depth + 1); p.stop != going {
				return
			}
		}
	case c == '[' && depth < maxNesting:
		for more := p.enterBracket(']'); more; more = p.nextMember(']') {
			if p.skipAt(depth + 1); p.stop != going {
				return
			}
		}
	case c == '{' || c == '[':
		p.syntaxError(p.i, fmt.Sprintf("more than %d brackets inside each other", maxNesting))
	case c == '-' || c-'0' <= 9:
		p.readNumber()
	case c == 't':
		p.skipLiteral("true")
	case c == 'f':
		p.skipLiteral("false")
	case c == 'n':
		p.skipLiteral("null")
	default:
		p.syntaxError(p.i, "expected a value, found "+p.describeInput(p.i))
	}
}

// skipLiteral skips the given word. The scanner is at its first letter.
func (p *scanner) skipLiteral(word string) {
	for k := 1; k < len(word); k++ {
		if p.i+k >= len(p.b) {
			p.stopShort()
			return
		}
		if p.b[p.i+k] != word[k] {
			p.syntaxError(p.i+k, fmt.Sprintf("expected %s, found %s", word, p.describeInput(p.i+k)))
			return
		}
	}
	p.i += len(word)
}

// readNumber skips a JSON number and returns its text.
// It is stricter than DynamoDB's own numbers, which are texts: this is for numbers of JSON, such as
// times.
func (p *scanner) readNumber() string {
	start := p.i
	if p.b[p.i] == '-' {
		p.i++
	}
	switch {
	case p.at0() == '0':
		p.i++
	default:
		p.skipDigits()
	}
	if p.at0() == '.' {
		p.i++
		p.skipDigits()
	}
	if c := p.at0(); c|' ' == 'e' {
		p.i++
		if c := p.at0(); c == '+' || c == '-' {
			p.i++
		}
		p.skipDigits()
	}
	if p.i >= len(p.b) {
		p.stopShort() // more digits may follow; no known form ends in a number
	}
	return stringOf(p.b[start:p.i])
}

// at0 returns the byte at the scanner's place, 0 at the end.
func (p *scanner) at0() byte {
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}

// skipDigits passes digits over, at least one (RFC 8259, number).
func (p *scanner) skipDigits() {
	start := p.i
	for p.i < len(p.b) && p.b[p.i]-'0' <= 9 {
		p.i++
	}
	switch {
	case p.i > start:
	case p.i >= len(p.b):
		p.stopShort()
	default:
		p.syntaxError(p.i, "expected a digit, found "+p.describeInput(p.i))
	}
}

// kindAt names the kind of the JSON value at i, for messages.
func (p *scanner) kindAt(i int) string {
	if i >= len(p.b) {
		return "nothing"
	}
	switch p.b[i] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
