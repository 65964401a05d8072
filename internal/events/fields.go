package events

import (
	"strings"

	"weir/internal/value"
)

// change reads the part "dynamodb" of a record.
// Fields that it does not know are skipped.
func (p *scanner) change(u *unit) {
	if c := p.b[p.i]; c != '{' {
		p.notKind(c, "an object", "dynamodb")
		return
	}
	for more := p.enter('}'); more; more = p.next('}') {
		name := p.name()
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
		u.keys = p.image(name)
	case "NewImage":
		u.new = p.image(name)
	case "OldImage":
		u.old = p.image(name)
	case "SequenceNumber":
		p.string(&u.seq, name)
	case "ApproximateCreationDateTime":
		p.stamp(&u.when, name)
	case "ApproximateCreationDateTimePrecision":
		p.string(&u.when.precision, name)
	case "StreamViewType":
		p.string(&u.view, name)
	case "SizeBytes":
		p.skip()
	default:
		if known := foldedName(changeNames, name); known != "" {
			p.changeField(u, known)
		} else {
			p.skip()
		}
	}
}

// changeNames are the fields of a change in the spelling of the API.
var changeNames = []string{
	"Keys", "NewImage", "OldImage", "SequenceNumber", "ApproximateCreationDateTime",
	"ApproximateCreationDateTimePrecision", "StreamViewType",
}

// image reads an item. null and {} count as no item.
func (p *scanner) image(name string) value.Item {
	if c := p.b[p.i]; c != '{' {
		p.notKind(c, "an object", name)
		return nil
	}
	before := p.prob
	it := p.item(0)
	p.within(name, before)
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
		p.note("expected %s, found %s", want, p.kindAt(p.i))
		p.within(name, before)
	}
	p.skip()
}

// string reads a string or null into dst.
func (p *scanner) string(dst *string, name string) {
	if c := p.b[p.i]; c == '"' {
		*dst = p.str()
	} else {
		*dst = ""
		p.notKind(c, "a string", name)
	}
}

// from reads which service an event comes from. A value that is not a string counts as none.
func (p *scanner) from() {
	if p.source != "" || p.b[p.i] != '"' {
		p.skip()
	} else if s := p.str(); p.stop == going {
		p.source = strings.Clone(s)
	}
}

// object calls each with the name of every field of an object. The scanner is then at the
// field's value, and each must read it. A value that is not an object is skipped.
func (p *scanner) object(each func(name string)) {
	if p.b[p.i] != '{' {
		p.skip()
		return
	}
	for more := p.enter('}'); more; more = p.next('}') {
		name := p.name()
		if p.stop != going {
			return
		}
		if each(name); p.stop != going {
			return
		}
	}
}

// texts reads fields of an object that are strings, whose names may differ in case, as they do between Lambda and the API. in is
// before the names in messages. Other fields are skipped.
func (p *scanner) texts(in string, to map[string]*string) {
	p.object(func(name string) {
		for known, dst := range to {
			if strings.EqualFold(known, name) {
				p.string(dst, in+known)
				return
			}
		}
		p.skip()
	})
}

// metadata reads the write time of an item in an incremental export, a typed number.
// Exports have microseconds; the stream's own times are whole seconds.
func (p *scanner) metadata(u *unit) {
	p.object(func(name string) {
		switch {
		case name != "WriteTimestampMicros":
			p.skip()
		case p.b[p.i] == '{':
			before := p.prob
			v := p.attribute(0)
			p.within("Metadata."+name, before)
			u.when = stamp{text: v.Text(), precision: precisionMicros}
		default:
			p.stamp(&u.when, "Metadata."+name)
			u.when.precision = precisionMicros
		}
	})
}
