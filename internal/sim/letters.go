package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// discardSome discards letters about records of which several derivations can use nothing, one by one, down to
// some or none. It is the end of a run.
func (w *world) discardSome() {
	for i, d := range w.kept() {
		if len(w.failures) > 0 {
			return
		}
		if d.Kind != string(runner.DeadImage) || newDice(w.seed, "discard", i).chance(0.2) {
			continue
		}
		err := w.alone("discard "+d.ID, func(r *runner.Runner) error { return r.Discard(context.Background(), d.ID) })
		if err != nil {
			w.fail(Stuck, "dead letter: %s cannot be discarded: %v", d.ID, err)
		}
		w.lettersHave()
	}
}

// lettersHave checks that each dead letter has its record, and each record that is kept a letter: a record that
// letters name is counted as often as they name it.
func (w *world) lettersHave() {
	type record struct{ model, name string }
	named, parts := map[record]int64{}, map[record]int{}
	counts := map[record]int64{}
	have := map[record][]string{} // the parts that were found
	w.base.tables[owntable.TableName].each(func(k store.Key, row value.Item) {
		kind, rest, _ := strings.Cut(k.Partition.Text(), "|")
		switch {
		case kind == owntable.KindDead:
			l := owntable.LetterFrom(row)
			r := record{rest, l.ID}
			if parts[r] = l.Parts; l.Shared != "" {
				r.name = l.Shared
				parts[r] = l.SharedParts
				named[r]++
			}
		case kind == owntable.KindDeadPart:
			i := strings.LastIndexByte(rest, '|')
			r := record{rest[:i], rest[i+1:]}
			if n, ok := owntable.SharedCount(row); ok {
				counts[r] = n
			} else {
				have[r] = append(have[r], k.Sort.Text())
			}
		}
	})
	for r, n := range named {
		if w.counted["letters with a record of its own rows"]++; n > 1 {
			w.counted["records of several letters"]++
		}
		if counts[r] != n {
			w.fail(Doubled, "dead letter: %d letters name the record %s of %s, and it counts %d", n, r.name, r.model, counts[r])
		}
		delete(counts, r)
	}
	for r, n := range counts {
		w.fail(Doubled, "dead letter: no letter names the record %s of %s, and it counts %d", r.name, r.model, n)
	}
	for r, n := range parts {
		var want []string
		for i := range n {
			want = append(want, owntable.DeadPart(r.model, r.name, i).Key.Sort.Text())
		}
		if is := slices.Sorted(slices.Values(have[r])); !slices.Equal(is, slices.Sorted(slices.Values(want))) {
			w.fail(Lost, "dead letter: the record %s of %s has %s, should have %d parts", r.name, r.model, fmt.Sprint(is), n)
		}
		delete(have, r)
	}
	for r, is := range have {
		w.fail(Doubled, "dead letter: %d parts of %s of %s are kept, and there is no such letter", len(is), r.name, r.model)
	}
}
