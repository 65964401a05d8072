package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
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
	DeadNumber   DeadKind = "number"   // a sum or a mean that no number can hold; it goes by itself when one can
	DeadRow      DeadKind = "row"      // a row of ours that the table refused
	DeadSet      DeadKind = "set"      // a row that refused to show its part of a set
	DeadTold     DeadKind = "told"     // a row for a follower that the table refused
	DeadDocument DeadKind = "document" // a document that the index refused
	DeadImage    DeadKind = "image"    // an image that a derivation cannot use, and that counts nothing there
	DeadGap      DeadKind = "gap"      // records of a stream that were gone before they were read
	DeadRecord   DeadKind = "record"   // a recorded change, or bytes, that a replay cannot use
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
	Record   value.Item        // "table", "keys", "old", "new", "expired": see RecordItem
	Raw      string            // of a DeadRecord that could not be read: the bytes
	Source   string            // of a DeadRecord: file, line and offset; of a DeadGap: from where to where

	parts int // how many rows hold the record, beside this one
}

// identify names a thing that is kept so that the same one, kept twice, is one.
// The id is hexadecimal, so that it can be typed as an argument.
func (d *Dead) identify() {
	parts := []string{string(d.Kind), d.Target, book.RowText(d.Row), d.Lane, d.Position.String(), d.Source}
	sum := sha256.Sum256([]byte(strings.Join(parts, "|")))
	d.ID = hex.EncodeToString(sum[:8])
}

func recordJSON(c *projections.Change) value.Item {
	return RecordItem(&events.Record{Table: c.Table.Name, Keys: c.Table.Item(c.Row.Key), Old: c.Old, New: c.New})
}

// RecordItem is a record as it is kept: its table, keys and images, and whether
// TTL removed the row. Position and time stand beside it.
func RecordItem(rec *events.Record) value.Item {
	image := func(it value.Item) value.Value {
		if it == nil {
			return value.Value{}
		}
		return value.OfMap(it)
	}
	var expired value.Value
	if rec.Expired {
		expired = value.OfBool(true)
	}
	var table value.Value
	if rec.Table != "" {
		table = value.OfString(rec.Table)
	}
	return value.NewItem(attr("table", table), attr("keys", image(rec.Keys)), attr("old", image(rec.Old)), attr("new", image(rec.New)), attr("expired", expired))
}

// ChangeRecord is the record that was kept.
func (d *Dead) ChangeRecord() events.Record {
	image := func(name string) value.Item {
		if v := d.Record.Get(name); !v.IsMissing() {
			return v.Item()
		}
		return nil
	}
	return events.Record{
		Table: d.Record.Get("table").Text(), Keys: image("keys"), Old: image("old"), New: image("new"),
		Expired: !d.Record.Get("expired").IsMissing(), Position: d.Position, Time: d.Time,
	}
}

var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
)

// A record that is larger than inlineBytes when packed is kept in rows of its own
// of partBytes each: two images of 400 KB do not fit one, and what parks a target
// must stay below a transaction's 4 MB.
const (
	inlineBytes = 64 << 10
	partBytes   = 300 << 10
)

func partRef(m *model.Model, id string, i int) store.Ref {
	return book.Ref("deadpart|"+m.Name+"|"+id, fmt.Sprintf("%04d", i))
}

// keeping stores the parts of what is too large for a row, and returns the writes
// that make all of ds visible. Done twice, each is kept once.
func (r *Runner) keeping(ctx context.Context, ds []Dead) ([]store.Write, error) {
	var parts, heads []store.Write
	for i := range ds {
		d := &ds[i]
		d.identify()
		body := packer.EncodeAll(append(value.AppendItem(nil, d.Record), d.Raw...), nil)
		if len(body) <= inlineBytes {
			heads = append(heads, deadWrite(r.Model, d, body))
			continue
		}
		for ; len(body) > 0; d.parts++ {
			part := body[:min(len(body), partBytes)]
			parts = append(parts, store.Write{Ref: partRef(r.Model, d.ID, d.parts), Ops: []store.Op{set("body", value.OfBinary(string(part)))}})
			body = body[len(part):]
		}
		heads = append(heads, deadWrite(r.Model, d, nil))
	}
	return heads, r.taken(ctx, parts)
}

// keep keeps things that stand by themselves.
func (r *Runner) keep(ctx context.Context, ds []Dead) error {
	heads, err := r.keeping(ctx, ds)
	if err != nil {
		return err
	}
	return r.taken(ctx, heads)
}

// taken does writes of our own table, which nothing may refuse.
func (r *Runner) taken(ctx context.Context, ws []store.Write) error {
	out, err := r.write(ctx, ws)
	if err != nil {
		return err
	}
	for i := range out {
		if errors.Is(out[i].Err, store.ErrRefused) {
			return fmt.Errorf("keeping what could not be applied: %w", out[i].Err)
		}
	}
	return nil
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
	ref := book.Ref(book.Dead(m.Name), d.ID)
	it := append(book.RefItem(ref),
		attr("kind", value.OfString(string(d.Kind))), attr("target", value.OfString(d.Target)),
		attr("reason", value.OfString(d.Reason)), attr("lane", value.OfString(d.Lane)),
		attr("source", value.OfString(d.Source)), attr("time", value.OfInt(d.Time.UnixMicro())),
		attr(book.Position, d.Position.Value()), attr(tableAttr, value.OfString(d.Row.Table)), attr(keyAttr, key),
		attr("adds", value.OfList(adds...)), attr("parts", value.OfInt(int64(d.parts))))
	if d.parts == 0 {
		it = append(it, attr("body", value.OfBinary(string(body))))
	}
	return store.Write{Ref: ref, Put: value.NewItem(it...), If: store.Cond{{{Attr: book.Partition, Is: store.Absent}}}}
}

// KeepDead keeps something that stands by itself; keeping it again changes nothing.
func (r *Runner) KeepDead(ctx context.Context, d Dead) (id string, err error) {
	ds := []Dead{d}
	err = r.keep(ctx, ds)
	return ds[0].ID, err
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
	for i := range d.parts {
		row, err := r.get(ctx, []store.Ref{partRef(r.Model, id, i)})
		if err != nil {
			return Dead{}, err
		}
		packed = append(packed, row[0].Get("body").Text()...)
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
	parts, _ := row.Get("parts").Int64()
	d.parts = int(parts)
	for adds, i := row.Get("adds"), 0; i+1 < adds.Len(); i += 2 {
		add := value.Attr{Name: adds.At(i).Text(), Value: adds.At(i + 1)}
		parts := []value.Attr{add}
		if attr, exp, ok := book.Band(add.Name); ok && exp == 0 { // kept before there were bands
			parts = book.Split(attr, add.Value)
		}
		for _, part := range parts {
			d.Adds = append(d.Adds, projections.Add{Target: d.Row, Field: part.Name, Amount: part.Value})
		}
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

func (r *Runner) dropParts(ctx context.Context, ds ...Dead) error {
	var ws []store.Write
	for i := range ds {
		for n := range ds[i].parts {
			ws = append(ws, store.Write{Ref: partRef(r.Model, ds[i].ID, n), Delete: true})
		}
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
