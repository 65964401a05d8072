package console

import (
	"slices"
	"strings"

	"weir/internal/aggregate"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/tally"
	"weir/internal/value"
)

// effect is the effect of a record on one target.
// Effects are comparable: two of one record that say the same are shown once.
type effect struct {
	Derivation string
	What       string // the amount that it adds, "" for a target that is told from more than this record
	Entity     string
	Row        link // no Href: a search index
}

// effectsOf returns the effects of a change: the amounts that it adds to ledgers, the rows that it makes,
// moves or removes, and the indexes that have it.
// It is worked out from the record and the model alone and reads no row. So it tells the effect of the record
// asks for; a batch that gathers it with others, or has seen it before, may write something else.
// Feeds and history are left out, since their rows depend on subscribers and past records.
func effectsOf(m *model.Model, ch *projections.Change) (out []effect) {
	add := func(e effect) {
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	for _, e := range describeSums(m, append(tally.Fold(ch, nil), tally.FoldSets(ch, nil)...)) {
		add(e)
	}
	was, is := ch.Was, ch.Is
	if was != nil && was == is && projections.SameWritten(is, ch.Old, ch.New) {
		return out // weir wrote this, and the row is the same for everything below
	}
	for _, image := range []struct {
		of  *model.Entity
		row value.Item
	}{{was, ch.Old}, {is, ch.New}} {
		if image.of == nil || image.row == nil {
			continue
		}
		for _, to := range rowsFrom(m, image.of, image.row) {
			add(effect{Derivation: to.Derivation, Entity: to.Entity, Row: to.Row})
		}
		for _, s := range m.Searches {
			if s.Of == image.of && s.Input.Uses(image.row) {
				add(effect{Derivation: s.Derivation(), Row: link{Text: "search index"}})
			}
		}
	}
	return out
}

// describeSums describes the amounts that are added to the ledger of each target.
// Amounts for one target are put together first, so a mean is one effect and not two.
func describeSums(m *model.Model, adds []projections.Add) (out []effect) {
	for i, a := range adds {
		same := func(b projections.Add) bool {
			return b.Entity == a.Entity && projections.SameRow(b.Target, a.Target)
		}
		if a.Entity == nil || slices.IndexFunc(adds, same) < i {
			continue
		}
		var of value.Item
		for _, b := range adds[i:] {
			if same(b) {
				of = append(of, value.Attr{Name: b.Field, Value: b.Amount})
			}
		}
		for _, t := range a.Entity.Values {
			what := aggregate.Explain(t.Attr, of)
			if len(what) == 0 {
				continue
			}
			one := effect{t.Name, brief(strings.Join(what, ", "), cellRunes), a.Entity.Name, rowLink(m, a.Target)}
			if m.HidesValuesOf(t.Name) {
				one.What = model.HiddenText
			}
			out = append(out, one)
		}
	}
	return out
}
