package projections

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Unwrap: it can never succeed as it is.
func (e *TooMany) Unwrap() error { return store.ErrRefused }

// Facts is what is known: in our own table for the runner, in memory for a
// recount.
type Facts interface {
	// Each yields what is told under the names of a list, in their order, until yield
	// answers false.
	Each(list string, names Names, yield func(name string, told value.Item) bool) error
	// Get reads by name; nil where nothing is told.
	Get(list string, names []string) ([]value.Item, error)
}

// Names are a part of a list's names: those that begin so, from one on. Page is how
// many are read first; whoever goes on reads ever more at once.
type Names struct {
	Begins, From string
	Page         int
}

// TooMany says that a step of a target cannot be told, since there is more to look
// at than its model allows.
type TooMany struct {
	Steps, Word string
	What        string
	Max         int
}

func (e *TooMany) Error() string {
	return fmt.Sprintf("%s %s: there are more than %d %s, the max of this step", e.Steps, e.Word, e.Max, e.What)
}

// Look is the row as its steps have it, by all that is known: moved as far as the
// facts reach, and no less far than the application says.
func Look(e *model.Entity, target store.Ref, row value.Item, known Facts) (value.Item, error) {
	own := Own(e, row)
	var shown []value.Attr
	for _, s := range e.Steps {
		at := s.RankOf(own.Get(s.Attr.Name))
		for _, st := range s.Stages {
			r := &reach{Stage: st, known: known, list: FactsOf(s, target)}
			reached, err := r.look(own)
			if err != nil {
				return nil, err
			}
			if !reached {
				continue
			}
			for _, name := range st.Set {
				shown = append(shown, value.Attr{Name: name.Name, Value: r.latest.Get(name.Name)})
			}
			if st.Rank > at {
				at = st.Rank
				shown = append(shown, value.Attr{Name: s.Attr.Name, Value: value.OfString(st.Word)})
			}
		}
	}
	return Over(e, own, value.NewItem(shown...)), nil // of several words the last one
}

// reach is the look for one word.
type reach struct {
	*model.Stage
	known  Facts
	list   string
	latest value.Item // of each attribute that the stage sets
}

func (r *reach) look(own value.Item) (bool, error) {
	if r.Stage.Each == nil {
		return r.any()
	}
	if o := othersOf(r.Stage, own); o != nil {
		return r.others(o, own)
	}
	var names []string
	for _, el := range own.Get(r.Stage.Each.Name).Elements() {
		if text := value.Scalar(el.Value); text != "" { // anything else names nobody
			names = append(names, book.Reached(r.Word, text))
		}
	}
	if r.Max > 0 && len(names) > r.Max {
		return false, r.tooMany("elements in " + r.Stage.Each.Name)
	}
	return r.whole(names)
}

func (r *reach) tooMany(what string) error {
	return &TooMany{Steps: r.Steps.Name, Word: r.Word, What: what, Max: r.Max}
}

// any looks for rows that reach the word. Where nothing is taken from them one is enough.
func (r *reach) any() (bool, error) {
	n := 0
	err := r.known.Each(r.list, Names{Begins: book.Reaching(r.Word), Page: pageFirst}, func(_ string, told value.Item) bool {
		r.count(told)
		n++
		return r.Max == 0 && len(r.Stage.Set) > 0 || r.Max > 0 && n <= r.Max
	})
	if err == nil && r.Max > 0 && n > r.Max {
		err = r.tooMany("rows of " + r.Source.Name)
	}
	return n > 0, err
}

// A list may be of any length. Its names and those of the rows that reach the word are
// in the same order, so both are read side by side, in pieces that double: the first
// that is missing ends it, mostly in the first piece, and what is read of a list of
// which nobody is missing is read in few and large pages.
const (
	pageFirst = 50
	pageMost  = 6400
	fewNames  = 100 // read by name, so that rows for nobody in the list cost nothing
)

// others looks for a row for each of the others, as far as there is one.
func (r *reach) others(o *model.Others, own value.Item) (bool, error) {
	list, ok := OthersOf(o, own)
	if !ok {
		return false, nil
	}
	var names []string
	n, all, piece := 0, true, pageFirst
	var failed error
	err := r.known.Each(list, Names{Begins: book.OthersBegin, Page: pageFirst}, func(name string, _ value.Item) bool {
		names = append(names, book.Reaching(r.Word)+strings.TrimPrefix(name, book.OthersBegin))
		switch n++; {
		case r.Max > 0 && n > r.Max:
			failed = r.tooMany("rows of " + o.Of.Name)
		case r.Max == 0 && len(names) == piece:
			all, failed = r.beside(names)
			names, piece = names[:0], min(2*piece, pageMost)
		}
		return all && failed == nil
	})
	if err == nil {
		err = failed
	}
	switch {
	case err != nil || !all || n == 0:
		return false, err
	case len(names) == 0:
		return true, nil
	case n <= fewNames:
		return r.byName(names)
	}
	return r.beside(names)
}

// whole looks for a row for each name, of which there has to be one.
func (r *reach) whole(names []string) (bool, error) {
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
		if all, err := r.beside(some); err != nil || !all {
			return false, err
		}
	}
	return true, nil
}

// beside looks for a row for each name, in the order of names, among all that reach
// the word.
func (r *reach) beside(names []string) (bool, error) {
	i := 0
	err := r.known.Each(r.list, Names{Begins: book.Reaching(r.Word), From: names[0], Page: len(names)}, func(name string, told value.Item) bool {
		if name == names[i] {
			r.count(told)
			i++
			return i < len(names)
		}
		return name < names[i] // else there is none for names[i]
	})
	return i == len(names), err
}

// byName looks for a row for each name.
func (r *reach) byName(names []string) (bool, error) {
	told, err := r.known.Get(r.list, names)
	if err != nil {
		return false, err
	}
	for _, t := range told {
		if t == nil {
			return false, nil
		}
		r.count(t)
	}
	return true, nil
}

// count takes over what is later than what was told before.
func (r *reach) count(told value.Item) {
	for _, a := range told {
		if later(a.Value, r.latest.Get(a.Name)) {
			r.latest = r.latest.With(a)
		}
	}
}

// later orders what rows tell: times by when they are, and everything, so that the
// order in which rows are looked at makes no difference.
func later(a, b value.Value) bool {
	s, errS := time.Parse(time.RFC3339, a.Text())
	t, errT := time.Parse(time.RFC3339, b.Text())
	if errS == nil && errT == nil && !s.Equal(t) {
		return s.After(t)
	}
	if a.Kind() != b.Kind() {
		return a.Kind() > b.Kind()
	}
	return value.Compare(a, b) > 0
}
