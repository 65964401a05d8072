package replay

import (
	"encoding/binary"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// mark is a place in a row's recorded history: a position in its stream, and a
// time. A form without sequence numbers has only the time.
type mark struct {
	position events.Position
	time     int64 // µs since 1970
}

func markFrom(rec *events.Record) mark {
	m := mark{position: rec.Position}
	if !rec.Time.IsZero() {
		m.time = rec.Time.UnixMicro()
	}
	return m
}

// markOf reads the mark of a row, or of what is remembered of a removed one; ok is
// false where there is none.
func markOf(it value.Item) (m mark, ok bool) {
	text := it.Get(book.SeenMark).Text()
	if len(text) != len(m.position)+8 {
		return m, false
	}
	copy(m.position[:], text)
	m.time = int64(binary.BigEndian.Uint64([]byte(text[len(m.position):])))
	return m, true
}

func (m mark) value() value.Value {
	b := append(make([]byte, 0, len(m.position)+8), m.position[:]...)
	return value.OfBinary(string(binary.BigEndian.AppendUint64(b, uint64(m.time))))
}

// leave is the write that remembers a removal, and never forgets a newer one.
func (m mark) leave(of store.Ref) store.Write {
	w := store.Write{Ref: book.Seen(of), Ops: []store.Op{{Kind: store.Set, Attr: book.SeenMark, Value: m.value()}, {Kind: store.Remove, Attr: swept}}}
	if !m.position.IsZero() {
		w.If = store.Cond{{
			{Attr: book.SeenMark, Is: store.Absent},
			{Attr: book.SeenMark, Is: store.Lt, Value: m.value()},
		}}
	}
	return w
}

// after reports whether a record comes after what its row has seen. Positions
// decide where both have one. Otherwise times do, by the second since streams
// round them so; within one second, a record whose old image is what the store
// holds comes next. So a row of an export, which has neither, only fills a row that
// no recorded change was written to.
func (m mark) after(seen mark, ever bool, old, stored value.Item) bool {
	switch {
	case !ever:
		return true
	case !m.position.IsZero() && !seen.position.IsZero():
		return m.position.Compare(seen.position) > 0
	}
	a, b := m.time, seen.time
	if !m.position.IsZero() || !seen.position.IsZero() {
		a, b = a/1e6, b/1e6
	}
	return a > b || a == b && (old != nil || stored != nil) && value.EqualItems(old, stored)
}
