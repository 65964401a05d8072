package events

import (
	"errors"
	"fmt"
	"strings"
)

// record turns a completely read unit into a record. With an error it returns what could be
// read.
func (p *scanner) record(u *unit, table string) (Record, error) {
	rec := Record{Keys: u.keys, Old: u.old, New: u.new, ID: u.id, Table: u.table}
	if t := p.tableOf(u.arn); t != "" {
		rec.Table = t
	} else if rec.Table == "" {
		rec.Table = table
	}
	var errs [3]error
	rec.Time, errs[0] = u.when.time()
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
	rec.Expired = u.event == "REMOVE" && u.who.isTTL()
	errs[2] = u.check(&rec)
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

// check returns an error if the record lacks something that the unit's form requires.
func (u *unit) check(rec *Record) error {
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
// Which images are required depends on the event, and on what the stream has: a stream with new
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

// known reports whether the unit has any part of a known form.
func (u *unit) known() bool { return u.seen&^seenManifest != 0 }

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
	table := ""
	if _, rest, ok := strings.Cut(arn, ":table/"); ok {
		table, _, _ = strings.Cut(rest, "/")
	}
	p.arn, p.arnTable = strings.Clone(arn), strings.Clone(table)
	return p.arnTable
}

// noRecord returns the error for a completely read unit that is not a record.
// Its text is for people who gave the wrong file, and says which file to give instead.
func (u *unit) noRecord(names []string) error {
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

// names returns the first field names of the object at i, for messages.
func (p *scanner) names(i int) []string {
	var names []string
	q := scanner{b: p.b, i: i}
	for more := q.enter('}'); more && len(names) < 4; more = q.next('}') {
		name := q.name()
		if q.skip(); q.stop != going {
			break
		}
		names = append(names, fmt.Sprintf("%.40q", name))
	}
	return names
}
