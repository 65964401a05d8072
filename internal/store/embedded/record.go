package embedded

import (
	"encoding/binary"
	"errors"
	"time"

	"weir/internal/events"
	"weir/internal/value"
)

// A stream record in its stored form:
//
//	FLAGS  seconds varint  nanoseconds uvarint
//	[position of origin, 17 bytes]                if hasOrigin
//	[length uvarint, stored form of the old row]  if hasOld
//	[length uvarint, stored form of the new row]  if hasNew and not hasOld
//	[head uvarint, tail uvarint, bytes]           if hasNew and hasOld
//
// If a record has both rows, the new row consists of the first head bytes of the old
// row, the bytes at the record's end, and the last tail bytes of the old row. The key
// attributes are those of either row.
const (
	hasOld = 1 << iota
	hasNew
	hasOrigin
	isExpired
)

var errRecordForm = errors.New("stored stream record is corrupt")

// change is the content of a stream record. The rows are in stored form, nil if there
// is none.
type change struct {
	old, new []byte
	time     time.Time
	origin   events.Position
	expired  bool
}

// appendRecord appends the stored form.
func appendRecord(b []byte, c *change) []byte {
	flags := len(b)
	b = append(b, 0)
	b = binary.AppendVarint(b, c.time.Unix())
	b = binary.AppendUvarint(b, uint64(c.time.Nanosecond()))
	if c.expired {
		b[flags] |= isExpired
	}
	if !c.origin.IsZero() {
		b[flags] |= hasOrigin
		b = append(b, c.origin[:]...)
	}
	if c.old != nil {
		b[flags] |= hasOld
		b = append(binary.AppendUvarint(b, uint64(len(c.old))), c.old...)
	}
	if c.new == nil {
		return b
	}
	b[flags] |= hasNew
	if c.old == nil {
		return append(binary.AppendUvarint(b, uint64(len(c.new))), c.new...)
	}
	head, tail := shared(c.old, c.new)
	b = binary.AppendUvarint(b, uint64(head))
	b = binary.AppendUvarint(b, uint64(tail))
	return append(b, c.new[head:len(c.new)-tail]...)
}

// shared counts the bytes that a and b have in common at the beginning and, beyond
// those, at the end.
func shared(a, b []byte) (head, tail int) {
	n := min(len(a), len(b))
	for head+8 <= n && binary.NativeEndian.Uint64(a[head:]) == binary.NativeEndian.Uint64(b[head:]) {
		head += 8
	}
	for head < n && a[head] == b[head] {
		head++
	}
	n -= head
	x, y := len(a), len(b)
	for tail+8 <= n && binary.NativeEndian.Uint64(a[x-tail-8:]) == binary.NativeEndian.Uint64(b[y-tail-8:]) {
		tail += 8
	}
	for tail < n && a[x-tail-1] == b[y-tail-1] {
		tail++
	}
	return head, tail
}

// decodeRecord reads a stored record. The rows share its memory.
func decodeRecord(b []byte) (c change, err error) {
	r := recordReader{rest: b}
	flags := r.take(1)
	if r.bad {
		return c, errRecordForm
	}
	sec, w := binary.Varint(r.rest)
	r.skip(w)
	nsec := r.uvarint()
	c.time = time.Unix(sec, int64(nsec)).UTC()
	c.expired = flags[0]&isExpired != 0
	if flags[0]&hasOrigin != 0 {
		copy(c.origin[:], r.take(len(c.origin)))
	}
	if flags[0]&hasOld != 0 {
		c.old = r.take(r.uvarint())
	}
	switch {
	case flags[0]&hasNew == 0:
	case flags[0]&hasOld == 0:
		c.new = r.take(r.uvarint())
	default:
		c.new = r.patch(c.old)
	}
	if r.bad || len(r.rest) > 0 || flags[0]&(hasOld|hasNew) == 0 || flags[0] >= isExpired<<1 || nsec > 999999999 {
		return change{}, errRecordForm
	}
	return c, nil
}

// recordReader reads a stored record from its beginning. bad says that the record is
// too short or otherwise corrupt; check it at the end.
type recordReader struct {
	rest []byte
	bad  bool
}

// skip passes n bytes over. After a wrong length the reader is bad, and everything that it returns
// is empty.
func (r *recordReader) skip(n int) {
	if n <= 0 || n > len(r.rest) {
		r.bad = true
		return
	}
	r.rest = r.rest[n:]
}

// take returns the next n bytes, which share the memory of the record. Their capacity ends with
// them, so appending copies.
func (r *recordReader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.rest) {
		r.bad = true
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

// uvarint reads a length, which is never above 2 GB in a record that this program wrote.
func (r *recordReader) uvarint() int {
	n, w := binary.Uvarint(r.rest)
	r.skip(w)
	if n > 1<<31 {
		r.bad = true
		return 0
	}
	return int(n)
}

// patch makes the new row of the old one: it keeps as many bytes of its beginning and of its end as
// the record says, with the record's bytes between them.
func (r *recordReader) patch(old []byte) []byte {
	head, tail := r.uvarint(), r.uvarint()
	middle := r.take(len(r.rest))
	if r.bad || head+tail > len(old) {
		r.bad = true
		return nil
	}
	out := make([]byte, 0, head+len(middle)+tail)
	return append(append(append(out, old[:head]...), middle...), old[len(old)-tail:]...)
}

// event is the record in the form that readers get.
func (c *change) event(t *table, seq uint64) (events.Record, error) {
	r := events.Record{Table: t.Name, Position: events.PositionOf(seq), Time: c.time, Expired: c.expired, Origin: c.origin}
	var err error
	if r.Old, err = decodeRow(c.old); err != nil {
		return r, err
	}
	if r.New, err = decodeRow(c.new); err != nil {
		return r, err
	}
	row := r.New
	if row == nil {
		row = r.Old
	}
	k, ok := t.KeyOf(row)
	if !ok {
		return r, errRecordForm
	}
	r.Keys = t.Item(k)
	return r, nil
}

// decodeRow reads the stored form of a row; nil is no row.
func decodeRow(b []byte) (value.Item, error) {
	if b == nil {
		return nil, nil
	}
	it, rest, err := value.DecodeItem(b)
	if err == nil && len(rest) > 0 {
		err = value.ErrCorrupt
	}
	return it, err
}
