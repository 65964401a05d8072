package owntable

import (
	"fmt"
	"hash/fnv"
	"strings"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of pending|MODEL|GENERATION|BUCKET are documents that the indexes of a search generation did not take in time, one
// for each however often it changes. A function writes them. A catch-up removes each, once the index has the document
// at its position. There are at most as many as documents, about 200 bytes each, and normally none. For example,
//
//	k pending|gallery|5f0c…|3  s gallery-albums|S7:ALBUM#1S8:METADATA  p 000…12
//
// Buckets spread them, since all documents become pending at once when an index is down.
const pendingBuckets = 8

// Pending returns the partition keys of the documents of a generation that are pending.
func Pending(model, generation string) (keys []string) {
	for b := range pendingBuckets {
		keys = append(keys, pendingIn(model, generation, b))
	}
	return keys
}

func pendingIn(model, generation string, bucket int) string {
	return fmt.Sprintf("pending|%s|%s|%d", model, generation, bucket)
}

// PendingRow is a document that an index did not take in time: a Member with the highest position that it did not take.
type PendingRow struct {
	Member
	At        store.Ref
	Index, ID string
}

const pendingDo = "delete the row, and run projector build MODEL search/NAME --again"

// DecodePending decodes a row of Pending. The error wraps ErrRow.
func DecodePending(row value.Item) (p PendingRow, err error) {
	p.Member, p.At = MemberFrom(row), Ref(row.Get(Partition).Text(), row.Get(Sort).Text())
	ok := false
	if p.Index, p.ID, ok = strings.Cut(p.Name, "|"); !ok {
		return p, unreadableError(row, Sort, "an index and a document", pendingDo)
	}
	p.Position, err = decodePosition(row, Position, pendingDo)
	return p, err
}

// PendDocument notes that an index did not take a document at a position, on condition that no higher one is noted.
func PendDocument(model, generation, index, id string, at events.Position) store.Write {
	h := fnv.New32a()
	h.Write([]byte(id))
	return Member{Position: at}.Keep(Ref(pendingIn(model, generation, int(h.Sum32()%pendingBuckets)), index+"|"+id), value.Value{})
}
