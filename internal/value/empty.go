package value

import (
	"slices"
	"strings"
)

// Empty reports that no value passes the condition. It may report false for a condition that
// no value passes, but never true for one that some value passes: lint refuses models by it,
// and takes two entities apart by it.
func (c Condition) Empty() bool {
	if c.Holds(Value{}) {
		return false
	}
	if slices.ContainsFunc(c, func(t Term) bool { return t.Op == Absent }) {
		return true // some other term needs a value
	}
	if complete := c.candidates(); complete != nil {
		return !slices.ContainsFunc(complete, c.Holds)
	}
	return c.kinds() || c.timesEmpty() || c.span(AsIs).empty(c) || c.span(AsTimes).empty(nil) || c.span(AsNumbers).empty(nil)
}

// candidates returns values of which one passes if any value does, nil if it cannot list
// them: without a term that lists its values as they are, they are unlimited.
func (c Condition) candidates() []Value {
	for i := range c {
		if c[i].Op != In || c[i].As != AsIs {
			continue
		}
		var out []Value
		for _, v := range c[i].Values {
			out = append(out, v, OfString(Scalar(v)), OfBool(Scalar(v) == "true"))
		}
		return out
	}
	return nil
}

// kinds reports that one term needs a number and another one a text.
func (c Condition) kinds() bool {
	number, text := false, false
	for i := range c {
		switch t := &c[i]; {
		case t.Op == Begins || t.Op >= AtLeast && t.As == AsTimes:
			text = true
		case t.Op >= AtLeast && t.As == AsIs:
			number = number || t.Values[0].Kind() == Number
			text = text || t.Values[0].Kind() == String
		}
	}
	return number && text
}

// timesEmpty reports that none of the listed instants passes the other terms about instants.
// It leaves out terms about the text, because an instant has many texts.
func (c Condition) timesEmpty() bool {
	var times Condition
	var listed *Term
	for i := range c {
		if c[i].As != AsTimes {
			continue
		}
		if times = append(times, c[i]); c[i].Op == In {
			listed = &c[i]
		}
	}
	return listed != nil && !slices.ContainsFunc(listed.Values, times.Holds)
}

// span is the values between the bounds of one kind: all values between two.
type span struct {
	low, high *Term // the strictest of each side, nil for none
}

// span is the narrowest interval that the bounds of one way of comparing leave.
func (c Condition) span(as As) (s span) {
	for i := range c {
		t := &c[i]
		switch {
		case t.As != as:
		case t.Op == AtLeast || t.Op == Above:
			s.low = stricter(s.low, t, 1)
		case t.Op == AtMost || t.Op == Below:
			s.high = stricter(s.high, t, -1)
		}
	}
	return s
}

// stricter returns which of two bounds of one side leaves less. side is 1 for lower bounds.
func stricter(a, b *Term, side int) *Term {
	if a == nil {
		return b
	}
	d, ok := b.compare(a.Values[0], b.Values[0])
	if ok && (d*side < 0 || d == 0 && (b.Op == Above || b.Op == Below)) {
		return b
	}
	return a
}

// empty reports that nothing lies between the bounds, or nothing that the terms of all, which
// are compared as they are, let pass.
func (s span) empty(all Condition) bool {
	if s.low != nil && s.high != nil {
		d, ok := s.low.compare(s.low.Values[0], s.high.Values[0])
		switch {
		case !ok:
		case d > 0 || d == 0 && (s.low.Op == Above || s.high.Op == Below):
			return true
		case d == 0 && all != nil:
			return !all.Holds(s.low.Values[0])
		}
	}
	return s.beginsOutside(all)
}

// beginsOutside reports that two beginnings exclude each other, or that all texts with a
// beginning lie outside the bounds.
func (s span) beginsOutside(all Condition) bool {
	for i := range all {
		if all[i].Op != Begins {
			continue
		}
		p := all[i].Values[0].Text()
		for j := range all[:i] {
			if q := all[j]; q.Op == Begins && !strings.HasPrefix(p, q.Values[0].Text()) && !strings.HasPrefix(q.Values[0].Text(), p) {
				return true
			}
		}
		if s.low != nil && s.low.Values[0].Kind() == String {
			if low := s.low.Values[0].Text(); low > p && !strings.HasPrefix(low, p) {
				return true
			}
		}
		if s.high != nil && s.high.Values[0].Kind() == String {
			if high := s.high.Values[0].Text(); high < p || high == p && s.high.Op == Below {
				return true
			}
		}
	}
	return false
}
