package events

import (
	"strings"

	"weir/internal/value"
)

// readChange reads the part "dynamodb" of a record.
// Fields that it does not know are skipped.
func (p *scanner) readChange(u *unit) {
	if c := p.b[p.i]; c != '{' {
		p.notKind(c, "an object", "dynamodb")
		return
	}
	for more := p.enterBracket('}'); more; more = p.nextMember('}') {
		name := p.readName()
		if p.stop != going {
			return
		}
		if p.changeField(u, name); p.stop != going {
			return
		}
	}
}

// changeField reads one field. Names in another case are taken too, as some tools write them.
// A name that comes twice has its last value, as in encoding/json. Unknown names are passed over:
// AWS adds fields.
func (p *scanner) changeField(u *unit, name string) {
	switch name {
	case "Keys":
		u.keys = p.readImage(name)
	case "NewImage":
		u.new = p.readImage(name)
	case "OldImage":
		u.old = p.readImage(name)
	case "SequenceNumber":
		p.readOptionalString(&u.seq, name)
	case "ApproximateCreationDateTime":
		p.readStamp(&u.when, name)
	case "ApproximateCreationDateTimePrecision":
		p.readOptionalString(&u.when.precision, name)
	case "StreamViewType":
		p.readOptionalString(&u.view, name)
	case "SizeBytes":
		p.skipValue()
	default:
		if known := foldedName(changeNames, name); known != "" {
			p.changeField(u, known)
		} else {
			p.skipValue()
		}
	}
}

// changeNames are the fields of a change in the spelling of the API.
var changeNames = []string{
	"Keys", "NewImage", "OldImage", "SequenceNumber", "ApproximateCreationDateTime",
	"ApproximateCreationDateTimePrecision", "StreamViewType",
}

// readImage reads an item. null and {} count as no item.
func (p *scanner) readImage(name string) value.Item {
	if c := p.b[p.i]; c != '{' {
		p.notKind(c, "an object", name)
		return nil
	}
	before := p.prob
	it := p.readItem(0)
	p.addPath(name, before)
	if len(it) == 0 {
		return nil
	}
	return it
}

// notKind skips a value that should have another type, and notes a problem. null counts as
// absent and is no problem.
func (p *scanner) notKind(c byte, want, name string) {
	if c != 'n' {
		before := p.prob
		p.noteProblem("expected %s, found %s", want, p.kindAt(p.i))
		p.addPath(name, before)
	}
	p.skipValue()
}

// readOptionalString reads a string or null into dst.
func (p *scanner) readOptionalString(dst *string, name string) {
	if c := p.b[p.i]; c == '"' {
		*dst = p.readString()
	} else {
		*dst = ""
		p.notKind(c, "a string", name)
	}
}

// readSource reads which service an event comes from. A value that is not a string counts as none.
func (p *scanner) readSource() {
	if p.source != "" || p.b[p.i] != '"' {
		p.skipValue()
	} else if s := p.readString(); p.stop == going {
		p.source = strings.Clone(s)
	}
}

// eachField calls each with the name of every field of an object. The scanner is then at the
// field's value, and each must read it. A value that is not an object is skipped.
func (p *scanner) eachField(each func(name string)) {
	if p.b[p.i] != '{' {
		p.skipValue()
		return
	}
	for more := p.enterBracket('}'); more; more = p.nextMember('}') {
		name := p.readName()
		if p.stop != going {
			return
		}
		if each(name); p.stop != going {
			return
		}
	}
}

// readTexts reads fields of an object that are strings, whose names may differ in case, as they do between Lambda and the API. in is
// before the names in messages. Other fields are skipped.
func (p *scanner) readTexts(in string, to map[string]*string) {
	p.eachField(func(name string) {
		for known, dst := range to {
			if strings.EqualFold(known, name) {
				p.readOptionalString(dst, in+known)
				return
			}
		}
		p.skipValue()
	})
}

// readWriteTime reads the write time of an item in an incremental export, a typed number.
// Exports have microseconds; the stream's own times are whole seconds.
func (p *scanner) readWriteTime(u *unit) {
	p.eachField(func(name string) {
		switch {
		case name != "WriteTimestampMicros":
			p.skipValue()
		case p.b[p.i] == '{':
			before := p.prob
			v := p.readAttribute(0)
			p.addPath("Metadata."+name, before)
			u.when = stamp{text: v.Text(), precision: precisionMicros}
		default:
			p.readStamp(&u.when, "Metadata."+name)
			u.when.precision = precisionMicros
		}
	})
}
