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
		r.scan.reset(r.win.buf, start)
		if f != nil {
			out = r.scan.resume(u)
		} else {
			out = r.scan.begin(u)
		}
		if r.scan.stop != stopShort {
			break
		}
		if !r.extend(&start) {
			return r.incomplete(start)
		}
	}
	if r.scan.stop == stopSyntax {
		r.known = r.known || u.known()
		return r.broken(start, r.notJSON())
	}
	switch {
	case out != unitDone:
		return r.enter(f, out, start)
	case f != nil:
		r.last, r.records = u.window, r.records || u.seen&seenRecords != 0
		r.pop()
		return nil
	}
	return r.whole(start)
}

// enter begins to read the records inside a unit.
// A shard that the unit names counts for its records, else that of the document around it.
func (r *reader) enter(f *frame, out outcome, start int) error {
	r.known = true
	if f == nil {
		if len(r.frames) >= maxFrames {
			return r.broken(start, errors.New("documents are nested too deep"))
		}
		u := r.unit
		here := r.here()
		r.frames = append(r.frames, frame{unit: &u, table: here.table, shard: here.shard})
		f = r.top()
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
		return r.within(start, []byte(f.unit.inner), frame{table: f.table, shard: f.shard})
	}
	return nil
}

// here returns the innermost frame: it knows the table and shard of records that do not name
// them.
func (r *reader) here() *frame {
	if f := r.top(); f != nil {
		return f
	}
	return &r.inside
}

// whole handles a completely read unit that holds no other units.
// What is no record is a bad entry with its place, and reading goes on behind it.
func (r *reader) whole(start int) error {
	u := &r.unit
	r.known = r.known || u.known()
	switch {
	case u.isRecord():
		rec, err := r.scan.record(u, r.here().table)
		if err != nil {
			return r.bad(start, rec, err)
		}
		return r.good(start, rec, r.here().shard)
	case r.scan.prob != nil && u.known():
		return r.bad(start, Record{}, r.scan.prob)
	case u.isWindow():
		r.last, r.records = u.window, true
		r.done(start)
		return nil
	case u.seen&seenData != 0:
		return r.kinesis(start)
	case u.seen&(seenRecords|seenBatch) == seenRecords:
		r.done(start)
		return nil
	}
	return r.bad(start, Record{ID: u.id}, u.noRecord(&r.scan, start))
}

// kinesis reads the record that a Kinesis record carries.
// A record from Kinesis may have no sequence number of DynamoDB; it then has a time and no
// position.
func (r *reader) kinesis(start int) error {
	data, err := base64.StdEncoding.DecodeString(r.unit.data)
	if err != nil {
		return r.bad(start, Record{}, errors.New("the Kinesis record's data is not base64"))
	}
	var inner scanner
	inner.reset(data, 0)
	u := unit{seen: seenKinesis}
	if inner.space() != '{' || inner.begin(&u) != unitDone || inner.stop != going || u.seen&seenChange == 0 {
		return r.bad(start, Record{}, errors.New("the Kinesis record's data is not a DynamoDB record"))
	}
	rec, err := inner.record(&u, r.here().table)
	if err != nil {
		return r.bad(start, rec, err)
	}
	rec.Arrival = r.unit.place
	shard, _, named := strings.Cut(r.unit.id, ":") // Lambda's name of a Kinesis record
	if !named {
		shard = r.here().shard
	}
	return r.good(start, rec, shard)
}

// within reads a document that was inside a string.
func (r *reader) within(start int, doc []byte, around frame) error {
	at := r.location(start)
	in := reader{win: window{buf: doc, line: 1}, file: r.file, yield: r.yield, at: &at, inside: around, known: true}
	err := in.run()
	r.done(start)
	return err
}

// notJSON returns the error for the place at which the scanner stopped.
func (r *reader) notJSON() error {
	return fmt.Errorf("not JSON at byte %s: %s", r.offset(r.win.base+int64(r.scan.at)), r.scan.why)
}

// incomplete handles a record in which the content ends.
func (r *reader) incomplete(start int) error {
	if err := r.failure(); err != nil {
		return err
	}
	cause := r.cutOff("a record")
	r.scan.b = r.win.buf
	if other := r.scan.foreignForm(start); other != "" {
		cause = errors.New(other)
	}
	return r.broken(start, cause)
}

// cutOff returns the error for content that ends inside the thing that inside names.
func (r *reader) cutOff(inside string) error {
	if r.win.src != nil {
		return fmt.Errorf("larger than %d MB, which no record is", maxUnit>>20)
	}
	r.ended = true
	if r.win.err != nil {
		return fmt.Errorf("%w, after byte %d of the content", r.in.damage(r.win.err), r.win.end())
	}
	return fmt.Errorf("%w at byte %s, inside %s", ErrTruncated, r.offset(r.win.end()), inside)
}

// offset returns a place in the content, for messages.
func (r *reader) offset(n int64) string {
	if r.at != nil {
		return fmt.Sprintf("%d of the payload", n)
	}
	return fmt.Sprint(n)
}
