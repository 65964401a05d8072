package projections

import (
	"fmt"
	"slices"
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
	// Each yields what is told under names that begin so, in the order of the
	// names, until yield answers false.
	Each(list, begins string, yield func(told value.Item) bool) error
	// Get reads by name; nil where nothing is told.
	Get(list string, names []string) ([]value.Item, error)
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
	elements := own.Get(r.Stage.Each.Name).Elements()
	if len(elements) > r.Max {
		return false, r.tooMany("elements in " + r.Stage.Each.Name)
	}
	var who []string
	for _, el := range elements {
		if text := model.Scalar(el.Value); text != "" { // anything else names nobody
			who = append(who, text)
		}
	}
	ok, err := r.all(who)
	return ok && len(who) > 0, err
}

func (r *reach) tooMany(what string) error {
	return &TooMany{Steps: r.Steps.Name, Word: r.Word, What: what, Max: r.Max}
}

// any looks for rows that reach the word.
func (r *reach) any() (bool, error) {
	n := 0
	err := r.known.Each(r.list, book.Reaching(r.Word), func(told value.Item) bool {
		r.count(told)
		n++
		return n <= r.Max
	})
	if err == nil && n > r.Max {
		err = r.tooMany("rows of " + r.Source.Name)
	}
	return n > 0, err
}

// atOnce is how many are looked for in one read: the first who is missing ends it.
const atOnce = 100

// others looks for a row for each of the others, as far as there is one.
func (r *reach) others(o *model.Others, own value.Item) (bool, error) {
	list, ok := OthersOf(o, own)
	if !ok {
		return false, nil
	}
	var who []string
	n, all := 0, true
	var failed error
	err := r.known.Each(list, book.OthersBegin, func(told value.Item) bool {
		if n++; n > r.Max {
			failed = r.tooMany("rows of " + o.Of.Name)
			return false
		}
		if who = append(who, model.Scalar(told.Get(whoAttr))); len(who) == atOnce {
			all, failed = r.all(who)
			who = who[:0]
		}
		return all && failed == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil || !all || n == 0 {
		return false, err
	}
	return r.all(who)
}

// all looks for a row for each.
func (r *reach) all(who []string) (bool, error) {
	for len(who) > 0 {
		some := who[:min(atOnce, len(who))]
		who = who[len(some):]
		names := make([]string, len(some))
		for i, w := range some {
			names[i] = book.Reached(r.Word, w)
		}
		slices.Sort(names)
		told, err := r.known.Get(r.list, slices.Compact(names))
		if err != nil {
			return false, err
		}
		for _, t := range told {
			if t == nil {
				return false, nil
			}
			r.count(t)
		}
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
