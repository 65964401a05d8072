package value

import "unsafe"

// Value is one attribute value. The zero Value is Missing. Compare values with Equal, not
// with ==, which compares addresses and not content.
type Value struct {
	// at points to the first byte of a String, Number or Binary, or to the first element
	// of a List, Map or set. It is nil if there is none. Rows consist mostly of values, and
	// this form takes a third of the memory of a string and a slice.
	at unsafe.Pointer
	// head holds the kind in its lowest bits and, above them, the number of bytes or
	// elements; for a Bool, 1 for true.
	head uint64
}

const kindBits = 8

// ofText is a value that shares the memory of s.
func ofText(k Kind, s string) Value {
	return Value{at: unsafe.Pointer(unsafe.StringData(s)), head: uint64(len(s))<<kindBits | uint64(k)}
}

// ofKids returns a List or a set of unnamed elements, or a Map. It takes ownership of kids.
func ofKids(k Kind, kids []Attr) Value {
	return Value{at: unsafe.Pointer(unsafe.SliceData(kids)), head: uint64(len(kids))<<kindBits | uint64(k)}
}

// Kind returns the value's kind, Missing for the zero Value.
func (v Value) Kind() Kind { return Kind(v.head & (1<<kindBits - 1)) }

// size is the length of the text in bytes, or the number of elements, or 1 for true.
func (v Value) size() int { return int(v.head >> kindBits) }

// text returns the content. Call it only for a Number, String or Binary.
func (v Value) text() string { return unsafe.String((*byte)(v.at), v.size()) }

// kids returns the elements. Call it only for a List, a Map or a set.
func (v Value) kids() []Attr { return unsafe.Slice((*Attr)(v.at), v.size()) }

// isText reports whether a value of the kind is a string of bytes.
func (k Kind) isText() bool { return k == Number || k == String || k == Binary }

// hasKids reports whether a value of the kind consists of other values.
func (k Kind) hasKids() bool { return k >= List }
