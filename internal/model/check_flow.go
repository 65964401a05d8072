package model

import (
	"slices"
	"strings"
)

// derived is a node in the graph of derivations: a tally, a status, the latest of rows, or all rows of an
// entity that weir makes. Exactly one field is set.
// It is comparable, so it is a key of the graph. All rows of an entity are one node, because a row
// does not say which rule made it.
type derived struct {
	tally *Tally
	steps *Status
	first *Latest
	rows  *Entity
}

// String is the derivation's name in messages about loops.
func (d derived) String() string {
	switch {
	case d.tally != nil:
		return d.tally.Name
	case d.steps != nil:
		return d.steps.Name
	case d.first != nil:
		return d.first.Name
	}
	return d.rows.Name
}

// feeds returns, for each derivation, the other derivations that it is made from. Search
// indexes are left out: they are made from rows, but no derivation is made from them.
// An edge says that a change of the one can change the other: through rows, through fields that are
// added up or set, through conditions, and through names in the target's key.
func (c *compiler) feeds() map[derived][]derived {
	out := map[derived][]derived{}
	for _, t := range c.Tallies {
		to := derived{tally: t}
		for _, s := range t.Sources {
			out[to] = append(out[to], c.fromRows(s.Entity)...)
			if s.Amount != nil {
				out[to] = append(out[to], c.fromFields(s.Entity, s.Amount.Fields...)...)
			}
			out[to] = append(out[to], c.fromTests(s.Entity, s.Where)...)
			out[to] = append(out[to], c.fromAssigns(s.Entity, s.To)...)
		}
	}
	for _, s := range c.Statuses {
		to := derived{steps: s}
		for _, st := range s.Stages {
			out[to] = append(out[to], c.fromRows(st.Source)...)
			out[to] = append(out[to], c.fromFields(st.Source, st.Who)...)
			out[to] = append(out[to], c.fromTests(st.Source, st.Where)...)
			out[to] = append(out[to], c.fromAssigns(st.Source, st.To)...)
			out[to] = append(out[to], c.fromAssigns(st.Source, st.Set)...)
			if st.List != nil && st.List.Others != nil {
				out[to] = append(out[to], c.fromRows(st.List.Others.Of)...)
			}
		}
	}
	for _, l := range c.Latest {
		if l.Source == nil {
			continue
		}
		to := derived{first: l}
		out[to] = append(out[to], c.fromRows(l.Source)...)
		out[to] = append(out[to], c.fromFields(l.Source, l.By)...)
		out[to] = append(out[to], c.fromTests(l.Source, l.Where)...)
		out[to] = append(out[to], c.fromAssigns(l.Source, l.To)...)
		out[to] = append(out[to], c.fromAssigns(l.Source, l.Set)...)
	}
	for _, r := range c.Rows {
		to := derived{rows: r.Into}
		out[to] = append(out[to], c.fromRows(r.Source)...)
		out[to] = append(out[to], c.fromTests(r.Source, r.Where)...)
		out[to] = append(out[to], c.fromAssigns(r.Source, r.Fields)...)
		if r.Subscribers != nil {
			out[to] = append(out[to], c.fromRows(r.Subscribers.Of)...)
			for _, m := range r.Subscribers.By {
				out[to] = append(out[to], c.fromFields(r.Subscribers.Of, m.Field)...)
				out[to] = append(out[to], c.fromFields(r.Source, m.Expr.Field)...)
			}
			for _, a := range r.Fields {
				out[to] = append(out[to], c.fromFields(r.Subscribers.Of, a.Expr.Subscriber)...)
			}
		}
	}
	for _, f := range c.Follows {
		to := derived{rows: f.Rule.Into}
		out[to] = append(out[to], c.fromRows(f.Source)...)
		out[to] = append(out[to], c.fromFields(f.Source, f.Field)...)
		out[to] = append(out[to], c.fromAssigns(f.Rule.Source, f.Key)...)
	}
	return out
}

// fromRows returns the node of the entity's rows if weir makes them.
// The rows of a group are its count of rows, which makes and deletes them.
func (c *compiler) fromRows(e *Entity) []derived {
	if e.Group != nil {
		return []derived{{tally: e.Group.Rows}}
	}
	if e.Derived {
		return []derived{{rows: e}}
	}
	return nil
}

// fromFields returns the tallies and statuses that write the fields. A nil field is skipped.
func (c *compiler) fromFields(e *Entity, fields ...*Field) []derived {
	var out []derived
	for _, f := range fields {
		if f == nil {
			continue
		}
		if t := c.valueOf(e, f.Name); t != nil {
			out = append(out, derived{tally: t})
		}
		for _, s := range e.Statuses {
			if slices.Contains(s.Attributes(), f.Name) {
				out = append(out, derived{steps: s})
			}
		}
		for _, l := range e.Latest {
			if slices.Contains(l.Attributes(), f.Name) {
				out = append(out, derived{first: l})
			}
		}
	}
	return out
}

// fromTests returns what writes the fields that the tests read.
func (c *compiler) fromTests(e *Entity, tests []Test) []derived {
	var out []derived
	for _, t := range tests {
		out = append(out, c.fromFields(e, t.Field)...)
	}
	return out
}

// fromAssigns returns what writes the fields that the values are taken from.
func (c *compiler) fromAssigns(e *Entity, as []Assign) []derived {
	var out []derived
	for _, a := range as {
		out = append(out, c.fromFields(e, a.Expr.Field)...)
		if a.Expr.Bucket != nil {
			out = append(out, c.fromFields(e, a.Expr.Bucket.Of)...)
		}
		out = append(out, c.fromAssigns(e, a.Expr.Map)...)
	}
	return out
}

// checkLoops reports derivations that depend on themselves, also through others. It
// reports each loop once, at the first of its derivations in the file.
// Without a loop, what is derived settles after as many passes as the longest path has derivations.
func checkLoops(c *compiler) {
	feeds := c.feeds()
	told := map[derived]bool{}
	for _, start := range c.inOrder() {
		if told[start] {
			continue
		}
		way := loop(feeds, start)
		if way == nil {
			continue
		}
		var text []string
		for _, d := range way {
			told[d] = true
			text = append(text, d.String())
		}
		c.report(c.derivedPos(start), "one of them has to be the application's own", "a loop: %s is derived from %s", start, strings.Join(append(text[1:], start.String()), ", which is derived from "))
	}
}

// loop returns the shortest path from start back to start, nil if there is none.
// It is a search in breadth, so among shortest paths it returns the one that comes first in feeds.
func loop(feeds map[derived][]derived, start derived) []derived {
	ways := [][]derived{{start}}
	seen := map[derived]bool{}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, next := range feeds[way[len(way)-1]] {
			if next == start {
				return way
			}
			if !seen[next] {
				seen[next] = true
				ways = append(ways, append(slices.Clone(way), next))
			}
		}
	}
	return nil
}

// inOrder returns all derivations in the order of the file.
func (c *compiler) inOrder() []derived {
	var out []derived
	for _, d := range c.decl.Derive {
		for _, t := range c.Tallies {
			if t.decl == d || t.Group != nil && t.Group.decl == d {
				out = append(out, derived{tally: t})
			}
		}
		for _, s := range c.Statuses {
			if s.decl == d {
				out = append(out, derived{steps: s})
			}
		}
		for _, l := range c.Latest {
			if l.decl == d {
				out = append(out, derived{first: l})
			}
		}
		for _, r := range c.Rows {
			if r.decl == d && !slices.Contains(out, derived{rows: r.Into}) {
				out = append(out, derived{rows: r.Into})
			}
		}
	}
	return out
}

// derivedPos is where the file declares a derivation, for a message about it.
func (c *compiler) derivedPos(of derived) pos {
	if of.tally != nil {
		return of.tally.decl.name.pos
	}
	if of.steps != nil {
		return of.steps.decl.name.pos
	}
	if of.first != nil {
		return of.first.decl.name.pos
	}
	for _, r := range c.Rows {
		if r.Into == of.rows {
			return r.decl.name.pos
		}
	}
	return pos{}
}

// checkImages reports a stream without the images that a derivation needs. A change adds
// f(new) − f(old), so the stream must carry both images. Only history of insertions and
// changes works without old images. Following always needs them: only the old image says
// that the row followed is gone.
// A stream with NEW_IMAGE, OLD_IMAGE or KEYS_ONLY lacks images without any error of DynamoDB, so
// only a check before the start can find it.
func checkImages(c *compiler) {
	need := func(at pos, what string, t *Table, old bool) {
		const hint = "leave stream out: it has new and old images then"
		switch {
		case t.KeysOnly:
			c.report(at, hint, "%s needs images of the rows, and the stream of table %s has only keys", what, t.Name)
		case old && !t.OldImage:
			c.report(at, hint, "%s needs old images, and the stream of table %s has none: a change or removal could not be taken back", what, t.Name)
		}
	}
	for _, t := range c.Tallies {
		at := t.decl.name.pos
		for _, s := range t.Sources {
			need(at, t.Name, s.Entity.Table, true)
		}
		need(at, t.Name, t.Target.Table, false)
	}
	for _, r := range c.Rows {
		old := len(r.Keep) == 0 || slices.Contains(r.Keep, events["remove"])
		for _, a := range r.Fields {
			old = old || slices.Contains(recordsIn(a.Expr), "$old")
		}
		need(r.decl.name.pos, r.Name, r.Source.Table, old)
		if r.Subscribers != nil {
			need(r.decl.name.pos, r.Name, r.Subscribers.Of.Table, true)
		}
	}
	for _, s := range c.Statuses {
		at := s.decl.name.pos
		need(at, s.Name, s.Target.Table, true)
		for _, st := range s.Stages {
			need(at, s.Name, st.Source.Table, true)
			if st.List != nil && st.List.Others != nil {
				need(at, s.Name, st.List.Others.Of.Table, true)
			}
		}
	}
	for _, l := range c.Latest {
		at := l.decl.name.pos
		need(at, l.Name, l.Target.Table, true)
		if l.Source != nil {
			need(at, l.Name, l.Source.Table, true)
		}
	}
	for _, f := range c.Follows {
		need(f.Rule.decl.name.pos, f.Rule.Name, f.Source.Table, true)
	}
	for _, s := range c.Searches {
		need(s.decl.name.pos, "the search index "+s.Name, s.Of.Table, true)
	}
}
