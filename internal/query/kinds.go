package query

import (
	"slices"
	"time"

	"weir/internal/model"
	"weir/internal/value"
)

// newKinds are the steps of each kind where a step reads rows of several.
func newKinds(m *model.Model, s *model.Step, prior *step) []*step {
	if len(s.Also) == 0 {
		return nil
	}
	var out []*step
	for _, e := range append([]*model.Entity{s.Entity}, s.Also...) {
		one := *s
		one.Entity, one.Also = e, nil
		one.With, one.Any, one.Where = rebind(e, s.With), rebind(e, s.Any), slices.Clone(s.Where)
		for i := range one.Where {
			one.Where[i].Field = e.Field(one.Where[i].Field.Name)
		}
		out = append(out, newStep(m, &one, prior))
	}
	return out
}

// rebind fixes the same fields of another entity.
func rebind(e *model.Entity, binds []model.Bind) []model.Bind {
	out := slices.Clone(binds)
	for i := range out {
		out[i].Field = e.Field(out[i].Field.Name)
	}
	return out
}

// kind is the step of the row's kind, nil where the row does not belong.
func (s *step) kind(row value.Item, sc scope, now time.Time) *step {
	for _, k := range s.kinds {
		if k.belongs(row, sc, now) {
			return k
		}
	}
	return nil
}

// outside is the row as people see it.
func (s *step) outside(row value.Item) value.Item {
	if k := s.kindOf(row); k != nil {
		return k.shape.outside(row)
	}
	return s.shape.outside(row)
}

// kindOf is the step of the row's kind by what the row is, nil where the step reads
// one kind.
func (s *step) kindOf(row value.Item) *step {
	for _, k := range s.kinds {
		if k.sparse && k.matchesKeys(row) || !k.sparse && k.Entity.Table.Classify(row) == k.Entity {
			return k
		}
	}
	return nil
}
