package events

import (
	"bytes"
	"fmt"
)

// locationOf returns the place in the file of the byte at i of the window.
func (r *reader) locationOf(i int) Location {
	if r.at != nil {
		return *r.at
	}
	offset := r.win.base + int64(i)
	return Location{File: r.file, Line: r.win.lineAt(offset), Offset: offset}
}

// releaseBuffer releases a buffer that had to be large for the unit that began at start.
func (r *reader) releaseBuffer(start int) {
	if r.scan.i-start > chunkSize/2 && r.win.src != nil {
		r.win.dropBefore(r.scan.i)
		r.scan.i = 0
	}
	if cap(r.scan.stack) > 16*slabSize {
		r.scan.stack = nil
	}
}

// yieldGood yields a record that began at start and ends where the scanner is.
func (r *reader) yieldGood(start int, rec Record, shard string) error {
	r.known = true
	if err := r.yieldHeldBack(); err != nil {
		return err
	}
	at := r.locationOf(start)
	r.releaseBuffer(start)
	return r.yield(Entry{Record: rec, Shard: shard, Location: at})
}

// yieldBad yields a bad entry that began at start and ends where the scanner is.
func (r *reader) yieldBad(start int, rec Record, err error) error {
	raw := r.win.buf[start:r.scan.i]
	e := Entry{Record: rec, Bad: &Bad{Size: int64(len(raw)), Err: err}, Location: r.locationOf(start)}
	e.Bad.Raw = bytes.Clone(raw[:min(len(raw), maxRaw)])
	r.releaseBuffer(start)
	return r.yieldOrHold(e)
}

// The reader holds bad entries back until it has seen something of a known form. So a file
// of another kind gives an error and no entries. These are the limits for holding back.
const (
	maxHeld     = 1000
	maxHeldSize = 1 << 20
)

// yieldOrHold yields a bad entry, or holds it back.
// Until a record has shown the kind of the file, bad entries are held: of something else
// entirely, one error is better than a thousand.
func (r *reader) yieldOrHold(e Entry) error {
	r.held = append(r.held, e)
	if r.known {
		return r.yieldHeldBack()
	}
	var size int64
	if len(r.held) == maxHeld {
		return r.unknownForm()
	}
	for _, h := range r.held {
		if size += h.Bad.Size; size > maxHeldSize {
			return r.unknownForm()
		}
	}
	return nil
}

// yieldHeldBack yields the bad entries that were held back.
func (r *reader) yieldHeldBack() error {
	for _, e := range r.held {
		if err := r.yield(e); err != nil {
			return err
		}
	}
	r.held = nil
	return nil
}

// unknownForm returns the error for a file that holds nothing of a known form.
func (r *reader) unknownForm() error {
	first := r.held[0]
	return fmt.Errorf("%s: %w: line %d: %w; expected are %s", r.file, ErrNoRecords, first.Line, first.Bad.Err, knownForms)
}

// finishContent handles the end of the content.
func (r *reader) finishContent() error {
	if err := r.readFailure(); err != nil {
		return err
	}
	if err := r.reportEnding(); err != nil {
		return err
	}
	if !r.known && len(r.held) > 0 {
		return r.unknownForm()
	}
	return r.yieldHeldBack()
}

// readFailure returns the error for content that could not be read to its end.
func (r *reader) readFailure() error {
	if r.in == nil || r.in.rawErr == nil || r.win.src != nil {
		return nil
	}
	return fmt.Errorf("%s: after byte %d of the content: %w", r.file, r.win.endOffset(), r.in.rawErr)
}

// reportEnding reports that the content ends too early, unless that was reported before.
func (r *reader) reportEnding() error {
	switch {
	case r.ended:
		return nil
	case r.win.err == nil && len(r.frames) == 0:
		return nil
	}
	return r.yieldBad(r.scan.i, Record{}, r.cutOff("a document"))
}
