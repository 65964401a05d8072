package verify

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/projections"
	"weir/internal/value"
)

// told holds the recounted facts of all rows, by list and name.
type told map[string]*list

type list struct {
	names []string
	told  map[string]value.Item
	seen  map[string]bool // stands in our table
}

// add adds facts. A later fact with the same list and name replaces the earlier one.
func (t told) add(facts []projections.Fact) {
	for _, f := range facts {
		l := t[f.List]
		if l == nil {
			l = &list{told: map[string]value.Item{}, seen: map[string]bool{}}
			t[f.List] = l
		}
		if _, twice := l.told[f.Name]; !twice {
			l.names = append(l.names, f.Name)
		}
		l.told[f.Name] = f.Told
	}
}

// sort sorts the names of each list. Call it after the last add and before Each.
func (t told) sort() {
	for _, l := range t {
		slices.Sort(l.names)
	}
}

// Each yields the facts of a list from memory.
func (t told) Each(of string, part projections.Names, yield func(string, value.Item) bool) error {
	l := t[of]
	if l == nil {
		return nil
	}
	from, _ := slices.BinarySearch(l.names, max(part.Begins, part.From))
	for _, name := range l.names[from:] {
		if !strings.HasPrefix(name, part.Begins) || !yield(name, l.told[name]) {
			break
		}
	}
	return nil
}

// Get returns the facts of a list with the given names.
func (t told) Get(of string, names []string) ([]value.Item, error) {
	out := make([]value.Item, len(names))
	if l := t[of]; l != nil {
		for i, name := range names {
			out[i] = l.told[name]
		}
	}
	return out, nil
}

// moved compares a row's status with the one that the recounted facts give.
func (v *Verify) moved(f *found) error {
	if f.Is == nil || len(f.Is.Steps) == 0 {
		return nil
	}
	want, err := projections.Look(f.Is, f.Row, f.New, v.told)
	var many *projections.TooMany
	if errors.As(err, &many) {
		v.differs(many.Steps, rowText(v.Model, f.Row), err.Error(), "parked", What{})
		return nil
	}
	if err != nil {
		return err
	}
	for _, s := range f.Is.Steps {
		for _, name := range s.Attributes() {
			v.check(s.Name+" "+name, f.Row, want.Get(name), f.New.Get(name), What{Kind: Shown, Row: f.Row})
		}
	}
	return nil
}

// fact compares a fact in the own table with the recounted one.
func (v *Verify) fact(of string, row value.Item) {
	v.Checked++
	name, have := row.Get(book.Sort).Text(), row.Get(book.Told)
	l := v.told[of]
	want := value.Value{}
	if l != nil && l.told[name] != nil {
		want, l.seen[name] = value.OfMap(l.told[name]), true
	}
	if want.IsMissing() != have.IsMissing() || !value.EqualItems(orEmpty(want.Item()), orEmpty(have.Item())) {
		v.differs("told", of+" "+name, text(want), text(have), What{Kind: Told, List: of, Name: name})
	}
}

func orEmpty(it value.Item) value.Item {
	if it == nil {
		return value.Item{}
	}
	return it
}

// untold yields the recounted facts that the own table lacks.
func (v *Verify) untold() {
	for _, of := range slices.Sorted(maps.Keys(v.told)) {
		l := v.told[of]
		for _, name := range l.names {
			if !l.seen[name] {
				v.differs("told", of+" "+name, text(value.OfMap(l.told[name])), text(value.Value{}), What{Kind: Told, List: of, Name: name})
			}
		}
	}
}
