package owntable

import (
	"fmt"

	"weir/internal/store"
	"weir/internal/value"
)

// A record that several derivations cannot use has a dead letter for each of them. If it is large,
// it is kept once, in the rows deadpart|MODEL|HASH, and the letters name it: HASH is that of its
// content. The row with s "-" counts the letters that name it, the other rows are its parts. All
// that belongs together is one transaction: a letter with the count, the first letter with the
// record's rows, the last letter's deletion with theirs. So a crash leaves neither a record
// without a letter nor a letter without its record, and needs no note.
const (
	sharedLeast = 4 << 10 // a smaller packed record is in the head of each of its letters
	sharedMost  = 2 << 20 // a larger one is in parts of its letter: a transaction may have 4 MB
)

// Attributes of a letter that names a record, and of the row that counts such letters. A
// letter that names a record has no letterBody, so that a version which does not know of
// such records refuses the letter: it would delete it and leave the count.
const (
	letterRecord = "record" // HASH
	letterOf     = "of"     // how many parts the record has
	letterRest   = "rest"   // the body without the record
	sharedCount  = "n"
)

// SharedRecord is a record that dead letters name, as its rows hold it.
type SharedRecord struct {
	at    store.Ref     // the row that counts the letters
	parts []store.Write // its parts
}

// Sharing encodes a dead letter whose record other letters may name: its head, on condition that
// there is none, and the record. The head must be written in one transaction with Refer or
// Keep of the record. ok is false for a letter that Rows encodes: its record is small, or too large for a
// transaction, or what the letter has besides the record does not fit its head. A letter with
// amounts is never shared, so a transaction may delete many of them.
func (l *LetterRow) Sharing(model string) (head store.Write, record SharedRecord, ok bool) {
	if len(l.Record) == 0 || l.Raw != "" || len(l.Adds) > 0 {
		return head, record, false
	}
	packed := packer.EncodeAll(value.AppendItem(nil, l.Record), nil)
	if len(packed) <= sharedLeast || len(packed) > sharedMost {
		return head, record, false
	}
	it, whole := l.head(model)
	rest := (&LetterRow{}).packed(whole)
	if len(rest) > inlineBytes {
		return head, record, false
	}
	hash := HashOf(packed)
	record = SharedRecord{LetterRecord(model, hash), partsOf(model, hash, packed)}
	it = append(it, attr(letterRecord, value.OfString(hash)), attr(letterOf, value.OfInt(int64(len(record.parts)))),
		attr(letterRest, value.OfBinary(string(rest))))
	return store.Write{Ref: Letter(model, l.ID), Put: value.NewItem(it...), If: NotThere()}, record, true
}

// Refer counts another letter that names the record, on condition that the record is kept.
func (s *SharedRecord) Refer() store.Write {
	return store.Write{
		Ref: s.at, If: store.Cond{{{Attr: Partition, Is: store.Exists}}},
		Ops: []store.Op{plus(sharedCount, 1)},
	}
}

// Keep returns the writes that keep the record for its first letter, on condition that it is
// not kept.
func (s *SharedRecord) Keep() []store.Write {
	first := store.Write{Ref: s.at, If: NotThere(), Ops: []store.Op{set(sharedCount, value.OfInt(1))}}
	return append([]store.Write{first}, s.parts...)
}

// LetterRecord refers to the row that counts the letters which name a record.
func LetterRecord(model, hash string) store.Ref { return Ref("deadpart|"+model+"|"+hash, "") }

// SharedCount returns how many letters name a record, by the row that counts them. ok is false for any
// other row.
func SharedCount(row value.Item) (n int64, ok bool) {
	n, ok = row.Get(sharedCount).Int64()
	return n, ok && Kind(row.Get(Partition).Text()) == KindDeadPart && row.Get(Sort).Text() == emptySort
}

// Release returns the writes of the transaction that deletes a letter which names a record:
// they count the letter out or, if it is the last by the row that counts them, delete the record.
// They fail if the row has changed in between so that the other is right. counting is nil if
// there is no row; then there is nothing to write.
func (l *LetterRow) Release(model string, counting value.Item) []store.Write {
	n, ok := SharedCount(counting)
	if l.Shared == "" || !ok {
		return nil
	}
	at := LetterRecord(model, l.Shared)
	if n > 1 {
		return []store.Write{{
			Ref: at, Ops: []store.Op{plus(sharedCount, -1)},
			If: store.Cond{{{Attr: Partition, Is: store.Exists}}, {{Attr: sharedCount, Is: store.Ne, Value: value.OfInt(1)}}},
		}}
	}
	ws := []store.Write{{Ref: at, Delete: true, If: store.Cond{{{Attr: sharedCount, Is: store.Eq, Value: value.OfInt(n)}}}}}
	for i := range l.SharedParts {
		ws = append(ws, store.Write{Ref: DeadPart(model, l.Shared, i), Delete: true})
	}
	return ws
}

// readShared completes a letter by what its head has besides the record, and by the record's
// parts, which are in order. After an error the letter is as it was.
func (l *LetterRow) readShared(head value.Item, parts []value.Item) error {
	var rest, record value.Item
	for _, of := range []struct {
		packed []byte
		to     *value.Item
	}{{[]byte(head.Get(letterRest).Text()), &rest}, {joined(nil, parts), &record}} {
		body, err := unpacker.DecodeAll(of.packed, nil)
		if err == nil {
			*of.to, _, err = value.DecodeItem(body)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRow, err)
		}
	}
	l.read(rest.Get(letterWhole).Item())
	l.Record, l.More = record, false
	return nil
}

// joined appends the bodies of parts, which are in order.
func joined(to []byte, parts []value.Item) []byte {
	for _, part := range parts {
		to = append(to, part.Get(letterBody).Text()...)
	}
	return to
}
