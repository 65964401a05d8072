package model

import (
	"slices"

	"weir/internal/seq"
)

// checkAny reports an "any" that a query cannot use: it must be in the first step of a
// list, and its fields must be single values that are not hidden and that the index holds.
func checkAny(c *compiler, q *Query, s *Step, d *stepDecl) {
	at := d.placeOf("any")
	switch {
	case !d.hasKey("any"):
		return
	case s.Get:
		c.addFlaw(at, "list: "+s.Entity.Name, "a get reads one row by its key, \"any\" is for a list")
	case s != q.Steps[0]:
		c.addFlaw(at, "with: {field: field of the row before}", "\"any\" is of parameters, and stands in the first step")
	}
	reportTwice(c, d.Any)
	for i, b := range s.Any {
		w := d.Any[i].name
		c.checkHeld(s, checkType(c, d, "any", w, b.Field), w)
	}
}

// checkKinds reports a step that reads rows of several entities which do not share a
// table, a partition and the fixed fields. It also reports a step that lists a set,
// which only a get can read as a whole.
// A read of several entities is one Query of the store, so the values that the step fixes must mean the same
// key for all of them.
func checkKinds(c *compiler, q *Query, s *Step, d *stepDecl) {
	if s.Entity.SetOf() != nil && !s.Get {
		c.addFlaw(d.pos(), "get: "+s.Entity.Name, "a set is one row to those who ask, however many hold it")
	}
	for i, e := range s.Also {
		w := d.also[i]
		switch {
		case e == s.Entity || slices.Contains(s.Also[:i], e):
			c.addFlaw(w.pos, "", "%q is here twice", w.text)
		case e.Table != s.Entity.Table:
			c.addFlaw(w.pos, "", "%s and %s are in different tables", s.Entity.Name, e.Name)
		case e.SetOf() != nil:
			c.addFlaw(w.pos, "get: "+e.Name, "a set is one row to those who ask, however many hold it")
		case !s.hasIndex(e):
			c.addFlaw(w.pos, "give the entity a template for its key", "rows of %s are not in the index %s", e.Name, d.By.text)
		case s.hasIndex(s.Entity): // else checkPartitions reports it
			c.sameRead(s, e, w)
		}
	}
	if len(s.Also) > 0 && s != q.Steps[len(q.Steps)-1] {
		c.addFlaw(d.also[0].pos, "", "rows of several kinds are an answer, and lead to nothing further")
	}
}

// sameRead reports an entity e that one read with s.Entity cannot find: its key templates
// differ from those of s.Entity, or it lacks a field that the step fixes.
func (c *compiler) sameRead(s *Step, e *Entity, w word) {
	pa, sa, _ := s.keySchema()
	pb, sb, _ := s.schemaOf(e)
	if pa.Template.String() != pb.Template.String() {
		c.addFlaw(w.pos, "list each in a query of its own", "%s and %s share no partition: their templates for %s are %s and %s", s.Entity.Name, e.Name, pa.Attr.Name, pa.Template, pb.Template)
	}
	if sa != nil && sa.Template.String() != sb.Template.String() {
		c.partitionOnly(s, sa, sb, w)
	}
	used := seq.Map(append(slices.Clone(s.With), s.Any...), func(b Bind) string { return b.Field.Name })
	used = append(used, seq.Map(s.Range, func(t RangeTerm) string { return t.Field.Name })...)
	for _, name := range append(used, seq.Map(s.Where, func(f Filter) string { return f.Field.Name })...) {
		switch {
		case !c.hasField(e, name):
			c.addFlaw(w.pos, "", "%s has no field %q", e.Name, name)
		case e.Hides(name):
			c.checkHidden(e, word{name, w.pos})
		case typesClash(e.Field(name).Type, s.Entity.Field(name).Type):
			c.addFlaw(w.pos, "", "%s is a %s in %s and a %s in %s", name, s.Entity.Field(name).Type, s.Entity.Name, e.Field(name).Type, e.Name)
		}
	}
}

// partitionOnly reports a step that would narrow the sort keys of entities whose templates for
// them differ: it reads their whole partition.
func (c *compiler) partitionOnly(s *Step, a, b *KeyTemplate, w word) {
	if len(s.Range) > 0 {
		c.addFlaw(w.pos, "where: {"+s.Range[0].Field.Name+": {below: {param: NAME}}}", "a range needs one order, and the sort keys of several entities differ")
	}
	for _, bind := range append(slices.Clone(s.With), s.Any...) {
		name := bind.Field.Name
		partition, _, _ := s.keySchema()
		if partition.Template.Slot(name) < 0 && (a.Template.Slot(name) >= 0 || b.Template.Slot(name) >= 0) {
			c.addFlaw(w.pos, "where: {"+name+": {in: {param: NAME}}}", "%q stands in a sort key, and those of several entities differ: the query reads their whole partition", name)
		}
	}
}

// Mixed reports whether the step reads entities with different templates for their sort
// key. It then reads the whole partition, an item collection.
// Rows of a mixed step come in the order of their sort keys as the table has them, whatever entity
// they are of.
func (s *Step) Mixed() bool {
	_, sort, _ := s.keySchema()
	return sort != nil && slices.ContainsFunc(s.Also, func(e *Entity) bool {
		_, other, _ := s.schemaOf(e)
		return other == nil || other.Template.String() != sort.Template.String()
	})
}
