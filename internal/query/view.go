package query

import (
	"time"

	"weir/internal/model"
	"weir/internal/value"
)

// View shows rows of one entity as queries do, to who has such a row already.
type View struct{ step *step }

// NewView is the view of an entity's rows.
func NewView(m *model.Model, e *model.Entity) *View {
	return &View{newStep(m, &model.Step{Entity: e}, nil)}
}

// Row is the row as people see it at a time.
func (v *View) Row(row value.Item, now time.Time) value.Item {
	return v.step.outside(v.step.reads(row, now))
}

// Expired reports whether a row is past its TTL or its entity's expiry, so that no
// query gives it.
func (v *View) Expired(row value.Item, now time.Time) bool { return v.step.expired(row, now) }
