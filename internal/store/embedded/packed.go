package embedded

import (
	"bytes"
	"encoding/binary"
)

// packedRows keeps rows as they are stored, one after the other in two buffers. Rows
// are added to the young one; when it is full it is the old one, whose rows are
// forgotten. There are no pointers in it, so that it costs collections nothing.
type packedRows struct{ young, old packedBuffer }

// packedBuffer has rows as two lengths, key and row. What at does not tell of is
// forgotten.
type packedBuffer struct {
	rows []byte
	at   map[uint64]uint32 // where the row of a hash begins
}

const (
	packedLengths = 8  // bytes of the two lengths
	packedEntry   = 32 // about what at takes for a row
)

// add packs a row, unless one of its hash is there, or it would fill a good part of the
// room; stored is nil where there is no row.
func (q *packedRows) add(room int, hash uint64, key string, stored []byte) {
	n := packedLengths + len(key) + len(stored)
	if _, packed := q.young.at[hash]; packed || stored == nil || n*8 > room {
		return
	}
	if len(q.young.rows)+n+packedEntry*(len(q.young.at)+1) > room/2 {
		q.young, q.old = q.old, q.young
		q.young.rows = q.young.rows[:0]
		clear(q.young.at)
	}
	b := &q.young
	if b.at == nil {
		b.rows, b.at = make([]byte, 0, room/4), map[uint64]uint32{}
	}
	b.at[hash] = uint32(len(b.rows))
	b.rows = binary.LittleEndian.AppendUint32(b.rows, uint32(len(key)))
	b.rows = binary.LittleEndian.AppendUint32(b.rows, uint32(len(stored)))
	b.rows = append(append(b.rows, key...), stored...)
}

// get returns a copy of a row, nil where it has none: the buffer is used again.
func (q *packedRows) get(hash uint64, key []byte) []byte {
	if stored := q.young.get(hash, key); stored != nil {
		return stored
	}
	return q.old.get(hash, key)
}

func (b *packedBuffer) get(hash uint64, key []byte) []byte {
	at, ok := b.at[hash]
	if !ok {
		return nil
	}
	row := b.rows[at:]
	k := binary.LittleEndian.Uint32(row)
	stored := binary.LittleEndian.Uint32(row[4:])
	row = row[packedLengths:]
	if !bytes.Equal(row[:k], key) {
		return nil
	}
	return bytes.Clone(row[k : k+stored])
}

// drop forgets the row, and any other with its hash.
func (q *packedRows) drop(hash uint64) {
	delete(q.young.at, hash)
	delete(q.old.at, hash)
}
