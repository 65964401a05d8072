package events

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"weir/internal/value"
)

// slabSize is how many attributes are allocated together: 16 KB.
const slabSize = 256

// cutAttributes returns n fresh attributes from the slab. The caller owns them.
func (p *scanner) cutAttributes(n int) []value.Attr {
	if n > len(p.slab) {
		if n > slabSize/4 {
			return make([]value.Attr, n)
		}
		p.slab = make([]value.Attr, slabSize)
	}
	out := p.slab[:n:n]
	p.slab = p.slab[n:]
	return out
}

// readItem reads an object of typed attributes. The scanner must be at its brace. depth is the
// number of lists and maps around it.
func (p *scanner) readItem(depth int) value.Item {
	base := len(p.stack)
	for more := p.enterBracket('}'); more; more = p.nextMember('}') {
		name := p.readName()
		if p.stop != going {
			return nil
		}
		before := p.prob
		v := p.readAttribute(depth)
		if p.stop != going {
			return nil
		}
		if p.prob != before {
			p.addPath(attributeName(name), before)
		}
		p.stack = append(p.stack, value.Attr{Name: name, Value: v})
	}
	if p.stop != going {
		return nil
	}
	if len(p.stack) == base {
		return value.Item{}
	}
	out := p.cutAttributes(len(p.stack) - base)
	out = out[:copy(out, value.NewItem(p.stack[base:]...))]
	p.stack = p.stack[:base]
	return out
}

// attributeName returns a name in the form that paths in messages use.
func attributeName(name string) string {
	if name == "" || strings.ContainsAny(name, ".[]\" \\") || !strconv.CanBackquote(name) {
		return strconv.Quote(name)
	}
	return name
}

// shortTag is {"?": in the lower five bytes of an integer; the third is the tag.
const (
	shortTag     = '{' | '"'<<8 | '"'<<24 | ':'<<32
	shortTagMask = 0xff_ff00_ffff
)

// readAttribute reads one typed value, {"S":"…"}. The scanner must be at its brace. For a value
// that DynamoDB does not allow it notes the problem and returns Missing.
func (p *scanner) readAttribute(depth int) value.Value {
	b, i := p.b, p.i
	if i+8 > len(b) {
		return p.anyAttribute(depth)
	}
	head := binary.LittleEndian.Uint64(b[i:])
	if head&shortTagMask != shortTag {
		return p.anyAttribute(depth)
	}
	tag, next := byte(head>>16), byte(head>>40)
	if next <= ' ' {
		return p.anyAttribute(depth)
	}
	p.i += 5
	if next == '"' && (tag == 'S' || tag == 'N') {
		s := p.readString()
		if p.stop == going && p.i < len(b) && b[p.i] == '}' {
			if tag == 'S' {
				p.i++
				return value.OfString(s)
			}
			if v, err := value.ParseNumber(s); err == nil {
				p.i++
				return v
			}
		}
		if p.stop != going {
			return value.Value{}
		}
		p.i = i + 5
	}
	return p.readTagged(i, stringOf(b[i+2:i+3]), depth)
}

// anyAttribute is attribute for JSON that is not compact.
func (p *scanner) anyAttribute(depth int) value.Value {
	start := p.i
	if p.i >= len(p.b) {
		p.stopShort()
		return value.Value{}
	}
	if p.b[p.i] != '{' {
		return p.refuseValue(start, `expected a typed value such as {"S": "…"}, found `+p.kindAt(p.i))
	}
	if !p.enterBracket('}') {
		if p.stop != going {
			return value.Value{}
		}
		return p.refuseValue(start, `an empty object; expected a typed value such as {"S": "…"}`)
	}
	tag := p.readName()
	if p.stop != going {
		return value.Value{}
	}
	return p.readTagged(start, tag, depth)
}

// readTagged reads the rest, after the colon, of the typed value that begins at start.
// A wrong value ends only the record; the scanner goes on behind it if the JSON is good.
func (p *scanner) readTagged(start int, tag string, depth int) value.Value {
	base := len(p.stack)
	for isSmallTag(tag) && p.b[p.i] == 'n' { // another field has the value
		p.skipLiteral("null")
		if p.stop == going && !p.nextMember('}') {
			if p.stop != going {
				return value.Value{}
			}
			return p.refuseValue(start, "a value without a type")
		}
		if p.stop == going {
			tag = p.readName()
		}
		if p.stop != going {
			return value.Value{}
		}
	}
	v, msg := p.readTyped(tag, depth)
	if p.stop != going {
		return value.Value{}
	}
	if msg != "" {
		p.stack = p.stack[:base]
		return p.refuseValue(start, msg)
	}
	if p.i < len(p.b) && p.b[p.i] == '}' {
		p.i++
		return v
	}
	for p.nextMember('}') {
		if !isSmallTag(p.readName()) || p.stop != going || p.b[p.i] != 'n' {
			if p.stop != going {
				return value.Value{}
			}
			return p.refuseValue(start, "more than one type in one value")
		}
		p.skipLiteral("null")
	}
	return v
}

// refuseValue notes a problem with the value that begins at start, and skips the value.
func (p *scanner) refuseValue(start int, msg string) value.Value {
	p.noteProblem("%s", msg)
	p.i = start
	p.skipValue()
	return value.Value{}
}

// readTyped reads the value after the type's name. If it does not fit the type, typed returns a
// message, and the scanner may be anywhere.
func (p *scanner) readTyped(tag string, depth int) (value.Value, string) {
	c := p.b[p.i]
	switch tag {
	case "S", "N", "B":
		if c != '"' {
			return value.Value{}, fmt.Sprintf("%s: expected a string, found %s", tag, p.kindAt(p.i))
		}
		return p.scalarValue(tag[0], p.readString())
	case "M", "L":
		if depth >= value.MaxDepth {
			return value.Value{}, fmt.Sprintf("lists and maps are nested deeper than %d levels", value.MaxDepth)
		}
		if tag == "L" {
			return p.decodeList(depth)
		}
		if c != '{' {
			return value.Value{}, "M: expected an object, found " + p.kindAt(p.i)
		}
		return value.OfMap(p.readItem(depth + 1)), ""
	case "BOOL":
		switch c {
		case 't':
			p.skipLiteral("true")
		case 'f':
			p.skipLiteral("false")
		default:
			return value.Value{}, "BOOL: expected true or false, found " + p.kindAt(p.i)
		}
		return value.OfBool(c == 't'), ""
	case "NULL":
		if c != 't' {
			return value.Value{}, "NULL: expected true"
		}
		p.skipLiteral("true")
		return value.OfNull(), ""
	case "SS":
		return p.decodeSet(value.StringSet, tag)
	case "NS":
		return p.decodeSet(value.NumberSet, tag)
	case "BS":
		return p.decodeSet(value.BinarySet, tag)
	}
	if isSmallTag(tag) {
		return p.readTyped(strings.TrimSuffix(foldedName(smallTags, tag), "VALUE"), depth)
	}
	return value.Value{}, fmt.Sprintf("%.40q is not a type; the types are S, N, B, BOOL, NULL, M, L, SS, NS and BS", tag)
}

// smallTags are the types as the serializers of Java functions may spell them, in any case: "s", "bOOL", "nullValue".
// Their form of a value has a field for each type, and null in all but one.
var smallTags = []string{"S", "N", "B", "BOOL", "NULL", "NULLVALUE", "M", "L", "SS", "NS", "BS"}

// isSmallTag reports whether a type is spelled as in smallTags and not as by DynamoDB.
func isSmallTag(tag string) bool {
	known := foldedName(smallTags, tag)
	return known != "" && (known != tag || known == "NULLVALUE")
}

// scalarValue makes the value of a text, a number or a binary. The second result is the fault of
// it, "" for nothing: the JSON is good, and only this record is bad.
func (p *scanner) scalarValue(tag byte, s string) (value.Value, string) {
	switch {
	case p.stop != going:
		return value.Value{}, ""
	case tag == 'S':
		return value.OfString(s), ""
	case tag == 'N':
		v, err := value.ParseNumber(s)
		if err != nil {
			return v, err.Error()
		}
		return v, ""
	}
	raw, ok := p.decodeBinary(s)
	if !ok {
		return value.Value{}, fmt.Sprintf("B: not base64: %.40q", s)
	}
	return value.OfBinary(raw), ""
}
