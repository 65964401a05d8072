package events

import "bytes"

// skipBroken yields the text at start, which is not JSON, as one bad entry, and goes to the next
// place where a record can begin: a line that begins with a bracket, or an object that begins
// with a name of a known form.
func (r *reader) skipBroken(start int, cause error) error {
	e := Entry{Bad: &Bad{Err: cause}, Location: r.locationOf(start)}
	s := seeker{i: start + 1, from: start, prev: r.win.buf[start]}
	for !s.seekNext(r.win.buf, r.win.src == nil) {
		s.keepText(e.Bad, r.win.buf)
		r.win.readMore(s.i)
		s.i, s.from = 0, 0
	}
	s.keepText(e.Bad, r.win.buf)
	r.scan.i = s.i
	f := r.topFrame()
	inArray := f != nil && f.unit == nil && s.prev == ',' && s.i < len(r.win.buf)
	if inArray {
		f.comma = false
	} else {
		r.frames, r.loose = nil, true
	}
	e.Bad.trimSpace(inArray)
	return r.yieldOrHold(e)
}

// trimSpace removes trailing white space from a bad entry that is not shortened, and the comma
// between elements of an array.
func (b *Bad) trimSpace(inArray bool) {
	if b.Size > int64(len(b.Raw)) {
		return
	}
	b.Raw = bytes.TrimRight(b.Raw, " \t\r\n")
	if inArray {
		b.Raw = bytes.TrimRight(b.Raw, ", \t\r\n")
	}
	b.Size = int64(len(b.Raw))
}

// seeker looks for the next place where a record can begin.
type seeker struct {
	i     int  // the bytes before were looked at
	from  int  // the bytes from here to i were not kept yet
	prev  byte // the last byte before i that is not white space
	fresh bool // i is at the beginning of a line
}

// seekNext goes to such a place and reports true, or goes to where it needs more input and
// reports false. If b holds all remaining input (all), it reports true at its end too.
func (s *seeker) seekNext(b []byte, all bool) bool {
	for ; s.i < len(b); s.i++ {
		switch c := b[s.i]; c {
		case '\n':
			s.fresh = true
			continue
		case ' ', '\t', '\r':
			s.fresh = false
			continue
		case '[':
			if s.fresh {
				return true
			}
		case '{':
			if s.fresh {
				return true
			}
			if s.prev == ',' || s.prev == '}' || s.prev == ']' || s.prev == '[' {
				ok, short := beginsUnit(b[s.i:])
				if short && !all {
					return false
				}
				if ok {
					return true
				}
			}
			s.prev = c
		default:
			s.prev = c
		}
		s.fresh = false
	}
	return all
}

// keepText adds the skipped text to the bad entry.
func (s *seeker) keepText(bad *Bad, b []byte) {
	part := b[s.from:s.i]
	bad.Size += int64(len(part))
	bad.Raw = append(bad.Raw, part[:min(len(part), maxRaw-len(bad.Raw))]...)
}

// beginsUnit reports whether an object begins with a name of a known form. short means that
// b is too short to decide.
func beginsUnit(b []byte) (ok, short bool) {
	p := scanner{b: b}
	if !p.enterBracket('}') {
		return false, p.stop == stopShort
	}
	name := p.readName()
	if p.stop != going {
		return false, p.stop == stopShort && len(b) < 256
	}
	return foldedName(unitNames, name) != "" || foldedName(outerNames, name) != "", false
}

// outerNames are more names with which objects that hold records may begin.
var outerNames = []string{
	"ApproximateArrivalTimestamp", "EncryptionType", "PartitionKey", "invokeIdentityArn", "requestContext",
	"NextShardIterator",
}
