package owntable

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of dead|MODEL are the heads of dead letters. A body that leaves no room for a head is beside it, in
// rows of deadpart|MODEL|ID that one transaction writes and deletes with the head: an entry of a
// history or a notification may be as large as a row, and so may both images of a record. A body that no
// retry reads has no rows of its own: it is cut, as is one of more than wholeBytes. The letter
// then says how large it was and its hash, and has the keys of its row. Readers of streams write letters; a retry, a
// discard, or the event that makes a letter void deletes them. A head has at most 85 KB. A body that expires is beside its head,
// whatever its size: TTL deletes rows, and a head stays until the letter is settled.
const (
	inlineBytes = 64 << 10 // the largest packed body in a head
	partBytes   = 300 << 10
	wholeBytes  = 2 << 20  // the largest packed body in rows of its own: a transaction has 4 MB
	maxHeadText = 512      // the longest text in a head
	maxHeadKey  = 4 << 10  // the longest key in a head, and of a record that is cut
	maxHeadAdds = 16 << 10 // the most bytes of amounts in a head
)

// Attributes of a dead letter's rows. The body holds those of letterWhole in full length.
const (
	letterKind   = "kind"
	letterTarget = "target"
	letterReason = "reason"
	letterShard  = "shard"
	letterSource = "source"
	letterTime   = "time"
	letterTable  = "t"
	letterKey    = "key"
	letterAdds   = "adds"
	letterParts  = "parts"
	letterBody   = "body"
	letterWhole  = "whole"
	letterCut    = "cut"
	letterUntil  = "until"
)

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
)

// LetterRow is the content of a dead letter.
type LetterRow struct {
	ID     string
	Kind   string
	Target string // its purpose, in a form for people
	// Reason is the error, for people; programs go by Kind.
	Reason string
	// ShardKey and Position say which record it was. Neither is set if there was none.
	ShardKey string
	Source   string
	Position events.Position
	Time     time.Time    // of the record
	Table    string       // of the target row
	Key      value.Item   // of that row; nil if it has none
	Adds     []value.Attr // amounts that wait: accumulator and number
	Record   value.Item
	Raw      string // bytes that are no record

	// Until is when the body expires, in seconds; 0 for never.
	Until int64
	// Whole says that a retry reads the body.
	Whole bool
	Parts int    // how many rows besides the head hold the body
	Cut   string // size and hash of a body that was too large; "" for none
}

// Letter refers to the head of the dead letter with this id.
func Letter(model, id string) store.Ref { return Ref(Dead(model), id) }

// Rows encodes a dead letter as its head, on condition that there is none, and the rows of a body for
// which the head has no room. They are written in one transaction.
func (l *LetterRow) Rows(model string) []store.Write {
	head, rest := l.encodeHead(model)
	record := l.Record
	if len(rest) > 0 {
		record = record.With(newAttr(letterWhole, value.OfMap(value.NewItem(rest...))))
	}
	packed := packer.EncodeAll(append(value.AppendItem(nil, record), l.Raw...), nil)
	if len(packed) > inlineBytes && (!l.Whole || len(packed) > wholeBytes) {
		all := append(value.AppendItem(nil, l.Record), l.Raw...)
		head = append(head, newAttr(letterCut, value.OfString(fmt.Sprintf("%d bytes, hash %s", len(all), hashOf(all)))))
		packed = packer.EncodeAll(value.AppendItem(nil, withoutImages(l.Record)), nil)
	}
	var parts []store.Write
	if l.Until > 0 {
		head = append(head, newAttr(letterUntil, value.OfInt(l.Until)))
	} else if len(packed) <= inlineBytes {
		head = append(head, newAttr(letterBody, value.OfBinary(string(packed))))
		packed = nil
	}
	for part := range slices.Chunk(packed, partBytes) {
		w := store.Write{Ref: DeadPart(model, l.ID, len(parts)), Ops: []store.Op{setAttr(letterBody, value.OfBinary(string(part)))}}
		if l.Until > 0 {
			w.Ops = append(w.Ops, setAttr(Expiry, value.OfInt(l.Until)))
		}
		parts = append(parts, w)
	}
	head = append(head, newAttr(letterParts, value.OfInt(int64(len(parts)))))
	return append([]store.Write{{Ref: Letter(model, l.ID), Put: value.NewItem(head...), If: NotThere()}}, parts...)
}

// encodeHead returns the attributes of a letter's head, without the body, and those for which the
// head has no room, in full length.
func (l *LetterRow) encodeHead(model string) (it value.Item, whole []value.Attr) {
	it = append(RefItem(Letter(model, l.ID)),
		newAttr(letterKind, value.OfString(l.Kind)), newAttr(letterShard, value.OfString(l.ShardKey)),
		newAttr(letterTime, value.OfInt(l.Time.UnixMicro())), newAttr(Position, l.Position.Value()), newAttr(letterTable, value.OfString(l.Table)))
	text := func(name, s string) {
		short := ShortenText(s)
		if it = append(it, newAttr(name, value.OfString(short))); short != s {
			whole = append(whole, newAttr(name, value.OfString(s)))
		}
	}
	text(letterTarget, l.Target)
	text(letterReason, l.Reason)
	text(letterSource, l.Source)
	room := func(name string, v value.Value, most int) {
		if a := newAttr(name, v); (value.Item{a}).Size() <= most {
			it = append(it, a)
		} else {
			whole = append(whole, a)
		}
	}
	if l.Key != nil {
		room(letterKey, value.OfMap(l.Key), maxHeadKey)
	}
	var adds []value.Value
	for _, a := range l.Adds {
		adds = append(adds, value.OfString(a.Name), a.Value)
	}
	room(letterAdds, value.OfList(adds...), maxHeadAdds)
	return it, whole
}

// ShortenText returns a text as the head of a letter holds it. A text that is too long is
// replaced by its beginning, its length and its hash.
func ShortenText(s string) string {
	valid := strings.ToValidUTF8(s, "\uFFFD")
	if len(valid) <= maxHeadText {
		return valid
	}
	return fmt.Sprintf("%s… (%d bytes, hash %s)", strings.ToValidUTF8(valid[:maxHeadText], ""), len(s), Hash(s))
}

// LetterFrom decodes the head of a dead letter, without its body. Texts may be shortened.
func LetterFrom(head value.Item) LetterRow {
	l := LetterRow{
		ID: head.Get(Sort).Text(), Kind: head.Get(letterKind).Text(), ShardKey: head.Get(letterShard).Text(),
		Position: events.PositionFrom(head.Get(Position)), Table: head.Get(letterTable).Text(), Cut: head.Get(letterCut).Text(),
	}
	parts, _ := head.Get(letterParts).Int64()
	l.Parts = int(parts)
	l.Until, _ = head.Get(letterUntil).Int64()
	if us, ok := head.Get(letterTime).Int64(); ok {
		l.Time = time.UnixMicro(us).UTC()
	}
	l.decodeHead(head)
	return l
}

// BodyParts returns where the parts of the letter's body are, in their order.
func (l *LetterRow) BodyParts(model string) []store.Ref {
	refs := make([]store.Ref, l.Parts)
	for i := range refs {
		refs[i] = DeadPart(model, l.ID, i)
	}
	return refs
}

// ReadBody completes a letter by its head and its BodyParts. The error wraps ErrRow; after it
// the letter is as it was.
func (l *LetterRow) ReadBody(head value.Item, parts []value.Item) error {
	packed := []byte(head.Get(letterBody).Text())
	for _, part := range parts {
		packed = append(packed, part.Get(letterBody).Text()...)
	}
	body, err := unpacker.DecodeAll(packed, nil)
	if err != nil {
		return errors.Join(ErrRow, err)
	}
	record, raw, err := value.DecodeItem(body)
	if err != nil {
		return errors.Join(ErrRow, err)
	}
	l.decodeHead(record.Get(letterWhole).Item())
	l.Record, l.Raw = record.With(newAttr(letterWhole, value.Value{})), string(raw)
	return nil
}

// decodeHead sets the fields that a head has shortened or lacks if they are too long.
func (l *LetterRow) decodeHead(it value.Item) {
	for _, text := range []struct {
		name string
		to   *string
	}{{letterTarget, &l.Target}, {letterReason, &l.Reason}, {letterSource, &l.Source}} {
		if v := it.Get(text.name); !v.IsMissing() {
			*text.to = v.Text()
		}
	}
	if it.Has(letterKey) {
		l.Key = it.Get(letterKey).Item()
	}
	for adds, i := it.Get(letterAdds), 0; i+1 < adds.Len(); i += 2 {
		l.Adds = append(l.Adds, newAttr(adds.At(i).Text(), adds.At(i+1)))
	}
}

func newAttr(name string, v value.Value) value.Attr { return value.Attr{Name: name, Value: v} }
