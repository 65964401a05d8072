package model

import (
	"strconv"
	"strings"
	"time"

	"weir/internal/value"
)

// Bucket is the part of the calendar that a time of a row is in.
// The text of a bucket depends on nothing but the row and the model: zone rules are those of
// calendar.go, never the machine's.
type Bucket struct {
	Of    *Field
	Unit  Unit
	Zone  *time.Location
	Epoch As // of a time that is a number; "" for a text of RFC 3339
	// rules is a part of the definition, so another release with other rules for the zone builds
	// the group again.
	rules string // of the zone
}

// value returns the text of the bucket that a row is in, Missing if the row has no time.
// A row with an Unfit is in no group, and becomes a dead letter; one without a time is in no group,
// and nothing is said.
func (b *Bucket) value(row value.Item) (value.Value, *Unfit) {
	v := b.Of.Get(row)
	if v.Kind() == value.Missing || v.Kind() == value.Null {
		return value.Value{}, nil
	}
	at, ok := b.time(v)
	if !ok {
		want := "a time like 2026-01-31T12:00:00Z, or a date"
		if b.Epoch != "" {
			want = "a number of " + string(b.Epoch) + " since 1970"
		}
		return value.Value{}, &Unfit{b.Of, v, want}
	}
	text, ok := partOf(b.Unit, b.Zone, at)
	if !ok {
		return value.Value{}, &Unfit{b.Of, v, "a time in the years from 0 to 9999"}
	}
	return value.OfString(text), nil
}

// time returns the instant that a value means; of a number, the whole second that it is in.
func (b *Bucket) time(v value.Value) (time.Time, bool) {
	if b.Epoch == "" {
		return value.Time(v)
	}
	if v.Kind() == value.String { // a number in a key
		v, _ = value.ParseNumber(v.Text())
	}
	if v.Kind() != value.Number {
		return time.Time{}, false
	}
	return time.Unix(b.Epoch.second(v), 0), true
}

// second returns the last whole second that is not after a number. A second beyond the calendar
// stays beyond it.
// Negative numbers are rounded down too: −0.5 seconds is in the second before 1970. Digits beyond
// 13 are cut, which is far beyond the year 9999 that Bucket.value refuses.
func (as As) second(v value.Value) (n int64) {
	const beyond = 13 // digits of a second in the year 33,658, or later
	sign, digits, exp := v.Decimal()
	if as == AsMilliseconds {
		exp -= 3
	}
	exp = min(exp, beyond)
	whole := digits[:max(0, min(exp, len(digits)))]
	if whole != "" {
		n, _ = strconv.ParseInt(whole+strings.Repeat("0", exp-len(whole)), 10, 64)
	}
	switch {
	case sign < 0 && len(digits) > len(whole):
		return -n - 1
	case sign < 0:
		return -n
	}
	return n
}

// definition must keep its lines: a change of them is a change of every definition with a bucket.
func (b *Bucket) definition() (x defined) {
	x.addLine("bucket", string(b.Unit), b.rules)
	if b.Epoch == "" {
		x.addLine("dates") // they are times, which they were not before this line
	} else {
		x.addLine("epoch", string(b.Epoch))
	}
	x.addWithin("of", b.Of.definition())
	return x
}

// bucketDecl gives a name of a group's key its value: a word, or a part of the calendar.
type bucketDecl struct {
	// The part of the calendar that a time is in.
	heading `noun:"time bucket"`
	// hour: The field with the time: its hour, like 2026-01-31T12+01:00.
	// day: Its day, like 2026-01-31.
	// week: Its week by ISO 8601, like 2026-W05.
	// month: Its month, like 2026-01.
	// year: Its year, like 2026.
	Unit keyword `keys:"hour day week month year" need:"{day: FIELD}, or {day: FIELD, zone: Europe/Berlin}"`
	// The time zone, by its name in the IANA database. Default: UTC.
	Zone word
	// The field is a number since 1970, and this is its unit. Default: the field is a text of RFC 3339.
	Epoch word `one:"seconds milliseconds" or:"numbers are not counted in %q since 1970"`

	value word
}

func (d *bucketDecl) short(n node, _ string) { d.value = n.readConstant("the value of " + d.name.text) }

// compileBucket compiles a time bucket over rows of source. A field of type any passes, since only rows can say the type of its values.
func (c *compiler) compileBucket(source *Entity, b *bucketDecl) Expr {
	at := b.Unit.word()
	typ := TypeTime
	if b.hasKey("epoch") {
		typ = TypeNumber
	}
	if at.isGiven() && c.checkUnnamed(source, at, typ) {
		return Expr{}
	}
	of := c.findField(source, at)
	zone, err := zoneOf(b.Zone.text)
	if err != nil {
		c.refuseUnknown(b.Zone, zoneNames(), "%v", err)
	}
	counts := b.hasKey("epoch")
	epoch := As(b.Epoch.text)
	if of == nil || err != nil || counts && epoch == "" {
		c.flaws++
		return Expr{}
	}
	text := of.Type == TypeString && (of.Key != nil || of.Attr != of.Name || source.keyNamed(of.Name) != nil) // a key may have a time, or a number, as text
	switch {
	case of.Type == TypeAny || text:
	case epoch == "" && of.Type == TypeNumber:
		c.addFlaw(at.pos, "say what it counts since 1970: {"+b.Unit.key+": "+at.text+", epoch: seconds}, or milliseconds",
			"%s.%s is a number, and a time is a text (RFC 3339)", source.Name, of.Name)
	case epoch == "" && of.Type != TypeTime:
		c.addFlaw(at.pos, "a time (RFC 3339 text)", "%s.%s is a %s and is in no %s", source.Name, of.Name, of.Type, b.Unit.key)
	case epoch != "" && of.Type != TypeNumber && of.Type != TypeString:
		hint := "a number"
		if of.Type == TypeTime {
			hint = "leave epoch out"
		}
		c.addFlaw(at.pos, hint, "%s.%s is a %s, and epoch is for numbers", source.Name, of.Name, of.Type)
	}
	return Expr{Bucket: &Bucket{Of: of, Unit: Unit(b.Unit.key), Zone: zone, Epoch: epoch, rules: rulesOf(zone)}}
}
