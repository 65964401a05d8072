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

// The rows of dead|MODEL are the heads of dead letters. A large record is in rows that all its
// letters name: see shared.go. The rows of deadpart|MODEL|ID are the
// parts of any other body for which the head has no room: two images of 400 KB do not fit one row,
// and the heads that one transaction writes must stay below its limit of 4 MB. Readers of
// streams write letters; a retry, a discard, or the event that makes a letter void deletes
// them. A head has at most 85 KB, a part 300 KB.
const (
	inlineBytes = 64 << 10 // the largest packed body in a head
	partBytes   = 300 << 10
	maxHeadText = 512      // the longest text in a head
	maxHeadKey  = 4 << 10  // the longest target key in a head
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
	letterMore   = "more"
	letterBody   = "body"
	letterWhole  = "whole"
)

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
)

// LetterRow is the content of a dead letter.
type LetterRow struct {
	ID     string
	Kind   string
	Target string // what it was for, in a form for people
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

	Parts int  // how many rows besides the head hold the body
	More  bool // the body has Adds for which the head has no room
	// Shared names the record that other letters may name too, "" if the body has it, and
	// SharedParts is how many rows hold it: DeadPart of Shared.
	Shared      string
	SharedParts int
}

// Letter refers to the head of the dead letter with this id.
func Letter(model, id string) store.Ref { return Ref(Dead(model), id) }

// Rows encodes a dead letter as its head, on condition that there is none, and the parts
// of its body. parts is empty if the head has room for the body.
func (l *LetterRow) Rows(model string) (head store.Write, parts []store.Write) {
	it, whole := l.head(model)
	body := l.packed(whole)
	if len(body) <= inlineBytes {
		it = append(it, attr(letterBody, value.OfBinary(string(body))))
	} else {
		parts = partsOf(model, l.ID, body)
	}
	it = append(it, attr(letterParts, value.OfInt(int64(len(parts)))))
	return store.Write{Ref: Letter(model, l.ID), Put: value.NewItem(it...), If: NotThere()}, parts
}

// head returns the attributes of a letter's head, without the body, and those for which the
// head has no room, in full length.
func (l *LetterRow) head(model string) (it value.Item, whole []value.Attr) {
	it = append(RefItem(Letter(model, l.ID)),
		attr(letterKind, value.OfString(l.Kind)), attr(letterShard, value.OfString(l.ShardKey)),
		attr(letterTime, value.OfInt(l.Time.UnixMicro())), attr(Position, l.Position.Value()), attr(letterTable, value.OfString(l.Table)))
	text := func(name, s string) {
		short := Shortened(s)
		if it = append(it, attr(name, value.OfString(short))); short != s {
			whole = append(whole, attr(name, value.OfString(s)))
		}
	}
	text(letterTarget, l.Target)
	text(letterReason, l.Reason)
	text(letterSource, l.Source)
	room := func(name string, v value.Value, most int) (fits bool) {
		a := attr(name, v)
		if fits = (value.Item{a}).Size() <= most; fits {
			it = append(it, a)
		} else {
			whole = append(whole, a)
		}
		return fits
	}
	if l.Key != nil {
		room(letterKey, value.OfMap(l.Key), maxHeadKey)
	}
	var adds []value.Value
	for _, a := range l.Adds {
		adds = append(adds, value.OfString(a.Name), a.Value)
	}
	if !room(letterAdds, value.OfList(adds...), maxHeadAdds) {
		it = append(it, attr(letterMore, value.OfBool(true)))
	}
	return it, whole
}

// partsOf returns the writes of what is in parts of its own, under a letter's id or a record's hash.
func partsOf(model, id string, packed []byte) (ws []store.Write) {
	for part := range slices.Chunk(packed, partBytes) {
		ws = append(ws, store.Write{Ref: DeadPart(model, id, len(ws)), Ops: []store.Op{set(letterBody, value.OfBinary(string(part)))}})
	}
	return ws
}

// packed encodes and compresses the body: the record, the attributes for which the head
// has no room, and raw bytes.
func (l *LetterRow) packed(whole []value.Attr) []byte {
	record := l.Record
	if len(whole) > 0 {
		record = record.With(attr(letterWhole, value.OfMap(value.NewItem(whole...))))
	}
	return packer.EncodeAll(append(value.AppendItem(nil, record), l.Raw...), nil)
}

// Shortened returns a text as the head of a letter holds it. A text that is too long is
// replaced by its beginning, its length and its hash.
func Shortened(s string) string {
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
		Position: events.PositionFrom(head.Get(Position)), Table: head.Get(letterTable).Text(), More: head.Has(letterMore),
	}
	parts, _ := head.Get(letterParts).Int64()
	of, _ := head.Get(letterOf).Int64()
	l.Parts, l.Shared, l.SharedParts = int(parts), head.Get(letterRecord).Text(), int(of)
	if us, ok := head.Get(letterTime).Int64(); ok {
		l.Time = time.UnixMicro(us).UTC()
	}
	l.read(head)
	return l
}

// BodyParts returns where the parts of the letter's body are, in their order, or those of the
// record that it names.
func (l *LetterRow) BodyParts(model string) []store.Ref {
	id, n := l.ID, l.Parts
	if l.Shared != "" {
		id, n = l.Shared, l.SharedParts
	}
	refs := make([]store.Ref, n)
	for i := range refs {
		refs[i] = DeadPart(model, id, i)
	}
	return refs
}

// ReadBody completes a letter by its head and its BodyParts. The error wraps ErrRow; after it
// the letter is as it was.
func (l *LetterRow) ReadBody(head value.Item, parts []value.Item) error {
	if l.Shared != "" {
		return l.readShared(head, parts)
	}
	body, err := unpacker.DecodeAll(joined([]byte(head.Get(letterBody).Text()), parts), nil)
	if err != nil {
		return errors.Join(ErrRow, err)
	}
	record, raw, err := value.DecodeItem(body)
	if err != nil {
		return errors.Join(ErrRow, err)
	}
	l.read(record.Get(letterWhole).Item())
	l.Record, l.Raw, l.More = record.With(attr(letterWhole, value.Value{})), string(raw), false
	return nil
}

// read sets the fields that a head has shortened or lacks if they are too long.
func (l *LetterRow) read(it value.Item) {
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
		l.Adds = append(l.Adds, attr(adds.At(i).Text(), adds.At(i+1)))
	}
}

// The rows of jobs|MODEL with s ~ID are notes: the parts of a letter are being written, or
// must go. A process that writes or deletes a letter with parts writes the note before the parts
// and deletes it after them, so a crash leaves no parts without a note.
const (
	noteOf    = "dead" // the letter's id
	noteSince = "time"
	noteGone  = "gone" // the parts are being deleted
)

// LetterNote is the content of a note.
type LetterNote struct {
	ID    string
	Since time.Time // when the letter was begun
	Gone  bool      // its parts are being deleted
	since value.Value
}

// LetterNoteFrom decodes a note. ok is false for any other row of jobs|MODEL.
func LetterNoteFrom(row value.Item) (n LetterNote, ok bool) {
	us, _ := row.Get(noteSince).Int64()
	return LetterNote{ID: row.Get(noteOf).Text(), Since: time.UnixMicro(us), Gone: row.Has(noteGone), since: row.Get(noteSince)}, row.Has(noteOf)
}

// notGone is the condition that the parts of the note's letter are not being deleted.
func notGone() []store.Test { return []store.Test{{Attr: noteGone, Is: store.Absent}} }

// BeginNote notes that the parts of a letter are about to be written, unless an earlier
// letter with this id is being deleted.
func BeginNote(model, id string, now time.Time) store.Write {
	return store.Write{
		Ref: Keeping(model, id), If: store.Cond{notGone()},
		Ops: []store.Op{set(noteOf, value.OfString(id)), set(noteSince, value.OfInt(now.UnixMicro()))},
	}
}

// EndNote deletes the note of a letter in the transaction that writes its head. It fails
// if there is no note, or if the parts are being deleted.
func EndNote(model, id string) store.Write {
	return store.Write{Ref: Keeping(model, id), Delete: true, If: store.Cond{{{Attr: noteOf, Is: store.Exists}}, notGone()}}
}

// DropNote deletes the note of a letter whose head exists, unless the parts are being
// deleted.
func DropNote(model, id string) store.Write {
	return store.Write{Ref: Keeping(model, id), Delete: true, If: store.Cond{notGone()}}
}

// GoneNote notes that the parts of a letter must go, in the transaction that deletes its
// head.
func GoneNote(model, id string) store.Write {
	return store.Write{Ref: Keeping(model, id), Ops: []store.Op{set(noteOf, value.OfString(id)), set(noteGone, value.OfBool(true))}}
}

// GiveUp notes that the parts of a letter that was never completed must go, on condition
// that the note has not changed since it was read.
func (n LetterNote) GiveUp(model string) store.Write {
	return store.Write{
		Ref: Keeping(model, n.ID), Ops: []store.Op{set(noteGone, value.OfBool(true))},
		If: store.Cond{notGone(), {{Attr: noteSince, Is: store.Eq, Value: n.since}}},
	}
}

// EndGone deletes a note once the parts of its letter are gone.
func EndGone(model, id string) store.Write {
	return store.Write{Ref: Keeping(model, id), Delete: true, If: store.Cond{{{Attr: noteGone, Is: store.Exists}}}}
}

func attr(name string, v value.Value) value.Attr { return value.Attr{Name: name, Value: v} }
