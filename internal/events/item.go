package events

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"weir/internal/value"
)

// slabSize is how many attributes are allocated at once: 16 KB.
const slabSize = 256

// cut returns n attributes that nobody else has.
func (p *scanner) cut(n int) []value.Attr {
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

// item reads an object of typed attributes, at whose brace the scanner stands;
// depth is how many lists and maps are around it.
func (p *scanner) item(depth int) value.Item {
	base := len(p.stack)
	for more := p.enter('}'); more; more = p.next('}') {
		name := p.name()
		if p.stop != going {
			return nil
		}
		v := p.attribute(depth)
		if p.stop != going {
			return nil
		}
		if p.open {
			p.within(attributeName(name))
		}
		p.stack = append(p.stack, value.Attr{Name: name, Value: v})
	}
	if p.stop != going {
		return nil
	}
	if len(p.stack) == base {
		return value.Item{}
	}
	out := p.sorted(p.cut(len(p.stack)-base), p.stack[base:])
	p.stack = p.stack[:base]
	return out
}

// attributeName is a name as a path shows it.
func attributeName(name string) string {
	if name == "" || strings.ContainsAny(name, ".[]\" \\") || !strconv.CanBackquote(name) {
		return strconv.Quote(name)
	}
	return name
}

// textTag is {"?":" in the lower six bytes of an integer; the third is the tag.
const (
	textTag  = '{' | '"'<<8 | '"'<<24 | ':'<<32 | '"'<<40
	textMask = 0xffff_ff00_ffff
)

// attribute reads one typed value, {"S":"…"}, at whose brace the scanner stands.
// Of one that DynamoDB does not have it notes the problem and returns Missing.
func (p *scanner) attribute(depth int) value.Value {
	b, i := p.b, p.i
	if i+8 > len(b) {
		return p.anyAttribute(depth)
	}
	head := binary.LittleEndian.Uint64(b[i:])
	tag := byte(head >> 16)
	if head&textMask != textTag || tag != 'S' && tag != 'N' {
		return p.anyAttribute(depth)
	}
	p.i += 5
	s := p.str()
	if p.stop == going && p.i < len(b) && b[p.i] == '}' {
		if tag == 'S' {
			p.i++
			return value.OfString(s)
		}
		if v, err := value.NumberFrom(s); err == nil {
			p.i++
			return v
		}
	}
	if p.stop != going {
		return value.Value{}
	}
	p.i = i
	return p.anyAttribute(depth)
}

// anyAttribute is attribute without the short way for compact strings and
// numbers.
func (p *scanner) anyAttribute(depth int) value.Value {
	start, base := p.i, len(p.stack)
	if p.i >= len(p.b) {
		p.short()
		return value.Value{}
	}
	if p.b[p.i] != '{' {
		return p.refuse(start, `expected a typed value such as {"S": "…"}, found `+p.kindAt(p.i))
	}
	if !p.enter('}') {
		if p.stop != going {
			return value.Value{}
		}
		return p.refuse(start, `an empty object; expected a typed value such as {"S": "…"}`)
	}
	tag := p.name()
	if p.stop != going {
		return value.Value{}
	}
	v, msg := p.typed(tag, depth)
	if p.stop != going {
		return value.Value{}
	}
	if msg != "" {
		p.stack = p.stack[:base]
		return p.refuse(start, msg)
	}
	if p.i < len(p.b) && p.b[p.i] == '}' {
		p.i++
		return v
	}
	if p.next('}') {
		return p.refuse(start, "more than one type in one value")
	}
	return v
}

// refuse notes a problem with the value that begins at start, and goes past it.
func (p *scanner) refuse(start int, msg string) value.Value {
	p.note("%s", msg)
	p.i = start
	p.skip()
	return value.Value{}
}

// typed reads what stands after the type's name. It returns a message when that
// is not what the type has, and may then stop anywhere.
func (p *scanner) typed(tag string, depth int) (value.Value, string) {
	c := p.b[p.i]
	switch tag {
	case "S", "N", "B":
		if c != '"' {
			return value.Value{}, fmt.Sprintf("%s: expected a string, found %s", tag, p.kindAt(p.i))
		}
		return p.scalar(tag[0], p.str())
	case "M", "L":
		if depth >= value.MaxDepth {
			return value.Value{}, fmt.Sprintf("lists and maps are nested deeper than %d levels", value.MaxDepth)
		}
		if tag == "L" {
			return p.list(depth)
		}
		if c != '{' {
			return value.Value{}, "M: expected an object, found " + p.kindAt(p.i)
		}
		return value.OfMap(p.item(depth + 1)), ""
	case "BOOL":
		switch c {
		case 't':
			p.literal("true")
		case 'f':
			p.literal("false")
		default:
			return value.Value{}, "BOOL: expected true or false, found " + p.kindAt(p.i)
		}
		return value.OfBool(c == 't'), ""
	case "NULL":
		if c != 't' {
			return value.Value{}, "NULL: expected true"
		}
		p.literal("true")
		return value.OfNull(), ""
	case "SS":
		return p.set(value.StringSet, tag)
	case "NS":
		return p.set(value.NumberSet, tag)
	case "BS":
		return p.set(value.BinarySet, tag)
	}
	return value.Value{}, fmt.Sprintf("%.40q is not a type; the types are S, N, B, BOOL, NULL, M, L, SS, NS and BS", tag)
}

func (p *scanner) scalar(tag byte, s string) (value.Value, string) {
	switch {
	case p.stop != going:
		return value.Value{}, ""
	case tag == 'S':
		return value.OfString(s), ""
	case tag == 'N':
		v, err := value.NumberFrom(s)
		if err != nil {
			return v, err.Error()
		}
		return v, ""
	}
	raw, ok := p.binary(s)
	if !ok {
		return value.Value{}, fmt.Sprintf("B: not base64: %.40q", s)
	}
	return value.OfBinary(raw), ""
}

func (p *scanner) list(depth int) (value.Value, string) {
	if p.b[p.i] != '[' {
		return value.Value{}, "L: expected an array, found " + p.kindAt(p.i)
	}
	base := len(p.stack)
	for more := p.enter(']'); more; more = p.next(']') {
		p.space()
		v := p.attribute(depth + 1)
		if p.stop != going {
			return value.Value{}, ""
		}
		if p.open {
			p.within(fmt.Sprintf("[%d]", len(p.stack)-base))
		}
		p.stack = append(p.stack, value.Attr{Value: v})
	}
	return value.ListFrom(p.elements(base)), ""
}

func (p *scanner) set(kind value.Kind, tag string) (value.Value, string) {
	if p.b[p.i] != '[' {
		return value.Value{}, tag + ": expected an array, found " + p.kindAt(p.i)
	}
	base := len(p.stack)
	for more := p.enter(']'); more; more = p.next(']') {
		switch c := p.space(); {
		case p.stop != going:
			return value.Value{}, ""
		case c != '"':
			return value.Value{}, tag + ": expected strings, found " + p.kindAt(p.i)
		}
		v, msg := p.scalar(tag[0], p.str())
		if p.stop != going || msg != "" {
			return v, msg
		}
		p.stack = append(p.stack, value.Attr{Value: v})
	}
	elems := p.elements(base)
	if len(elems) == 0 {
		return value.Value{}, tag + ": an empty set"
	}
	v, ok := value.SetFrom(kind, elems)
	if !ok {
		return v, fmt.Sprintf("%s: holds %.40q twice", tag, v.Text())
	}
	return v, ""
}

// elements takes what was pushed since base as a list's or a set's elements.
func (p *scanner) elements(base int) []value.Attr {
	if p.stop != going {
		return nil
	}
	out := p.cut(len(p.stack) - base)
	copy(out, p.stack[base:])
	p.stack = p.stack[:base]
	return out
}

// maxQuick is up to how many attributes are sorted by their names' beginnings.
const maxQuick = 48

// order says where an attribute stands, and by what it is sorted.
type order struct {
	prefix uint64
	at     int
}

// sorted puts from into out, which is as long, sorted by name; of two with one
// name the later stays. It returns what of out is used.
func (p *scanner) sorted(out, from []value.Attr) value.Item {
	if len(from) > maxQuick {
		return out[:copy(out, value.NewItem(from...))]
	}
	places := &p.places
	for i := range from {
		name, j := from[i].Name, i
		k := prefix(name)
		for j > 0 && (k < places[j-1].prefix || k == places[j-1].prefix && name < from[places[j-1].at].Name) {
			places[j] = places[j-1]
			j--
		}
		places[j] = order{k, i}
	}
	n := 0
	for i := range from {
		a := &from[places[i].at]
		if n > 0 && out[n-1].Name == a.Name {
			n--
		}
		out[n] = *a
		n++
	}
	return out[:n]
}

// prefix is the first eight bytes of s as an integer that orders like them.
func prefix(s string) uint64 {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64([]byte(s[:8]))
	}
	if n := len(s); n >= 4 { // two halves that overlap agree where they do
		b := []byte(s)
		return uint64(binary.BigEndian.Uint32(b))<<32 | uint64(binary.BigEndian.Uint32(b[n-4:]))<<(8*(8-n))
	}
	var k uint64
	for i := 0; i < len(s); i++ {
		k |= uint64(s[i]) << (56 - 8*i)
	}
	return k
}
