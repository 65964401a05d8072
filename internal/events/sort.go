package events

import (
	"encoding/binary"

	"weir/internal/value"
)

// maxQuick is the largest number of attributes that are sorted by the first bytes of their
// names.
const maxQuick = 48

// order is an attribute's index and the key by which it is sorted.
type order struct {
	prefix uint64
	at     int
}

// sorted copies from into out, which has the same length, sorted by name. If a name occurs
// twice, the later attribute wins. It returns the used part of out.
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

// prefix returns the first eight bytes of s as an integer that sorts like them.
// Texts of which one begins with the other may have equal prefixes; then the whole texts decide.
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
