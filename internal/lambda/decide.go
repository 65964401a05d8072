package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
)

// Errors in the configuration of the event source mapping or of the function. The
// function fails until they are fixed; meanwhile the records wait in the stream.
var (
	ErrEvent = errors.New("the event is not one of a DynamoDB stream of this model")
	ErrOrder = errors.New("the records are not in the order of a shard")
)

// portion is a run of an event's records that is applied, or delivered again, as a
// whole.
type portion struct {
	from    int // its first entry in the event; only the first portion's may lack a sequence number
	records int // the number of its entries with a sequence number
	changes []projections.Change
	bad     []events.Entry
}

// work is the decision about an event.
type work struct {
	read     time.Time
	view     *runner.View  // by which it was admitted
	looked   runner.Looked // for the first portion
	table    string
	label    string // of the stream; "" if the event does not say
	shard    string // "" if the event names none
	entries  []events.Entry
	records  []events.Position // of the entries that have one
	progress progress          // of the shard, as last read
	portions []portion

	known   bool // all of it was applied so long ago that only the tail knows it
	indexed bool // its documents are written, or pending
	pending int  // documents that an index did not take

	done   int   // records applied or kept as dead letters
	why    error // why the rest is not done
	waits  error // jobs of a newer version
	counts runner.Result
	trace  string // see runner.Tracer
}

// source is the event source that the records of a DynamoDB stream name.
const source = "aws:dynamodb"

// splitEvent splits an event into portions. An empty event, as Lambda sends at the end of a
// window, asks for nothing. A record that cannot be used is not an error: it goes to
// the portion's bad entries. Errors wrap ErrEvent, and then nothing of the event may be
// applied.
func splitEvent(m *model.Model, ev *events.Lambda, most int) (w work, err error) {
	if ev.Source != "" && ev.Source != source {
		return w, fmt.Errorf("%w: its records are of %s, not of %s", ErrEvent, ev.Source, source)
	}
	w.shard = ev.Shard
	_, w.label, _ = strings.Cut(ev.Stream, "/stream/")
	w.entries = ev.Entries
	for i := range ev.Entries {
		e := &ev.Entries[i]
		if e.Bad != nil && (errors.Is(e.Bad.Err, events.ErrTruncated) || errors.Is(e.Bad.Err, events.ErrNoTable)) {
			return w, fmt.Errorf("%w: %w", ErrEvent, e.Bad)
		}
		name := e.Record.Table
		if name == "" && e.Bad == nil {
			return w, fmt.Errorf("%w: a record names no table: it has no eventSourceARN", ErrEvent)
		}
		if name != "" && w.table == "" {
			w.table = name
		} else if name != "" && name != w.table {
			return w, fmt.Errorf("%w: it has records of the tables %s and %s; a stream has one", ErrEvent, w.table, name)
		}
	}
	switch {
	case len(ev.Entries) == 0:
		return w, nil
	case w.table == "":
		w.table = m.Tables[0].Name // all records are bad, and any table will do
	}
	t := m.Table(w.table)
	if t == nil {
		return w, fmt.Errorf("%w: model %s has no table %q", ErrEvent, m.Name, w.table)
	}
	for i := range ev.Entries {
		if err := w.addRecord(t, i, &ev.Entries[i], most); err != nil {
			return w, err
		}
	}
	return w, nil
}

// checkShard returns ErrOrder if the event names no shard, or if its records are not in ascending order. Rows
// keep positions by shard, so nothing of that event may be applied.
func (w *work) checkShard() error {
	if w.shard == "" {
		return fmt.Errorf("%w: the event names no shard; give the event source mapping a tumbling window and a parallelization factor of 1: aws lambda update-event-source-mapping --uuid UUID --tumbling-window-in-seconds 60 --parallelization-factor 1", ErrOrder)
	}
	for i := 1; i < len(w.records); i++ {
		if w.records[i].Compare(w.records[i-1]) <= 0 {
			return fmt.Errorf("%w: %s comes after %s", ErrOrder, w.records[i], w.records[i-1])
		}
	}
	return nil
}

// addRecord puts a record of an event into the last portion, or begins one when that has most records.
// An entry that cannot be a change of the table becomes a bad entry, and later a dead letter; a record
// without a sequence number fails the event.
func (w *work) addRecord(t *model.Table, i int, e *events.Entry, most int) error {
	n := len(w.portions)
	if n == 0 || len(w.portions[n-1].changes)+len(w.portions[n-1].bad) >= most && !e.Record.Position.IsZero() {
		w.portions = append(w.portions, portion{from: i})
	}
	p := &w.portions[len(w.portions)-1]
	if e.Bad == nil && e.Record.Position.IsZero() {
		return fmt.Errorf("%w: a record has no sequence number; records from Kinesis have none", ErrEvent)
	}
	if !e.Record.Position.IsZero() {
		w.records = append(w.records, e.Record.Position)
		p.records++
	}
	if e.Bad != nil {
		p.bad = append(p.bad, *e)
		return nil
	}
	c, ok := projections.NewChange(t, &e.Record)
	if !ok {
		bad := *e
		bad.Bad = &events.Bad{Err: fmt.Errorf("its keys are not those of table %s", t.Name)}
		p.bad = append(p.bad, bad)
		return nil
	}
	p.changes = append(p.changes, c)
	return nil
}

// answer is the reply to Lambda. No failures means that all records were applied. In a
// tumbling window the reply has a state. It is empty, because weir's state is in its
// own table.
type answer struct {
	Failures []failure       `json:"batchItemFailures"`
	State    json.RawMessage `json:"state,omitempty"`
}

// failure is an entry of a partial answer: the sequence number of the first record that was not
// applied. Lambda sends it again, and all that follow in its shard.
type failure struct {
	Item string `json:"itemIdentifier"`
}

// identifierOf names the record from which on Lambda is to deliver everything again: the
// lowest one of these entries, since Lambda takes the lowest. It is the event's own
// text of the sequence number, with leading zeros. Lambda would treat any other text as
// a failure of the whole event.
func identifierOf(payload []byte, entries []events.Entry) string {
	var first *events.Entry
	for i := range entries {
		e := &entries[i]
		if p := e.Record.Position; !p.IsZero() && (first == nil || p.Compare(first.Record.Position) < 0) {
			first = e
		}
	}
	if first == nil {
		return ""
	}
	var record struct {
		Dynamodb struct{ SequenceNumber string }
	}
	if at := first.Offset; at >= 0 && at < int64(len(payload)) {
		// The decoder reads no further than this record. An error of a bad record does
		// not matter: its number was read before.
		_ = json.NewDecoder(bytes.NewReader(payload[at:])).Decode(&record)
	}
	if p, err := events.ParsePosition(record.Dynamodb.SequenceNumber); err == nil && p == first.Record.Position {
		return record.Dynamodb.SequenceNumber
	}
	return first.Record.Position.String()
}
