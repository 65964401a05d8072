package scratch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Preview is the values that rows will show of a derivation when it is built.
type Preview struct {
	Derivation string    `json:"derivation"`
	Rows       int64     `json:"rows"`           // rows, or lists of subscribers, that were compared
	Differ     int64     `json:"differ"`         // of these, those that will show something else
	Some       []Example `json:"some,omitempty"` // of these, the first ones by their keys
}

// Example is a row's value of a derivation, and its future value, as verify prints values.
type Example struct {
	Row  string `json:"row"`
	Is   string `json:"is"`
	Will string `json:"will"`
}

// Preview derives everything again, and returns the values that rows will show of some derivations, by name, with at most so many
// examples of each. Rows are read once.
func (v *Verify) Preview(ctx context.Context, of []string, examples int) (out []Preview, err error) {
	by := map[string]*Preview{}
	for _, name := range of {
		by[name] = &Preview{Derivation: name}
	}
	p, err := v.beginPass(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.removeFiles()) }()
	if err := p.deriveAndSort(ctx, func(r *reader) rows { return newShown(r, by) }, noUse); err != nil {
		return nil, err
	}
	var row shownRow
	end := func() {
		if to := by[row.derivation]; to != nil {
			to.compareRow(v.Model, &row, examples)
		}
	}
	err = eachSaid(p.all, func(d Said, said map[string]string) {
		if d.Derivation != row.derivation || d.Row != row.text {
			end()
			row = shownRow{derivation: d.Derivation, text: d.Row}
		}
		row.addPart(d.Part, said)
	})
	if err != nil {
		return nil, err
	}
	end()
	return seq.Map(slices.Sorted(maps.Keys(by)), func(name string) Preview { return *by[name] }), nil
}

// shown reads the values that rows show of some derivations, and which subscribers lists have. The parts of a row are attributes of one
// derivation, members of a set or places of subscribers.
type shown struct {
	*reader
	of map[string]string          // by a reader's name of a shown value, the derivation
	on map[*model.Entity][]string // the derivations that rows of an entity show, if there is anything to show
}

func newShown(r *reader, by map[string]*Preview) *shown {
	s := &shown{reader: r, of: map[string]string{}, on: map[*model.Entity][]string{}}
	into := map[string]string{} // by derivation
	for _, d := range r.Derivations() {
		into[d.Name] = d.Into
	}
	for _, f := range catalog.FootprintsOf(r.Model) {
		if by[f.Name] == nil {
			continue
		}
		on := into[f.Name]
		s.of[f.Name] = f.Name
		if f.Makes {
			s.of[on] = f.Name
		} else if e := r.Entity(on); e != nil {
			s.on[e] = append(s.on[e], f.Name)
		}
		for _, attr := range slices.Concat(f.Attrs, f.Covers) {
			s.of[on+"."+attr] = f.Name
		}
	}
	return s
}

// yieldRow yields the values of a row.
func (s *shown) yieldRow(t *model.Table, row value.Item, give func(Said, string)) {
	e := t.Classify(row)
	key, ok := t.KeyOf(row)
	if e == nil || !ok || e.IsHistory() || e.Derived && t.Expired(row, s.now) {
		return
	}
	text := runner.RowText(s.Model, store.Ref{Table: t.Name, Key: key})
	say := func(what, part, v string) {
		if name := s.of[what]; name != "" {
			give(Said{name, text, part, v}, s.sideName())
		}
	}
	if set := e.SetOf(); set != nil {
		if root, _, ok := e.LeafPath(key); ok {
			text = runner.RowText(s.Model, store.Ref{Table: t.Name, Key: root})
			for _, m := range elementTexts(row.Get(set.Attr)) {
				say(set.Name, m, m)
			}
		}
		return
	}
	for _, name := range s.on[e] {
		give(Said{name, text, "", ""}, met)
	}
	for _, name := range s.derived[e] {
		if v := row.Get(name); !v.IsMissing() && !isMade(e, name) {
			part := name
			if keepsLast(e, name) {
				part += keeps
			}
			say(e.Name+"."+name, part, runner.ValueText(v))
		}
	}
	if e.Derived {
		say(e.Name, "", s.ruleMade(e, row))
	}
}

// yieldOwn yields the values of a row of weir's own table about a list of subscribers.
func (s *shown) yieldOwn(row value.Item, give func(Said, string)) {
	parts := strings.SplitN(row.Get(owntable.Partition).Text(), "|", 3)
	if len(parts) < 3 || parts[0] != owntable.KindSubscribers {
		return
	}
	list, at := parts[2], row.Get(owntable.Sort).Text()
	rule, _, _ := strings.Cut(list, "<")
	if is := owntable.SubscriberFrom(row); s.of[rule] != "" && s.ledgersName(model.BuildSubscribers+rule) == parts[1] && owntable.IsEntry(at) && is.Says != nil {
		give(Said{rule, list, at, runner.ValueText(is.Raw)}, s.sideName())
	}
}

// name returns the derivation of a value that a reader calls so, and which of its parts that is.
func (s *shown) name(of string) (derivation, part string) {
	_, attr, _ := strings.Cut(of, ".")
	return cmp.Or(s.of[of], of), attr
}

// shownRow is the present and future values of one row, of one derivation.
type shownRow struct {
	derivation, text string
	is, will, same   int         // parts
	differ           []shownPart // the first of those that differ
	members          [2][]string // the names of the first that it shows, and will show
}

// shownPart is a part of a row; a text is Nothing if the row does not show it.
type shownPart struct{ name, is, will string }

// mostParts is how many parts of a row are kept, to be printed.
const mostParts = 1000

// addPart takes in a part. A part that the Engine could not show, or that keeps the value of a row that is gone, is not compared.
func (r *shownRow) addPart(part string, said map[string]string) {
	is, has := said[built]
	will, gets := said[wanted]
	_, lacks := said[lacking]
	switch {
	case !gets && (!has || lacks || strings.HasSuffix(part, keeps)):
		return
	case has && gets && is == will:
		r.same++
	case len(r.differ) < mostParts:
		if !has {
			is = Nothing
		}
		if !gets {
			will = Nothing
		}
		r.differ = append(r.differ, shownPart{part, is, will})
	}
	if has {
		r.is++
	}
	if gets {
		r.will++
	}
	for i, there := range []bool{has, gets} {
		if there && len(r.members[i]) < mostParts {
			r.members[i] = append(r.members[i], part)
		}
	}
}

// compareRow takes in a row.
func (p *Preview) compareRow(m *model.Model, r *shownRow, examples int) {
	p.Rows++
	if r.is == r.same && r.will == r.same {
		return
	}
	if p.Differ++; len(p.Some) == examples {
		return
	}
	is, will := r.describeChange(m)
	if m.HidesValuesOf(p.Derivation) {
		is, will = model.HiddenText, model.HiddenText
	}
	p.Some = append(p.Some, Example{r.text, is, will})
}

// describeChange describes present and future values, in the words of verify: how many subscribers a list has, the members of a set, or
// the values of the attributes that differ.
func (r *shownRow) describeChange(m *model.Model) (is, will string) {
	isList := slices.ContainsFunc(m.Rows, func(rule *model.RowRule) bool { return rule.Name == r.derivation && rule.Subscribers != nil })
	isSet := slices.ContainsFunc(m.Tallies, func(t *model.Tally) bool { return t.Name == r.derivation && t.IsSet() })
	switch {
	case isList:
		return fmt.Sprintf("%d subscribers", r.is), fmt.Sprintf("%d, of which %d are those", r.will, r.same)
	case isSet:
		return elementsText(r.members[0], r.is), elementsText(r.members[1], r.will)
	case len(r.differ) == 1:
		return r.differ[0].is, r.differ[0].will
	}
	var was, be []string
	for _, part := range r.differ {
		name, _, _ := strings.Cut(part.name, unsaid)
		was, be = append(was, attrText(name, part.is)...), append(be, attrText(name, part.will)...)
	}
	return "{" + strings.Join(was, ",") + "}", "{" + strings.Join(be, ",") + "}"
}

// attrText is an attribute with its value, none if it has none.
func attrText(name, v string) []string {
	if v == Nothing {
		return nil
	}
	return []string{fmt.Sprintf("%q:%s", name, v)}
}

// elementsText lists the first of n members.
func elementsText(some []string, n int) string {
	switch {
	case n == 0:
		return Nothing
	case n > len(some):
		some = append(some[:len(some):len(some)], fmt.Sprintf("and %d more", n-len(some)))
	}
	return "[" + strings.Join(some, ",") + "]"
}
