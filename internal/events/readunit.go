package events

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// readUnit reads the object at the reader's place or, given a frame, the rest of that
// frame's object.
func (r *reader) readUnit(f *frame) error {
	u, start := &r.unit, r.scan.i
	if f != nil {
		u = f.unit
	} else {
		*u = unit{}
	}
	var out outcome
	for {
		r.scan.resetTo(r.win.buf, start)
		if f != nil {
			out = r.scan.resumeUnit(u)
		} else {
			out = r.scan.beginUnit(u)
		}
		if r.scan.stop != stopShort {
			break
		}
		if !r.readMoreFrom(&start) {
			return r.handleIncomplete(start)
		}
	}
	if r.scan.stop == stopSyntax {
		r.known = r.known || u.isKnown()
		return r.skipBroken(start, r.notJSON())
	}
	switch {
	case out != unitDone:
		return r.enterUnit(f, out, start)
	case f != nil:
		r.last, r.records = u.window, r.records || u.seen&seenRecords != 0
		r.leaveBracket()
		return nil
	}
	return r.handleUnit(start)
}

// enterUnit begins to read the records inside a unit.
// A shard that the unit names counts for its records, else that of the document around it.
func (r *reader) enterUnit(f *frame, out outcome, start int) error {
	r.known = true
	if f == nil {
		if len(r.frames) >= maxFrames {
			return r.skipBroken(start, errors.New("documents are nested too deep"))
		}
		u := r.unit
		here := r.innermostFrame()
		r.frames = append(r.frames, frame{unit: &u, table: here.table, shard: here.shard})
		f = r.topFrame()
		if t := r.scan.tableOf(u.batch.arn); t != "" {
			f.table = t
		}
	}
	f.shard = cmp.Or(f.unit.batch.shard, f.unit.window.Shard, f.shard)
	switch out {
	case unitArray:
		r.scan.i++
		r.frames = append(r.frames, frame{table: f.table, shard: f.shard})
	case unitObject:
		return r.readUnit(nil)
	case unitText:
		return r.readInner(start, []byte(f.unit.inner), frame{table: f.table, shard: f.shard})
	}
	return nil
}

// innermostFrame returns the innermost frame: it knows the table and shard of records that do not name
// them.
func (r *reader) innermostFrame() *frame {
	if f := r.topFrame(); f != nil {
		return f
	}
	return &r.inside
}

// handleUnit handles a completely read unit that holds no other units.
// An object that is no record is a bad entry with its place, and reading goes on behind it.
func (r *reader) handleUnit(start int) error {
	u := &r.unit
	r.known = r.known || u.isKnown()
	switch {
	case u.isRecord():
		rec, err := r.scan.recordOf(u, r.innermostFrame().table)
		if err != nil {
			return r.yieldBad(start, rec, err)
		}
		return r.yieldGood(start, rec, r.innermostFrame().shard)
	case r.scan.prob != nil && u.isKnown():
		return r.yieldBad(start, Record{}, r.scan.prob)
	case u.isWindow():
		r.last, r.records = u.window, true
		r.releaseBuffer(start)
		return nil
	case u.seen&seenData != 0:
		return r.readKinesis(start)
	case u.seen&(seenRecords|seenBatch) == seenRecords:
		r.releaseBuffer(start)
		return nil
	}
	return r.yieldBad(start, Record{ID: u.id}, u.noRecord(&r.scan, start))
}

// readKinesis reads the record that a Kinesis record carries.
// A record from Kinesis may have no sequence number of DynamoDB; it then has a time and no
// position.
func (r *reader) readKinesis(start int) error {
	data, err := base64.StdEncoding.DecodeString(r.unit.data)
	if err != nil {
		return r.yieldBad(start, Record{}, errors.New("the Kinesis record's data is not base64"))
	}
	var inner scanner
	inner.resetTo(data, 0)
	u := unit{seen: seenKinesis}
	if inner.skipSpace() != '{' || inner.beginUnit(&u) != unitDone || inner.stop != going || u.seen&seenChange == 0 {
		return r.yieldBad(start, Record{}, errors.New("the Kinesis record's data is not a DynamoDB record"))
	}
	rec, err := inner.recordOf(&u, r.innermostFrame().table)
	if err != nil {
		return r.yieldBad(start, rec, err)
	}
	rec.Arrival = r.unit.place
	shard, _, named := strings.Cut(r.unit.id, ":") // Lambda's name of a Kinesis record
	if !named {
		shard = r.innermostFrame().shard
	}
	return r.yieldGood(start, rec, shard)
}

// readInner reads a document that was inside a string.
func (r *reader) readInner(start int, doc []byte, around frame) error {
	at := r.locationOf(start)
	in := reader{win: window{buf: doc, line: 1}, file: r.file, yield: r.yield, at: &at, inside: around, known: true}
	err := in.readAll()
	r.releaseBuffer(start)
	return err
}

// notJSON returns the error for the place at which the scanner stopped.
func (r *reader) notJSON() error {
	return fmt.Errorf("not JSON at byte %s: %s", r.formatOffset(r.win.base+int64(r.scan.at)), r.scan.why)
}

// handleIncomplete handles a record in which the content ends.
func (r *reader) handleIncomplete(start int) error {
	if err := r.readFailure(); err != nil {
		return err
	}
	cause := r.cutOff("a record")
	r.scan.b = r.win.buf
	if other := r.scan.foreignForm(start); other != "" {
		cause = errors.New(other)
	}
	return r.skipBroken(start, cause)
}

// cutOff returns the error for content that ends inside the thing that inside names.
func (r *reader) cutOff(inside string) error {
	if r.win.src != nil {
		return fmt.Errorf("larger than %d MB, which no record is", maxUnit>>20)
	}
	r.ended = true
	if r.win.err != nil {
		return fmt.Errorf("%w, after byte %d of the content", r.in.damageError(r.win.err), r.win.endOffset())
	}
	return fmt.Errorf("%w at byte %s, inside %s", ErrTruncated, r.formatOffset(r.win.endOffset()), inside)
}

// formatOffset returns a place in the content, for messages.
func (r *reader) formatOffset(n int64) string {
	if r.at != nil {
		return fmt.Sprintf("%d of the payload", n)
	}
	return fmt.Sprint(n)
}
