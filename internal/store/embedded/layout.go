package embedded

import (
	"encoding/binary"

	"weir/internal/store"
)

// The key spaces of the key-value store, by first byte. See the package comment.
const (
	spaceMeta   = 'm'
	spaceRow    = 'r'
	spaceIndex  = 'x'
	spaceStream = 's'
)

var (
	keyFormat  = []byte("mformat")
	keyCatalog = []byte("mtables")
)

// spaceLen is the length of the bytes that appendSpace appends.
const spaceLen = 3

// appendSpace begins a key of one of the spaces that the package comment lists.
func appendSpace(b []byte, space byte, id uint16) []byte {
	return append(b, space, byte(id>>8), byte(id))
}

// appendRowKey is the key under which a row is stored.
func appendRowKey(b []byte, t *table, k store.Key) []byte {
	return appendKey(appendSpace(b, spaceRow, t.id), k)
}

// appendEntryKey appends the key of an index entry: the index's key values, then the
// row's own.
func appendEntryKey(b []byte, ix *index, entry, row store.Key) []byte {
	return appendKey(appendKey(appendSpace(b, spaceIndex, ix.id), entry), row)
}

// segmentBits is the number of low bits of a sequence number that count records within
// a segment. A segment's records are sorted by shard, and segments by time. So a
// table's stream grows only at its end, the store never has to merge it, and reading
// one shard takes one seek for each segment.
const segmentBits = 12

const recordKeyLen = 1 + 2 + 6 + 4 + 2

// appendRecordKey appends the key of a stream record. Its sequence number is split
// around the shard, see segmentBits.
func appendRecordKey(b []byte, t *table, shard uint32, seq uint64) []byte {
	b = appendSegment(b, t, seq>>segmentBits)
	b = binary.BigEndian.AppendUint32(b, shard)
	return binary.BigEndian.AppendUint16(b, uint16(seq&(1<<segmentBits-1)))
}

// appendSegment appends the beginning of the keys of a segment.
func appendSegment(b []byte, t *table, segment uint64) []byte {
	b = appendSpace(b, spaceStream, t.id)
	b = binary.BigEndian.AppendUint16(b, uint16(segment>>32))
	return binary.BigEndian.AppendUint32(b, uint32(segment))
}

// maxNumber is the greatest sequence number that fits into a record's key.
const maxNumber = 1<<(48+segmentBits) - 1

// splitRecordKey reads the shard and the sequence number from a record's key.
func splitRecordKey(key []byte) (shard uint32, seq uint64, ok bool) {
	if len(key) != recordKeyLen {
		return 0, 0, false
	}
	segment := uint64(binary.BigEndian.Uint16(key[3:]))<<32 | uint64(binary.BigEndian.Uint32(key[5:]))
	return binary.BigEndian.Uint32(key[9:]), segment<<segmentBits | uint64(binary.BigEndian.Uint16(key[13:])), true
}

// trimKey is the key of a shard's trim mark.
func trimKey(shard uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte("mtrim"), shard)
}
