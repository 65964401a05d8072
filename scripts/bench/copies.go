package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/value"
)

// streams is where the recordings are that copies repeats, seen from the root of the repository.
const streams = "testdata/streams"

// copies repeats a recording with other names: the first record of all copies, then the second, and so
// on. So each copy has rows, targets and lists of its own, and all of them are in use all the time.
type copies struct {
	model   *model.Model
	records []events.Record
	names   map[string]bool // that each copy has of its own
	of      int             // how many copies there are
	at      int             // the record that is next
	copy    int             // and of which copy
}

// newCopies repeats the recording of a model until there are enough records.
func (b *bench) newCopies(name string, records int) (*copies, error) {
	m, err := model.Load(name)
	if err != nil {
		return nil, err
	}
	c := &copies{model: m, names: map[string]bool{}}
	if err := c.readRecording(b); err != nil {
		return nil, err
	}
	for i := range c.records {
		c.learnNames(c.records[i].Table, c.records[i].Old)
		c.learnNames(c.records[i].Table, c.records[i].New)
	}
	c.of = (records + len(c.records) - 1) / len(c.records)
	return c, nil
}

// readRecording reads the recording. Its records are then in the order of their sequence numbers, which DynamoDB Local
// gives to all tables together.
func (c *copies) readRecording(b *bench) error {
	paths, err := filepath.Glob(filepath.Join(streams, c.model.Name, "*"))
	if err != nil {
		return err
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.HasPrefix(filepath.Base(p), "expected.") })
	if len(paths) == 0 {
		return fmt.Errorf("no recording of %s in %s: run this in the root of the repository", c.model.Name, streams)
	}
	files, err := events.Open(paths...)
	if err != nil {
		return err
	}
	for batch, err := range files.Batches(b.ctx) {
		if err != nil {
			return err
		}
		for _, e := range batch {
			if e.Bad != nil {
				return fmt.Errorf("%s: %w", e.Location, e.Bad)
			}
			if e.Record.Table == "" {
				e.Record.Table = c.model.Tables[0].Name
			}
			c.records = append(c.records, e.Record)
		}
	}
	slices.SortStableFunc(c.records, func(a, b events.Record) int { return a.Position.Compare(b.Position) })
	return nil
}

// learnNames learns the names of a row: those in its partition key, or all of it if that says none, and those that
// only one row may have.
func (c *copies) learnNames(table string, row value.Item) {
	t := c.model.Table(table)
	if row == nil || t == nil {
		return
	}
	e := t.Classify(row)
	if e == nil {
		c.names[row.Get(t.Key.Partition.Name).Text()] = true
		return
	}
	k := e.PrimaryKey()[0]
	values := make([]string, len(k.Template.Names()))
	if v := row.Get(k.Attr.Name); v.Kind() == value.String && k.Template.Match(v.Text(), values) {
		for _, name := range values {
			c.names[model.Unescape(name)] = true
		}
	}
	for _, u := range e.Unique {
		if v := u.Field.Get(row); v.Kind() == value.String {
			c.names[v.Text()] = true
		}
	}
}

// copyItem returns the item of the present copy.
func (c *copies) copyItem(it value.Item) value.Item {
	return value.NewItem(seq.Map(it, func(a value.Attr) value.Attr { return value.Attr{Name: a.Name, Value: c.copyValue(a.Value)} })...)
}

// copyValue returns a value of the present copy: each name is followed by the copy's number, also within the parts
// of a key.
func (c *copies) copyValue(v value.Value) value.Value {
	switch v.Kind() {
	case value.String:
		return value.OfString(c.copyText(v.Text()))
	case value.Map:
		return value.OfMap(c.copyItem(v.Item()))
	case value.List:
		return value.OfList(seq.Map(v.Elements(), func(e value.Attr) value.Value { return c.copyValue(e.Value) })...)
	case value.StringSet:
		return value.OfStrings(seq.Map(v.Elements(), func(e value.Attr) string { return c.copyText(e.Value.Text()) }))
	}
	return v
}

func (c *copies) copyText(s string) string {
	if c.names[s] {
		return s + c.suffix()
	}
	parts := strings.Split(s, "#")
	for i, p := range parts {
		if c.names[model.Unescape(p)] {
			parts[i] = p + c.suffix()
		}
	}
	return strings.Join(parts, "#")
}

func (c *copies) suffix() string { return "-c" + strconv.Itoa(c.copy) }

// appendNext appends the next record.
func (c *copies) appendNext(b []byte) []byte {
	r := &c.records[c.at]
	b = appendHead(b, uint64(c.at), uint64(c.copy), r.Event(), r.Time.Unix())
	b = value.AppendTypedItem(append(b, `,"Keys":`...), c.copyItem(r.Keys))
	if r.New != nil {
		b = value.AppendTypedItem(append(b, `,"NewImage":`...), c.copyItem(r.New))
	}
	if r.Old != nil {
		b = value.AppendTypedItem(append(b, `,"OldImage":`...), c.copyItem(r.Old))
	}
	b = fmt.Appendf(b, `,"SequenceNumber":"%021d","SizeBytes":700,"StreamViewType":"NEW_AND_OLD_IMAGES"}`, r.Position.Uint64()*uint64(c.of)+uint64(c.copy))
	if r.Expired {
		b = append(b, `,"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}`...)
	}
	b = append(appendARN(b, r.Table), '}')
	if c.copy++; c.copy == c.of {
		c.at, c.copy = c.at+1, 0
	}
	return b
}

// copyRecording makes a recording of a model's records.
func (b *bench) copyRecording(name string, records int) (recording, error) {
	c, err := b.newCopies(name, records)
	if err != nil {
		return recording{}, err
	}
	return b.recordingOf(name, c.appendNext, records)
}
