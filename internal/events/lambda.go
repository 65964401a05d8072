package events

import "fmt"

// Lambda is the payload of one invocation, from a DynamoDB stream or from a Kinesis stream
// that carries DynamoDB records.
type Lambda struct {
	Entries []Entry
	Stream  string // the DynamoDB stream's ARN, as the last record has it
	Source  string // which service's event it is, "aws:dynamodb", as the first record has it; "" where none says
	WindowInfo
}

// DecodeLambda reads one invocation's payload. Records share its memory, which
// must not change while they are in use. Bad records are among the entries, in
// their place. The error wraps ErrNoRecords where the payload has none of the known
// forms, or has nothing in it: only an event with an empty list of records, as comes
// at the end of a window, is one without entries.
func DecodeLambda(payload []byte) (Lambda, error) {
	// A record of a stream with both images seldom takes less than this.
	const typical = 1000
	event := Lambda{Entries: make([]Entry, 0, len(payload)/typical+1)}
	r := reader{win: window{buf: payload, line: 1}, file: "the payload", yield: func(e Entry) error {
		e.File = ""
		event.Entries = append(event.Entries, e)
		return nil
	}}
	err := r.readAll()
	if err == nil && len(event.Entries) == 0 && !r.records {
		err = fmt.Errorf("%s: %w: it is empty; expected are %s", r.file, ErrNoRecords, knownForms)
	}
	event.Stream, event.Source, event.WindowInfo = r.scan.arn, r.scan.source, r.last
	return event, err
}
