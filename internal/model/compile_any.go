package model

import "strings"

// bindList compiles a Bind by which a field must be among the values of a parameter.
func (c *compiler) bindList(q *Query, e *Entity, p pair) (Bind, bool) {
	b := Bind{Field: c.field(e, p.name)}
	if b.Field == nil || !p.value.given() {
		return b, false
	}
	name, optional := strings.CutSuffix(p.value.text, "?")
	b.Param = name
	return b, c.param(q, Param{Name: name, Optional: optional, Type: b.Field.Type, List: true}, p.value)
}

// also compiles the further entities whose rows a list returns.
func (c *compiler) also(s *Step, d *stepDecl) bool {
	for _, w := range d.also {
		e := c.entity(w)
		if e == nil || c.broken[e] {
			return false
		}
		s.Also = append(s.Also, e)
	}
	return true
}
