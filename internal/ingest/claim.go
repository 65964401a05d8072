package ingest

import (
	"time"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/store"
	"weir/internal/value"
)

// Claim is a unique value of a row that came by other ways than commands, and so
// may have no claim on it.
type Claim struct {
	Field string
	Value value.Value
	Ref   store.Ref // of the claim

	row    store.Ref
	table  *model.Table
	attr   string
	model  *model.Model
	entity *model.Entity
}

// Claims are the claims that a row of the entity should have.
func Claims(m *model.Model, e *model.Entity, ref store.Ref, row value.Item) (out []Claim) {
	for _, u := range e.Unique {
		if v := u.Field.Get(row); model.Scalar(v) != "" {
			out = append(out, Claim{
				Field: u.Field.Name, Value: v, Ref: book.Claim(m.Name, e.Name+"."+u.Field.Name, model.Scalar(v)),
				row: ref, table: e.Table, attr: u.Field.Attr, model: m, entity: e,
			})
		}
	}
	return out
}

// Owner is the row that a claim, as it was read, is given to; ok is false where it
// is given to none.
func (c *Claim) Owner(claim value.Item) (owner store.Ref, ok bool) {
	key, ok := c.table.KeyOf(claim.Get(claimKey).Item())
	return store.Ref{Table: c.table.Name, Key: key}, ok && claim.Get(claimTable).Text() == c.table.Name
}

// Holds reports whether a row has the value, so that nobody else may.
func (c *Claim) Holds(row value.Item, now time.Time) bool {
	return row != nil && c.table.Classify(row) == c.entity && value.Equal(row.Get(c.attr), c.Value) &&
		!query.NewView(c.model, c.entity).Expired(row, now)
}

// Take is the transaction that gives the row the claim, as long as that is as it was
// read and the row still has the value. The token is one that no claim had before.
func (c *Claim) Take(claim value.Item, token string) []store.Write {
	return []store.Write{
		{Ref: c.row, Check: true, If: store.Cond{{{Attr: c.table.Key.Partition.Name, Is: store.Exists}}, {same(c.attr, c.Value)}}},
		{
			Ref: c.Ref, If: store.Cond{{same(claimToken, claim.Get(claimToken))}},
			Ops: []store.Op{
				{Kind: store.Set, Attr: claimRow, Value: value.OfString(book.RowText(c.row))},
				{Kind: store.Set, Attr: claimTable, Value: value.OfString(c.row.Table)},
				{Kind: store.Set, Attr: claimKey, Value: value.OfMap(c.table.Item(c.row.Key))},
				{Kind: store.Set, Attr: claimToken, Value: value.OfString(token)},
			},
		},
	}
}
