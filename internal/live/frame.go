package live

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"weir/internal/events"
	"weir/internal/summed"
	"weir/internal/value"
)

// A frame is one record in a segment file. It begins with the length and the CRC-32C of
// what follows, four bytes each, little-endian. Then come the position and the origin, the
// time in nanoseconds since 1970, the flags, the record's id, and the keys and images in
// the encoding of value.AppendItem.
const frameHead = 8

const (
	// The flags say which parts a frame has.
	flagExpired = 1 << iota
	flagOld
	flagNew
	flagTime
)

// maxFrame is more than any record needs: a record has at most two images of 400 KB each.
const maxFrame = 4 << 20

// errFrame ends a spool: what comes after a damaged frame is read from the stream again.
var errFrame = errors.New("a frame of the spool is damaged")

// appendFrame appends the frame of a record.
// Its form is stored: spools of a process that ended are read by the next version. The length and
// the CRC-32C of the body come first, so a torn or changed frame is found.
func appendFrame(b []byte, r *events.Record) []byte {
	head := len(b)
	b = append(b, make([]byte, frameHead)...)
	b = append(b, r.Position[:]...)
	b = append(b, r.Origin[:]...)
	var flags byte
	var nanos uint64
	if !r.Time.IsZero() {
		flags, nanos = flagTime, uint64(r.Time.UnixNano())
	}
	for _, f := range []struct {
		is   bool
		flag byte
	}{{r.Expired, flagExpired}, {r.Old != nil, flagOld}, {r.New != nil, flagNew}} {
		if f.is {
			flags |= f.flag
		}
	}
	b = append(binary.LittleEndian.AppendUint64(b, nanos), flags)
	b = append(binary.AppendUvarint(b, uint64(len(r.ID))), r.ID...)
	b = value.AppendItem(b, r.Keys)
	for _, image := range []value.Item{r.Old, r.New} {
		if image != nil {
			b = value.AppendItem(b, image)
		}
	}
	body := b[head+frameHead:]
	binary.LittleEndian.PutUint32(b[head:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[head+4:], summed.Sum(body))
	return b
}

// frameReader reads frames one after another.
type frameReader struct {
	r      *bufio.Reader
	offset int64 // end of the last whole frame
}

// next returns the next record. The error is io.EOF at the end and errFrame if the bytes
// that follow are no frame. Any other error is a failed read and says nothing about the
// bytes.
func (f *frameReader) next() (events.Record, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return events.Record{}, torn(err)
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxFrame {
		return events.Record{}, errFrame
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(f.r, body); err == io.EOF {
		return events.Record{}, errFrame
	} else if err != nil {
		return events.Record{}, torn(err)
	}
	if summed.Sum(body) != binary.LittleEndian.Uint32(head[4:]) {
		return events.Record{}, errFrame
	}
	rec, err := decodeFrame(body)
	if err != nil {
		return rec, fmt.Errorf("%w: %w", errFrame, err)
	}
	f.offset += frameHead + int64(n)
	return rec, nil
}

// torn turns the error of a read that ended too early into errFrame.
func torn(err error) error {
	if err == io.ErrUnexpectedEOF {
		return errFrame
	}
	return err
}

// decodeFrame decodes the body of a frame. Any error means that the frame is damaged.
// The record shares memory with b, but for its id.
func decodeFrame(b []byte) (r events.Record, err error) {
	const fixed = 2*len(r.Position) + 9
	if len(b) < fixed {
		return r, io.ErrUnexpectedEOF
	}
	b = b[copy(r.Position[:], b):]
	b = b[copy(r.Origin[:], b):]
	nanos, flags := binary.LittleEndian.Uint64(b), b[8]
	b = b[9:]
	n, used := binary.Uvarint(b)
	if used <= 0 || uint64(len(b)-used) < n {
		return r, io.ErrUnexpectedEOF
	}
	r.ID, b = string(b[used:used+int(n)]), b[used+int(n):]
	if flags&flagTime != 0 {
		r.Time = time.Unix(0, int64(nanos)).UTC()
	}
	r.Expired = flags&flagExpired != 0
	if r.Keys, b, err = value.DecodeItem(b); err == nil && flags&flagOld != 0 {
		r.Old, b, err = value.DecodeItem(b)
	}
	if err == nil && flags&flagNew != 0 {
		r.New, b, err = value.DecodeItem(b)
	}
	if err == nil && len(b) > 0 {
		err = errors.New("something follows the images")
	}
	return r, err
}
