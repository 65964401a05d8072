package ingest

import (
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// A unique value belongs to the row that its claim names. A claim is a row of our own
// table and is written in the same transaction as its row.
//
// Rows that no command wrote have no claims. So before a claim is taken, the index is
// asked for rows with the value. A claim may be taken over if its row is gone or has
// another value.

// planClaims adds to a plan the claims that the row takes and gives back. row is the row in
// the table. live is the same, but nil if that row has expired. is is the row to write,
// nil for a delete.
func (c *checked) planClaims(p *plan, k *known, row, live, is value.Item) *Refusal {
	for _, u := range c.Unique {
		old, now := u.Field.Stored(row), u.Field.Stored(is)
		if value.Scalar(now) != "" && (live == nil || !value.Equal(old, now)) {
			if r := c.acquireClaim(p, k, u, now); r != nil {
				return r
			}
		}
		if value.Scalar(old) != "" && !value.Equal(old, now) {
			c.giveBack(p, k, u, old)
		}
	}
	return nil
}

// acquireClaim takes a value's claim for the command's row, unless another row has the
// value.
func (c *checked) acquireClaim(p *plan, k *known, u *model.Unique, v value.Value) *Refusal {
	ref := claimOf(c.model, c.Entity, u, v)
	row, ok := k.knownRow(ref)
	claim := owntable.ClaimFrom(row)
	owners, found := k.foundRows(valueQuery(c.Entity, u, v))
	if !ok || !found {
		return nil
	}
	if owner, ok := ownerOf(c.Table, claim); ok {
		owners = append(slices.Clone(owners), owner)
	}
	for _, owner := range owners {
		if owntable.RowText(owner) == owntable.RowText(c.ref) {
			continue
		}
		row, ok := k.knownRow(owner)
		if ok && row != nil && c.Table.Classify(row) == c.Entity && value.Equal(u.Field.Stored(row), v) && !c.view.Expired(row, k.now) {
			return newRefusal(Taken, c.pointerTo(u.Field.Name), "belongs to another row of %s: %s", c.Name, describeValue(v))
		}
	}
	p.writes = append(p.writes, claim.Take(ref, c.ref, c.Table.Item(c.ref.Key), k.newID()))
	return nil
}

// giveBack frees a value of the command's row.
func (c *checked) giveBack(p *plan, k *known, u *model.Unique, v value.Value) {
	ref := claimOf(c.model, c.Entity, u, v)
	if claim, ok := k.knownRow(ref); ok {
		p.writes = append(p.writes, owntable.ClaimFrom(claim).Free(ref, c.ref))
	}
}

// ownerOf is the row that a claim names.
func ownerOf(t *model.Table, claim owntable.ClaimRow) (store.Ref, bool) {
	key, ok := t.KeyOf(claim.Key)
	return store.Ref{Table: t.Name, Key: key}, ok && claim.Table == t.Name
}

// valueQuery is the query that asks the index for the rows of an entity with a value.
// The index may lag: it is asked before a claim is given, and rows that it shows are read again
// strongly.
func valueQuery(e *model.Entity, u *model.Unique, v value.Value) find {
	get := func(name string) value.Value {
		if name == u.Field.Name {
			return v
		}
		return value.Value{}
	}
	ix := u.Index
	f := find{name: e.Name + "|" + ix.Name + "|" + u.Field.Name + "|" + value.Scalar(v), Query: store.Query{Table: e.Table.Name, Index: ix.Name}}
	f.Partition, _ = e.KeyTemplate(ix.Key.Partition.Name).BuildTyped(get)
	if ix.Key.Sort.Name != "" {
		f.Sort = keyRange(e.KeyTemplate(ix.Key.Sort.Name), get)
	}
	f.keep = func(row value.Item) bool { return ix.KeysOnly || value.Equal(u.Field.Stored(row), v) }
	return f
}

// keyRange is the narrowest range of a sort key that the known names of its template
// allow.
func keyRange(k *model.KeyTemplate, get func(string) value.Value) store.Range {
	if v, ok := k.BuildTyped(get); ok {
		return store.Range{Equal: v}
	}
	prefix, _ := k.Template.Prefix(func(name string) string { return k.Template.Escape(value.Scalar(get(name))) })
	if prefix == "" {
		return store.Range{}
	}
	return store.Range{Prefix: value.OfString(prefix)}
}
