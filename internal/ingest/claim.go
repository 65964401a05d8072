package ingest

import (
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/query"
	"weir/internal/store"
	"weir/internal/value"
)

// Claim is the claim that a row should have on one of its unique values. Rows that no
// command wrote need claims too: a migration takes them for the rows that it makes, and
// a backfill for rows that other programs wrote.
// Its methods only decide. They make writes, which the caller does.
// A claim that exists says that Row has the value; it is written and deleted in the transaction of
// the row.
type Claim struct {
	Field string
	Value value.Value
	Ref   store.Ref // of the claim
	Row   store.Ref

	entity *model.Entity
	unique *model.Unique
}

// Claims returns the claims that a row of the entity should have.
func Claims(m *model.Model, e *model.Entity, ref store.Ref, row value.Item) (out []Claim) {
	for _, u := range e.Unique {
		if v := u.Field.Stored(row); value.Scalar(v) != "" {
			out = append(out, Claim{Field: u.Field.Name, Value: v, Ref: claimOf(m, e, u, v), Row: ref, entity: e, unique: u})
		}
	}
	return out
}

// claimOf is the row of the claim on a value.
func claimOf(m *model.Model, e *model.Entity, u *model.Unique, v value.Value) store.Ref {
	return owntable.Claim(m.Name, e.Name, u.Field.Name, value.Scalar(v))
}

// Owner is the row that a claim, as it was read, belongs to; ok is false where it
// belongs to none.
func (c *Claim) Owner(claim value.Item) (owner store.Ref, ok bool) {
	return ownerOf(c.entity.Table, owntable.ClaimFrom(claim))
}

// IsOurs reports whether a claim, as it was read, belongs to the row.
func (c *Claim) IsOurs(claim value.Item) bool { return owntable.ClaimFrom(claim).IsOf(c.Row) }

// Entity is the name of the row's entity.
func (c *Claim) Entity() string { return c.entity.Name }

// HasValue reports whether a row has the value, so that no other row may have it.
func (c *Claim) HasValue(row value.Item, now time.Time) bool {
	return row != nil && c.entity.Table.Classify(row) == c.entity && value.Equal(c.unique.Field.Stored(row), c.Value) &&
		!query.NewView(c.entity).Expired(row, now)
}

// IndexQuery is the query that asks the index for the rows with the value. An index may
// lag. So read each row that it returns, and look at the claim to find a row that the
// index does not return yet.
func (c *Claim) IndexQuery() store.Query { return valueQuery(c.entity, c.unique, c.Value).Query }

// HadBy returns those of an index's rows that may have the value, without the claim's own
// row.
func (c *Claim) HadBy(rows []value.Item) (out []store.Ref) {
	keep := valueQuery(c.entity, c.unique, c.Value).keep
	for _, row := range rows {
		key, ok := c.entity.Table.KeyOf(row)
		ref := store.Ref{Table: c.entity.Table.Name, Key: key}
		if ok && keep(row) && owntable.RowText(ref) != owntable.RowText(c.Row) {
			out = append(out, ref)
		}
	}
	return out
}

// Take is the write that gives the row the claim. It fails if the claim has changed
// since it was read. The token must be one that no claim had before.
func (c *Claim) Take(claim value.Item, token string) store.Write {
	return owntable.ClaimFrom(claim).Take(c.Ref, c.Row, c.entity.Table.Item(c.Row.Key), token)
}

// Free is the write that gives the claim back. It fails if the claim has changed since
// it was read. A claim of another row is left as it is.
func (c *Claim) Free(claim value.Item) store.Write {
	return owntable.ClaimFrom(claim).Free(c.Ref, c.Row)
}

// StillHasValue is the check that the row still has the value.
func (c *Claim) StillHasValue() store.Write {
	return store.Write{Ref: c.Row, Check: true, If: store.Cond{
		{{Attr: c.entity.Table.Key.Partition.Name, Is: store.Exists}}, {store.AsRead(c.unique.Field.Attr, c.Value)},
	}}
}
