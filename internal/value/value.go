// Package value holds DynamoDB's attribute values in a compact form that keeps their types
// exactly: numbers as canonical decimal text of up to 38 digits, sets as sets, binary as
// bytes, null as a value.
//
// Everything here is a plain value without I/O. Values are immutable by convention: they
// may share memory with each other and with the payload they were decoded from, so never
// write into one. Call Clone to keep a small part of a large payload for long; otherwise
// it keeps the whole payload in memory.
package value

import (
	"slices"
	"strings"
)

// Kind is the DynamoDB type of a Value.
type Kind uint8

// The kinds, in DynamoDB's own terms. Missing is the zero Kind: no attribute.
const (
	Missing   Kind = iota
	Null           // NULL
	Bool           // BOOL
	Number         // N
	String         // S
	Binary         // B
	List           // L
	Map            // M
	StringSet      // SS
	NumberSet      // NS
	BinarySet      // BS
)

// Descriptor returns the kind's name in DynamoDB JSON ("S", "N", "NULL", …), "" for
// Missing.
func (k Kind) Descriptor() string { return descriptors[k] }

var descriptors = [...]string{"", "NULL", "BOOL", "N", "S", "B", "L", "M", "SS", "NS", "BS"}

// String returns the kind in words, for messages.
func (k Kind) String() string {
	return [...]string{"missing", "null", "boolean", "number", "string", "binary", "list", "map", "string set", "number set", "binary set"}[k]
}

// Attr is a named value.
type Attr struct {
	Name  string
	Value Value
}

// Item is a row, or the content of a map: attributes sorted by name (bytewise), each name
// once. A nil Item means "no row"; an empty one is a row without attributes.
type Item []Attr

// Constructors. Lists, maps and items take ownership of their arguments.

// OfString returns an S.
func OfString(s string) Value { return ofText(String, s) }

// OfBinary returns a B holding the bytes of s.
func OfBinary(s string) Value { return ofText(Binary, s) }

// OfNull returns the NULL value.
func OfNull() Value { return Value{head: uint64(Null)} }

// OfBool returns a BOOL.
func OfBool(b bool) Value {
	if b {
		return Value{head: 1<<kindBits | uint64(Bool)}
	}
	return Value{head: uint64(Bool)}
}

// OfList returns an L of the values given.
func OfList(vs ...Value) Value {
	kids := make([]Attr, len(vs))
	for i, v := range vs {
		kids[i].Value = v
	}
	return ofKids(List, kids)
}

// OfMap returns an M.
func OfMap(it Item) Value { return ofKids(Map, it) }

// OfElements returns a list or a set with the given unnamed attributes as elements. It
// takes ownership of elems and sorts those of a set into canonical order. It reports false
// if k is neither a list nor a set, or if a set would hold an element of the wrong kind, or an element twice, which it
// then returns.
func OfElements(k Kind, elems []Attr) (Value, bool) {
	if k == List {
		return ofKids(List, elems), true
	}
	want := elementKind(k)
	if want == Missing {
		return Value{}, false
	}
	for i := range elems {
		if elems[i].Value.Kind() != want {
			return Value{}, false
		}
	}
	compare := func(a, b Attr) int { return Compare(a.Value, b.Value) }
	if !slices.IsSortedFunc(elems, compare) {
		slices.SortFunc(elems, compare)
	}
	for i := 1; i < len(elems); i++ {
		if elems[i].Value.Text() == elems[i-1].Value.Text() {
			return elems[i].Value, false
		}
	}
	return ofKids(k, elems), true
}

// elementKind returns the kind of a set's elements, Missing for a kind that is not a set.
func elementKind(set Kind) Kind {
	switch set {
	case StringSet:
		return String
	case NumberSet:
		return Number
	case BinarySet:
		return Binary
	}
	return Missing
}

// OfStrings returns an SS of the given strings without duplicates. It does not keep ss.
func OfStrings(ss []string) Value {
	ss = slices.Clone(ss)
	slices.Sort(ss)
	ss = slices.Compact(ss)
	elems := make([]Attr, len(ss))
	for i, s := range ss {
		elems[i].Value = OfString(s)
	}
	return ofKids(StringSet, elems)
}

// IsMissing reports whether v is Missing: there is no attribute.
func (v Value) IsMissing() bool { return v.Kind() == Missing }

// Text returns the content of a String, the canonical decimal of a Number, or the bytes of
// a Binary; "" for other kinds.
func (v Value) Text() string {
	if !v.Kind().isText() {
		return ""
	}
	return v.text()
}

// Bool returns the content of a BOOL, false for other kinds.
func (v Value) Bool() bool { return v.Kind() == Bool && v.size() != 0 }

// Len returns the number of elements of a list or set, or of attributes of a map; 0 for
// other kinds.
func (v Value) Len() int {
	if !v.Kind().hasKids() {
		return 0
	}
	return v.size()
}

// At returns element i of a list or set. It panics if there is none.
func (v Value) At(i int) Value { return v.Elements()[i].Value }

// Elements returns the elements of a list or set as unnamed attributes, nil for scalars.
// Do not write to the slice.
func (v Value) Elements() []Attr {
	if !v.Kind().hasKids() {
		return nil
	}
	return v.kids()
}

// Item returns the content of a map, nil for other kinds. Do not write to it.
func (v Value) Item() Item {
	switch {
	case v.Kind() != Map:
		return nil
	case v.size() == 0:
		return Item{}
	}
	return v.kids()
}

// Equal reports whether two values have the same kind and content.
func Equal(a, b Value) bool {
	switch {
	case a.head != b.head:
		return false
	case a.at == b.at:
		return true
	case a.Kind().isText():
		return a.text() == b.text()
	case a.Kind().hasKids():
		return slices.EqualFunc(a.kids(), b.kids(), equalAttr)
	}
	return true
}

// equalAttr reports whether two attributes have one name and equal values.
func equalAttr(a, b Attr) bool { return a.Name == b.Name && Equal(a.Value, b.Value) }

// Compare orders two scalars of the same kind as DynamoDB orders sort keys: strings and
// binary bytewise, numbers by value. It orders values of different kinds by kind.
func Compare(a, b Value) int {
	switch {
	case a.Kind() != b.Kind():
		return int(a.Kind()) - int(b.Kind())
	case a.Kind() == Number:
		return compareNumbers(a.text(), b.text())
	default:
		return strings.Compare(a.Text(), b.Text())
	}
}

// Clone returns a copy that shares no memory with the payload that v was decoded from.
func (v Value) Clone() Value {
	switch k := v.Kind(); {
	case k.isText():
		return ofText(k, strings.Clone(v.text()))
	case k.hasKids():
		return ofKids(k, Item(v.kids()).Clone())
	}
	return v
}

// Clone returns a copy that shares no memory with the payload that the item was decoded
// from.
func (it Item) Clone() Item {
	if it == nil {
		return nil
	}
	out := make(Item, len(it))
	for i, a := range it {
		out[i] = Attr{Name: strings.Clone(a.Name), Value: a.Value.Clone()}
	}
	return out
}

// NewItem returns an item of the given attributes. It takes ownership of attrs and sorts
// them by name. If a name occurs twice, the later attribute wins. Attributes whose value
// is Missing are left out.
func NewItem(attrs ...Attr) Item {
	slices.SortStableFunc(attrs, func(a, b Attr) int { return strings.Compare(a.Name, b.Name) })
	out := Item(attrs[:0])
	for _, a := range attrs {
		if n := len(out); n > 0 && out[n-1].Name == a.Name {
			out[n-1] = a
		} else {
			out = append(out, a)
		}
	}
	out = slices.DeleteFunc(out, func(a Attr) bool { return a.Value.IsMissing() })
	if out == nil {
		out = Item{}
	}
	return out
}

// Get returns the attribute's value, Missing if the item does not have it.
func (it Item) Get(name string) Value {
	if i, ok := it.findName(name); ok {
		return it[i].Value
	}
	return Value{}
}

// Has reports whether the item has the attribute. NULL counts as a value.
func (it Item) Has(name string) bool { _, ok := it.findName(name); return ok }

// findName scans linearly, because rows have few attributes: up to a few dozen, this is faster
// than a binary search over strings.
func (it Item) findName(name string) (int, bool) {
	if len(it) > 32 {
		return slices.BinarySearchFunc(it, name, func(a Attr, n string) int { return strings.Compare(a.Name, n) })
	}
	for i := range it {
		if it[i].Name == name {
			return i, true
		}
	}
	return 0, false
}

// With returns a copy in which the given attributes are set, or removed where the given
// value is Missing. Without attributes it returns the item itself.
func (it Item) With(attrs ...Attr) Item {
	switch {
	case len(attrs) == 0:
		return it
	case len(it) == 0:
		return NewItem(slices.Clone(attrs)...)
	}
	out := append(make(Item, 0, len(it)+len(attrs)), it...)
	for _, a := range attrs {
		out = out.set(a)
	}
	return out
}

// set sets or removes an attribute in place. It allocates a new array if there is no room.
func (it Item) set(a Attr) Item {
	at, found := slices.BinarySearchFunc(it, a.Name, func(a Attr, n string) int { return strings.Compare(a.Name, n) })
	switch {
	case found && a.Value.IsMissing():
		return slices.Delete(it, at, at+1)
	case found:
		it[at] = a
	case !a.Value.IsMissing():
		return slices.Insert(it, at, a)
	}
	return it
}

// Filter returns the attributes whose names keep accepts. If keep accepts all, it returns
// the item itself.
func (it Item) Filter(keep func(name string) bool) Item {
	for i := range it {
		if keep(it[i].Name) {
			continue
		}
		out := append(make(Item, 0, len(it)-1), it[:i]...)
		for _, a := range it[i+1:] {
			if keep(a.Name) {
				out = append(out, a)
			}
		}
		return out
	}
	return it
}

// EqualItems reports whether two items have the same attributes. No row (nil) differs from
// an empty item.
func EqualItems(a, b Item) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, equalAttr)
}

// Size returns the size that DynamoDB counts for an item, in bytes: names and values in
// UTF-8; for a number about one byte for two digits and one more; one byte for null and
// boolean; for lists and maps three bytes and one for each element ("Item sizes and
// formats" in DynamoDB's developer guide).
func (it Item) Size() int {
	n := 0
	for _, a := range it {
		n += len(a.Name) + a.Value.bytes()
	}
	return n
}

// bytes is the size by DynamoDB's rules (item sizes): a number about half a byte a digit, 3 bytes
// for a list or a map and 1 for each element in it.
func (v Value) bytes() int {
	switch v.Kind() {
	case Missing:
		return 0
	case Null, Bool:
		return 1
	case Number:
		return numberSize(v.text())
	case String, Binary:
		return len(v.text())
	case List, Map:
		n := 3
		for _, a := range v.kids() {
			n += 1 + len(a.Name) + a.Value.bytes()
		}
		return n
	default:
		n := 0
		for _, a := range v.kids() {
			n += a.Value.bytes()
		}
		return n
	}
}
