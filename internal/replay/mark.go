package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"

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

// compare orders marks: by position if both have one; else by time, in whole seconds if one
// has a position, because streams round their times to seconds.
func (m mark) compare(o mark) int {
	if !m.position.IsZero() && !o.position.IsZero() {
		return m.position.Compare(o.position)
	}
	if m.position.IsZero() && o.position.IsZero() {
		return cmp.Compare(m.time, o.time)
	}
	return cmp.Compare(m.time/1e6, o.time/1e6)
}

// append appends the mark's bytes: the position, then the time in microseconds, big-endian, so
// that bytes compare as positions do.
func (m mark) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(append(b, m.position[:]...), uint64(m.time))
}

// digest tells images apart. That of no row is zero.
type digest [16]byte

// digestOf is of an image in stored form, which is made in one way only.
func digestOf(stored []byte) (d digest) {
	sum := sha256.Sum256(stored)
	copy(d[:], sum[:])
	return d
}

// digestItem is of an image without derived attributes, nil for no row.
func digestItem(it value.Item) digest {
	if it == nil {
		return digest{}
	}
	return digestOf(value.AppendItem(nil, it))
}

// text is the digest as owntable.Swept has it, as far as both go.
func (d digest) text() string { return base64.RawURLEncoding.EncodeToString(d[:])[:21] }

// shortDigest is the part of a digest that a row keeps.
func (d digest) shortDigest() uint64 { return binary.BigEndian.Uint64(d[:]) }

// Bits of known.flags.
const (
	silent   = owntable.SeenSilent  // the write that left it was of no recorded change
	lacking  = owntable.SeenLacking // the removal that follows is of no recorded change
	ofExport = 4                    // the row was so at seen.time, whichever recorded change made it so
	ofBare   = 8                    // in an export whose time is not known
	// ofUnknown says that it is of no matter which changes came before known.first.
	ofUnknown = 16
	byExport  = 32 // known.first is of an export, and want the row that it has
	// apart says that the changes of the moment of known.seen came in several commands.
	apart     = 64
	ambiguous = 128 // see notOrdered

	lasting = ofUnknown | byExport | apart | ambiguous
)

// startKnown is known.start where the changes before that moment are known.
const startKnown = 1<<64 - 1

// A row's notes of its history beside the mark are bounded.
const (
	mostBefore = 16
	mostIDs    = 256
	mostHoles  = 8
)

// encodeMark is the value of owntable.SeenMark in a row: the mark, and the other known changes if there are more.
func (k *known) encodeMark() []byte {
	b := k.seen.append(make([]byte, 0, markBytes+8))
	if k.flags == 0 && len(k.before)+len(k.ids)+len(k.holes) == 0 && k.first == k.seen && k.want == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(k.first.append(append(b, k.flags)), k.want), k.start)
	b = binary.AppendVarint(b, k.at)
	if k.first.position.IsZero() {
		b = binary.BigEndian.AppendUint64(b, k.firstID)
	}
	b = appendNumbers(appendNumbers(b, k.before), k.ids)
	b = binary.AppendUvarint(b, uint64(len(k.holes)))
	for _, h := range k.holes {
		b = h.to.append(h.from.append(append(b, h.near)))
		b = appendNumbers(b, h.ids)
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, h.have), h.want)
	}
	return b
}

func appendNumbers(b []byte, list []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, n := range list {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func (d *reading) numbers() (list []uint64) {
	for range min(d.uvarint(), mostIDs) {
		list = append(list, binary.BigEndian.Uint64(d.bytes(8)))
	}
	return list
}

func (k *known) value() value.Value { return value.OfBinary(string(k.encodeMark())) }

// decodeKnown reads it; ok is false if there is nothing, or something else.
func decodeKnown(text string) (k known, ok bool) {
	if len(text) < markBytes {
		return k, false
	}
	d := reading{b: []byte(text)}
	if k.seen, k.ever = d.mark(), true; len(d.b) == 0 {
		k.first = k.seen
		return k, true
	}
	k.flags, k.first = d.byte(), d.mark()
	k.want, k.start, k.at = binary.BigEndian.Uint64(d.bytes(8)), binary.BigEndian.Uint64(d.bytes(8)), d.varint()
	if k.first.position.IsZero() {
		k.firstID = binary.BigEndian.Uint64(d.bytes(8))
	}
	k.before, k.ids = d.numbers(), d.numbers()
	for range min(d.uvarint(), mostHoles) {
		h := hole{near: d.byte(), from: d.mark(), to: d.mark(), ids: d.numbers()}
		h.have, h.want = binary.BigEndian.Uint64(d.bytes(8)), binary.BigEndian.Uint64(d.bytes(8))
		k.holes = append(k.holes, h)
	}
	return k, !d.bad
}

// knownOf reads the recorded changes that a row, or the mark of a removed row, notes.
func knownOf(it value.Item) known {
	k, ok := decodeKnown(it.Get(owntable.SeenMark).Text())
	if !ok {
		return known{}
	}
	return k
}

// removalWrite is the write that saves the mark of a removal. It never replaces a newer mark, unless
// always is set.
func (k *known) removalWrite(of store.Ref, always bool) store.Write {
	return owntable.LeaveSeen(of, k.value(), always || k.seen.position.IsZero())
}

// idOf tells a record without sequence number from all others of its row: by its eventID, or by all that
// it says.
func idOf(rec *events.Record, old, new digest) uint64 {
	b := []byte(rec.ID)
	if len(b) == 0 {
		b = slices.Concat(binary.BigEndian.AppendUint64(nil, uint64(rec.Time.UnixMicro())), old[:], new[:])
	}
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

// positionOf is the position that history shows of a record: its own, or one that is made of its time and its
// id, so that it is the same whichever other records are replayed with it. So it cannot have the order of a moment.
func positionOf(rec *events.Record) events.Position {
	if !rec.Position.IsZero() || rec.Time.IsZero() {
		return rec.Position
	}
	id := idOf(rec, digestItem(rec.Old), digestItem(rec.New))
	var p events.Position
	binary.BigEndian.PutUint64(p[1:], uint64(rec.Time.UnixMicro()))
	binary.BigEndian.PutUint64(p[9:], id)
	return p
}

// hadImage reports whether a row had an image lately, or has it.
func (k *known) hadImage(d digest, now digest) bool {
	return d == now || slices.Contains(k.before, d.shortDigest())
}
