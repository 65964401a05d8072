package events

import (
	"fmt"
	"io"
)

// Read calls yield with the entries of one recorded file, in their order. If yield returns an
// error, Read stops and returns it. name is used in locations.
//
// Read detects the form from the content: JSON documents of the known forms (see unit),
// alone, one after another or in arrays, in any mix; plain, gzip or zstd. Memory does not
// grow with the size of the file or of a document in it. Records share blocks of memory: a
// record keeps at most 256 KB alive, or its own size if that is more.
//
// Read yields input that it cannot use as a bad entry, and continues at the next place where
// a record can begin. A truncated file yields its records and then a bad entry. Read
// returns failures to read. It returns ErrNoRecords, without any entry, for a file that holds
// nothing in a known form, or nothing in its first 1,000 documents or 1 MB. An empty file
// yields nothing and is no error.
func Read(r io.Reader, name string, yield func(Entry) error) error {
	in, err := openInput(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer in.close()
	rd := reader{win: window{src: in, line: 1}, file: name, yield: yield, in: in}
	return rd.readAll()
}

// reader reads the documents of a file.
type reader struct {
	win    window
	scan   scanner
	unit   unit
	frames []frame
	file   string
	yield  func(Entry) error
	in     *input

	at     *Location // where everything is said to be, when this is the inside of a record
	inside frame     // the fields around the content, when this is the inside of a record
	last   WindowInfo

	known   bool // something of a known form was seen
	records bool // a list of records was read to its end

	held  []Entry // bad entries, until something is known
	loose bool    // brackets may be left over from a broken document
	ended bool    // that the content ends early was said
}

// frame is an array or an object around the reader's place.
type frame struct {
	unit  *unit  // the object; nil for an array
	table string // of its records, when they do not say
	shard string // of its records, as far as was said
	comma bool   // an array's element was read, so that a comma or its end comes
}

// maxFrames limits how deep arrays and objects around records may be nested.
const maxFrames = 16

// readAll reads the whole content and yields its entries.
func (r *reader) readAll() error {
	for {
		c, ok := r.peekByte()
		if !ok {
			return r.finishContent()
		}
		var err error
		switch f := r.topFrame(); {
		case f == nil:
			err = r.readDocument(c)
		case f.unit == nil:
			err = r.readElement(f, c)
		default:
			err = r.readUnit(f)
		}
		if err != nil {
			return err
		}
	}
}

// topFrame is the innermost open bracket, nil outside of all.
func (r *reader) topFrame() *frame {
	if len(r.frames) == 0 {
		return nil
	}
	return &r.frames[len(r.frames)-1]
}

// leaveBracket leaves the innermost bracket.
func (r *reader) leaveBracket() { r.frames = r.frames[:len(r.frames)-1] }

// peekByte skips white space and returns the next byte. It reports false at the end.
func (r *reader) peekByte() (byte, bool) {
	for {
		r.scan.resetTo(r.win.buf, r.scan.i)
		if c := r.scan.skipSpace(); r.scan.stop == going {
			return c, true
		}
		if !r.readMore() {
			return 0, false
		}
	}
}

// readMore drops the bytes before the scanner's place and reads more of the file. It reports false
// at the end of the file.
func (r *reader) readMore() bool {
	keep := r.scan.i
	r.scan.i = 0
	return r.win.readMore(keep)
}

// readMoreFrom reads more of the file and keeps the bytes from start on, which it adjusts. It reports
// false at the end of the file, or if too much is kept already.
func (r *reader) readMoreFrom(start *int) bool {
	if len(r.win.buf)-*start > maxUnit {
		return false
	}
	keep := *start
	*start = 0
	return r.win.readMore(keep)
}

// readDocument reads a document. The scanner is at its first byte, c.
// Documents may stand one after the other, with or without commas and line breaks between them.
func (r *reader) readDocument(c byte) error {
	b := r.win.buf[r.scan.i:]
	switch {
	case c == '{':
		return r.readUnit(nil)
	case c == '[':
		r.scan.i++
		r.frames = append(r.frames, frame{table: r.inside.table, shard: r.inside.shard})
		return nil
	case c == ',', r.loose && (c == ']' || c == '}'):
		r.scan.i++
		return nil
	case len(b) >= 3 && string(b[:3]) == "\ufeff":
		r.scan.i += 3
		return nil
	case c == 0xef && len(b) < 3 && r.readMore():
		return nil
	}
	return r.skipBroken(r.scan.i, fmt.Errorf("not JSON: expected a document that begins with { or [, found %s", r.textHere()))
}

// textHere returns the text at the reader's place, for messages.
func (r *reader) textHere() string {
	r.scan.b = r.win.buf
	return r.scan.describeInput(r.scan.i)
}

// readElement reads the next element of an array, its comma or its end. c is the first byte.
// An array that is nested deeper than maxFrames is a bad entry.
func (r *reader) readElement(f *frame, c byte) error {
	switch {
	case c == ']':
		r.scan.i++
		r.leaveBracket()
		return nil
	case c == ',' && f.comma:
		f.comma = false
		r.scan.i++
		return nil
	case f.comma && c != '{': // a comma may be missing before a record
		return r.skipBroken(r.scan.i, fmt.Errorf("not JSON: expected ',' or ']' after a record, found %s", r.textHere()))
	}
	f.comma = true
	switch c {
	case '{':
		return r.readUnit(nil)
	case '[':
		if len(r.frames) < maxFrames {
			r.scan.i++
			r.frames = append(r.frames, frame{table: f.table, shard: f.shard})
			return nil
		}
	}
	return r.skipStrange()
}

// skipStrange skips an element of an array that is not an object, and yields it as a bad entry.
func (r *reader) skipStrange() error {
	start := r.scan.i
	for {
		r.scan.resetTo(r.win.buf, start)
		r.scan.skipValue()
		if r.scan.stop != stopShort {
			break
		}
		if !r.readMoreFrom(&start) {
			return r.handleIncomplete(start)
		}
	}
	if r.scan.stop == stopSyntax {
		return r.skipBroken(start, r.notJSON())
	}
	return r.yieldBad(start, Record{}, fmt.Errorf("expected a record, found %s", r.scan.kindAt(start)))
}
