package events

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/value"
)

// recordOf turns a completely read unit into a record. With an error it returns the parts that could be
// read.
func (p *scanner) recordOf(u *unit, table string) (Record, error) {
	rec := Record{Keys: u.keys, Old: u.old, New: u.new, ID: u.id, Table: u.table, Export: u.seen&seenChange == 0}
	if t := p.tableOf(u.arn); t != "" {
		rec.Table = t
	} else if rec.Table == "" {
		rec.Table = table
	}
	var errs [4]error
	rec.Time, errs[0] = u.when.timeOf()
	if errs[0] != nil {
		name := "ApproximateCreationDateTime"
		if u.seen&seenChange == 0 {
			name = "Metadata.WriteTimestampMicros"
		}
		errs[0] = fmt.Errorf("%s: %w: %.40q", name, errs[0], u.when.text)
	}
	if u.seq != "" {
		rec.Position, errs[1] = ParsePosition(u.seq)
		if errs[1] != nil {
			errs[1] = fmt.Errorf("SequenceNumber: %w", errs[1])
		}
	}
	rec.Expired = u.event == "REMOVE" && u.who == ttl
	errs[2] = u.checkUnit(&rec)
	if u.arn != "" && p.tableOf(u.arn) == "" {
		errs[3] = fmt.Errorf("eventSourceARN: %w: %.100q", ErrNoTable, u.arn)
	}
	if p.prob != nil {
		return rec, p.prob
	}
	for _, err := range errs {
		if err != nil {
			return rec, err
		}
	}
	return rec, nil
}

// checkUnit returns an error if the record lacks something that the unit's form requires.
func (u *unit) checkUnit(rec *Record) error {
	if err := u.checkForm(rec); err != nil {
		return err
	}
	for _, k := range rec.Keys {
		if v := k.Value; (v.Kind() == value.String || v.Kind() == value.Binary) && v.Text() == "" {
			return fmt.Errorf("Keys.%s: an empty value; no key of DynamoDB is empty", attributeName(k.Name))
		}
	}
	if err := lacksKey("NewImage", rec.New, rec.Keys); err != nil {
		return err
	}
	return lacksKey("OldImage", rec.Old, rec.Keys)
}

// lacksKey returns an error if an image is not of the row that the record's keys name. DynamoDB
// puts the key into each image; samples that were written by hand often leave it out.
func lacksKey(name string, image, keys value.Item) error {
	for _, k := range keys {
		switch v := image.Get(k.Name); {
		case image == nil || value.Equal(v, k.Value):
		case v.IsMissing():
			return fmt.Errorf("%s lacks the key attribute %s; in a record of DynamoDB each image has the whole row, with its key", name, attributeName(k.Name))
		default:
			return fmt.Errorf("%s has another value of the key attribute %s than Keys", name, attributeName(k.Name))
		}
	}
	return nil
}

// checkForm returns an error if a part of the record is missing that its form has.
func (u *unit) checkForm(rec *Record) error {
	switch {
	case u.seen&seenChange != 0:
		return u.checkStream(rec)
	case u.seen&seenItem != 0:
		if rec.New == nil {
			return errors.New("Item: holds no attributes")
		}
	case rec.Keys == nil:
		return errors.New("Keys: missing")
	}
	return nil
}

// checkStream checks that a stream record has its keys, sequence number, event name and images.
// Which images are required depends on the event, and on the view type of the stream: a stream with new
// images alone has no old ones.
func (u *unit) checkStream(rec *Record) error {
	switch {
	case rec.Keys == nil:
		return errors.New("Keys: missing")
	case u.seq == "" && u.seen&seenKinesis == 0:
		return errors.New("SequenceNumber: missing")
	}
	switch u.event {
	case "INSERT":
		return u.checkImages(rec, false, true)
	case "MODIFY":
		return u.checkImages(rec, true, true)
	case "REMOVE":
		return u.checkImages(rec, true, false)
	case "":
		return errors.New("eventName: missing")
	}
	return fmt.Errorf("eventName: %.40q; expected INSERT, MODIFY or REMOVE", u.event)
}

// checkImages checks that a record has exactly the wanted images. The error says whether the stream
// lacks them or the record is incomplete.
func (u *unit) checkImages(rec *Record, wantOld, wantNew bool) error {
	var missing string
	switch {
	case wantOld && rec.Old == nil:
		missing = "OldImage"
	case wantNew && rec.New == nil:
		missing = "NewImage"
	case !wantOld && rec.Old != nil:
		return fmt.Errorf("%s with an OldImage", u.event)
	case !wantNew && rec.New != nil:
		return fmt.Errorf("%s with a NewImage", u.event)
	default:
		return nil
	}
	is := ""
	switch u.view {
	case "":
	case "NEW_AND_OLD_IMAGES":
		return fmt.Errorf("%s without %s, which the stream has: the record is not whole", u.event, missing)
	default:
		is = ", and is " + u.view
	}
	return fmt.Errorf("%s without %s: the stream's view type must be NEW_AND_OLD_IMAGES%s", u.event, missing, is)
}

// isRecord reports whether the unit is a record itself.
func (u *unit) isRecord() bool {
	const parts = seenChange | seenItem | seenExport
	return u.seen&parts != 0 && u.seen&seenManifest == 0
}

// isKnown reports whether the unit has any part of a known form.
func (u *unit) isKnown() bool { return u.seen&^seenManifest != 0 }

// isWindow reports whether the unit is the event of a tumbling window without records.
func (u *unit) isWindow() bool {
	return u.seen&^seenRecords == 0 && u.window.Shard != "" && u.window.Start != ""
}

// tableOf returns the table's name in a stream's ARN, "" if it has none. Records of one
// stream share one string.
func (p *scanner) tableOf(arn string) string {
	switch arn {
	case "":
		return ""
	case p.arn:
		return p.arnTable
	}
	p.arn, p.arnTable = strings.Clone(arn), strings.Clone(tableIn(arn))
	return p.arnTable
}

// tableIn is the table that an ARN names, "" for none.
func tableIn(arn string) string {
	_, rest, _ := strings.Cut(arn, ":table/")
	table, _, _ := strings.Cut(rest, "/")
	return table
}

// noRecord returns the error for a completely read unit that is not a record.
// Its text is for people who gave the wrong file, and says which file to give instead.
func (u *unit) noRecord(p *scanner, i int) error {
	names, other := p.firstNames(i), p.foreignForm(i)
	switch {
	case u.seen&seenBatch != 0:
		b := u.batch
		return fmt.Errorf("%w, only where they are: shard %s, sequence numbers %s to %s of %s. Within 24 hours of the failure they can be read "+
			"from the stream (aws dynamodbstreams get-shard-iterator --shard-iterator-type AT_SEQUENCE_NUMBER, then get-records); "+
			"an on-failure destination in S3 keeps the records themselves",
			ErrNotKept, orUnknown(b.shard), orUnknown(b.first), orUnknown(b.last), orUnknown(b.arn))
	case u.seen&seenManifest != 0:
		return errors.New("a manifest of an export, not its data: give the files in the export's data directory")
	case u.seen&seenRecords != 0:
		return errors.New("Records: not an array")
	case u.seen&seenRecord != 0:
		return errors.New("dynamodb: missing")
	case other != "":
		return errors.New(other)
	case len(names) == 0:
		return errors.New("an empty object, not a record")
	}
	return fmt.Errorf("an object with %s, not a record", strings.Join(names, ", "))
}

// orUnknown is a text of an on-failure document in a message.
func orUnknown(s string) string {
	if s == "" {
		return "(not given)"
	}
	return s
}

// foreignForms are documents that people have in place of records, each told by a name that it has
// among its first ones, with how to make records of it.
var foreignForms = []struct{ name, is string }{
	{"Items", "the answer of a scan or a query, which has rows and no changes; make lines of an export of it: jq -c '.Items[] | {Item: .}'"},
	{"PutRequest", batchWrite},
	{"DeleteRequest", batchWrite},
	{"messageId", "a message of a queue (SQS), whose body is a text; take the bodies out: jq -r '.Records[].body'"},
	{"Messages", "messages of a queue (SQS), whose bodies are texts; take the bodies out: jq -r '.Messages[].Body'"},
	{"Sns", "a message of a topic (SNS), whose body is a text; take the bodies out: jq -r '.Records[].Sns.Message'"},
}

const batchWrite = "the input of batch-write-item, which has no changes; make lines of an export of what it puts: jq -c '.. | objects | .PutRequest // empty'"

// foreignForm says of the object at i, which is no record, that it is one of foreignForms; "" for any
// other. The object may be cut off.
func (p *scanner) foreignForm(i int) string {
	names := p.firstNames(i)
	begins := p.b[i:min(i+500, len(p.b))]
	for _, o := range foreignForms {
		if slices.Contains(names, strconv.Quote(o.name)) || strings.HasSuffix(o.name, "Request") && bytes.Contains(begins, []byte(`"`+o.name+`"`)) {
			return o.is
		}
	}
	return ""
}

// firstNames returns the first field names of the object at i, for messages.
func (p *scanner) firstNames(i int) []string {
	var names []string
	q := scanner{b: p.b, i: i}
	for more := q.enterBracket('}'); more && len(names) < 4; more = q.nextMember('}') {
		name := q.readName()
		if q.stop != going {
			break
		}
		names = append(names, fmt.Sprintf("%.40q", name))
		q.skipValue()
	}
	return names
}
