package query

import (
	"testing"

	"weir/internal/aggregate"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/value"
)

// TestNoZeroForWhatCannotBeShown: a derived attribute that is absent is 0 as long as nothing counts
// for the row. Afterwards a distinct over its max is absent: that is not 0.
func TestNoZeroForWhatCannotBeShown(t *testing.T) {
	e := &model.Entity{Values: []*model.Tally{
		{Attr: "rows", Kind: aggregate.Count}, {Attr: "points", Kind: aggregate.Sum}, {Attr: "mean", Kind: aggregate.Mean}, {Attr: "people", Kind: aggregate.Distinct, Max: 2},
	}}
	s := newShape(e, false)
	attr := func(name string, n int64) value.Attr { return value.Attr{Name: name, Value: value.OfInt(n)} }
	for _, c := range []struct{ row, want value.Item }{
		{value.NewItem(), value.NewItem(attr("rows", 0), attr("points", 0), attr("people", 0))},
		{value.NewItem(attr(owntable.Version, 7), attr("rows", 3)), value.NewItem(attr("rows", 3), attr("points", 0))},
		{value.NewItem(attr(owntable.Version, 7), attr("rows", 3), attr("points", 5), attr("people", 0)), value.NewItem(attr("rows", 3), attr("points", 5), attr("people", 0))},
	} {
		if got := s.outsideRow(c.row); !value.EqualItems(got, c.want) {
			t.Errorf("%v is shown as %v, want %v", c.row, got, c.want)
		}
	}
}
