package status

import (
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/value"
)

// Derives returns the attributes that the statuses and the latest of an entity write.
func (Kind) Derives(e *model.Entity) (attrs []string) {
	for _, s := range e.Statuses {
		attrs = append(attrs, s.Attributes()...)
	}
	for _, l := range e.Latest {
		attrs = append(attrs, l.Attributes()...)
	}
	return attrs
}

// Explain returns the kind's part in explaining a value.
func (k Kind) Explain(of *runner.Asked) runner.Explanation {
	if !slices.Contains(k.Derives(of.Entity), of.Attr) {
		return runner.BaseExplanation{}
	}
	latest := slices.ContainsFunc(of.Entity.Latest, func(l *model.Latest) bool { return slices.Contains(l.Attributes(), of.Attr) })
	return &explanation{Asked: of, latest: latest, lists: map[string]bool{}, others: map[string]map[string]bool{}}
}

// explanation remembers the members of every group, because only a later record may say
// on which group the asked row depends.
type explanation struct {
	runner.BaseExplanation
	*runner.Asked
	latest bool                       // the value is of the latest of rows, of no status
	lists  map[string]bool            // the groups that the row depends on
	others map[string]map[string]bool // the members of each group
}

// Parts says which facts of the row, and which members of its group, a change reports.
// A change that says nothing of this row gives none.
func (x *explanation) Parts(c *projections.Change) (out []string) {
	for _, f := range Fold(c, nil) {
		switch {
		case f.All:
			if x.member(f.List, owntable.RowText(c.Row)); x.lists[f.List] {
				out = append(out, "among the others: "+told(&f))
			}
		case f.Entity != x.Entity || !projections.SameRow(f.Target, x.Row):
		case f.Latest != nil:
			if slices.Contains(f.Latest.Attributes(), x.Attr) {
				out = append(out, takes(&f))
			}
		case x.latest:
		case owntable.IsTarget(f.Name):
			x.lists[f.List] = true // depends on this group, at one time at least
		default:
			out = append(out, told(&f))
		}
	}
	return out
}

// member notes that a row is on a list.
func (x *explanation) member(list, row string) {
	if x.others[list] == nil {
		x.others[list] = map[string]bool{}
	}
	x.others[list][row] = true
}

// Behind reports whether a row is a member of a group that the asked row depends on.
func (x *explanation) Behind(row string) bool {
	for list := range x.lists {
		if x.others[list][row] {
			return true
		}
	}
	return false
}

// takes says that a row takes part in a latest, and what the target shows if it comes first.
func takes(f *Fact) string {
	if f.Says == nil {
		return "no longer takes part"
	}
	return "takes part: " + string(value.AppendPlainItem(nil, f.Says))
}

// told says a fact for people: the stage, and the values that it brings.
func told(f *Fact) string {
	word := ""
	if !f.All {
		word, _, _ = strings.Cut(f.Name, "|")
	}
	switch {
	case f.Says == nil:
		return strings.TrimSpace("no longer " + word)
	case len(f.Says) == 0:
		return word
	}
	return strings.TrimSpace(word + " " + string(value.AppendPlainItem(nil, f.Says)))
}
