// Package trigger makes the event with which Lambda calls a function when a row changes, for
// tests of functions. The row is written as ingest writes it, in a store of its own, and the
// event has what the store's stream says of that.
package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/sample"
	"weir/internal/store"
	"weir/internal/value"
)

// Change is what becomes of a row.
type Change string

// The changes, by the names that records have.
const (
	Insert Change = "insert"
	Modify Change = "modify"
	Remove Change = "remove"
)

// ErrCannot is wrapped by errors of what was asked for.
var ErrCannot = errors.New("no event")

type cannot struct{ error }

func (cannot) Is(target error) bool { return target == ErrCannot }

func refuse(format string, args ...any) error { return cannot{fmt.Errorf(format, args...)} }

// Maker makes events of a model. The store has the model's tables, and is the Maker's alone:
// it fills it with sample rows.
type Maker struct {
	Model *model.Model
	Store store.Store
	Now   func() time.Time
	// Real returns the name that a table of the model has on AWS.
	Real func(table string) string

	writer *ingest.Writer
	read   map[string]events.Position // by shard
}

// Event returns the event of a change of one row of an entity: {"Records": [one]}. Fields that
// item does not have are invented. Of a modification, item has the row's key, or not, and
// what changes; without such a field, one is chosen.
// What cannot be made wraps ErrCannot.
func (m *Maker) Event(ctx context.Context, entity string, change Change, item value.Item) ([]byte, error) {
	e := m.Model.Entity(entity)
	if e == nil || e.Derived {
		return nil, refuse("the model has no rows of %q that an application writes", entity)
	}
	m.writer, m.read = &ingest.Writer{Model: m.Model, Store: m.Store, Now: m.Now}, map[string]events.Position{}
	first, other, err := m.samples(ctx, e)
	if err != nil {
		return nil, err
	}
	changes := item
	if change == Modify {
		item = keyOf(e, item)
	}
	row := first.With(item...)
	rec, err := m.do(ctx, e, ingest.Create, row)
	if err != nil {
		return nil, err
	}
	switch change {
	case Modify:
		rec, err = m.modify(ctx, e, keyOf(e, row), changes, other)
	case Remove:
		rec, err = m.do(ctx, e, ingest.Delete, keyOf(e, row))
	}
	if err != nil {
		return nil, err
	}
	return m.payload(rec), nil
}

// samples writes the sample rows of the model but the first of e, which it returns, with one
// of the same entity that was written.
func (m *Maker) samples(ctx context.Context, e *model.Entity) (first, other value.Item, err error) {
	var before []ingest.Command
	for _, c := range sample.Commands(m.Model, m.Now()) {
		switch {
		case c.Entity != e.Name:
			before = append(before, c)
		case first == nil:
			first = c.Item
		default:
			other = c.Item
			before = append(before, c)
		}
	}
	if first == nil {
		return nil, nil, refuse("rows of %s are created with rows of another entity: name that one", e.Name)
	}
	for i, r := range m.writer.Do(ctx, before) {
		if refusal := (*ingest.Refusal)(nil); r.Err != nil && !errors.As(r.Err, &refusal) {
			return nil, nil, fmt.Errorf("a sample row of %s: %w", before[i].Entity, r.Err)
		}
	}
	return first, other, nil
}

// do writes a row, and returns the record of it.
func (m *Maker) do(ctx context.Context, e *model.Entity, op ingest.Op, item value.Item) (*events.Record, error) {
	if _, err := m.unread(ctx, e); err != nil {
		return nil, err
	}
	res := m.writer.Do(ctx, []ingest.Command{{Op: op, Entity: e.Name, Item: item, Seed: "trigger"}})[0]
	if refusal := (*ingest.Refusal)(nil); errors.As(res.Err, &refusal) {
		return nil, refuse("%s: %v", e.Name, refusal)
	}
	if res.Err != nil {
		return nil, res.Err
	}
	recs, err := m.unread(ctx, e)
	if err != nil {
		return nil, err
	}
	for i := range recs {
		if e.Match(newest(&recs[i])) {
			return &recs[i], nil
		}
	}
	return nil, refuse("%s: the row stays as it is", e.Name)
}

// newest is the image that says what a record's row is.
func newest(r *events.Record) value.Item {
	if r.New != nil {
		return r.New
	}
	return r.Old
}

// modify changes a row: as changes say, or an attribute that may change, to the value of
// another row.
func (m *Maker) modify(ctx context.Context, e *model.Entity, key, changes, other value.Item) (*events.Record, error) {
	if len(changes) > len(keyOf(e, changes)) {
		return m.do(ctx, e, ingest.Update, key.With(changes...))
	}
	for _, a := range other {
		if key.Has(a.Name) {
			continue
		}
		rec, err := m.do(ctx, e, ingest.Update, key.With(a))
		if err == nil || !errors.Is(err, ErrCannot) {
			return rec, err
		}
	}
	return nil, refuse("%s: no attribute was found that may change; say which: '{\"NAME\": VALUE}'", e.Name)
}

// keyOf returns the fields of the row's key.
func keyOf(e *model.Entity, item value.Item) (key value.Item) {
	for _, name := range e.KeyNames() {
		if item.Has(name) {
			key = key.With(value.Attr{Name: name, Value: item.Get(name)})
		}
	}
	return key
}

// unread returns the records of the stream that rows of an entity are in, without those of
// earlier calls.
func (m *Maker) unread(ctx context.Context, e *model.Entity) (out []events.Record, err error) {
	shards, err := m.Store.Shards(ctx, e.Table.Name)
	if err != nil {
		return nil, err
	}
	const page = 1000
	for _, s := range shards {
		for {
			got, err := m.Store.Read(ctx, e.Table.Name, s.ID, m.read[s.ID], page)
			if err != nil {
				return nil, err
			}
			if len(got.Records) == 0 {
				break
			}
			out = append(out, got.Records...)
			m.read[s.ID] = got.Records[len(got.Records)-1].Position
		}
	}
	return out, nil
}

// payload is a record as Lambda delivers it.
// Its account, region and stream are made up; its table is the one of the stage. The time is that of the call.
func (m *Maker) payload(r *events.Record) []byte {
	type change struct {
		At       int64           `json:"ApproximateCreationDateTime"`
		Keys     json.RawMessage `json:"Keys"`
		New      json.RawMessage `json:"NewImage,omitempty"`
		Old      json.RawMessage `json:"OldImage,omitempty"`
		Sequence string          `json:"SequenceNumber"`
		Size     int             `json:"SizeBytes"`
		View     string          `json:"StreamViewType"`
	}
	type record struct {
		ID      string `json:"eventID"`
		Name    string `json:"eventName"`
		Version string `json:"eventVersion"`
		Source  string `json:"eventSource"`
		Region  string `json:"awsRegion"`
		Change  change `json:"dynamodb"`
		ARN     string `json:"eventSourceARN"`
	}
	typed := func(it value.Item) json.RawMessage {
		if it == nil {
			return nil
		}
		return value.AppendTypedItem(nil, it)
	}
	now, number := m.Now().UTC(), r.Position.String()
	number = strings.Repeat("0", max(0, 21-len(number))) + number
	out, err := json.MarshalIndent(map[string][]record{"Records": {{
		ID: "trigger-" + number, Name: r.Event(), Version: "1.1", Source: "aws:dynamodb", Region: "eu-west-1",
		Change: change{now.Unix(), typed(r.Keys), typed(r.New), typed(r.Old), number, r.Size(), string(store.NewAndOldImages)},
		ARN:    fmt.Sprintf("arn:aws:dynamodb:eu-west-1:123456789012:table/%s/stream/%s", m.Real(r.Table), now.Format("2006-01-02T15:04:05.000")),
	}}}, "", "  ")
	if err != nil {
		panic(err) // not reached: these types have a JSON form
	}
	return append(out, '\n')
}
