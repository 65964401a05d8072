package model

import (
	"slices"

	"weir/internal/store"
)

// DynamoDB's own limits ("Quotas in Amazon DynamoDB").
const (
	// A model that is used with the embedded store alone is held to them too, so that it can move to DynamoDB.
	maxGlobalIndexes = 20
	maxLocalIndexes  = 5
)

// checkIndexCount reports a table with more indexes than DynamoDB allows.
// A service quota may be raised for an account; the model keeps to the default one.
func checkIndexCount(c *compiler, t *Table) {
	local := 0
	for _, ix := range t.Indexes {
		if ix.Local {
			local++
		}
	}
	at := t.decl.name.pos
	if local > maxLocalIndexes {
		c.addFlaw(at, "", "%s has %d local indexes, DynamoDB allows %d", t.Name, local, maxLocalIndexes)
	}
	if global := len(t.Indexes) - local; global > maxGlobalIndexes {
		c.addFlaw(at, "", "%s has %d global indexes, DynamoDB allows %d", t.Name, global, maxGlobalIndexes)
	}
}

// checkLocalIndexes reports a local index without the table's partition key or without sort keys.
// A local index shares the partitions of its table, so both need a sort key and one partition key
// (DynamoDB, local secondary indexes).
func checkLocalIndexes(c *compiler, t *Table) {
	for i, ix := range t.Indexes {
		at := t.decl.Indexes[i].name.pos
		switch {
		case !ix.Local || t.Key.Partition.Name == "" || ix.Key.Partition.Name == "":
		case ix.Key.Partition != t.Key.Partition:
			c.addFlaw(at, "leave local out, or begin its key with "+t.Key.Partition.Name, "the local index %s does not share the table's partition key", ix.Name)
		case ix.Key.Sort.Name == "" || t.Key.Sort.Name == "":
			c.addFlaw(at, "", "the local index %s needs a sort key, in its own key and in the table's", ix.Name)
		}
	}
}

// checkTTL reports a TTL attribute that is a key attribute or not a number.
func checkTTL(c *compiler, t *Table) {
	at := t.decl.TTL
	if !at.isGiven() {
		return
	}
	if slices.ContainsFunc(t.KeyAttrs(), func(a store.KeyAttr) bool { return a.Name == t.TTL }) {
		c.addFlaw(at.pos, "give the expiry an attribute of its own", "%q is a key attribute", t.TTL)
	}
	for _, e := range t.Entities {
		c.checkHidden(e, word{t.TTL, at.pos})
		if a := e.Attribute(t.TTL); a != nil && a.Type != TypeNumber && a.As != AsSeconds {
			c.addFlaw(c.attributePos(e, a.Name), a.Name+": number", "%q is the table's ttl, in epoch seconds, and not a %s", a.Name, a.Type)
		}
	}
}

// attributePos returns the place where an attribute is declared.
func (c *compiler) attributePos(e *Entity, name string) pos {
	return placeOf(e.decl.Attributes, name, e.decl.name.pos)
}
