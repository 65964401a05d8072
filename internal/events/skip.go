package events

import "fmt"

// maxNesting is how deep skipped values may be nested. It is the limit of encoding/json.
const maxNesting = 10_000

// skip skips one value of any kind. The scanner must be at its first byte, or at space before it. What
// is no value stops the scanner with the offset at which it is not.
func (p *scanner) skip() { p.skipAt(0) }

// skipAt passes one value over, whatever it is, and holds it to JSON all the same. depth bounds the
// brackets that may be open, so a hostile document cannot exhaust the stack.
func (p *scanner) skipAt(depth int) {
	switch c := p.space(); {
	case c == '"':
		p.str()
	case c == '{' && depth < maxNesting:
		for more := p.enter('}'); more; more = p.next('}') {
			if p.name(); p.stop != going {
				return
			}
			if p.skipAt(depth + 1); p.stop != going {
				return
			}
		}
	case c == '[' && depth < maxNesting:
		for more := p.enter(']'); more; more = p.next(']') {
			if p.skipAt(depth + 1); p.stop != going {
				return
			}
		}
	case c == '{' || c == '[':
		p.syntax(p.i, fmt.Sprintf("more than %d brackets inside each other", maxNesting))
	case c == '-' || c-'0' <= 9:
		p.number()
	case c == 't':
		p.literal("true")
	case c == 'f':
		p.literal("false")
	case c == 'n':
		p.literal("null")
	default:
		p.syntax(p.i, "expected a value, found "+p.found(p.i))
	}
}

// literal skips the given word. The scanner is at its first letter.
func (p *scanner) literal(word string) {
	for k := 1; k < len(word); k++ {
		if p.i+k >= len(p.b) {
			p.short()
			return
		}
		if p.b[p.i+k] != word[k] {
			p.syntax(p.i+k, fmt.Sprintf("expected %s, found %s", word, p.found(p.i+k)))
			return
		}
	}
	p.i += len(word)
}

// number skips a JSON number and returns its text.
// It is stricter than DynamoDB's own numbers, which are texts: this is for numbers of JSON, such as
// times.
func (p *scanner) number() string {
	start := p.i
	if p.b[p.i] == '-' {
		p.i++
	}
	switch {
	case p.at0() == '0':
		p.i++
	default:
		p.digits()
	}
	if p.at0() == '.' {
		p.i++
		p.digits()
	}
	if c := p.at0(); c|' ' == 'e' {
		p.i++
		if c := p.at0(); c == '+' || c == '-' {
			p.i++
		}
		p.digits()
	}
	if p.i >= len(p.b) {
		p.short() // more digits may follow; no known form ends in a number
	}
	return view(p.b[start:p.i])
}

// at0 returns the byte at the scanner's place, 0 at the end.
func (p *scanner) at0() byte {
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}

// digits passes digits over, at least one (RFC 8259, number).
func (p *scanner) digits() {
	start := p.i
	for p.i < len(p.b) && p.b[p.i]-'0' <= 9 {
		p.i++
	}
	switch {
	case p.i > start:
	case p.i >= len(p.b):
		p.short()
	default:
		p.syntax(p.i, "expected a digit, found "+p.found(p.i))
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
