package status

import (
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/value"
)

// preview says which rows will have another status. It holds the facts of all rows; of too many
// it says nothing.
type preview struct {
	runner.BasePreview
	*runner.Previewing
	of    []*model.Status // those that are new or changed
	facts *recount
	held  int
}

// Preview returns the kind's part in a dry run.
func (Kind) Preview(p *runner.Previewing) runner.Preview {
	v := &preview{Previewing: p, facts: &recount{Verification: &runner.Verification{Model: p.Model, Store: p.Store}, lists: map[string]*list{}}}
	if p.Entity == nil {
		return v
	}
	for _, s := range p.Entity.Statuses {
		if p.Says.Tells(s.Name) {
			v.of = append(v.of, s)
		}
	}
	return v
}

// Add takes in the facts of a row.
func (v *preview) Add(row *projections.Change) {
	if len(v.of) > 0 && v.held <= runner.PreviewValues {
		v.held += len(Fold(row, nil))
		v.facts.Add(row, nil)
	}
}

// Compare compares the statuses of a row.
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
		for _, name := range s.Attributes() {
			if have, be := row.New.Get(name), want.Get(name); !value.Equal(have, be) {
				is, will = append(is, value.Attr{Name: name, Value: have}), append(will, value.Attr{Name: name, Value: be})
			}
		}
		if len(is) == 1 {
			v.Row(s.Name, row.Row, is[0].Value, will[0].Value)
		} else {
			v.Row(s.Name, row.Row, value.OfMap(value.NewItem(is...)), value.OfMap(value.NewItem(will...)))
		}
	}
	return nil
}
