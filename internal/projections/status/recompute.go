package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Facts gives access to the reports of rows about statuses: in our own table for the
// runner, in memory for a recount.
type Facts interface {
	// Each yields the facts of a list whose names are in names, ordered by name, until
	// yield returns false.
	Each(list string, names Names, yield func(name string, told value.Item) bool) error
	// Get reads facts by name; the result is nil at the index of a fact that does not
	// exist.
	Get(list string, names []string) ([]value.Item, error)
	// First returns the first fact of a list of rows that take part in a latest, nil for none.
	First(list string, l *model.Latest) (value.Item, error)
}

// Names selects the names in a list that begin with Begins and are not below From. Page
// is the size of the first page; each further page is larger than the one before.
type Names struct {
	Begins, From string
	Page         int
}

// TooMany says that a stage of a status cannot be computed, because there are more rows or list
// elements to check than the model allows (max).
type TooMany struct {
	Status, Word string
	What         string
	Max          int
}

// String is the text of the dead letter.
func (t *TooMany) String() string {
	return fmt.Sprintf("%s %s: there are more than %d %s, the max of this step", t.Status, t.Word, t.Max, t.What)
}

// CannotCompute says which stages of a row's statuses cannot be computed, "" for none. The text
// stays the same when other rows reach them.
func CannotCompute(many []*TooMany) string {
	if len(many) == 0 {
		return ""
	}
	return strings.Join(seq.Map(many, (*TooMany).String), "; ") + "; all else of the row is right"
}

// Recompute recomputes the values that a row shows of facts, and returns the row with them and the stages that cannot be computed. A
// status moves as far as the facts reach, and never below the application's value. A stage
// with more rows or elements than its max stops no other one. Its word is reached if one row is
// enough for it, and else not, and the attributes that it sets are as the application wrote them.
func Recompute(e *model.Entity, target store.Ref, row value.Item, known Facts) (want value.Item, many []*TooMany, err error) {
	own := projections.OwnRow(e, row)
	var shown []value.Attr
	for _, s := range e.Statuses {
		at := s.Attr.Rank(own.Get(s.Attr.Name))
		stages := s.Stages
		if !s.Input.Uses(own) {
			stages = nil // a dead letter says why
		}
		for _, st := range stages {
			r := &reach{Stage: st, known: known, list: FactsOf(s, target)}
			reached, err := r.isReached(own)
			if err != nil {
				return nil, nil, err
			}
			if r.over != nil {
				many = append(many, r.over)
			}
			if !reached {
				continue
			}
			for _, name := range st.Set {
				shown = append(shown, value.Attr{Name: name.Name, Value: r.latest.Get(name.Name)})
			}
			if st.Rank > at { // of several words the last one
				at = st.Rank
				shown = append(shown, value.Attr{Name: s.Attr.Name, Value: value.OfString(st.Word)})
			}
		}
	}
	latest, err := latestOf(e, target, known)
	var alone []value.Attr
	for _, a := range latest {
		if e.Attribute(a.Name) == nil { // else the application's own value shows where there is none
			alone = append(alone, a)
		} else {
			shown = append(shown, a)
		}
	}
	want = projections.WriteOver(own, value.NewItem(shown...))
	return projections.AlsoNoted(e, want, row).With(alone...), many, err
}

// reach computes whether a row has reached one word (stage) of a status.
type reach struct {
	*model.Stage
	known  Facts
	list   string
	latest value.Item // the latest row's values of the attributes that the stage sets
	over   *TooMany   // set if there are too many rows or elements; nothing is then latest
}

// isReached reports whether the row, as the application wrote it, has reached the word.
// Without a list in the stage, one row that reaches the word is enough. Otherwise each
// element of the list needs such a row.
func (r *reach) isReached(own value.Item) (bool, error) {
	if r.Stage.List == nil {
		return r.isReachedByAny()
	}
	if o := othersOf(r.Stage, own); o != nil {
		return r.isReachedByGroup(o, own)
	}
	var names []string
	for _, el := range own.Get(r.Stage.List.Name).Elements() {
		if text := value.Scalar(el.Value); text != "" { // other elements name no row
			names = append(names, owntable.ReachedFact(r.Word, text))
		}
	}
	if r.Max > 0 && len(names) > r.Max {
		r.tooMany("elements in " + r.Stage.List.Name)
		return false, nil
	}
	return r.isReachedByAll(names)
}

// tooMany notes that the stage is over its max. Which row is the latest is then not known.
func (r *reach) tooMany(what string) {
	r.over, r.latest = &TooMany{Status: r.Status.Name, Word: r.Word, What: what, Max: r.Max}, nil
}

// isReachedByAny reports whether some row reaches the word. If the stage takes values from such
// rows, it reads all of them; otherwise one is enough.
func (r *reach) isReachedByAny() (bool, error) {
	n, page, all := 0, pageOne, r.Max > 0 || len(r.Stage.Set) > 0
	if all {
		page = pageFirst
	}
	err := r.known.Each(r.list, Names{Begins: owntable.Reaching(r.Word), Page: page}, func(_ string, told value.Item) bool {
		r.keepTold(told)
		n++
		return all && (r.Max == 0 || n <= r.Max)
	})
	if r.Max > 0 && n > r.Max {
		r.tooMany("rows of " + r.Source.Name)
	}
	return n > 0, err
}

// A list may have any length. The list's names and the names of the rows that reach the
// word have the same order, so both are read side by side, in pieces that double in size.
// The first name without a row ends the search, usually in the first piece. A list in
// which every name has a row is read in few large pages.
const (
	pageOne   = 8 // where one row is enough: they fit one read unit
	pageFirst = 50
	pageMost  = 6400
	fewNames  = 100 // up to here, read by name; this skips rows for names outside the list
)

// isReachedByGroup reports whether each member of the row's group has a row that reaches the word.
// It reads in pieces that grow, and stops at the first member without a row. An empty list reaches
// nothing.
func (r *reach) isReachedByGroup(o *model.Others, own value.Item) (bool, error) {
	list, ok := OthersOf(o, own)
	if !ok {
		return false, nil
	}
	var names []string
	n, all, piece := 0, true, pageFirst
	var failed error
	err := r.known.Each(list, Names{Begins: owntable.MembersBegin, Page: pageFirst}, func(name string, _ value.Item) bool {
		names = append(names, owntable.Reaching(r.Word)+strings.TrimPrefix(name, owntable.MembersBegin))
		switch n++; {
		case r.Max > 0 && n > r.Max:
			r.tooMany("rows of " + o.Of.Name)
		case r.Max == 0 && len(names) == piece:
			all, failed = r.isReachedBySorted(names)
			names, piece = names[:0], min(2*piece, pageMost)
		}
		return all && failed == nil && r.over == nil
	})
	if err == nil {
		err = failed
	}
	switch {
	case err != nil || !all || n == 0 || r.over != nil:
		return false, err
	case len(names) == 0:
		return true, nil
	case n <= fewNames:
		return r.byName(names)
	}
	return r.isReachedBySorted(names)
}

// isReachedByAll reports whether each name has a row that reaches the word. It is false without
// names.
func (r *reach) isReachedByAll(names []string) (bool, error) {
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case len(names) == 0:
		return false, nil
	case len(names) <= fewNames:
		return r.byName(names)
	}
	for piece := pageFirst; len(names) > 0; piece = min(2*piece, pageMost) {
		some := names[:min(piece, len(names))]
		names = names[len(some):]
		if all, err := r.isReachedBySorted(some); err != nil || !all {
			return false, err
		}
	}
	return true, nil
}

// isReachedBySorted reports whether each name has a row that reaches the word. names must be sorted;
// it reads the rows that reach the word in the same order.
func (r *reach) isReachedBySorted(names []string) (bool, error) {
	i := 0
	err := r.known.Each(r.list, Names{Begins: owntable.Reaching(r.Word), From: names[0], Page: len(names)}, func(name string, told value.Item) bool {
		if name == names[i] {
			r.keepTold(told)
			i++
			return i < len(names)
		}
		return name < names[i] // else there is none for names[i]
	})
	return i == len(names), err
}

// byName reports whether each name has a row that reaches the word. It reads the rows by
// key.
func (r *reach) byName(names []string) (bool, error) {
	told, err := r.known.Get(r.list, names)
	if err != nil {
		return false, err
	}
	for _, t := range told {
		if t == nil {
			return false, nil
		}
		r.keepTold(t)
	}
	return true, nil
}

// keepTold keeps the report of the latest row. All attributes are of that one row: an attribute
// that it lacks is absent. The first attribute of the stage's set says which row is the
// latest, and each further one decides where those before are the same. The order in which
// rows are read makes no difference.
func (r *reach) keepTold(told value.Item) {
	for i := range r.Set {
		name := r.Set[i].Name
		if c := CompareValues(told.Get(name), r.latest.Get(name)); c != 0 {
			if c > 0 {
				r.latest = told
			}
			return
		}
	}
}

// CompareValues compares two values of different rows, and is 0 only for equal ones. Times come after
// all other texts, in the order of their instants.
func CompareValues(a, b value.Value) int {
	if a.Kind() != b.Kind() {
		return cmp.Compare(a.Kind(), b.Kind())
	}
	if c, ok := value.CompareTimes(a, b); ok {
		return cmp.Or(c, value.Compare(a, b))
	}
	return cmp.Or(cmp.Compare(isTime(a), isTime(b)), value.Compare(a, b))
}

// isTime is 1 for a time, so that times sort after all other values.
func isTime(v value.Value) int {
	if _, ok := value.CompareTimes(v, v); ok {
		return 1
	}
	return 0
}
