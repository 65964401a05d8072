package model

import (
	"maps"
	"slices"

	"weir/internal/value"
)

// checkOneEntity reports two entities of a table that one row could match. Their wheres or
// the shapes of their keys must exclude each other.
// It makes Table.Classify a function: a row is of one entity at most. The pair is noted, so
// that later checks do not report the same mistake in other words.
func checkOneEntity(c *compiler) {
	c.firstPairs(func(a, b *Entity) bool { return !testsExclude(a.Where, b.Where) && keyCases(a, b, anyTexts) }, true, func(a, b *Entity) {
		c.overlap[b] = true
		c.addFlaw(b.decl.name.pos, "give both a where that no row passes twice, like EntityType: "+b.Name,
			"a row could be both %s and %s: their keys have the same shape and their wheres do not exclude each other", a.Name, b.Name)
	})
}

// checkOneKey reports two entities whose rows can have the same key. Even if their wheres
// exclude each other, one would overwrite the other, because the table has one row for the
// key.
// Keys are compared as commands write them, with escaped values; keys that applications write
// without escaping may still meet, and weir then sees one row that becomes another.
func checkOneKey(c *compiler) {
	c.firstPairs(func(a, b *Entity) bool {
		return !a.Derived && !b.Derived && !c.replacesInPlace(a, b) && keyCases(a, b, escapedTexts)
	}, false, func(a, b *Entity) {
		c.addFlaw(b.decl.name.pos, "give the key of "+b.Name+" a prefix of its own",
			"a row of %s and one of %s can have the same key: one would overwrite the other, whatever their wheres say", a.Name, b.Name)
	})
}

// replacesInPlace reports whether a migration replaces rows of one of the two by the other, in
// place.
func (c *compiler) replacesInPlace(a, b *Entity) bool {
	for _, g := range c.Migrations {
		for _, mk := range g.Makes {
			if mk.InPlace && (g.From == a && mk.Into == b || g.From == b && mk.Into == a) {
				return true
			}
		}
	}
	return false
}

// checkOwnKeys reports a rule that can make the key of another entity's row or of another
// rule's row, which it would overwrite.
func checkOwnKeys(c *compiler) {
	for i, r := range c.Rows {
		if c.broken[r.Into] || c.faulty[r] {
			continue
		}
		at := r.decl.name.pos
		for _, e := range r.Into.Table.Entities {
			if !e.Derived && !c.broken[e] && !c.anyReported(e, r.Into) && !beginApart(r.Into, e) && sameKey(r.Into, e, r.fixedNames(), e.fixedNames(), anyTexts) {
				c.addFlaw(at, "give the key of "+r.Into.Name+" a prefix of its own", "%s can make the key of a row of %s, and would overwrite it", r.Name, e.Name)
			}
		}
		for _, o := range c.Rows[:i] {
			switch {
			case o.Into.Table != r.Into.Table || c.broken[o.Into] || c.faulty[o]:
			case o.Into == r.Into && !neverMeet(o, r):
				c.addFlaw(at, "give a name of the key another constant in each", "%s and %s can make the same key, and would overwrite each other's rows", o.Name, r.Name)
			case o.Into != r.Into && !c.anyReported(o.Into, r.Into) && !beginApart(o.Into, r.Into) && sameKey(o.Into, r.Into, o.fixedNames(), r.fixedNames(), anyTexts):
				c.addFlaw(at, "give each key a prefix of its own", "%s and %s can make the same key, and would overwrite each other's rows", o.Name, r.Name)
			}
		}
	}
}

// anyReported reports whether one of the two was reported already, as one that rows of another entity could be, too.
func (c *compiler) anyReported(a, b *Entity) bool { return c.overlap[a] || c.overlap[b] }

// fixedNames returns the names that have one value in all rows of a rule, with its text as in a key: the values that the rule
// or the where of its rows says, and those that a copy takes from a field of which the where of its source rows leaves one value.
func (r *RowRule) fixedNames() map[string]string {
	out := r.Into.fixedNames()
	for _, a := range r.Fields {
		if s := value.Scalar(a.Expr.Const); s != "" {
			out[a.Name] = s
		}
		if a.Expr.Field == nil || len(r.Keep) > 0 {
			continue
		}
		for _, t := range slices.Concat(r.Where, r.Source.Where) {
			if listed := t.Listed(); len(listed) == 1 && sameField(t.Field, a.Expr.Field) {
				out[a.Name] = value.Scalar(listed[0])
			}
		}
	}
	return out
}

// KeyConstants returns the constants that the rule puts into the keys of its rows, by name. A constant elsewhere on a row
// may be absent, or of an earlier definition.
func (r *RowRule) KeyConstants() map[string]string {
	out := r.fixedNames()
	names := r.Into.KeyNames()
	maps.DeleteFunc(out, func(name, _ string) bool { return !slices.Contains(names, name) })
	return out
}

// neverMeet reports whether two rules into one entity can never make the same key: they give a
// name of the key different constants, or both put the record's position into the key and
// read different entities.
// The position of a record is unique in a table's stream, and the rows of one source have different
// ones.
func neverMeet(a, b *RowRule) bool {
	fixedA, fixedB := a.fixedNames(), b.fixedNames()
	for _, name := range a.Into.KeyNames() {
		if x, y := fixedA[name], fixedB[name]; x != "" && y != "" && x != y {
			return true
		}
		if a.Source != b.Source && onePerRecord(a) && onePerRecord(b) {
			return true // a record is of one row, and its position in both keys
		}
	}
	return false
}
