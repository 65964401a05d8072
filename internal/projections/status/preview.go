package status

import (
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
	facts *recount
	held  int
}

// shownOf is a status or a latest, and the attributes in which rows show it.
type shownOf struct {
	name  string
	attrs []string
}

// Preview returns the kind's part in a dry run.
func (Kind) Preview(p *runner.Previewing) runner.Preview {
	v := &preview{Previewing: p, facts: &recount{Verification: &runner.Verification{Model: p.Model, Store: p.Store}, lists: map[string]*list{}}}
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
		}
		v.facts.Add(row, nil)
	}
}

// Compare compares the statuses of a row.
// Beyond runner.PreviewValues facts nothing is compared.
func (v *preview) Compare(row *projections.Change) error {
	if row.Is != v.Entity || len(v.of) == 0 || v.held > runner.PreviewValues {
		return nil
	}
	v.facts.Added()
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
