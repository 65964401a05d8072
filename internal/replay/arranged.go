package replay

import (
	"encoding/binary"
	"errors"
	"time"

	"weir/internal/events"
	"weir/internal/value"
)

// Parts of an entry that was sorted.
const (
	withOrigin = 1 << iota
	withBad
	isExpired
	isExport
)

// appendEntry appends an entry and the table of its input. Names that many entries have are numbers.
func (a *Arrangement) appendEntry(b []byte, e *events.Entry, table string) []byte {
	rec := &e.Record
	flags := byteIf(!rec.Origin.IsZero(), withOrigin) | byteIf(e.Bad != nil, withBad) | byteIf(rec.Expired, isExpired) | byteIf(rec.Export, isExport)
	b = append(append(b, flags), rec.Position[:]...)
	for _, s := range []string{table, e.File, e.Shard, rec.Table} {
		b = binary.AppendUvarint(b, a.textOf(s))
	}
	b = appendText(appendText(binary.AppendVarint(binary.AppendVarint(b, e.Line), e.Offset), rec.ID), rec.Arrival)
	b = binary.AppendUvarint(b, a.exportOf(e.Export))
	b = binary.AppendVarint(binary.AppendVarint(b, rec.Time.Unix()), int64(rec.Time.Nanosecond()))
	if flags&withOrigin != 0 {
		b = append(b, rec.Origin[:]...)
	}
	b = value.AppendItem(value.AppendItem(value.AppendItem(b, rec.Keys), rec.Old), rec.New)
	if e.Bad != nil {
		which := byte(0)
		for i, err := range badErrors {
			if errors.Is(e.Bad.Err, err) {
				which = byte(i) + 1
			}
		}
		b = appendText(appendText(append(b, which), e.Bad.Err.Error()), string(e.Bad.Raw))
		b = append(binary.AppendVarint(b, e.Bad.Size), byte(min(1, len(e.Bad.Raw))))
	}
	return b
}

// badErrors are errors that callers look for.
var badErrors = []error{events.ErrTruncated, events.ErrNotKept, events.ErrPosition}

// badError is an error of a bad entry that was sorted.
type badError struct {
	text string
	is   error
}

func (e badError) Error() string { return e.text }
func (e badError) Unwrap() error { return e.is }

// decodeEntry reads an entry, which shares b's memory.
func (a *Arrangement) decodeEntry(b []byte) (e events.Entry, table string, err error) {
	d := reading{b: b}
	flags, rec := d.byte(), &e.Record
	copy(rec.Position[:], d.bytes(len(rec.Position)))
	for _, s := range []*string{&table, &e.File, &e.Shard, &rec.Table} {
		if n := d.uvarint(); n < uint64(len(a.texts)) {
			*s = a.texts[n]
		}
	}
	e.Line, e.Offset = d.varint(), d.varint()
	rec.ID, rec.Arrival = d.text(), d.text()
	if n := d.uvarint(); n > 0 {
		e.Export = a.of[n-1]
	}
	sec := d.varint()
	rec.Time = time.Unix(sec, d.varint()).UTC()
	if flags&withOrigin != 0 {
		copy(rec.Origin[:], d.bytes(len(rec.Origin)))
	}
	rec.Expired, rec.Export = flags&isExpired != 0, flags&isExport != 0
	for _, it := range []*value.Item{&rec.Keys, &rec.Old, &rec.New} {
		if err == nil {
			*it, d.b, err = value.DecodeItem(d.b)
		}
		if len(*it) == 0 {
			*it = nil // no item has no attributes
		}
	}
	if flags&withBad != 0 && err == nil {
		which := d.byte()
		bad := badError{text: d.text()}
		if which > 0 {
			bad.is = badErrors[which-1]
		}
		e.Bad = &events.Bad{Err: bad}
		raw := d.text()
		e.Bad.Size = d.varint()
		if d.byte() != 0 {
			e.Bad.Raw = []byte(raw)
		}
	}
	if d.bad && err == nil {
		err = errTorn
	}
	return e, table, err
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (d *reading) text() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.b, d.bad = nil, true
		return ""
	}
	return string(d.bytes(int(n)))
}

// textOf is the number of a text.
func (a *Arrangement) textOf(s string) uint64 {
	n, ok := a.index[s]
	if !ok {
		n = uint64(len(a.texts))
		a.texts, a.index[s] = append(a.texts, s), n
	}
	return n
}

// exportOf is the number of an export, 0 for none.
func (a *Arrangement) exportOf(e *events.Export) uint64 {
	if e == nil {
		return 0
	}
	for i, o := range a.of {
		if o == e {
			return uint64(i) + 1
		}
	}
	a.of = append(a.of, e)
	return uint64(len(a.of))
}
