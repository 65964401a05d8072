package model

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/value"
)

// A construct that can never have an effect is refused. One that has none unless another program does something
// that the model does not say is legal, and a warning says so.

// checkUnwritten warns of tallies on rows that only another program can write: an entity without
// a list of attributes. A tally makes no rows.
// A set is left out: it makes rows of its own. So is an entity with attributes: {}, which says that
// an application writes its keys.
func checkUnwritten(c *compiler, e *Entity) {
	i := slices.IndexFunc(e.Values, func(t *Tally) bool { return !t.IsSet() })
	if i < 0 || e.Derived || e.decl.hasAttributes() {
		return
	}
	t := e.Values[i]
	hint := "if an application writes them, list what it writes: attributes: {…}, or {} for nothing besides the key"
	if len(t.Sources) > 0 {
		hint += fmt.Sprintf("; if weir shall make them, declare %s: {group: %s, …} instead", e.Name, t.Sources[0].Entity.Name)
	}
	c.addWarning(t.decl.name.pos, hint, "nothing here writes rows of %s, and a tally makes none: %s is shown only on rows that another program writes", e.Name, t.Name)
}

// checkItself warns of values that each row has from itself alone.
func checkItself(c *compiler) {
	warn := func(name string, at pos, of, target *Entity, to []Assign) {
		if of == target && !slices.ContainsFunc(to, func(a Assign) bool { return a.Expr.Field == nil || a.Expr.Field.Name != a.Name }) {
			c.addWarning(at, "to: {NAME: FIELD}, of a field that names another row; for a value of many rows, a group or a row above them. Nothing sums up the rows before each row",
				"%s is of one row: each %s reaches itself alone", name, of.Name)
		}
	}
	for _, t := range c.Tallies {
		for _, s := range t.Sources {
			if t.Group == nil {
				warn(t.Name, t.decl.name.pos, s.Entity, t.Target, s.To)
			}
		}
	}
	for _, l := range c.Latest {
		warn(l.Name, l.decl.name.pos, l.Source, l.Target, l.To)
	}
}

// checkCounted reports tallies of a field that no counted row has.
// It intersects the where of the source with the values that the aggregate counts of the same field
// (aggregate.Operand.Counts), by value.Condition.Empty, which is exact in one direction: a condition that it
// calls empty is empty.
func checkCounted(c *compiler, t *Tally) {
	for _, s := range t.Sources {
		for _, w := range s.Where {
			if s.function() != nil || !s.Amount.Has(w.Field.Name) || w.Is.Empty() {
				continue
			}
			if slices.Concat(w.Is, t.Kind.Of.Counts).Empty() {
				c.addFlaw(t.decl.name.pos, "leave the line of the where out", "%s counts nothing: no row of %s that passes its where has a %s that counts", t.Name, s.Entity.Name, w.Field.Name)
			}
		}
	}
}

// outOfReach reports or warns of a test that no declared value of the attribute passes: none of
// its enum, or none between its min and its max.
// An enum is a report: rows outside it are refused by commands, and a word that is not declared is
// a mistake of the model. Bounds are a warning, because rows that are written in other ways may
// pass them.
func (c *compiler) outOfReach(e *Entity, f *Field, is value.Condition, at pos) {
	a := e.Attribute(f.Name)
	if a == nil || is.Empty() || is.Holds(value.Value{}) {
		return
	}
	if len(a.Enum) > 0 {
		passes := func(word string) bool { return is.Holds(value.OfString(word)) }
		legacy := a.Reading != nil // rows may have other texts
		if !legacy && !slices.ContainsFunc(a.Enum, passes) {
			c.addRemark(at, "", "no value of %q passes this test: it is one of %s", f.Name, strings.Join(a.Enum, ", "))
		}
		return
	}
	if a.Type != TypeNumber || f.Type != TypeNumber {
		return
	}
	within := slices.Clone(is)
	if !a.Least.IsMissing() {
		within = append(within, value.Term{Op: value.AtLeast, Values: []value.Value{a.Least}})
	}
	if !a.Most.IsMissing() {
		within = append(within, value.Term{Op: value.AtMost, Values: []value.Value{a.Most}})
	}
	if len(within) > len(is) && within.Empty() {
		c.addWarning(at, "", "no command writes a %s that passes this test: its min and max exclude it, and only rows that are written in other ways can pass", f.Name)
	}
}
