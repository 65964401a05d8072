package projections

import (
	"cmp"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/value"
)

// A row that is nearly as large as a row may be has no room for all that weir would show on it. The
// largest of it is then left out, derivation by derivation, and all else is shown. Such a row has a
// mark, so each later change of it by an application has it shown again.

// Shown is what a row shows of one derivation. Attributes that it must not have are Missing.
type Shown struct {
	Derivation string
	Attrs      []value.Attr
}

// Bytes returns how many bytes it takes.
func (s *Shown) Bytes() (n int) {
	for _, a := range s.Attrs {
		if !a.Value.IsMissing() {
			n += value.Item{a}.Size()
		}
	}
	return n
}

// LeaveOut returns the derivations that a row cannot show if it may have so many bytes: none if all fit, else the
// largest, as many as it takes; of two of one size, the one whose name comes first. size returns the bytes of the row
// without some. ok is false if leaving out all is not enough.
func LeaveOut(all []Shown, most int, size func(left []string) int) (left []string, ok bool) {
	if size(nil) <= most {
		return nil, true
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s Shown) bool { return s.Bytes() == 0 })
	slices.SortFunc(all, func(a, b Shown) int {
		return cmp.Or(b.Bytes()-a.Bytes(), cmp.Compare(a.Derivation, b.Derivation))
	})
	for _, s := range all {
		left = append(left, s.Derivation)
		if size(left) <= most {
			slices.Sort(left)
			return left, true
		}
	}
	return left, false
}

// ShownTallies returns what a row shows of its tallies, given its ledger.
func ShownTallies(tallies []*model.Tally, ledger value.Item) (out []Shown) {
	attrs, _ := Published(tallies, ledger)
	for _, a := range attrs {
		at := slices.IndexFunc(tallies, func(t *model.Tally) bool { return t.Shows() && t.Attr == a.Name })
		out = append(out, Shown{tallies[at].Name, []value.Attr{a}})
	}
	return out
}

// Fitted returns the attributes of what a row shows, Missing for what is left out. FullMark goes with those of
// the whole row.
func Fitted(all []Shown, left []string) (attrs []value.Attr) {
	for _, s := range all {
		for _, a := range s.Attrs {
			if slices.Contains(left, s.Derivation) {
				a.Value = value.Value{}
			}
			attrs = append(attrs, a)
		}
	}
	return attrs
}

// FullMark returns the mark of a row that lacks what is left out, Missing if nothing is.
func FullMark(left []string) value.Attr {
	mark := value.Attr{Name: owntable.FullMark}
	if len(left) > 0 {
		mark.Value = value.OfBool(true)
	}
	return mark
}

// AsksRoom reports whether a change that did not raise the row's version leaves a row that lacks something,
// for which it may have room now.
func AsksRoom(c *Change) bool { return c.New.Has(owntable.FullMark) }
