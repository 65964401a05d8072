package events

import "bytes"

// broken yields the text at start, which is not JSON, as one bad entry, and goes to the next
// place where a record can begin. In an array, that is after the element if its brackets are
// balanced. Otherwise it is a line that begins with a bracket, or an object that begins with
// a name of a known form.
func (r *reader) broken(start int, cause error) error {
	if f := r.top(); f != nil && f.unit == nil {
		end, ok := r.balanced(&start)
		if ok {
			r.scan.i = end
			return r.bad(start, Record{}, cause)
		}
	}
	e := Entry{Bad: &Bad{Err: cause}, Location: r.location(start)}
	s := seeker{i: start + 1, from: start, prev: r.win.buf[start]}
	for !s.seek(r.win.buf, r.win.src == nil) {
		s.keep(e.Bad, r.win.buf)
		r.win.more(s.i)
		s.i, s.from = 0, 0
	}
	s.keep(e.Bad, r.win.buf)
	r.scan.i = s.i
	f := r.top()
	inArray := f != nil && f.unit == nil && s.prev == ',' && s.i < len(r.win.buf)
	if inArray {
		f.comma = false
	} else {
		r.frames, r.loose = nil, true
	}
	e.Bad.trim(inArray)
	return r.give(e)
}

// trim removes trailing white space from a bad entry that is not shortened, and the comma
// between elements of an array.
func (b *Bad) trim(inArray bool) {
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
	i     int  // what is before was looked at
	from  int  // what is from here to i was not kept yet
	prev  byte // the last byte before i that is not white space
	fresh bool // i is at the beginning of a line
}

// seek goes to such a place and reports true, or goes to where it needs more input and
// reports false. If b holds all remaining input (all), it reports true at its end too.
func (s *seeker) seek(b []byte, all bool) bool {
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

// keep adds the skipped text to the bad entry.
func (s *seeker) keep(bad *Bad, b []byte) {
	part := b[s.from:s.i]
	bad.Size += int64(len(part))
	bad.Raw = append(bad.Raw, part[:min(len(part), maxRaw-len(bad.Raw))]...)
}

// beginsUnit reports whether an object begins with a name of a known form. short means that
// b is too short to decide.
func beginsUnit(b []byte) (ok, short bool) {
	p := scanner{b: b}
	if !p.enter('}') {
		return false, p.stop == stopShort
	}
	name := p.name()
	if p.stop != going {
		return false, p.stop == stopShort && len(b) < 256
	}
	return unitName(name) != "" || foldedName(outerNames, name) != "", false
}

// outerNames are more names with which objects that hold records may begin.
var outerNames = []string{
	"ApproximateArrivalTimestamp", "EncryptionType", "PartitionKey", "invokeIdentityArn", "requestContext",
	"NextShardIterator",
}

// balanced finds the end of the broken array element at start by its brackets alone. It may
// read more of the file and then adjusts start.
func (r *reader) balanced(start *int) (end int, ok bool) {
	for {
		n, ok := balancedEnd(r.win.buf[*start:], r.win.src == nil)
		if n >= 0 {
			return *start + n, ok
		}
		if len(r.win.buf)-*start > maxRaw || r.win.src == nil {
			return 0, false
		}
		r.win.more(*start)
		*start = 0
	}
}

// balancedEnd returns the length of the bracketed text at the beginning of b, if a comma or
// the end of an array follows it; -1 if b is too short to decide. It stops where the next
// record seems to begin. It ends every string at the end of its line, so that a missing quote
// spoils only one line.
func balancedEnd(b []byte, all bool) (n int, ok bool) {
	var stack []byte
	quoted, prev := false, byte(0)
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '{' && prev == ',' {
			if begins, _ := beginsUnit(b[i:]); begins {
				return i, false
			}
		}
		if c > ' ' {
			prev = c
		}
		if quoted {
			switch c {
			case '\\':
				i++
			case '"', '\n':
				quoted = false
			}
			continue
		}
		switch c {
		case '"':
			quoted = true
		case '{', '[':
			stack = append(stack, c+2) // the closing one
		case '}', ']':
			if len(stack) == 0 || stack[len(stack)-1] != c {
				return i, false
			}
			stack = stack[:len(stack)-1]
		}
		if len(stack) == 0 {
			return elementEnd(b, i+1, all)
		}
	}
	return -1, false
}

// elementEnd reports whether the array continues or ends after the first n bytes of b. It
// returns -1 instead of n if b is too short to decide.
func elementEnd(b []byte, n int, all bool) (int, bool) {
	rest := bytes.TrimLeft(b[n:], " \t\r\n")
	switch {
	case len(rest) > 0:
		return n, rest[0] == ',' || rest[0] == ']'
	case all:
		return n, true
	}
	return -1, false
}
