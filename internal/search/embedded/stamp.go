package embedded

import (
	"encoding/binary"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"weir/internal/events"
	"weir/internal/search"
	"weir/internal/value"
)

// stamp says which change of a document an index holds: its position, and a hash of the
// content, by which a repeated change is recognized.
type stamp struct {
	position events.Position
	mark     uint64
}

const stampLength = len(events.Position{}) + 8

// bytes is the stored form; parseStamp reads it.
func (s stamp) bytes() []byte {
	b := make([]byte, 0, stampLength)
	return binary.BigEndian.AppendUint64(append(b, s.position[:]...), s.mark)
}

// parseStamp decodes a document's position and the mark of its content; false for another
// length.
func parseStamp(b []byte) (stamp, bool) {
	if len(b) != stampLength {
		return stamp{}, false
	}
	var s stamp
	n := copy(s.position[:], b)
	s.mark = binary.BigEndian.Uint64(b[n:])
	return s, true
}

// stampOf is the stamp of a change in an index of this schema.
// Two changes at one position with the same content have equal stamps, so indexing one again is no
// change.
func stampOf(s *search.Schema, d *search.Document) stamp {
	m := newMark()
	if d.Deleted {
		m.add("deleted")
		return stamp{d.Position, m.sum}
	}
	for _, t := range d.Text {
		m.add(t)
	}
	for _, fields := range [][]string{s.Filters, s.Sorts} {
		m.add("")
		for _, f := range fields {
			m.addValue(d.Values[f])
		}
	}
	return stamp{d.Position, m.sum}
}

// mark is FNV-1a over strings with their lengths.
type mark struct{ sum uint64 }

func newMark() mark { return mark{14695981039346656037} }

// add adds a string. Its length is added, too, so that different lists of strings
// differ.
func (m *mark) add(s string) {
	h := (m.sum ^ uint64(len(s))) * 1099511628211
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	m.sum = h
}

// addValue adds a value with its types and all that is in it, so that different values have
// different marks, but for collisions of the hash.
func (m *mark) addValue(v value.Value) {
	m.add(v.Kind().Descriptor())
	m.add(v.Text())
	if v.Bool() {
		m.add("true")
	}
	for _, e := range v.Elements() {
		m.addValue(e.Value)
	}
}

// readStamps reads the index's stamps of these ids, tombstones included.
func readStamps(snap *scorch.IndexSnapshot, ids []string) (map[string]stamp, error) {
	held := map[string]stamp{}
	for _, seg := range snap.Segments() {
		docs, err := seg.DocNumbers(ids)
		if err != nil {
			return nil, err
		}
		if err := visitStamps(seg, docs, func(id string, st stamp) { held[id] = st }); err != nil {
			return nil, err
		}
	}
	return held, nil
}
