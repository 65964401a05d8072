package embedded

import (
	"encoding/binary"

	"weir/internal/store"
)

// The spaces of the key-value store, by first byte. See the package comment.
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

func appendSpace(b []byte, space byte, id uint16) []byte {
	return append(b, space, byte(id>>8), byte(id))
}

func appendRowKey(b []byte, t *table, k store.Key) []byte {
	return appendKey(appendSpace(b, spaceRow, t.id), k)
}

// appendEntryKey is the key of an index entry: the index's key values, then the
// row's own.
func appendEntryKey(b []byte, ix *index, entry, row store.Key) []byte {
	return appendKey(appendKey(appendSpace(b, spaceIndex, ix.id), entry), row)
}

func appendRecordKey(b []byte, shard uint32, seq uint64) []byte {
	b = binary.BigEndian.AppendUint32(append(b, spaceStream), shard)
	return binary.BigEndian.AppendUint64(b, seq)
}

const recordKeyLen = 1 + 4 + 8

// seqOf is the sequence number in a record's key.
func seqOf(key []byte) (uint64, bool) {
	if len(key) != recordKeyLen {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[5:]), true
}

func trimKey(shard uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte("mtrim"), shard)
}
