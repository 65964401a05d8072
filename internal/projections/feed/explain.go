package feed

import (
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/value"
)

// Explain returns the kind's part in explaining a value.
func (Kind) Explain(of *runner.Asked) runner.Explanation { return newExplanation(of) }

// explanation finds the records that made an entry of a feed.
type explanation struct {
	runner.BaseExplanation
	*runner.Asked
	names map[string]value.Value     // what the row's key is made of, by field
	keys  map[string]*model.Template // for each of names, the template of the key that holds it
}

// newExplanation takes the names out of the key of the row that is asked for.
func newExplanation(of *runner.Asked) *explanation {
	x := &explanation{Asked: of, names: map[string]value.Value{}, keys: map[string]*model.Template{}}
	row := of.Entity.Table.Item(of.Row.Key)
	for _, k := range of.Entity.PrimaryKey() {
		for _, n := range k.Template.Names() {
			x.names[n], x.keys[n] = of.Entity.Field(n).Stored(row), k.Template
		}
	}
	return x
}

// Parts says which subscribers a change notifies, if the row may be one of the
// notifications.
func (x *explanation) Parts(c *projections.Change) (out []string) {
	for _, t := range FoldNotifications(c, nil) {
		if t.Rule.Into == x.Entity && x.agrees(t.Fields) {
			out = append(out, "notifies the subscribers in "+t.List)
		}
	}
	return out
}

// agrees reports whether a notification could be the row: the names that both have must
// have equal values.
func (x *explanation) agrees(fields value.Item) bool {
	for _, a := range fields {
		if v, named := x.names[a.Name]; named && value.Scalar(v) != value.Scalar(a.Value) && v.Text() != x.keys[a.Name].Escape(value.Scalar(a.Value)) {
			return false
		}
	}
	return true
}
