package events

import (
	"errors"
	"fmt"
)

// Entry is one record of a recorded file or a payload, either a good one or a bad one, which
// cannot be used.
// It belongs to the caller: nothing in it is reused by the reader.
type Entry struct {
	// Record is the record. For a bad entry it holds the parts that could be read: often Keys,
	// Position, Table and ID.
	Record Record
	// Bad is nil for a good record.
	Bad *Bad
	// Shard is the shard that the record was read from. It is "" if the recording does not
	// name the shard before the record.
	Shard string
	// Export is the export that the record was read from; nil if no manifest says which.
	Export *Export
	// Note is the finding of a reader of several files about the entry.
	Note byte
	Location
}

// Bad is a part of the input that could not be read as a record.
type Bad struct {
	// Raw is that input unchanged, but at most its first maxRaw bytes.
	Raw []byte
	// Size is the full length of that input in bytes.
	Size int64
	Err  error
}

// maxRaw is how many bytes of a bad record are kept.
const maxRaw = 1 << 20

// Error returns Err's message, with a note if Raw is shortened.
func (b *Bad) Error() string {
	if b.Size > int64(len(b.Raw)) {
		return fmt.Sprintf("%v (kept: the first %d of %d bytes)", b.Err, len(b.Raw), b.Size)
	}
	return b.Err.Error()
}

// Unwrap gives Err, such as ErrTruncated.
func (b *Bad) Unwrap() error { return b.Err }

// Location is the place where an entry begins.
type Location struct {
	File   string // "" for a payload
	Line   int64  // from 1
	Offset int64  // in bytes, of the content after decompression
}

// String returns file:line and the offset, in a form that editors can open.
func (l Location) String() string {
	if l.File == "" {
		return fmt.Sprintf("line %d (byte %d)", l.Line, l.Offset)
	}
	return fmt.Sprintf("%s:%d (byte %d)", l.File, l.Line, l.Offset)
}

// ErrNoRecords is wrapped by the error for a file that holds nothing in a form that this
// package knows.
var ErrNoRecords = errors.New("holds no stream records")

// ErrTruncated is wrapped by the last entry of a truncated file, which is a bad one.
var ErrTruncated = errors.New("cut off")

// ErrNoTable is wrapped by the bad entry for a record whose eventSourceARN is not that of a
// table's stream.
var ErrNoTable = errors.New("it names no table")

// ErrNotKept is wrapped by the bad entry for an on-failure document that refers to records
// but does not contain them.
var ErrNotKept = errors.New("this on-failure document holds no records")

// knownForms lists the forms of files, for messages.
const knownForms = "Lambda DynamoDB events, GetRecords pages, single stream records, Kinesis Data Streams for DynamoDB records, " +
	"DynamoDB exports to S3 (DYNAMODB_JSON), Lambda on-failure documents; plain, gzip or zstd"
