package model

import (
	"cmp"
	"slices"
)

// eachDecl declares the subscribers that get a row: rows of an entity, found by fields of
// the source.
type eachDecl struct {
	// The rows of an entity that subscribe.
	heading `noun:"each"`
	// The entity whose rows are the subscribers.
	Of word `need:"of: ENTITY"`
	// Which of them: [names] that both have, or {field of the subscriber: field of the source row, or =text}.
	By namesOrPairs `need:"by: {field of the subscriber: field of the source row}"`
}

// Subscribers declares for which rows a rule makes a row each: for those of Of whose fields
// have the values that By requires.
type Subscribers struct {
	Of    *Entity
	By    []Match
	Input Input // the fields that the rule reads of rows of Of
}

// Match requires that a field of a subscriber equals a field of the source row or a constant.
type Match struct {
	Field *Field
	Expr  Expr
}

// compileSubscribers compiles the subscribers for which the rule makes rows.
func (c *compiler) compileSubscribers(r *RowRule, d *rowDecl) {
	if d.Each == nil {
		return
	}
	if w := d.Each.Of; w.isGiven() && c.Entity(w.text) == nil && r.Source != nil && c.hasField(r.Source, w.text) {
		c.addFlaw(w.pos, "let the application write a row for each, and derive from those", "each is of rows that subscribe, and no derivation takes one row apart: %q is a field of %s", w.text, r.Source.Name)
		return
	}
	before, of := c.flaws, c.findEntity(d.Each.Of)
	if of == nil {
		return
	}
	e := &Subscribers{Of: of}
	slices.SortStableFunc(d.Each.By, func(a, b pair) int { return cmp.Compare(a.name.text, b.name.text) }) // the name of a list has the values in this order
	for _, p := range d.Each.By {
		if !c.broken[of] && c.checkExchanged(p, "by", c.fieldNames(of), "the field of the subscriber, "+of.Name, c.fieldNames(r.Source), r.Source.Name) {
			continue
		}
		e.By = append(e.By, Match{c.findField(of, p.name), c.compileExpr(r.Source, p.value, of, p.name.text)})
	}
	if len(e.By) == 0 {
		c.flaws++
	}
	if c.flaws == before {
		r.Subscribers = e
		of.Subscribes = append(of.Subscribes, r)
	}
}

// checkEach reports a feed that cannot work: its rows must be history, its subscribers
// must be rows of the application that single values find, and each subscriber must get its
// own row.
func checkEach(c *compiler, r *RowRule) {
	if r.Subscribers == nil || c.broken[r.Into] || c.broken[r.Subscribers.Of] || c.faulty[r] {
		return
	}
	d := r.decl
	at := d.Each.pos()
	if !d.hasKey("keep") {
		c.addFlaw(at, "keep: [insert]", "who follows is as of one moment, so the rows made for each stay: %s needs keep", r.Name)
	}
	if r.Subscribers.Of.Derived {
		c.addFlaw(d.Each.Of.pos, "name the entity that "+r.Subscribers.Of.Name+" is made from", "subscribers are rows that the application writes, and weir makes %s", r.Subscribers.Of.Name)
	}
	for _, a := range r.Fields {
		if a.Expr.Follow != nil {
			c.addFlaw(c.setPos(r, a.Name), "let the entry follow by itself: "+r.Into.Name+"."+a.Name+": {follow: "+a.Expr.Follow.Source.Name+"."+a.Expr.Follow.Field.Name+", by: …}, or take the value as it is then",
				"a rule with each sets what stays as it was made")
		}
	}
	c.eachMatch(r, d.Each)
	c.eachKey(r, at)
}

// eachMatch reports fields by which subscribers cannot be found.
// Subscribers are one partition of the own table for each combination of these values, so each must
// be one value that a key can hold.
func (c *compiler) eachMatch(r *RowRule, d *eachDecl) {
	reportTwice(c, d.By)
	for i, m := range r.Subscribers.By {
		at := d.By[i].name.pos
		switch f := m.Expr.Field; {
		case !isScalar(m.Field.Type) || f != nil && !isScalar(f.Type):
			c.addFlaw(at, "", "subscribers are found by single values, and %s is none", m.Field.Name)
		case f != nil && m.Field.Key == nil && f.Key == nil && typesClash(m.Field.Type, f.Type):
			c.addFlaw(at, "", "%s.%s is a %s, and %s.%s is a %s", r.Subscribers.Of.Name, m.Field.Name, m.Field.Type, r.Source.Name, f.Name, f.Type)
		}
	}
}

// eachKey reports a feed whose key does not distinguish two subscribers.
// Names by which subscribers are found are the same for all of a list; the others have to be in the
// made key.
func (c *compiler) eachKey(r *RowRule, at pos) {
	for _, name := range r.Subscribers.Of.KeyNames() {
		matched := slices.ContainsFunc(r.Subscribers.By, func(m Match) bool { return m.Field.Name == name })
		used := slices.ContainsFunc(r.Fields, func(a Assign) bool {
			return a.Expr.Subscriber != nil && a.Expr.Subscriber.Name == name && slices.Contains(r.Into.KeyNames(), a.Name)
		})
		if !matched && !used {
			c.addFlaw(at, "set a name of the key of "+r.Into.Name+" from "+r.Subscribers.Of.Name+"."+name,
				"two subscribers would get one row of %s: its key does not contain %s.%s", r.Into.Name, r.Subscribers.Of.Name, name)
		}
	}
}

// onePerRecord reports whether the key that a rule makes contains the record's position.
// Two records then never make the same key.
func onePerRecord(r *RowRule) bool {
	return len(r.Keep) > 0 && slices.ContainsFunc(r.Fields, func(a Assign) bool {
		return a.Expr.Record == "$position" && slices.Contains(r.Into.KeyNames(), a.Name)
	})
}
