package why

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/aggregate"
	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/set"
	"weir/internal/projections/tally"
	"weir/internal/value"
)

// parts returns what a change adds to the value, as texts for people.
func (w *Why) parts(c *projections.Change) []string {
	e := projections.Fold(c)
	var out []string
	out = append(out, w.added(adds(c))...)
	for _, p := range e.Puts {
		if p.Rule.Into == w.Entity && projections.SameRow(p.Row, w.Target) {
			out = append(out, w.made(&p)...)
		}
	}
	for _, s := range e.Spreads {
		if w.follows[book.RowText(s.Source)] && w.follow(s.Field) {
			switch {
			case !s.Gone:
				out = append(out, s.Entity.Name+"."+s.Field+" = "+plain(s.Value))
			case !w.keepsLast(s.Field):
				out = append(out, s.Entity.Name+"."+s.Field+" is gone with its row")
			}
		}
	}
	for _, f := range e.Facts {
		switch {
		case !w.isStep():
		case f.All && w.lists[f.List]:
			out = append(out, "among the others: "+told(&f))
		case f.Entity != w.Entity || !projections.SameRow(f.Target, w.Target):
		case strings.HasPrefix(f.Name, book.TargetsBegin):
			w.lists[f.List] = true // goes by the others of this list, at one time at least
		case !f.All:
			out = append(out, told(&f))
		}
	}
	for _, t := range e.Tells {
		if t.Rule.Into == w.Entity && w.agrees(t.Fields) {
			out = append(out, "notifies the subscribers in "+t.List)
		}
	}
	if projections.SameRow(c.Row, w.Target) && !projections.IsDerived(w.Entity, w.Attr) {
		if was, is := c.Old.Get(w.Attr), c.New.Get(w.Attr); !value.Equal(was, is) {
			out = append(out, w.Attr+" = "+plain(is))
		}
	}
	return out
}

// added returns the amounts that are added to the accumulators behind the attribute.
func (w *Why) added(adds []projections.Add) []string {
	var sums value.Item
	for _, a := range adds {
		if a.Entity == w.Entity && projections.SameRow(a.Target, w.Target) {
			sums = append(sums, value.Attr{Name: a.Field, Value: a.Amount})
		}
	}
	return aggregate.Explain(w.Attr, sums)
}

// made describes a derived row that is written or removed, as far as the attribute is
// concerned.
func (w *Why) made(p *projections.Put) []string {
	for _, f := range p.Follows {
		if f.Attr == w.Attr {
			w.follows[book.RowText(f.Of)] = true
		}
	}
	switch {
	case p.Image == nil:
		return []string{"the row goes"}
	case p.Image.Has(w.Attr):
		return []string{w.Attr + " = " + plain(p.Image.Get(w.Attr))}
	}
	return []string{"the row is made"}
}

// keepsLast reports whether the attribute keeps the last value of a field of this name.
func (w *Why) keepsLast(field string) bool {
	return slices.ContainsFunc(w.following(field), func(f *model.Follow) bool { return f.Keep })
}

// follow reports whether the attribute follows a field of this name.
func (w *Why) follow(field string) bool { return len(w.following(field)) > 0 }

// following returns the rules by which the attribute follows fields of this name.
func (w *Why) following(field string) (out []*model.Follow) {
	for _, r := range w.Entity.MadeBy {
		for i := range r.Fields {
			if f := r.Fields[i].Expr.Follow; f != nil && f.Attr == w.Attr && f.Field.Name == field {
				out = append(out, f)
			}
		}
	}
	return out
}

// isStep reports whether a status writes the attribute.
func (w *Why) isStep() bool {
	for _, s := range w.Entity.Steps {
		for _, name := range s.Attributes() {
			if name == w.Attr {
				return true
			}
		}
	}
	return false
}

func told(f *projections.Fact) string {
	word := ""
	if !f.All {
		word, _, _ = strings.Cut(f.Name, "|")
	}
	switch {
	case f.Told == nil:
		return strings.TrimSpace("no longer " + word)
	case len(f.Told) == 0:
		return word
	}
	return strings.TrimSpace(word + " " + string(value.AppendPlainItem(nil, f.Told)))
}

// agrees reports whether a fact could concern the target: the names that both have must have
// equal values.
func (w *Why) agrees(fields value.Item) bool {
	for _, a := range fields {
		if v, named := w.names[a.Name]; named && value.Scalar(v) != value.Scalar(a.Value) && v.Text() != w.keys[a.Name].Escape(value.Scalar(a.Value)) {
			return false
		}
	}
	return true
}

// value returns the attribute's value after a change, "" if the records so far do not
// determine it.
func (w *Why) value(c *projections.Change) string {
	for _, a := range adds(c) {
		if a.Entity != w.Entity || !projections.SameRow(a.Target, w.Target) {
			continue
		}
		if sum, err := value.AddNumbers(w.book.Get(a.Field), a.Amount); err == nil { // not in 10^15 rows
			w.book = w.book.With(value.Attr{Name: a.Field, Value: sum})
		}
	}
	if set := w.Entity.SetOf(); set != nil && set.Attr == w.Attr {
		return w.members()
	}
	attrs, cannot := projections.Published(w.Entity, w.book)
	for i := range cannot {
		if cannot[i].Tally.Attr == w.Attr {
			return cannot[i].String()
		}
	}
	for _, a := range attrs {
		if a.Name == w.Attr {
			return plain(a.Value)
		}
	}
	return ""
}

// members returns the size of the set, as text.
func (w *Why) members() string {
	n := 0
	for _, a := range w.book {
		if a.Value.Sign() > 0 {
			n++
		}
	}
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

// plain returns a value as JSON, or "nothing" if it is Missing.
func plain(v value.Value) string {
	if v.IsMissing() {
		return "nothing"
	}
	return string(value.AppendPlain(nil, v))
}

// adds returns what a change adds to ledgers and sets.
func adds(c *projections.Change) []projections.Add {
	var f projections.Faults
	return slices.Concat(tally.Fold(c, &f), set.Fold(c, &f))
}
