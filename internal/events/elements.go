package events

import (
	"fmt"

	"weir/internal/value"
)

// decodeList decodes a list. A value that is no DynamoDB value is a problem of this record only; text
// that is not JSON ends the file.
func (p *scanner) decodeList(depth int) (value.Value, string) {
	if p.b[p.i] != '[' {
		return value.Value{}, "L: expected an array, found " + p.kindAt(p.i)
	}
	base := len(p.stack)
	for more := p.enterBracket(']'); more; more = p.nextMember(']') {
		p.skipSpace()
		before := p.prob
		v := p.readAttribute(depth + 1)
		if p.stop != going {
			return value.Value{}, ""
		}
		if p.prob != before {
			p.addPath(fmt.Sprintf("[%d]", len(p.stack)-base), before)
		}
		p.stack = append(p.stack, value.Attr{Value: v})
	}
	v, _ := value.OfElements(value.List, p.takeElements(base))
	return v, ""
}

// decodeSet decodes a set of strings, numbers or binary values; tag is its type in DynamoDB's JSON. Elements that are equal
// are a problem, also two spellings of one number.
func (p *scanner) decodeSet(kind value.Kind, tag string) (value.Value, string) {
	if p.b[p.i] != '[' {
		return value.Value{}, tag + ": expected an array, found " + p.kindAt(p.i)
	}
	base := len(p.stack)
	for more := p.enterBracket(']'); more; more = p.nextMember(']') {
		switch c := p.skipSpace(); {
		case p.stop != going:
			return value.Value{}, ""
		case c != '"':
			return value.Value{}, tag + ": expected strings, found " + p.kindAt(p.i)
		}
		v, msg := p.scalarValue(tag[0], p.readString())
		if p.stop != going || msg != "" {
			return v, msg
		}
		p.stack = append(p.stack, value.Attr{Value: v})
	}
	elems := p.takeElements(base)
	if len(elems) == 0 {
		return value.Value{}, tag + ": an empty set"
	}
	v, ok := value.OfElements(kind, elems)
	if !ok {
		return v, fmt.Sprintf("%s: holds %.40q twice", tag, v.Text())
	}
	return v, ""
}

// takeElements returns the values that were pushed since base, as the elements of a list or set.
func (p *scanner) takeElements(base int) []value.Attr {
	if p.stop != going {
		return nil
	}
	out := p.cutAttributes(len(p.stack) - base)
	copy(out, p.stack[base:])
	p.stack = p.stack[:base]
	return out
}
