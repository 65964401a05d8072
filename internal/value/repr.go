package value

import "unsafe"

// Value is one attribute value; the zero Value is Missing. Values may not be
// compared with ==, which says nothing about content: see Equal.
type Value struct {
	// Of a String, Number or Binary the content's first byte, of a List, a Map or a
	// set its first element; nil where there is none. Rows are mostly values, and
	// this takes a third of what a string and a slice would.
	at unsafe.Pointer
	// The kind, and above it the number of bytes or elements; of a Bool 1 for true.
	head uint64
}

const kindBits = 8

func ofText(k Kind, s string) Value {
	return Value{at: unsafe.Pointer(unsafe.StringData(s)), head: uint64(len(s))<<kindBits | uint64(k)}
}

// ofKids is a List or a set of unnamed elements, or a Map.
func ofKids(k Kind, kids []Attr) Value {
	return Value{at: unsafe.Pointer(unsafe.SliceData(kids)), head: uint64(len(kids))<<kindBits | uint64(k)}
}

// Kind returns the value's kind; Missing for the zero Value.
func (v Value) Kind() Kind { return Kind(v.head & (1<<kindBits - 1)) }

func (v Value) size() int { return int(v.head >> kindBits) }

// text is for kinds that have one.
func (v Value) text() string { return unsafe.String((*byte)(v.at), v.size()) }

// kids is for kinds that have them.
func (v Value) kids() []Attr { return unsafe.Slice((*Attr)(v.at), v.size()) }

// isText reports whether the value is a string of bytes.
func (k Kind) isText() bool { return k == Number || k == String || k == Binary }

// hasKids reports whether the value consists of others.
func (k Kind) hasKids() bool { return k >= List }
