package model

import (
	"weir/internal/aggregate"
	"weir/internal/seq"
)

// The values that one row shows are written at once, in one expression of DynamoDB (4 KB, 300 operators). These
// are the widths up to which every write of weir fits: the live ones, a retry and a
// build. The runner's TestWidestModels writes models of exactly these widths.
const (
	maxAdded      = 290 // accumulators of one row to which one source row may add
	maxSpread     = 40  // distincts of one row to which one source row may add
	maxRecomputed = 110 // attributes of one row that come from facts
	maxShown      = 400 // attributes of one row that are derived, besides those that follow
	maxCopied     = 400 // attributes of one copy
	maxFollowed   = 30  // attributes of an application's row that follow: each is three, and is asked for as it was read
	maxMoved      = 110 // attributes of a row that a migration reads and writes
)

// checkWidths reports rows that are too wide to be written: each record would be a dead letter, or refused.
// It is reported at the first declaration that is too much, in the order of the file.
func checkWidths(c *compiler) {
	for _, e := range c.Entities {
		c.widthOfTallies(e, c.widthOfFacts(e))
		if len(e.Follows) > maxFollowed {
			c.addFlaw(e.Follows[maxFollowed].decl.name.pos, "leave some out, or follow a map that has several",
				"more than %d attributes of %s follow other rows: one write cannot hold them, so none would be shown", maxFollowed, e.Name)
		}
	}
	for _, r := range c.Rows {
		n := len(r.Fields)
		for _, f := range c.Follows {
			if f.Rule == r {
				n += 2 // its position, and which row it is of
			}
		}
		if n > maxCopied {
			c.addFlaw(r.decl.name.pos, "copy fewer attributes, or put some of them into a map and copy the map",
				"a row of %s has %d attributes of the rule, which are too many for one write: the limit is %d, and one that follows another row is three", r.Into.Name, n, maxCopied)
		}
	}
	for _, m := range c.Migrations {
		for _, mk := range m.Makes {
			for _, e := range []*Entity{m.From, mk.Into} {
				if n := len(e.Attributes); n > maxMoved {
					c.addFlaw(mk.Rule.decl.name.pos, "move its rows by a program of your own, or declare as a map what belongs together",
						"rows of %s have %d attributes, which are too many for a migration: it asks for each of them as it was read, and the limit is %d", e.Name, n, maxMoved)
					break
				}
			}
		}
	}
}

// widthOfTallies reports the first tally on rows of an entity with which one source row would add to too
// many accumulators of one target, or with which a target would show too much besides facts.
func (c *compiler) widthOfTallies(e *Entity, shown int) {
	adds, spread := map[*Entity]int{}, map[*Entity]int{}
	for _, t := range e.Values {
		if shown += min(1, addsAtMost(t.Kind)); shown == maxShown+1 && addsAtMost(t.Kind) > 0 {
			c.addFlaw(t.decl.name.pos, "leave some out, or derive them on another entity, which has a row of its own",
				"more than %d attributes of %s are derived: one write cannot hold them, so none would be shown", maxShown, e.Name)
		}
		for _, s := range t.Sources {
			source := s.Entity
			before := adds[source]
			if adds[source] += addsAtMost(t.Kind); before <= maxAdded && adds[source] > maxAdded {
				d := t.decl
				c.addFlaw(d.name.pos, "leave some out, or derive them on another entity, which has a row of its own",
					"a row of %s would add to more than %d counts and sums of one row of %s: one write cannot hold them, so none would count. A mean and a distinct are two", source.Name, maxAdded, e.Name)
			}
			if t.Kind != aggregate.Distinct {
				continue
			}
			if spread[source]++; spread[source] == maxSpread+1 {
				c.addFlaw(t.decl.name.pos, "leave some out, or derive them on another entity, which has a row of its own",
					"a row of %s would add to more than %d distincts of one row of %s: one transaction cannot hold them, so none would count", source.Name, maxSpread, e.Name)
			}
		}
	}
}

// addsAtMost returns to how many accumulators an edit of one source row adds at most, if its numbers are of
// ordinary size.
func addsAtMost(kind *aggregate.Aggregate) int {
	switch kind {
	case aggregate.Mean, aggregate.Distinct: // the sum and the number; the old value and the new one
		return 2
	case aggregate.Set: // has rows of its own
		return 0
	}
	return 1
}

// widthOfFacts reports the first latest or status with which a row of an entity would have too many
// attributes that come from facts, and returns how many it has: a recompute asks for each of them as it was read.
func (c *compiler) widthOfFacts(e *Entity) int {
	seen := map[string]bool{}
	add := func(at pos, names []string) {
		before := len(seen)
		for _, name := range names {
			seen[name] = true
		}
		if before <= maxRecomputed && len(seen) > maxRecomputed {
			c.addFlaw(at, "leave some out, or derive them on another entity, which has a row of its own",
				"more than %d attributes of %s are of statuses and of the latest of rows: one write cannot hold them, so none would be shown", maxRecomputed, e.Name)
		}
	}
	for _, s := range e.Statuses {
		add(s.decl.name.pos, append(s.Attributes(), seq.Map(s.Input.Fields, func(f *Field) string { return f.Attr })...))
	}
	for _, l := range e.Latest {
		add(l.decl.name.pos, l.Attributes())
	}
	return len(seen)
}
