package events

import (
	"errors"
	"fmt"
)

// Entry is one record of a recorded file or a payload: a good one, or one that
// cannot be used.
type Entry struct {
	// Record is the record. Of a bad one it holds what could be read: often Keys,
	// Position, Table and ID.
	Record Record
	// Bad is nil for a good record.
	Bad *Bad
	// Shard is the shard that it was read from, "" where the recording does not say
	// before the record.
	Shard string
	Location
}

// Bad is a stretch of input that gives no record, kept whole.
type Bad struct {
	// Raw is the input as it stands, its first MaxRaw bytes when it is longer.
	Raw []byte
	// Size is the length of the whole stretch.
	Size int64
	Err  error
}

// MaxRaw is how much of a bad record is kept.
const MaxRaw = 1 << 20

// Error is Err's message, with a note when Raw is not all.
func (b *Bad) Error() string {
	if b.Size > int64(len(b.Raw)) {
		return fmt.Sprintf("%v (kept: the first %d of %d bytes)", b.Err, len(b.Raw), b.Size)
	}
	return b.Err.Error()
}

func (b *Bad) Unwrap() error { return b.Err }

// Location is where an entry begins.
type Location struct {
	File   string // "" for a payload
	Line   int64  // from 1
	Offset int64  // in bytes, of the content after decompression
}

// String is file:line and the offset, as editors and people follow it.
func (l Location) String() string {
	if l.File == "" {
		return fmt.Sprintf("line %d (byte %d)", l.Line, l.Offset)
	}
	return fmt.Sprintf("%s:%d (byte %d)", l.File, l.Line, l.Offset)
}

// ErrNoRecords is wrapped by the error for a file in which nothing has a form
// that this package knows.
var ErrNoRecords = errors.New("holds no stream records")

// ErrTruncated is wrapped by the bad entry that ends a file which was cut off.
var ErrTruncated = errors.New("cut off")

// ErrNotKept is wrapped by the bad entry for an on-failure document that names
// records without holding them.
var ErrNotKept = errors.New("this on-failure document holds no records")

// knownForms is what a file may hold, for messages.
const knownForms = "Lambda DynamoDB events, GetRecords pages, single stream records, Kinesis Data Streams for DynamoDB records, " +
	"DynamoDB exports to S3 (DYNAMODB_JSON), Lambda on-failure documents; plain, gzip or zstd"
