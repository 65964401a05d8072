package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// A dead letter consists of a head and a body. The head is one row of bounded size. The
// body holds the record, and those texts, keys and amounts for which the head has no
// room. A body that packs to more than inlineBytes is kept in rows of its own, of
// partBytes each: two images of 400 KB do not fit one row, and the heads that one
// transaction writes must stay below its limit of 4 MB.
const (
	inlineBytes = 64 << 10
	partBytes   = 300 << 10
	maxHeadText = 512      // the longest text in a head
	maxHeadKey  = 4 << 10  // the longest target key in a head
	maxHeadAdds = 16 << 10 // the most bytes of amounts in a head
)

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
)

// Attributes of a dead letter's rows. The body holds those of wholeAttr in full length.
const (
	kindAttr   = "kind"
	targetAttr = "target"
	reasonAttr = "reason"
	laneAttr   = "lane"
	sourceAttr = "source"
	timeAttr   = "time"
	addsAttr   = "adds"
	partsAttr  = "parts"
	moreAttr   = "more"
	bodyAttr   = "body"
	wholeAttr  = "whole"
)

// letter returns the key of the head of the dead letter with this id.
func (r *Runner) letter(id string) store.Ref { return book.Ref(book.Dead(r.Model.Name), id) }

// deadRows encodes a dead letter as its head and the parts of its body. parts is empty if
// the head has room for the body.
func (r *Runner) deadRows(d *Dead) (head store.Write, parts []store.Write) {
	ref := r.letter(d.ID)
	it := append(book.RefItem(ref),
		Attr(kindAttr, value.OfString(string(d.Kind))), Attr(laneAttr, value.OfString(d.Lane)),
		Attr(timeAttr, value.OfInt(d.Time.UnixMicro())), Attr(book.Position, d.Position.Value()), Attr(tableAttr, value.OfString(d.Row.Table)))
	var whole []value.Attr
	text := func(name, s string) {
		short := shortened(s)
		if it = append(it, Attr(name, value.OfString(short))); short != s {
			whole = append(whole, Attr(name, value.OfString(s)))
		}
	}
	text(targetAttr, d.Target)
	text(reasonAttr, d.Reason)
	text(sourceAttr, d.Source)
	room := func(name string, v value.Value, most int) (fits bool) {
		a := Attr(name, v)
		if fits = (value.Item{a}).Size() <= most; fits {
			it = append(it, a)
		} else {
			whole = append(whole, a)
		}
		return fits
	}
	if t := r.Model.Table(d.Row.Table); t != nil {
		room(keyAttr, value.OfMap(t.Item(d.Row.Key)), maxHeadKey)
	}
	var adds []value.Value
	for _, a := range d.Adds {
		adds = append(adds, value.OfString(a.Field), a.Amount)
	}
	if !room(addsAttr, value.OfList(adds...), maxHeadAdds) {
		it = append(it, Attr(moreAttr, value.OfBool(true)))
	}
	body := packed(d, whole)
	if len(body) <= inlineBytes {
		it = append(it, Attr(bodyAttr, value.OfBinary(string(body))))
	} else {
		for ; len(body) > 0; body = body[min(len(body), partBytes):] {
			part := body[:min(len(body), partBytes)]
			parts = append(parts, store.Write{
				Ref: book.DeadPart(r.Model.Name, d.ID, len(parts)), Ops: []store.Op{Set(bodyAttr, value.OfBinary(string(part)))},
			})
		}
	}
	it = append(it, Attr(partsAttr, value.OfInt(int64(len(parts)))))
	return store.Write{Ref: ref, Put: value.NewItem(it...), If: book.NotThere()}, parts
}

// packed encodes and compresses the body of a dead letter: the record, the attributes for
// which the head has no room, and raw bytes.
func packed(d *Dead, whole []value.Attr) []byte {
	record := d.Record
	if len(whole) > 0 {
		record = record.With(Attr(wholeAttr, value.OfMap(value.NewItem(whole...))))
	}
	return packer.EncodeAll(append(value.AppendItem(nil, record), d.Raw...), nil)
}

// shortened returns a text as a head holds it. A text that is too long is replaced by its
// beginning, its length and its hash.
func shortened(s string) string {
	valid := strings.ToValidUTF8(s, "\uFFFD")
	if len(valid) <= maxHeadText {
		return valid
	}
	return fmt.Sprintf("%s… (%d bytes, hash %s)", strings.ToValidUTF8(valid[:maxHeadText], ""), len(s), book.Hash(s))
}

// Dead lists the dead letters page by page, without their records. Long texts are
// shortened.
func (r *Runner) Dead(ctx context.Context, yield func(Dead) error) error {
	q := store.Query{Table: book.TableName, Partition: value.OfString(book.Dead(r.Model.Name))}
	for {
		page, err := r.Store.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, row := range page.Rows {
			if err := yield(r.deadOf(row)); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		q.After = page.Next
	}
}

// ErrNoDead says that there is no dead letter with the id.
var ErrNoDead = errors.New("there is no dead letter with this id")

// DeadByID reads a whole dead letter, with its record. The error wraps ErrNoDead if there
// is none.
func (r *Runner) DeadByID(ctx context.Context, id string) (Dead, error) {
	rows, err := r.Get(ctx, []store.Ref{r.letter(id)})
	if err != nil {
		return Dead{}, err
	}
	if rows[0] == nil {
		return Dead{}, fmt.Errorf("%s: %w", id, ErrNoDead)
	}
	d := r.deadOf(rows[0])
	packed := []byte(rows[0].Get(bodyAttr).Text())
	for i := range d.parts {
		row, err := r.Get(ctx, []store.Ref{book.DeadPart(r.Model.Name, id, i)})
		if err != nil {
			return Dead{}, err
		}
		packed = append(packed, row[0].Get(bodyAttr).Text()...)
	}
	body, err := unpacker.DecodeAll(packed, nil)
	if err != nil {
		return Dead{}, fmt.Errorf("%s: its record: %w", id, err)
	}
	record, raw, err := value.DecodeItem(body)
	if err != nil {
		return Dead{}, fmt.Errorf("%s: its record: %w", id, err)
	}
	r.readHead(&d, record.Get(wholeAttr).Item())
	d.Record, d.Raw, d.more = record.With(Attr(wholeAttr, value.Value{})), string(raw), false
	return d, nil
}

// deadOf reads a dead letter from its head, without the body.
func (r *Runner) deadOf(row value.Item) Dead {
	d := Dead{
		ID: row.Get(book.Sort).Text(), Kind: DeadKind(row.Get(kindAttr).Text()), Lane: row.Get(laneAttr).Text(),
		Position: events.PositionFrom(row.Get(book.Position)), more: row.Has(moreAttr),
	}
	d.Row.Table = row.Get(tableAttr).Text()
	parts, _ := row.Get(partsAttr).Int64()
	d.parts = int(parts)
	if us, ok := row.Get(timeAttr).Int64(); ok {
		d.Time = time.UnixMicro(us).UTC()
	}
	r.readHead(&d, row)
	return d
}

// readHead sets the fields of d from a head, or from a body with the full values.
func (r *Runner) readHead(d *Dead, it value.Item) {
	for _, text := range []struct {
		name string
		to   *string
	}{{targetAttr, &d.Target}, {reasonAttr, &d.Reason}, {sourceAttr, &d.Source}} {
		if v := it.Get(text.name); !v.IsMissing() {
			*text.to = v.Text()
		}
	}
	if t := r.Model.Table(d.Row.Table); t != nil && it.Has(keyAttr) {
		d.Row.Key, _ = t.KeyOf(it.Get(keyAttr).Item())
	}
	for adds, i := it.Get(addsAttr), 0; i+1 < adds.Len(); i += 2 {
		add := value.Attr{Name: adds.At(i).Text(), Value: adds.At(i + 1)}
		parts := []value.Attr{add}
		if attr, exp, ok := book.Band(add.Name); ok && exp == 0 { // from before there were bands
			parts = book.Split(attr, add.Value)
		}
		for _, part := range parts {
			d.Adds = append(d.Adds, projections.Add{Target: d.Row, Field: part.Name, Amount: part.Value})
		}
	}
}
