package events

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// input reads a file's content after decompression. If reading the file itself failed,
// rawErr is set; any other error means that the content is damaged.
type input struct {
	io.Reader
	rawErr error
	format string // "gzip", "zstd" or ""
	close  func()
}

// rawReader remembers why the file itself could not be read.
type rawReader struct {
	r  io.Reader
	in *input
}

// Read notes an error of the file, so that it can be told from one of the compression.
func (r rawReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && err != io.EOF {
		r.in.rawErr = err
	}
	return n, err
}

// openInput detects from the first bytes how the content is compressed.
// The name of the file does not matter. A file that begins as another known format, such as
// Parquet, is refused with the remedy.
func openInput(r io.Reader) (*input, error) {
	in := &input{close: func() {}}
	raw := bufio.NewReaderSize(rawReader{r, in}, 64<<10)
	head, err := raw.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(raw)
		in.Reader, in.format = z, "gzip"
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			in.Reader = failing{err}
		}
	case isZstd(head):
		z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, err
		}
		in.Reader, in.format, in.close = z, "zstd", z.Close
	default:
		in.Reader = raw
	}
	if in.format != "" {
		unpacked := bufio.NewReader(in.Reader)
		head, _ = unpacked.Peek(4) // an error comes again when the content is read
		in.Reader = unpacked
	}
	if err := notRead(head); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// maxZstdWindow is large enough for files that zstd --long writes.
const maxZstdWindow = 128 << 20

// isZstd reports whether bytes begin a zstd frame, or one that is skipped (RFC 8878, 3.1.1 and
// 3.1.2).
func isZstd(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	skippable := head[0]&0xf0 == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18
	return skippable || bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd})
}

// notRead returns an error for content in a form that a user may expect to work, but that
// weir does not read.
func notRead(head []byte) error {
	for _, other := range []struct{ magic, is string }{
		{"BZh", "compressed with bzip2; decompress it first, or use gzip or zstd"},
		{"\xfd7zX", "compressed with xz; decompress it first, or use gzip or zstd"},
		{"PK\x03\x04", "a zip archive; unpack it first"},
		{"\xff\xfe", "UTF-16 text, as some shells write; convert it to UTF-8"},
		{"\xfe\xff", "UTF-16 text, as some shells write; convert it to UTF-8"},
		{"\xe0\x01\x00\xea", "Amazon Ion; export the table in the format DYNAMODB_JSON"},
		{"$ion", "Amazon Ion; export the table in the format DYNAMODB_JSON"},
		{"PAR1", "Parquet; weir reads JSON"},
	} {
		if bytes.HasPrefix(head, []byte(other.magic)) {
			return fmt.Errorf("%w: it is %s", ErrNoRecords, other.is)
		}
	}
	return nil
}

// failing is a reader that always fails.
type failing struct{ err error }

// Read returns the error with which the input failed.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

// damageError turns the error of a decompressor into one that says why the content ends early.
func (in *input) damageError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the %s data ends early", ErrTruncated, in.format)
	}
	return fmt.Errorf("the %s data is damaged: %w", in.format, err)
}

// Unpack returns the content of a file that is plain, gzip or zstd, which it detects from
// the first bytes. Call done after reading to release the decompressor.
func Unpack(r io.Reader) (content io.Reader, done func(), err error) {
	in, err := openInput(r)
	if err != nil {
		return nil, nil, err
	}
	return in, in.close, nil
}
