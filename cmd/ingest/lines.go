package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"weir/internal/cli"
	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/interrupt"
)

// maxLine is the longest line that is read: a row's 400 KB, escaped as JSON can be.
const maxLine = 4 << 20

// byteOrderMark may stand at the beginning of a file, as some editors write it.
const byteOrderMark = "\ufeff"

// lines are those of files, one file after another, or of stdin.
// It is for one goroutine. Only one file is open at a time.
type lines struct {
	stdin io.Reader
	read  func(path string) (io.ReadCloser, error)
	left  []string
	file  io.Closer
	done  func()
	r     *bufio.Reader

	name   string
	number int  // of the line that next gave last, from 1
	long   bool // it was longer than maxLine, and passed over
}

// openLines looks for the files, so that a wrong path is said before anything is
// written.
func openLines(ctx context.Context, stdin io.Reader, files []string) (*lines, error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		if name == "-" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			return nil, cli.Usage("%s is a directory; name the files in it", name)
		}
	}
	read := func(path string) (io.ReadCloser, error) { return interrupt.Open(ctx, path) }
	return &lines{stdin: stdin, read: read, left: files}, nil
}

// next is the next line, good until the one after. It ends with io.EOF.
// An error names file and line. After it, the reader is at no line and must not be asked again.
func (l *lines) next() ([]byte, error) {
	for {
		if l.r == nil {
			if err := l.open(); err != nil {
				return nil, err
			}
		}
		line, err := l.line()
		switch {
		case err == io.EOF:
			l.close()
		case err != nil:
			defer l.close()
			return nil, fmt.Errorf("%s:%d: %w", l.name, l.number, err)
		default:
			return line, nil
		}
	}
}

// open opens the next file, and unpacks it if it is packed. It returns io.EOF after the last.
// A byte order mark at its beginning is passed over (Unicode, UTF-8 with BOM), as replay does.
func (l *lines) open() (err error) {
	if len(l.left) == 0 {
		return io.EOF
	}
	l.name, l.left, l.number = l.left[0], l.left[1:], 0
	from := l.stdin
	if l.name != "-" {
		f, err := l.read(l.name)
		if err != nil {
			return err
		}
		from, l.file = f, f
	}
	content, done, err := events.Unpack(from)
	if err != nil {
		l.close()
		return cli.Usage("%s: %v", l.name, err)
	}
	l.done, l.r = done, bufio.NewReaderSize(content, 64<<10)
	if b, _ := l.r.Peek(len(byteOrderMark)); string(b) == byteOrderMark {
		l.r.Discard(len(b))
	}
	return nil
}

// close closes the file that is open, if one is. It may be called again.
func (l *lines) close() {
	if l.done != nil {
		l.done()
	}
	if l.file != nil {
		l.file.Close()
	}
	l.r, l.file, l.done = nil, nil, nil
}

// line is one line of the file, without its end. Of one that is too long it gives
// nothing.
func (l *lines) line() (line []byte, err error) {
	l.number, l.long = l.number+1, false
	for {
		part, err := l.r.ReadSlice('\n')
		if l.long = l.long || len(line)+len(part) > maxLine; l.long {
			line = nil
		} else if line == nil && err == nil {
			return part, nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && (len(line) > 0 || l.long), err == nil:
			return line, nil
		default:
			return nil, err
		}
	}
}

// tooLong is the refusal of a line that was passed over.
func (l *lines) tooLong() error {
	if !l.long {
		return nil
	}
	return &ingest.Refusal{Kind: ingest.TooLarge, Problems: []ingest.Problem{{Reason: fmt.Sprintf("is a line of more than %d bytes", maxLine)}}}
}
