package status

import (
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/value"
)

// preview says which rows will have another status, or another latest of rows. It holds the facts of all rows; of too many
// it says nothing.
type preview struct {
	runner.BasePreview
	*runner.Previewing
	of    []shownOf // those that are new or changed
	facts facts
	held  int
}

// shownOf is a status or a latest, and the attributes in which rows show it.
type shownOf struct {
	name  string
	attrs []string
}

// Preview returns the kind's part in a dry run.
func (Kind) Preview(p *runner.Previewing) runner.Preview {
	v := &preview{Previewing: p, facts: facts{}}
	if p.Entity == nil {
		return v
	}
	for _, s := range p.Entity.Statuses {
		if p.Says.Tells(s.Name) {
			v.of = append(v.of, shownOf{s.Name, s.Attributes()})
		}
	}
	for _, l := range p.Entity.Latest {
		if p.Says.Tells(l.Name) {
			v.of = append(v.of, shownOf{l.Name, l.Attributes()})
		}
	}
	return v
}

// Add takes in the facts of a row.
func (v *preview) Add(row *projections.Change) {
	if len(v.of) > 0 && v.held <= runner.PreviewValues {
		for _, f := range Fold(row, nil) {
			v.held += 1 + f.Says.Size()/256 // what is shown of a row may be long
			v.facts.add(f)
		}
	}
}

// Compare compares the statuses of a row.
// Beyond runner.PreviewValues facts nothing is compared.
func (v *preview) Compare(row *projections.Change) error {
	if row.Is != v.Entity || len(v.of) == 0 || v.held > runner.PreviewValues {
		return nil
	}
	want, _, err := Recompute(row.Is, row.Row, row.New, v.facts)
	if err != nil {
		return err
	}
	for _, s := range v.of {
		var is, will value.Item
		for _, name := range s.attrs {
			if have, be := row.New.Get(name), want.Get(name); !value.Equal(have, be) {
				is, will = append(is, value.Attr{Name: name, Value: have}), append(will, value.Attr{Name: name, Value: be})
			}
		}
		if len(is) == 1 {
			v.Row(s.name, row.Row, is[0].Value, will[0].Value)
		} else {
			v.Row(s.name, row.Row, value.OfMap(value.NewItem(is...)), value.OfMap(value.NewItem(will...)))
		}
	}
	return nil
}

// facts are Facts in memory, by the name of their list.
type facts map[string]*list

// list holds the facts of one list.
type list struct {
	names []string
	said  map[string]value.Item
	sort  bool // names are not sorted
}

// add adds a fact. A later one with the same list and name replaces the earlier one.
func (fs facts) add(f Fact) {
	l := fs[f.List]
	if l == nil {
		l = &list{said: map[string]value.Item{}}
		fs[f.List] = l
	}
	if _, twice := l.said[f.Name]; !twice {
		l.names, l.sort = append(l.names, f.Name), true
	}
	l.said[f.Name] = f.Says
}

// sorted returns the names of a list, in order.
func (fs facts) sorted(of string) []string {
	l := fs[of]
	if l == nil {
		return nil
	}
	if l.sort {
		slices.Sort(l.names)
		l.sort = false
	}
	return l.names
}

// Each yields the facts of a list in the order of their names, until yield returns false.
func (fs facts) Each(of string, part Names, yield func(string, value.Item) bool) error {
	names := fs.sorted(of)
	from, _ := slices.BinarySearch(names, max(part.Begins, part.From))
	for _, name := range names[from:] {
		if !strings.HasPrefix(name, part.Begins) || !yield(name, fs[of].said[name]) {
			break
		}
	}
	return nil
}

// Get returns the facts of a list with the given names.
func (fs facts) Get(of string, names []string) ([]value.Item, error) {
	out := make([]value.Item, len(names))
	if l := fs[of]; l != nil {
		for i, name := range names {
			out[i] = l.said[name]
		}
	}
	return out, nil
}

// First returns the first fact of a list.
func (fs facts) First(of string, _ *model.Latest) (value.Item, error) {
	if names := fs.sorted(of); len(names) > 0 {
		return fs[of].said[names[0]], nil
	}
	return nil, nil
}
