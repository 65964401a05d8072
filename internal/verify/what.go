package verify

import (
	"context"
	"strings"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/store"
	"weir/internal/value"
)

// Kind says which kind of derived thing differs.
type Kind int

// The kinds, with what of a What names the thing. The zero Kind is something that
// nobody can mend: what is said of it says why.
const (
	_         Kind = iota
	Book           // the accumulators in the book with the partition key Name
	Set            // what the nodes of the set in Row, or of that Name, count
	Told           // the fact Name of List
	Listed         // the follower Name of List
	Followed       // what our table keeps of Field of Row, which others follow
	Linked         // that Row is on the list of Of, which Follow says it follows
	Following      // what Row shows in Field, which is on the list Of
	Shown          // what Row shows of its book and its facts
	Leaf           // what Row shows of the node Name of the set in Of
	Copy           // Row, which Rule makes of Of
	Document       // the document Name of Search
)

// What is which derived thing differs, for who mends it.
type What struct {
	Kind              Kind
	Row, Of           store.Ref
	List, Name, Field string
	Entity            *model.Entity
	Rule              *model.RowRule
	Follow            *model.Follow
	Search            *model.Search
}

// Count is what the rows that are there come to.
type Count struct{ v *Verify }

// Count reads every row and compares nothing. What is written meanwhile may be in it
// or not.
func (v *Verify) Count(ctx context.Context) (Count, error) {
	c := &Verify{Model: v.Model, Store: v.Store, Progress: v.Progress, countOnly: true}
	c.begin(func(Difference) {})
	if err := c.scan(ctx, c.recount); err != nil {
		return Count{}, err
	}
	return Count{c}, nil
}

// Ledger is what the book with that partition key must hold, but for what is 0, and
// whose it is: e is nil where nothing counts there.
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

// Members is how many rows say that a member is in the set of that name, of each.
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

// Told is what is told under a name of a list, nil for nothing.
func (c Count) Told(list, name string) value.Item {
	if l := c.v.told[list]; l != nil {
		return l.told[name]
	}
	return nil
}

// Join is who follows under a name of a list.
func (c Count) Join(list, name string) (projections.Join, bool) {
	j, ok := c.v.joins[list+"\x00"+name]
	return j, ok
}

// Plain is the difference without who it is for, so that the same one found twice is
// the same.
func (d Difference) Plain() Difference {
	d.What = nil
	return d
}

// RowText is a row as differences name it.
func RowText(m *model.Model, r store.Ref) string { return strings.Clone(rowText(m, r)) }
