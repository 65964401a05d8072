package sim

import (
	"strings"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// lettersHave checks that each dead letter has the rows of its body, and each such row its letter.
func (w *world) lettersHave() {
	named, have := map[string]bool{}, map[string]bool{}
	w.base.tables[owntable.TableName].eachRow(func(k store.Key, row value.Item) {
		switch kind, model, _ := strings.Cut(k.Partition.Text(), "|"); kind {
		case owntable.KindDead:
			l := owntable.LetterFrom(row)
			if l.Parts > 0 {
				w.counted["letters with rows of their own"]++
			}
			for _, ref := range l.BodyParts(model) {
				named[ref.String()] = true
			}
		case owntable.KindDeadPart:
			have[store.Ref{Table: owntable.TableName, Key: k}.String()] = true
		}
	})
	for at := range named {
		if !have[at] {
			w.addFailure(Lost, "dead letter: its row %s is missing", at)
		}
	}
	for at := range have {
		if !named[at] {
			w.addFailure(Doubled, "dead letter: the row %s is of no letter", at)
		}
	}
}
