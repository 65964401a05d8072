package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// DeadKind says what could not be done, and so what a retry does.
type DeadKind string

// The kinds of what is kept.
const (
	DeadParked   DeadKind = "parked"   // an effect on a target that waits in order behind one that was refused
	DeadPublish  DeadKind = "publish"  // a target's row refused the value its book holds
	DeadRow      DeadKind = "row"      // a row of ours that the table refused
	DeadDocument DeadKind = "document" // a document that the index refused
	DeadImage    DeadKind = "image"    // an image that a derivation cannot use, and that counts nothing there
	DeadRecord   DeadKind = "record"   // bytes that are no record
)

// Dead is one thing that could not be applied, kept whole.
type Dead struct {
	ID       string
	Kind     DeadKind
	Target   string // what it was for, as people read it
	Reason   string
	Lane     string
	Position events.Position
	Time     time.Time         // of the record
	Row      store.Ref         // of the target, where it is a row
	Adds     []projections.Add // the amounts that wait: field and amount
	Record   value.Item        // "keys", "old", "new": the change's images
	Raw      string            // of a DeadRecord
	Source   string            // of a DeadRecord: file, line and offset
}

// identify names a thing that is kept so that the same one, kept twice, is one.
func (d *Dead) identify() {
	d.ID = book.Hash(string(d.Kind) + "|" + d.Target + "|" + book.RowText(d.Row) + "|" + d.Lane + "|" + d.Position.String() + "|" + d.Source)[:12]
}

func recordJSON(c *projections.Change) value.Item {
	image := func(it value.Item) value.Value {
		if it == nil {
			return value.Value{}
		}
		return value.OfMap(it)
	}
	return value.NewItem(attr("keys", image(c.Table.Item(c.Row.Key))), attr("old", image(c.Old)), attr("new", image(c.New)))
}

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
)

// partBytes is how much of a kept record stands in one row: two images of 400 KB
// do not fit one.
const partBytes = 300 << 10

func partRef(m *model.Model, id string, i int) store.Ref {
	return book.Ref("deadpart|"+m.Name+"|"+id, fmt.Sprintf("%04d", i))
}

// putDead is the write that keeps d. Doing it twice keeps it once. What does not
// fit a row is cut off there and said; keepDead keeps that too.
func putDead(m *model.Model, d Dead) store.Write {
	d.identify()
	body := packer.EncodeAll(append(value.AppendItem(nil, d.Record), d.Raw...), nil)
	return deadWrite(m, &d, body)
}

func deadWrite(m *model.Model, d *Dead, body []byte) store.Write {
	var key value.Value
	if t := m.Table(d.Row.Table); t != nil {
		key = value.OfMap(t.Item(d.Row.Key))
	}
	var adds []value.Value
	for _, a := range d.Adds {
		adds = append(adds, value.OfString(a.Field), a.Amount)
	}
	parts := (len(body) + partBytes - 1) / partBytes
	ref := book.Ref(book.Dead(m.Name), d.ID)
	it := append(book.RefItem(ref),
		attr("kind", value.OfString(string(d.Kind))), attr("target", value.OfString(d.Target)),
		attr("reason", value.OfString(d.Reason)), attr("lane", value.OfString(d.Lane)),
		attr("source", value.OfString(d.Source)), attr("time", value.OfInt(d.Time.UnixMicro())),
		attr(book.Position, d.Position.Value()), attr(tableAttr, value.OfString(d.Row.Table)), attr(keyAttr, key),
		attr("adds", value.OfList(adds...)), attr("parts", value.OfInt(int64(parts))))
	if parts == 1 {
		it = append(it, attr("body", value.OfBinary(string(body))))
	}
	return store.Write{Ref: ref, Put: value.NewItem(it...), If: store.Cond{{{Attr: book.Partition, Is: store.Absent}}}}
}

// KeepDead keeps something that stands by itself. What is too large for a row is
// kept in several, the parts first, so that a crash leaves no half of it visible.
func (r *Runner) KeepDead(ctx context.Context, d Dead) (id string, err error) {
	d.identify()
	body := packer.EncodeAll(append(value.AppendItem(nil, d.Record), d.Raw...), nil)
	var ws []store.Write
	if len(body) > partBytes {
		for i := 0; i*partBytes < len(body); i++ {
			part := body[i*partBytes : min(len(body), (i+1)*partBytes)]
			ws = append(ws, store.Write{Ref: partRef(r.Model, d.ID, i), Ops: []store.Op{set("body", value.OfBinary(string(part)))}})
		}
		if _, err := r.write(ctx, ws); err != nil {
			return "", err
		}
	}
	_, err = r.write(ctx, []store.Write{deadWrite(r.Model, &d, body)})
	return d.ID, err
}

// Dead lists what is kept, without the records themselves, a page at a time.
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

// ErrNoDead says that nothing with that id is kept.
var ErrNoDead = errors.New("nothing with this id is kept")

// DeadByID reads one with its record.
func (r *Runner) DeadByID(ctx context.Context, id string) (Dead, error) {
	rows, err := r.get(ctx, []store.Ref{book.Ref(book.Dead(r.Model.Name), id)})
	if err != nil {
		return Dead{}, err
	}
	if rows[0] == nil {
		return Dead{}, fmt.Errorf("%s: %w", id, ErrNoDead)
	}
	d := r.deadOf(rows[0])
	packed := []byte(rows[0].Get("body").Text())
	if parts, _ := rows[0].Get("parts").Int64(); parts > 1 {
		for i := range int(parts) {
			row, err := r.get(ctx, []store.Ref{partRef(r.Model, id, i)})
			if err != nil {
				return Dead{}, err
			}
			packed = append(packed, row[0].Get("body").Text()...)
		}
	}
	body, err := unpacker.DecodeAll(packed, nil)
	if err != nil {
		return Dead{}, fmt.Errorf("%s: the record kept: %w", id, err)
	}
	record, raw, err := value.DecodeItem(body)
	if err != nil {
		return Dead{}, fmt.Errorf("%s: the record kept: %w", id, err)
	}
	d.Record, d.Raw = record, string(raw)
	return d, nil
}

func (r *Runner) deadOf(row value.Item) Dead {
	d := Dead{
		ID: row.Get(book.Sort).Text(), Kind: DeadKind(row.Get("kind").Text()), Target: row.Get("target").Text(),
		Reason: row.Get("reason").Text(), Lane: row.Get("lane").Text(), Source: row.Get("source").Text(),
		Position: events.PositionFrom(row.Get(book.Position)),
	}
	for adds, i := row.Get("adds"), 0; i+1 < adds.Len(); i += 2 {
		d.Adds = append(d.Adds, projections.Add{Target: d.Row, Field: adds.At(i).Text(), Amount: adds.At(i + 1)})
	}
	if us, ok := row.Get("time").Int64(); ok {
		d.Time = time.UnixMicro(us).UTC()
	}
	if t := r.Model.Table(row.Get(tableAttr).Text()); t != nil {
		if key, ok := t.KeyOf(row.Get(keyAttr).Item()); ok {
			d.Row = store.Ref{Table: t.Name, Key: key}
		}
	}
	return d
}

// forget is the write that takes a kept thing away; its parts go with dropParts.
func (r *Runner) forget(id string) store.Write {
	return store.Write{
		Ref: book.Ref(book.Dead(r.Model.Name), id), Delete: true,
		If: store.Cond{{{Attr: book.Partition, Is: store.Exists}}},
	}
}

func (r *Runner) dropParts(ctx context.Context, d *Dead) error {
	var ws []store.Write
	for i := range 8 {
		ws = append(ws, store.Write{Ref: partRef(r.Model, d.ID, i), Delete: true})
	}
	_, err := r.write(ctx, ws)
	return err
}

// describe names a row as people know it.
func (r *Runner) describe(ref store.Ref) string {
	t := r.Model.Table(ref.Table)
	if t == nil {
		return ref.Table
	}
	return ref.Table + " " + string(value.AppendPlainItem(nil, t.Item(ref.Key)))
}
