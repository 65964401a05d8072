package events

import (
	"strings"

	"weir/internal/seq"
	"weir/internal/value"
)

// A unit is one JSON object that may be a record in one of the known forms, or that may hold
// records:
//
//	{"eventID", "eventName", "dynamodb": {…}, "eventSourceARN", …}    Lambda, GetRecords
//	{"tableName", "recordFormat", "dynamodb": {…}, …}                  Kinesis, inside
//	{"kinesis": {"data": base64}, …}  {"Data": base64, …}              Kinesis, outside
//	{"Item": {…}}                                                      full export
//	{"Metadata": {…}, "Keys": {…}, "NewImage": {…}, "OldImage": {…}}   incremental export
//	{"Records": […], …}                                                Lambda event, page
//	{"DDBStreamBatchInfo": {…}, "payload": {…} or "…", …}              on-failure document
type unit struct {
	seen  seen
	event string // eventName
	view  string // StreamViewType
	arn   string // eventSourceARN
	table string // tableName
	id    string
	seq   string
	when  stamp
	keys  value.Item
	new   value.Item
	old   value.Item
	who   identity
	data  string // base64
	place string // the sequence number of a Kinesis record

	batch  batchInfo
	window WindowInfo
	inner  string // a payload that is a string
}

// seen is the set of parts that a unit has. They tell the forms apart.
type seen uint16

const (
	seenChange   seen = 1 << iota // dynamodb
	seenRecord                    // a name that only records have
	seenKinesis                   // recordFormat, tableName
	seenData                      // kinesis, Data
	seenItem                      // Item
	seenExport                    // Metadata, Keys, NewImage, OldImage beside each other
	seenRecords                   // Records
	seenBatch                     // DDBStreamBatchInfo
	seenPayload                   // payload
	seenManifest                  // an export's manifest
)

// identity says who made a change, if the stream says so.
type identity struct{ kind, principal string }

// ttl is DynamoDB itself, which deletes expired rows.
var ttl = identity{"Service", "dynamodb.amazonaws.com"}

// batchInfo is the part of an on-failure document that describes its records.
type batchInfo struct{ shard, first, last, arn string }

// WindowInfo is the part of a Lambda event that describes its tumbling window.
type WindowInfo struct {
	Shard      string // shardId; "" without a window
	Start, End string // as the event has them, ISO 8601
	State      []byte // JSON, as the previous invocation returned it
	Final      bool   // isFinalInvokeForWindow
	Early      bool   // isWindowTerminatedEarly
}

// outcome says how far a unit was read.
type outcome uint8

const (
	unitDone   outcome = iota // past its closing brace, or stopped
	unitArray                 // at the bracket of an array of units
	unitObject                // at the brace of a unit inside
	unitText                  // past a string that holds a document, now in inner
)

// beginUnit reads a unit. The scanner must be at its brace.
func (p *scanner) beginUnit(u *unit) outcome { return p.readFields(u, p.enterBracket('}')) }

// resumeUnit continues a unit after the part for which begin or resume stopped (unitArray,
// unitObject or unitText).
func (p *scanner) resumeUnit(u *unit) outcome { return p.readFields(u, p.nextMember('}')) }

// readFields reads the fields of a unit until its end, or until the records inside it. more says
// whether there is another field.
func (p *scanner) readFields(u *unit, more bool) outcome {
	for ; more; more = p.nextMember('}') {
		name := p.readName()
		if p.stop != going {
			return unitDone
		}
		if out := p.readField(u, name); out != unitDone || p.stop != going {
			return out
		}
	}
	return unitDone
}

// readField reads the value of one of a unit's fields.
// u.seen notes which kinds of document have such a field.
func (p *scanner) readField(u *unit, name string) outcome {
	switch name {
	case "dynamodb":
		u.seen |= seenChange
		p.readChange(u)
	case "eventID":
		p.readOptionalString(&u.id, name)
	case "eventName":
		u.seen |= seenRecord
		p.readOptionalString(&u.event, name)
	case "eventSourceARN":
		p.readOptionalString(&u.arn, name)
	case "tableName":
		u.seen |= seenKinesis
		p.readOptionalString(&u.table, name)
	case "recordFormat":
		u.seen |= seenKinesis
		p.skipValue()
	case "userIdentity":
		u.who = identity{}
		p.readTexts("userIdentity.", map[string]*string{"type": &u.who.kind, "principalId": &u.who.principal})
	case "eventSource":
		p.readSource()
	case "eventVersion", "awsRegion":
		p.skipValue()
	case "kinesis":
		u.seen |= seenData
		p.readTexts("kinesis.", map[string]*string{"data": &u.data, "sequenceNumber": &u.place})
	case "Data":
		u.seen |= seenData
		p.readOptionalString(&u.data, name)
	case "SequenceNumber":
		p.readOptionalString(&u.place, name)
	case "Item":
		u.seen |= seenItem
		u.new = p.readImage(name)
	case "Metadata":
		u.seen |= seenExport
		p.readWriteTime(u)
	case "Keys", "NewImage", "OldImage":
		u.seen |= seenExport
		p.changeField(u, name)
	case "Records", "payload":
		return p.stopAtRecords(u, name)
	default:
		return p.rareField(u, name)
	}
	return unitDone
}

// rareField reads fields that are beside records and not in them, and names that differ only
// in case, which encoding/json accepts too.
func (p *scanner) rareField(u *unit, name string) outcome {
	switch name {
	case "DDBStreamBatchInfo":
		u.seen |= seenBatch
		b := &u.batch
		p.readTexts("DDBStreamBatchInfo.", map[string]*string{"shardId": &b.shard, "startSequenceNumber": &b.first, "endSequenceNumber": &b.last, "streamArn": &b.arn})
	case "shardId":
		p.readOptionalString(&u.window.Shard, name)
	case "window":
		p.readTexts("window.", map[string]*string{"start": &u.window.Start, "end": &u.window.End})
	case "state":
		start := p.i
		p.skipValue()
		u.window.State = p.b[start:p.i:p.i]
	case "isFinalInvokeForWindow":
		u.window.Final = p.b[p.i] == 't' // any other value counts as false
		p.skipValue()
	case "isWindowTerminatedEarly":
		u.window.Early = p.b[p.i] == 't'
		p.skipValue()
	case "exportArn", "dataFileS3Key", "manifestFilesS3Key":
		u.seen |= seenManifest
		p.skipValue()
	default:
		if known := foldedName(unitNames, name); known != "" {
			return p.readField(u, known)
		}
		p.skipValue()
	}
	return unitDone
}

var unitNames = []string{
	"dynamodb", "eventID", "eventName", "eventSourceARN", "tableName", "recordFormat", "userIdentity", "eventVersion",
	"eventSource", "awsRegion", "kinesis", "Data", "SequenceNumber", "Item", "Metadata", "Keys", "NewImage", "OldImage", "Records", "payload",
	"DDBStreamBatchInfo",
}

// foldedName returns the one of names that equals name except for case, "" for none.
func foldedName(names []string, name string) string {
	return seq.Find(names, func(known string) bool { return len(known) == len(name) && strings.EqualFold(known, name) })
}

// stopAtRecords stops at the records that a unit holds.
// It stops at the first byte of an array or object. Records that are JSON inside a text are in
// u.inner.
func (p *scanner) stopAtRecords(u *unit, name string) outcome {
	c := p.b[p.i]
	if name == "Records" {
		u.seen |= seenRecords
		if c == '[' {
			return unitArray
		}
		p.notKind(c, "an array", name)
		return unitDone
	}
	switch {
	case c == '[':
		u.seen |= seenPayload
		return unitArray
	case c == '{':
		u.seen |= seenPayload
		return unitObject
	case c == '"':
		s := p.readString()
		if t := strings.TrimLeft(s, " \t\r\n"); t != "" && (t[0] == '{' || t[0] == '[') {
			u.seen |= seenPayload
			u.inner = s
			return unitText
		}
	default:
		p.skipValue()
	}
	return unitDone
}
