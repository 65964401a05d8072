package verify

import (
	"context"
	"strings"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Kind is the kind of derived thing that differs.
type Kind int

// The kinds. Each comment names the fields of What that identify the thing. The zero Kind
// means that repair cannot correct the difference; its text says why.
const (
	_         Kind = iota
	Book           // the accumulators in the ledger with the partition key Name
	Set            // what the nodes of the set in Row, or of that Name, count
	Told           // the fact Name of List
	Listed         // the follower Name of List
	Followed       // the stored value of Field of Row, which other rows follow
	Linked         // that Row is on the list of Of, which Follow says it follows
	Following      // what Row shows in Field, which is on the list Of
	Shown          // what Row shows of its ledger and its facts
	Leaf           // what Row shows of the node Name of the set in Of
	Copy           // Row, which Rule makes of Of
	Document       // the document Name of Search
)

// What identifies the derived thing that differs, for package repair. Kind says which of the
// other fields are set.
type What struct {
	Kind              Kind
	Row, Of           store.Ref
	List, Name, Field string
	Entity            *model.Entity
	Rule              *model.RowRule
	Follow            *model.Follow
	Search            *model.Search
}

// Count is the result of a recount over the existing rows. It does not change.
type Count struct{ v *Verify }

// Count recounts from every row without comparing anything. Changes that are written
// meanwhile may or may not be included.
func (v *Verify) Count(ctx context.Context) (Count, error) {
	c := &Verify{Model: v.Model, Store: v.Store, Progress: v.Progress, countOnly: true}
	c.begin(func(Difference) {})
	if err := c.scan(ctx, c.recount); err != nil {
		return Count{}, err
	}
	return Count{c}, nil
}

// Ledger returns what the ledger with the partition key name must hold, without accumulators
// that are 0, and the row and entity that it belongs to. e is nil if no row contributes to
// that ledger.
func (c Count) Ledger(name string) (target store.Ref, e *model.Entity, sums value.Item) {
	t := c.v.expect[name]
	if t == nil {
		return store.Ref{}, nil, nil
	}
	attrs := make([]value.Attr, 0, len(t.sums))
	for field, n := range t.sums {
		if n.Sign() != 0 {
			attrs = append(attrs, value.Attr{Name: field, Value: n})
		}
	}
	return t.row, t.entity, value.NewItem(attrs...)
}

// Members returns the members of the set with that name, each with the number of rows that
// contribute it.
func (c Count) Members(name string) map[string]value.Value {
	s := c.v.sets[name]
	if s == nil {
		return nil
	}
	out := map[string]value.Value{}
	for m, n := range s.want {
		if n.Sign() != 0 {
			out[m] = n
		}
	}
	return out
}

// Told returns the fact with a name on a list, nil for none.
func (c Count) Told(list, name string) value.Item {
	if l := c.v.told[list]; l != nil {
		return l.told[name]
	}
	return nil
}

// Join returns the follower with a name on a list. It reports false if there is none.
func (c Count) Join(list, name string) (projections.Join, bool) {
	j, ok := c.v.joins[list+"\x00"+name]
	return j, ok
}

// Plain returns the difference without What. Two plain differences are equal with == if they
// say the same.
func (d Difference) Plain() Difference {
	d.What = nil
	return d
}

// RowText returns a row in the form in which differences name rows.
func RowText(m *model.Model, r store.Ref) string { return strings.Clone(rowText(m, r)) }
