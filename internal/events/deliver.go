package events

import (
	"bytes"
	"fmt"
)

// location returns the place in the file of the byte at i of the window.
func (r *reader) location(i int) Location {
	if r.at != nil {
		return *r.at
	}
	offset := r.win.base + int64(i)
	return Location{File: r.file, Line: r.win.lineAt(offset), Offset: offset}
}

// done releases a buffer that had to be large for the unit that began at start.
func (r *reader) done(start int) {
	if r.scan.i-start > chunkSize/2 && r.win.src != nil {
		r.win.leave(r.scan.i)
		r.scan.i = 0
	}
	if cap(r.scan.stack) > 16*slabSize {
		r.scan.stack = nil
	}
}

// good yields a record that began at start and ends where the scanner is.
func (r *reader) good(start int, rec Record, shard string) error {
	r.known = true
	if err := r.flush(); err != nil {
		return err
	}
	at := r.location(start)
	r.done(start)
	return r.yield(Entry{Record: rec, Shard: shard, Location: at})
}

// bad yields a bad entry that began at start and ends where the scanner is.
func (r *reader) bad(start int, rec Record, err error) error {
	raw := r.win.buf[start:r.scan.i]
	e := Entry{Record: rec, Bad: &Bad{Size: int64(len(raw)), Err: err}, Location: r.location(start)}
	e.Bad.Raw = bytes.Clone(raw[:min(len(raw), maxRaw)])
	r.done(start)
	return r.give(e)
}

// The reader holds bad entries back until it has seen something of a known form. So a file
// of another kind gives an error and no entries. These are the limits for holding back.
const (
	maxHeld     = 1000
	maxHeldSize = 1 << 20
)

// give yields a bad entry, or holds it back.
// Until a record has shown what kind of file it is, bad entries are held: of something else
// entirely, one error is better than a thousand.
func (r *reader) give(e Entry) error {
	r.held = append(r.held, e)
	if r.known {
		return r.flush()
	}
	var size int64
	if len(r.held) == maxHeld {
		return r.unknown()
	}
	for _, h := range r.held {
		if size += h.Bad.Size; size > maxHeldSize {
			return r.unknown()
		}
	}
	return nil
}

// flush yields the bad entries that were held back.
func (r *reader) flush() error {
	for _, e := range r.held {
		if err := r.yield(e); err != nil {
			return err
		}
	}
	r.held = nil
	return nil
}

// unknown returns the error for a file that holds nothing of a known form.
func (r *reader) unknown() error {
	first := r.held[0]
	return fmt.Errorf("%s: %w: line %d: %w; expected are %s", r.file, ErrNoRecords, first.Line, first.Bad.Err, knownForms)
}

// finish handles the end of the content.
func (r *reader) finish() error {
	if err := r.failure(); err != nil {
		return err
	}
	if err := r.ending(); err != nil {
		return err
	}
	if !r.known && len(r.held) > 0 {
		return r.unknown()
	}
	return r.flush()
}

// failure returns the error for content that could not be read to its end.
func (r *reader) failure() error {
	if r.in == nil || r.in.rawErr == nil || r.win.src != nil {
		return nil
	}
	return fmt.Errorf("%s: after byte %d of the content: %w", r.file, r.win.end(), r.in.rawErr)
}

// ending reports that the content ends too early, unless that was reported before.
func (r *reader) ending() error {
	switch {
	case r.ended:
		return nil
	case r.win.err == nil && len(r.frames) == 0:
		return nil
	}
	return r.bad(r.scan.i, Record{}, r.cutOff("a document"))
}
