package cli

import (
	"bufio"
	"bytes"
	"io"

	"weir/internal/events"
)

// maxLine is the longest line that is read: a row's 400 KB, escaped as JSON can be.
const maxLine = 4 << 20

// Lines calls each with every line of a file of commands that is not blank, and with its number.
// The file is plain, gzip or zstd, and may begin with a byte order mark. A line is valid until each
// returns. An error of each ends it and is returned as it is; a line of more than 4 MB is an error.
func Lines(file io.Reader, each func(number int, line []byte) error) error {
	content, done, err := events.Unpack(file)
	if err != nil {
		return Usage("%v", err)
	}
	defer done()
	lines := bufio.NewScanner(content)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := each(n, line); err != nil {
			return err
		}
	}
	switch err := lines.Err(); err {
	case nil:
		return nil
	case bufio.ErrTooLong:
		return Usage("line %d has more than %d bytes", n, maxLine)
	default:
		return err
	}
}
