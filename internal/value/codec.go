package value

import (
	"encoding/binary"
	"errors"
	"unsafe"
)

// The stored form of an item is its number of attributes and then, for each attribute, its
// name and value. A value is a kind byte, followed by nothing, by a length and bytes, or by
// a count and elements, depending on the kind. Lengths and counts are unsigned varints.
// Equal items have equal bytes, so stored forms may be compared bytewise.

// ErrCorrupt means that stored bytes are not an item: they are truncated, damaged, or were
// written by something else.
var ErrCorrupt = errors.New("stored item is corrupt")

// MaxDepth is how deep lists and maps may be nested. DynamoDB allows 32 levels and counts
// the innermost value as one of them.
const MaxDepth = 31

// AppendItem appends the stored form of a non-nil item.
func AppendItem(b []byte, it Item) []byte {
	b = binary.AppendUvarint(b, uint64(len(it)))
	for i := range it {
		b = appendString(b, it[i].Name)
		b = appendValue(b, it[i].Value)
	}
	return b
}

// appendString appends a text behind its length.
func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendValue appends a value behind its kind. The form is stored in data directories: a change
// needs another format there.
func appendValue(b []byte, v Value) []byte {
	b = append(b, byte(v.Kind()))
	switch v.Kind() {
	case Missing, Null:
	case Bool:
		b = append(b, byte(v.size()))
	case Number, String, Binary:
		b = appendString(b, v.text())
	case Map:
		b = AppendItem(b, v.kids())
	default:
		b = binary.AppendUvarint(b, uint64(len(v.kids())))
		for i := range v.kids() {
			b = appendValue(b, v.kids()[i].Value)
		}
	}
	return b
}

// DecodeItem decodes a stored item and returns the bytes after it. The item shares b's
// memory, which must not change while the item is in use. The error is ErrCorrupt.
func DecodeItem(b []byte) (Item, []byte, error) {
	d := decoder{rest: b}
	it := d.decodeItem(0)
	if d.bad {
		return nil, nil, ErrCorrupt
	}
	return it, d.rest, nil
}

// decoder reads a stored form. After a failure bad is true and every further read returns
// a zero value.
type decoder struct {
	rest []byte
	bad  bool
	slab []Attr // small slices are cut from it, so that a row costs few allocations
}

// attrs returns room for n attributes from a slab, which lives as long as any value in it. n
// comes from stored bytes, so it is bounded by the rest of them.
func (d *decoder) attrs(n int) []Attr {
	if n > len(d.rest) { // every attribute takes at least a byte
		d.bad = true
		return nil
	}
	if n > len(d.slab) {
		d.slab = make([]Attr, max(n, min(16, len(d.rest)/16))) // the size of small attributes, so that few bytes are left over
	}
	out := d.slab[:n:n]
	d.slab = d.slab[n:]
	return out
}

// decodeLength reads a length. One above 2 GB is damage.
func (d *decoder) decodeLength() int {
	n, w := binary.Uvarint(d.rest)
	if w <= 0 || n > 1<<31 {
		d.bad = true
		return 0
	}
	d.rest = d.rest[w:]
	return int(n)
}

// str returns a text that shares the decoded bytes: the caller must not change them while a
// value lives.
func (d *decoder) str() string {
	n := d.decodeLength()
	if n > len(d.rest) {
		d.bad = true
	}
	if d.bad || n == 0 {
		return ""
	}
	s := unsafe.String(&d.rest[0], n)
	d.rest = d.rest[n:]
	return s
}

// decodeItem reads attributes with their names, an empty map as one that is not nil.
func (d *decoder) decodeItem(depth int) Item {
	n := d.decodeLength()
	attrs := d.attrs(n)
	for i := range attrs {
		if d.bad {
			return nil
		}
		attrs[i].Name = d.str()
		attrs[i].Value = d.decodeValue(depth)
	}
	if attrs == nil {
		attrs = Item{}
	}
	return attrs
}

// decodeValue decodes one value. Bad bytes, and nesting beyond MaxDepth, set bad; everything after
// that is empty.
func (d *decoder) decodeValue(depth int) Value {
	if len(d.rest) == 0 || depth > MaxDepth+1 {
		d.bad = true
	}
	if d.bad {
		return Value{}
	}
	k := Kind(d.rest[0])
	d.rest = d.rest[1:]
	switch k {
	case Missing, Null:
		return Value{head: uint64(k)}
	case Bool:
		if len(d.rest) == 0 {
			d.bad = true
			return Value{}
		}
		v := OfBool(d.rest[0] != 0)
		d.rest = d.rest[1:]
		return v
	case Number, String, Binary:
		return ofText(k, d.str())
	case Map:
		return ofKids(k, d.decodeItem(depth+1))
	case List, StringSet, NumberSet, BinarySet:
		kids := d.attrs(d.decodeLength())
		for i := range kids {
			kids[i].Value = d.decodeValue(depth + 1)
			if k != List && kids[i].Value.Kind() != elementKind(k) {
				d.bad = true
			}
		}
		return ofKids(k, kids)
	}
	d.bad = true
	return Value{}
}
