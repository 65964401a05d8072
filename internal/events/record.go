// Package events defines stream records and reads the forms in which they are recorded. It
// reads files and payloads from outside: Lambda events, GetRecords pages, Kinesis records and
// exports. It returns Records, which keep DynamoDB's types exactly and have sequence numbers
// as comparable integers.
//
// How recorded files are read: input.go unpacks, window.go keeps the part that is being decoded,
// scan.go and skip.go read JSON without making anything of it, item.go and elements.go make
// values, unit.go and fields.go recognise the kind of an object by its fields, form.go makes a record
// of it or names its fault, deliver.go hands it on with its place. After a broken part,
// resync.go finds where the next record begins. export.go knows the folders of exports to S3, and
// files.go reads many files ahead of their consumer.
package events

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"weir/internal/value"
)

// Record is one change of one item, as a stream reports it. Old and New are the images before
// and after the change; Old is nil for an insert, New for a removal. An export holds only
// rows, so its records have no Position; if it has only new images, a removal has neither
// image.
type Record struct {
	Table    string     // "" where the form does not say
	Keys     value.Item // the primary key attributes
	Old, New value.Item
	Position Position  // the sequence number; zero where the form has none
	Time     time.Time // when it was written, as far as the form says; UTC
	Expired  bool      // removed by TTL, not by a person
	ID       string    // eventID, "" where the form has none
	Export   bool      // a row of an export, or the sum of several changes in an incremental one

	// Arrival is the sequence number of the Kinesis record that carried this one, "" for none. DynamoDB may put records of
	// one row into a Kinesis stream in another order than it made them.
	Arrival string

	// Origin is the position that this record had in the stream where it was first
	// recorded, if a replay wrote it into this stream; zero otherwise.
	Origin Position
}

// Size returns how many bytes the images have, as DynamoDB counts them.
func (r *Record) Size() int { return r.Old.Size() + r.New.Size() }

// Event returns INSERT, MODIFY or REMOVE, depending on which images the record has.
func (r *Record) Event() string {
	switch {
	case r.New == nil:
		return "REMOVE"
	case r.Old == nil:
		return "INSERT"
	}
	return "MODIFY"
}

// Position is a sequence number as a big-endian integer. DynamoDB's sequence numbers are
// decimal strings of 21 to 40 digits, and their length grows along a lineage of shards. So
// they must be compared as integers, never as text. The zero Position is before all others
// and means "none".
type Position [17]byte

// maxPositionDigits is the maximum length of a sequence number in DynamoDB's documentation.
const maxPositionDigits = 40

// ErrPosition is wrapped by every error for a sequence number.
var ErrPosition = errors.New("not a sequence number")

// ParsePosition parses a decimal sequence number of at most 40 digits. The error wraps
// ErrPosition.
func ParsePosition(s string) (Position, error) {
	if s == "" || len(s) > maxPositionDigits {
		return Position{}, fmt.Errorf("%w: %.50q", ErrPosition, s)
	}
	var top, hi, lo uint64
	for i := 0; i < len(s); i++ {
		c := uint64(s[i]) - '0'
		if c > 9 {
			return Position{}, fmt.Errorf("%w: %.50q", ErrPosition, s)
		}
		var carry uint64
		carryLo, l := bits.Mul64(lo, 10)
		lo, carry = bits.Add64(l, c, 0)
		carryHi, h := bits.Mul64(hi, 10)
		hi, carry = bits.Add64(h, carryLo, carry)
		top = top*10 + carryHi + carry
	}
	var p Position
	p[0] = byte(top)
	for i := range 8 {
		p[1+i] = byte(hi >> (56 - 8*i))
		p[9+i] = byte(lo >> (56 - 8*i))
	}
	return p, nil
}

// PositionOf returns the position with the number n.
func PositionOf(n uint64) Position {
	var p Position
	for i := range 8 {
		p[9+i] = byte(n >> (56 - 8*i))
	}
	return p
}

// Uint64 returns the position's number if it fits. The positions of an embedded store do.
func (p Position) Uint64() uint64 {
	var n uint64
	for _, b := range p[9:] {
		n = n<<8 | uint64(b)
	}
	return n
}

// IsZero reports whether p is the zero Position, which means "none".
func (p Position) IsZero() bool { return p == Position{} }

// Compare returns -1, 0 or 1, as p is before, at or after q. Only positions of one lineage of
// shards are comparable.
func (p Position) Compare(q Position) int { return bytes.Compare(p[:], q[:]) }

// Next returns the next higher position.
func (p Position) Next() Position {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i]++; p[i] != 0 {
			break
		}
	}
	return p
}

// String returns the decimal sequence number.
// It has no leading zeros; the zero Position is "0".
func (p Position) String() string {
	digits := make([]byte, 0, maxPositionDigits+1)
	for q := p; !q.IsZero(); {
		rem := 0
		for i := range q {
			rem = rem<<8 | int(q[i])
			q[i] = byte(rem / 10)
			rem %= 10
		}
		digits = append(digits, byte('0'+rem))
	}
	if len(digits) == 0 {
		return "0"
	}
	for i, j := 0, len(digits)-1; i < j; i, j = i+1, j-1 {
		digits[i], digits[j] = digits[j], digits[i]
	}
	return string(digits)
}

// Value returns the position as a Binary of 17 bytes. Such values compare like the integers.
func (p Position) Value() value.Value { return value.OfBinary(string(p[:])) }

// PositionFrom decodes a text of Value. It returns the zero Position for anything else.
func PositionFrom(v value.Value) Position {
	var p Position
	if s := v.Text(); v.Kind() == value.Binary && len(s) == len(p) {
		copy(p[:], s)
	}
	return p
}
