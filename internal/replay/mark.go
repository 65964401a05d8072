package replay

import (
	"encoding/binary"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// mark is a place in a row's recorded history: a position in its stream, and a time. A
// format without sequence numbers has only the time.
type mark struct {
	position events.Position
	time     int64 // µs since 1970
}

// markFrom is the mark of a record. A record without a time has 0 there, before every other.
func markFrom(rec *events.Record) mark {
	m := mark{position: rec.Position}
	if !rec.Time.IsZero() {
		m.time = rec.Time.UnixMicro()
	}
	return m
}

// markOf reads the mark of a row, or the mark that a removed row left; ok is false if
// there is none.
func markOf(it value.Item) (m mark, ok bool) {
	text := it.Get(owntable.SeenMark).Text()
	if len(text) != len(m.position)+8 {
		return m, false
	}
	copy(m.position[:], text)
	m.time = int64(binary.BigEndian.Uint64([]byte(text[len(m.position):])))
	return m, true
}

// value is the mark as a row has it: the position, then the time in microseconds, big-endian, so
// that bytes compare as positions do.
func (m mark) value() value.Value {
	b := append(make([]byte, 0, len(m.position)+8), m.position[:]...)
	return value.OfBinary(string(binary.BigEndian.AppendUint64(b, uint64(m.time))))
}

// leave is the write that saves the mark of a removal. It never replaces a newer mark.
func (m mark) leave(of store.Ref) store.Write {
	return owntable.LeaveSeen(of, m.value(), m.position.IsZero())
}

// after reports whether a record is newer than what its row has seen. If both have a
// position, the positions decide. Otherwise the times do, in whole seconds, because
// streams round them; within one second, a record is newer if its old image is the row
// in the store. A row of an export has neither position nor time, so it fills only rows
// to which no recorded change was written.
func (m mark) after(seen mark, ever bool, c compared) bool {
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
	return a > b || a == b && (c.old || c.stored) && c.oldIsStored
}
