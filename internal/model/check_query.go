package model

import (
	"slices"

	"weir/internal/seq"
	"weir/internal/value"
)

// keySchema returns the templates of the key that a step reads by. sorted is false if that
// key has no sort key.
func (s *Step) keySchema() (partition, sort *KeyTemplate, sorted bool) { return s.schemaOf(s.Entity) }

// schemaOf is compileSchema for another entity whose rows the step reads.
func (s *Step) schemaOf(e *Entity) (partition, sort *KeyTemplate, sorted bool) {
	key := e.Table.Key
	if s.Index != nil {
		key = s.Index.Key
	}
	return e.KeyTemplate(key.Partition.Name), e.KeyTemplate(key.Sort.Name), key.Sort.Name != ""
}

// hasIndex reports whether an entity has templates for the whole key that a step reads by.
func (s *Step) hasIndex(e *Entity) bool {
	partition, sort, sorted := s.schemaOf(e)
	return partition != nil && (sort != nil || !sorted)
}

// Bound returns the Bind that fixes a name, nil if none does.
func (s *Step) Bound(name string) *Bind {
	return seq.At(s.With, func(b *Bind) bool { return b.Field.Name == name })
}

// isCertain reports whether the name has a value in every call.
// A constant and a field of the row before are certain, and so is a parameter with a default.
func (q *Query) isCertain(s *Step, name string) bool {
	b := s.Bound(name)
	if b == nil {
		return false
	}
	i := slices.IndexFunc(q.Params, func(p Param) bool { return p.Name == b.Param })
	return b.Param == "" || i >= 0 && (!q.Params[i].Optional || !q.Params[i].Default.IsMissing())
}

// checkGets reports a get whose key is not fixed completely by required parameters, and options
// that only a list has.
func checkGets(c *compiler, q *Query, s *Step, d *stepDecl) {
	if !s.Get {
		return
	}
	for _, key := range []string{"by", "below", "range", "order"} {
		if d.hasKey(key) {
			c.addFlaw(d.placeOf(key), "list: "+s.Entity.Name, "a get reads one row of the table by its key, %q is for a list", key)
		}
	}
	for _, name := range s.Entity.KeyNames() {
		if !q.isCertain(s, name) {
			c.addFlaw(d.pos(), "with: {"+name+": PARAMETER}", "a get needs the whole key of %s, and %q is not fixed by a required parameter", s.Entity.Name, name)
		}
	}
}

// checkPartitions reports a list that does not read exactly one partition of its table or index.
// One partition bounds the cost of a query: a Query of DynamoDB needs the whole partition
// key, and a Scan is not offered.
func checkPartitions(c *compiler, q *Query, s *Step, d *stepDecl) {
	if s.Get {
		return
	}
	if !s.hasIndex(s.Entity) {
		c.addFlaw(d.placeOf("by"), "give the entity a template for its key", "rows of %s are not in the index %s", s.Entity.Name, s.Index.Name)
		return
	}
	partition, _, sorted := s.keySchema()
	for _, name := range partition.Template.requiredNames() {
		if !q.isCertain(s, name) {
			c.addFlaw(d.pos(), "with: {"+name+": PARAMETER}", "a list reads one partition, and %q in %s (%s) is not fixed by a required parameter", name, partition.Attr.Name, partition.Template)
		}
	}
	if d.hasKey("order") && !sorted {
		c.addFlaw(d.placeOf("order"), "leave it out", "the rows have no order: there is no sort key")
	}
}

// narrowsBy reports whether the read itself uses the name: in the partition key, or in the sort
// key with all names before it fixed too. Otherwise the name only filters.
func (s *Step) narrowsBy(name string) bool {
	partition, sort, _ := s.keySchema()
	if partition != nil && partition.Template.Slot(name) >= 0 {
		return true
	}
	if sort == nil {
		return false
	}
	for _, n := range sort.Template.Names() {
		if n == name {
			return true
		}
		if s.Bound(n) == nil {
			return false
		}
	}
	return false
}

// nextName returns the first name of the sort key that the step does not fix in every call, "" for none. A range can be of
// this name alone.
func (q *Query) nextName(s *Step, sort *KeyTemplate) string {
	if sort == nil {
		return ""
	}
	return seq.Find(sort.Template.Names(), func(n string) bool { return !q.isCertain(s, n) })
}

// checkRange reports a range that is no one part of the list, and words of a test that are no bounds.
func checkRange(c *compiler, q *Query, s *Step, d *stepDecl) {
	if s.Get {
		return
	}
	type bounded struct {
		word
		key string
	}
	all := seq.Map(d.Below, func(p pair) bounded { return bounded{p.name, "below"} })
	for _, t := range d.Range {
		all = append(all, bounded{t.name, "range"})
		for _, term := range t.terms {
			if term.op < value.AtLeast {
				c.addFlaw(term.at, "with: {"+t.name.text+": PARAMETER} for one value; where for others, whose rows are read and left out",
					"a range has a beginning and an end, and no %q", term.op.String())
			}
		}
	}
	_, sort, _ := s.keySchema()
	next := q.nextName(s, sort)
	for i, w := range all {
		switch {
		case next == "":
			c.addFlaw(w.pos, "", "%s needs a name of the sort key that with leaves free", w.key)
		case w.text != next:
			c.addFlaw(w.pos, "fix "+next+" under with, or list by an index whose sort key begins with "+w.text, "the rows are in the order of %q, so %s cannot bound %q", next, w.key, w.text)
		case s.Bound(next) != nil:
			c.addFlaw(w.pos, "leave it out of with", "with and %s bound %q both", w.key, next)
		case i > 0:
			c.addFlaw(w.pos, "range: {"+next+": {atLeast: {param: FROM}, below: {param: TO}}}", "below and range bound %q both", next)
		default:
			if why := whyUnsorted(s.Entity, sort, next); why != "" {
				c.addFlaw(w.pos, "a range is of a string, in the order of its text, of a time in UTC, or of a key that is a number", "%s", why)
			}
		}
	}
	for _, t := range s.Range {
		if text := value.Scalar(t.Const); next != "" && !s.Entity.Derived && sort.Template.Ends(next, text) {
			c.addFlaw(d.pos(), "", "no %s has %q in the key %s, since %q ends it", next, text, sort.Template, sort.Template.After(next))
		}
	}
}

// whyUnsorted says why keys are not in the order of a name's values, "" if they are.
func whyUnsorted(e *Entity, sort *KeyTemplate, name string) string {
	switch a := e.Attribute(name); {
	case a == nil || sort.Attr.Type == value.Number:
	case a.Type == TypeNumber:
		return name + " is a number in the text of " + sort.Attr.Name + ", where 10 is before 9"
	case a.Type == TypeTime && (a.As != "" || a.Zone != nil):
		return name + " is no time in UTC in the text of " + sort.Attr.Name
	}
	return ""
}

// checkReads says of a where that rows which fail it are read all the same, and warns if a range could be in its place.
func checkReads(c *compiler, q *Query, s *Step, d *stepDecl) {
	left := 0
	for _, t := range d.Where {
		if by, ok := q.rangeIndex(s, t); ok {
			c.addWarning(t.name.pos, by+"range: {"+t.name.text+": "+t.text()+"}", "this where reads all rows that with reaches; a range reads only those that pass it")
		} else {
			left++
		}
	}
	if left > 0 && !s.Get {
		c.addCost(d.placeOf("where"), "an index whose sort key begins with the field, and a range, read only what they answer",
			"this where reads all %s rows that with and range reach, and leaves out those that fail", s.Entity.Name)
	}
}

// rangeIndex reports whether a test of a where could be a range, by another index if there is one.
func (q *Query) rangeIndex(s *Step, t testDecl) (by string, ok bool) {
	name := t.name.text
	if s.Get || len(s.Also)+len(s.Range) > 0 || slices.ContainsFunc(t.terms, func(t termDecl) bool { return t.op < value.AtLeast }) {
		return "", false
	}
	fits := func(sort *KeyTemplate) bool {
		return q.nextName(s, sort) == name && s.Bound(name) == nil && whyUnsorted(s.Entity, sort, name) == ""
	}
	if _, sort, _ := s.keySchema(); fits(sort) {
		return "", true
	}
	for _, ix := range s.Entity.Table.Indexes {
		partition, sort := s.Entity.KeyTemplate(ix.Key.Partition.Name), s.Entity.KeyTemplate(ix.Key.Sort.Name)
		if partition != nil && !ix.KeysOnly && fits(sort) && !slices.ContainsFunc(partition.Template.requiredNames(), func(n string) bool { return !q.isCertain(s, n) }) {
			return "by: " + ix.Name + ", ", true
		}
	}
	return "", false
}

// checkFilters reports a filter that a query cannot use: its field must be a single value
// that the index holds.
func checkFilters(c *compiler, q *Query, s *Step, d *stepDecl) {
	reportTwice(c, d.With)
	for i, b := range s.With {
		w := d.With[i].name
		if checkType(c, d, "with", w, b.Field); !s.narrowsBy(w.text) {
			c.checkHeld(s, b.Field, w)
		}
	}
	for i, f := range s.Where {
		c.checkHeld(s, f.Field, d.Where[i].name)
	}
}

// checkHeld reports a field that the index that a step reads by does not hold.
func (c *compiler) checkHeld(s *Step, f *Field, w word) {
	if s.Index != nil && s.Index.KeysOnly && !s.keysHold(f) {
		c.addFlaw(w.pos, "leave projection out", "the index %s holds only keys, and %s is not in one", s.Index.Name, w.text)
	}
}

// keysHold reports whether the field can be read from the keys alone.
// An index with keys only has the table's key and its own, and no other attribute (DynamoDB,
// KEYS_ONLY).
func (s *Step) keysHold(f *Field) bool {
	t := s.Entity.Table.Key
	ix := s.Index.Key
	keys := []string{t.Partition.Name, t.Sort.Name, ix.Partition.Name, ix.Sort.Name}
	if f.Formula != nil {
		return !slices.ContainsFunc(f.Formula.of, func(of *Field) bool { return !s.keysHold(of) })
	}
	return slices.Contains(keys, f.Attr)
}

// TellsEntity reports whether the keys that an index with keys only holds say which entity a row is.
// Where they do not, a reader has to read the row itself.
func (s *Step) TellsEntity() bool {
	return !slices.ContainsFunc(append(slices.Clone(s.Also), s.Entity), func(e *Entity) bool {
		return slices.ContainsFunc(e.Where, func(t Test) bool { return !s.keysHold(t.Field) })
	})
}

// checkExpired reports "expired" on an entity whose rows never expire.
func checkExpired(c *compiler, q *Query, s *Step, d *stepDecl) {
	if s.Expired && s.Entity.Expires == nil && s.Entity.Table.TTL == "" {
		c.addFlaw(d.placeOf("expired"), "leave it out, or say expires", "%s never expires", s.Entity.Name)
	}
}

// checkUnique reports a query in which several rows can lead to the same row, if it does
// not say whether that row is returned once.
func checkUnique(c *compiler, q *Query) {
	if q.Search != nil {
		return
	}
	d := q.decl
	said := d.hasKey("unique")
	if len(q.Steps) < 2 {
		if said {
			c.addFlaw(d.placeOf("unique"), "leave it out", "without then each row comes once anyway")
		}
		return
	}
	if mayRepeat(q) && !said {
		c.addFlaw(d.name.pos, "unique: true gives each once, unique: false each time", "several rows can lead to one %s, and the query does not say what then", q.Steps[len(q.Steps)-1].Entity.Name)
	}
	for _, s := range q.Steps {
		if s.decl.hasKey("order") && q.Unique {
			c.addFlaw(s.decl.placeOf("order"), "leave one of them out", "order has no effect: with unique the rows come in the order of their keys")
		}
	}
}

// mayRepeat reports whether two rows can lead to the same row in the last step. They can,
// unless each step's key contains the whole key of the step before.
// It looks at keys alone, not at conditions, so it may ask for unique where no row can come twice.
func mayRepeat(q *Query) bool {
	for i, s := range q.Steps[1:] {
		var from []string
		for _, b := range s.With {
			if b.Prior != nil && slices.Contains(s.Entity.KeyNames(), b.Field.Name) {
				from = append(from, b.Prior.Name)
			}
		}
		for _, name := range q.Steps[i].Entity.KeyNames() {
			if !q.Steps[i].Get && !slices.Contains(from, name) {
				return true
			}
		}
	}
	return false
}
