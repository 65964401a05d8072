package model

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/aggregate"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// groupKind derives summary rows: counts, sums, means and distinct values of rows that have
// the same values in some fields, and the latest of these rows, on a row of their own. The values that it
// shows are tallies and latests of that row, and one more tally counts the rows of the group:
// while it is above 0 the row exists.
var groupKind = kind{
	keys: []string{"group"}, declare: func() derivation { return &groupDecl{} },
	compile: func(c *compiler) { eachOf(c, c.Groups, (*compiler).compileGroup) },
	check: func(c *compiler) {
		eachOf(c, c.Groups, checkGroupEntity, checkGroupKey, checkGroupAttributes, checkGroupBy)
	},
}

// Group makes rows of an entity that each sum up the source rows of one group: those with the
// same values in the fields that the row's key is made of.
type Group struct {
	Into   *Entity
	Rows   *Tally   // how many source rows a group has; no row shows it
	Values []*Tally // the values of its row, besides the latest of its rows (Into.Latest)

	decl *groupDecl
}

// groupKey returns the key of the group that a row is in. Every value is escaped in it, so two
// groups never have one key.
func (e *Entity) groupKey(by []Assign, row value.Item) (key store.Key, unfit *Unfit, ok bool) {
	var buf [maxNames]value.Value
	values := append(buf[:0], make([]value.Value, len(by))...)
	for i := range by {
		switch x := &by[i].Expr; {
		case x.Bucket != nil:
			if values[i], unfit = x.Bucket.value(row); unfit != nil {
				return key, unfit, false
			}
		case x.Field != nil:
			values[i] = x.Field.Get(row)
		default:
			values[i] = x.Const
		}
	}
	key, ok = e.keyBy(func(k *KeyTemplate, name string) value.Value {
		i := slices.IndexFunc(by, func(a Assign) bool { return a.Name == name })
		if i < 0 {
			return value.Value{}
		}
		if k.Attr.Type != value.String {
			return values[i]
		}
		return value.OfString(k.Template.Escape(value.Scalar(values[i])))
	})
	if !ok {
		unfit = e.firstUnusable(by, values)
	}
	return key, unfit, ok
}

// firstUnusable returns the first field whose value no key can have, nil if there is none, or if the
// row lacks another one.
func (e *Entity) firstUnusable(by []Assign, values []value.Value) (unfit *Unfit) {
	for i, v := range values {
		x := &by[i].Expr
		text := v.Kind() == value.String
		switch {
		case v.Kind() == value.Missing, v.Kind() == value.Null, text && v.Text() == "":
			return nil
		case unfit != nil || x.Field == nil || x.Bucket != nil:
		case value.Scalar(v) == "":
			unfit = &Unfit{x.Field, v, "a single value"}
		case e.numberKey(by[i].Name) && v.Kind() != value.Number:
			if _, err := value.ParseNumber(v.Text()); !text || err != nil {
				unfit = &Unfit{x.Field, v, "a number"}
			}
		}
	}
	return unfit
}

// numberKey reports whether a name is the whole of a key that is a number.
func (e *Entity) numberKey(name string) bool {
	k := e.keyNamed(name)
	return k != nil && k.Attr.Type == value.Number
}

// Row returns the group's row of a key without its values and that key: the words of
// the entity's where, the names in the key, and the keys of indexes. A name in the key may be that of
// a key attribute, which has its value in the key. ok is false if no group has this key.
func (g *Group) Row(key store.Key) (row value.Item, ok bool) {
	e := g.Into
	is := e.Table.Item(key)
	if !e.MatchKey(is) {
		return nil, false
	}
	var names []value.Attr
	for _, k := range e.PrimaryKey() {
		v := is.Get(k.Attr.Name)
		if k.Template.Whole() {
			names = append(names, value.Attr{Name: k.Template.names[0], Value: v})
			continue
		}
		values := make([]string, len(k.Template.names))
		if !k.Template.Match(v.Text(), values) {
			return nil, false
		}
		for i, text := range values {
			names = append(names, value.Attr{Name: k.Template.names[i], Value: value.OfString(Unescape(text))})
		}
	}
	get := func(name string) value.Value {
		if i := slices.IndexFunc(names, func(a value.Attr) bool { return a.Name == name }); i >= 0 {
			return names[i].Value
		}
		return value.Value{}
	}
	attrs := e.Stamps()
	for _, a := range names {
		if of := e.Attribute(a.Name); of != nil {
			attrs = append(attrs, value.Attr{Name: a.Name, Value: typedText(of.Type, a.Value)})
		}
	}
	attrs = append(attrs, e.Spelled(get, func(k *KeyTemplate, name string) string { return k.Template.Escape(get(name).Text()) })...)
	for _, k := range e.Keys[len(e.PrimaryKey()):] {
		if e.Attribute(k.Attr.Name) != nil {
			continue
		}
		if v, whole := k.BuildTyped(get); whole {
			attrs = append(attrs, value.Attr{Name: k.Attr.Name, Value: v})
		}
	}
	row = value.NewItem(attrs...)
	if !slices.ContainsFunc(e.Attributes, func(a *Attribute) bool { return a.Computed != nil }) {
		return row, true
	}
	whole := e.WithComputed(row.With(is...))
	return whole.Filter(func(name string) bool { return row.Has(name) || !is.Has(name) }), true
}

// typedText returns the value that a text in a key stands for in an attribute of a type, or
// the text if it stands for none.
func typedText(typ Type, v value.Value) value.Value {
	if v.Kind() != value.String {
		return v
	}
	if is, err := scalarOf(typ, v.Text()); err == nil {
		return is
	}
	return v
}

// RowsIn returns how many source rows a ledger counts in its group.
func (g *Group) RowsIn(ledger value.Item) value.Value {
	return ledger.Get(owntable.SumAccumulator(g.Rows.Attr))
}

// groupDecl is a group as the file has it, with its compiled sources.
type groupDecl struct {
	// A row for each group of rows that have the same values in some fields. It is there as long as the group has rows.
	heading `noun:"group"`
	// The entity, or list of them, whose rows are grouped.
	Group []word `need:"group: ENTITY"`
	// Tests that a source row passes.
	Where []testDecl
	// What the rows of a group have in common: {name in the key of the group's row: field of the source row, =text, or a time
	// bucket}. Equal names need no line.
	By named[bucketDecl]
	// What the row shows of its group.
	Set groupSet `name:"attribute"`

	sources map[*Entity]Source // compiled: which rows of an entity are in which group
}

// split takes the name for that of the entity.
func (d *groupDecl) split(r *reader, _ string) bool {
	ok := entityName.MatchString(d.name.text)
	if !ok {
		r.addFlaw(d.name.pos, "Revenue", "a group is named by the entity of its rows, not %q", d.name.text)
	}
	return ok
}

func (d *groupDecl) target() word { return d.name }

func (d *groupDecl) enter(c *compiler, e *Entity) {
	g := &Group{Into: e, decl: d}
	c.Groups = append(c.Groups, g)
	e.Derived, e.Group = true, g
	g.Rows = c.groupTally(g, &groupValueDecl{heading: heading{name: word{owntable.Grouped, d.name.pos}}, Round: -1, Max: -1, Of: keyword{key: aggregate.Count.Keyword}})
	for _, v := range d.Set.tallies {
		if v.kind() != nil {
			g.Values = append(g.Values, c.groupTally(g, v))
		}
	}
	for _, v := range d.Set.latest {
		c.groupLatest(g, v)
	}
}

// groupSet are the values of a group, in the order of the file.
type groupSet struct {
	tallies named[groupValueDecl]
	latest  named[groupLatestDecl]
}

// read reads each value by its keys. One with keys of both, such as a distinct with its max, is a tally.
func (s *groupSet) read(n node, what string) {
	for _, e := range n.readEntries(what) {
		switch keys := e.value.listKeys(); {
		case slices.ContainsFunc(keys, IsLatest) && !slices.ContainsFunc(keys, func(key string) bool { return aggregateOf(key) != nil }):
			s.latest.add(e, what)
		default:
			s.tallies.add(e, what)
		}
	}
}

// groupLatestDecl is a value of a group that is of one of its rows.
type groupLatestDecl struct {
	// A value of a group that is of one of its rows: the one with the greatest or the least value of a field. Of rows with equal
	// values it is the one whose key is the greatest, or the least.
	heading `noun:"latest of a group"`
	// max: The greatest value of a field of the rows. In a group of several entities it is Entity.field.
	// min: The least value of a field of the rows.
	// latest: The field of the row with the greatest value of by.
	// earliest: The field of the row with the least value of by.
	Of keyword `keys:"max min latest earliest"`
	// The field that says which row is the latest or the earliest.
	By word `with:"latest earliest" need:"by: FIELD"`
	// Which rows of the group take part: more tests that a source row passes.
	Where []testDecl
	// More attributes, from fields of the same row: {attribute: field}. One that the row lacks is absent.
	Also []pair `name:"attribute"`
}

// groupLatest declares a latest of a group, which is compiled as any other. Its field is of the only entity of the group, or
// says of which it is.
func (c *compiler) groupLatest(g *Group, v *groupLatestDecl) {
	w := v.Of.word()
	if v.Of.key == "" || !w.isGiven() {
		return
	}
	entities := seq.Map(g.decl.Group, func(w word) string { return w.text })
	switch of, _, dotted := strings.Cut(w.text, "."); {
	case dotted && slices.Contains(entities, of):
	case dotted && c.Entity(of) != nil:
		c.refuseUnknown(word{of, w.pos}, entities, "the group %s has no rows of %q", g.Into.Name, of)
		return
	case len(entities) == 1:
		w.text = entities[0] + "." + w.text
	default:
		c.addFlaw(w.pos, v.Of.key+": "+strings.Join(entities, "."+w.text+" or ")+"."+w.text,
			"the %s is of one row of the group, and %q does not say of which entity", v.Of.key, w.text)
		return
	}
	d := &latestDecl{
		deriveDecl: deriveDecl{heading{word{g.Into.Name + "." + v.name.text, v.name.pos}, v.fields}, g.decl.name, v.name},
		Of:         keyword{key: v.Of.key, of: []word{w}}, By: v.By, Where: v.Where, Also: v.Also,
	}
	d.enter(c, g.Into)
	g.Into.Latest[len(g.Into.Latest)-1].Group = g
}

// groupValueDecl is a value of a group: the word count, or a map.
type groupValueDecl struct {
	// A value of a group.
	heading `noun:"group value"`
	// count: How many rows of these entities of the group there are: Entity, or a list of them.
	// sum: The sum of a field, or of an amount: field * other - 1. Entity.field is of the rows of one entity of the group.
	// mean: The mean of a field or an amount, absent if no row has it.
	// distinct: How many different values a field has.
	Of keyword `keys:"count sum mean distinct" need:"count, {sum: FIELD}, {mean: FIELD, round: 2}, {distinct: FIELD}, {max: FIELD} or {latest: FIELD, by: FIELD}" some:"a field, or entities of the group"`
	// Which rows of the group this value is of: more tests that a source row passes.
	Where []testDecl
	// The decimals of a mean, rounded half up.
	Round int `from:"0" to:"20" with:"mean" need:"round: 2"`
	// The most values that a distinct shows. With more it is not shown.
	Max int `from:"1" to:"1000000000" with:"distinct"`
}

func (d *groupValueDecl) short(n node, _ string) {
	d.Round, d.Max = -1, -1
	if w := n.readWord("the value of " + d.name.text); w.text == aggregate.Count.Keyword {
		d.Of.key = w.text
	} else if w.isGiven() {
		n.r.addFlaw(w.pos, "count, {sum: FIELD}, {mean: FIELD, round: 2}, {distinct: FIELD}, {max: FIELD} or {latest: FIELD, by: FIELD}", "%q is not what a group can have", w.text)
	}
}

func (d *groupValueDecl) check() {
	if d.Of.key != aggregate.Count.Keyword && len(d.Of.of) > 1 {
		d.r.addFlaw(d.Of.of[1].pos, "", "a %s of a group is of one field", d.Of.key)
	}
}

// kind is the aggregate of the value, nil if that is wrong, which is reported.
func (d *groupValueDecl) kind() *aggregate.Aggregate { return aggregateOf(d.Of.key) }

// groupTally declares a tally of a group.
// The tally that counts the rows of a group has the group's own name and no attribute of the file;
// whether the row exists follows from it.
func (c *compiler) groupTally(g *Group, v *groupValueDecl) *Tally {
	attr := v.name.text
	out := &Tally{
		Name: g.Into.Name + "." + attr, Kind: v.kind(), Target: g.Into, Attr: attr, Hidden: attr == owntable.Grouped,
		Round: max(v.Round, 0), Max: max(v.Max, 0), Group: g,
	}
	if out.Hidden {
		out.Name = g.Into.Name
	}
	out.decl = &tallyDecl{
		deriveDecl: deriveDecl{heading{word{out.Name, v.name.pos}, v.fields}, g.decl.name, v.name},
		Round:      v.Round, Max: v.Max, Where: v.Where,
	}
	out.decl.Of.of = g.decl.Group
	entities := seq.Map(g.decl.Group, func(w word) string { return w.text })
	w := v.Of.word()
	of, dotted := amountEntity(w.text)
	switch {
	case !w.isGiven():
	case out.Kind == aggregate.Count:
		out.decl.Of.of = v.Of.of
		for _, of := range v.Of.of {
			c.refuseUnknown(of, entities, "the group %s has no rows of %q", g.Into.Name, of.text)
		}
	case dotted && slices.Contains(entities, of):
		out.decl.Of.of = v.Of.of
	default:
		out.decl.Of.of = seq.Map(g.decl.Group, func(of word) word { return word{amountOf(of.text, w.text), w.pos} })
	}
	c.Tallies = append(c.Tallies, out)
	g.Into.Values = append(g.Into.Values, out)
	return out
}

// compileGroup compiles which rows of each source entity are in which group.
// Sources with a problem are left out, so that later checks say nothing more of them.
func (c *compiler) compileGroup(g *Group) {
	d := g.decl
	d.sources = map[*Entity]Source{}
	for _, w := range reportTwice(c, d.Group) {
		e := c.findEntity(w)
		if e == nil {
			continue
		}
		of, before := Source{Where: c.compileTests(e, d.Where, false)}, c.flaws
		if of.To = c.groupBy(g, e, d, w.pos); c.flaws == before {
			d.sources[e] = of
		}
	}
}

// groupBy compiles where the names of a group's key come from.
// Names of the key that the file does not give come from the source's fields of the same names, as
// in a tally.
func (c *compiler) groupBy(g *Group, source *Entity, d *groupDecl, at pos) []Assign {
	var words []pair
	var buckets []Assign
	for _, b := range d.By {
		if b.Unit.key == "" {
			words = append(words, pair{b.name, b.value})
			continue
		}
		if buckets = append(buckets, Assign{b.name.text, c.compileBucket(source, b)}); !c.broken[g.Into] {
			c.refuseUnknown(b.name, g.Into.KeyNames(), "the key of %s has no name %q", g.Into.Name, b.name.text)
		}
	}
	want := slices.DeleteFunc(g.Into.KeyNames(), func(name string) bool {
		return slices.ContainsFunc(buckets, func(a Assign) bool { return a.Name == name })
	})
	return append(c.assignsTo(g.Into, want, source, words, at, "by"), buckets...)
}

// checkGroupEntity reports rows of a group that something else makes or writes too, and groups
// of rows of which there is nothing to group.
func checkGroupEntity(c *compiler, g *Group) {
	d := g.decl
	e, at := g.Into, d.name.pos
	if len(e.MadeBy) > 0 {
		c.addFlaw(at, "give the group an entity of its own", "rows of %s are made by %s too", e.Name, e.MadeBy[0].Name)
	}
	if e.Expires != nil {
		c.addFlaw(e.decl.Expires.pos, "leave it out", "a row of %s is there as long as its group has rows", e.Name)
	}
	for _, w := range d.Group {
		if of := c.Entity(w.text); of != nil && of.SetOf() != nil {
			c.addFlaw(w.pos, "group the rows that the set is made of", "how many rows a set of %s has says nothing", of.Name)
		}
	}
	for _, o := range e.Table.Entities {
		if o != e && !c.broken[o] && !c.broken[e] && !c.anyReported(o, e) && o.SetOf() == nil && keyCases(e, o, anyTexts) && !(o.Group != nil && slices.Index(c.Entities, o) > slices.Index(c.Entities, e)) {
			c.addFlaw(at, "give the key of "+e.Name+" a prefix of its own", "%s can make the key of a row of %s, and would overwrite it", e.Name, o.Name)
		}
	}
}

// checkGroupKey reports a key that does not say which group a row is of.
// weir makes the row from its key, so the values of its other keys must follow from the key, the where or
// the values.
func checkGroupKey(c *compiler, g *Group) {
	e := g.Into
	if c.broken[e] {
		return
	}
	for i, k := range e.Keys {
		at := c.keyPos(e, k)
		primary := i < len(e.PrimaryKey())
		if k.Template.tail < len(k.Template.parts) {
			c.addFlaw(at, "leave the brackets out", "each row of %s has its whole key, and %q has an optional part", e.Name, k.Template)
		}
		for _, name := range k.Template.Names() {
			switch {
			case primary || slices.Contains(e.KeyNames(), name):
			case c.valueOf(e, name) == nil && e.Attribute(name) == nil && e.fixedNames()[name] == "":
				c.addFlaw(at, "use names of its key: "+strings.Join(e.KeyNames(), ", "), "nothing gives a row of %s %q for its key %s", e.Name, name, k.Attr.Name)
			case k.Attr.Name != name:
				c.addFlaw(at, "use names of its key: "+strings.Join(e.KeyNames(), ", "), "the key %s of %s cannot use %s: it changes while the row is there", k.Attr.Name, e.Name, name)
			}
		}
	}
	for _, t := range e.Where {
		if slices.Contains(e.KeyNames(), t.Field.Name) {
			c.addFlaw(e.decl.name.pos, "write it into the template, or leave it out", "the where of %s tests %s, which the group gives", e.Name, t.Field.Name)
		}
	}
}

// checkGroupAttributes reports a value of a group that is not declared or of another type, and
// a declared attribute that nothing gives a value.
func checkGroupAttributes(c *compiler, g *Group) {
	e, d := g.Into, g.decl
	for _, s := range d.Set.tallies {
		kind := s.kind()
		if kind == nil {
			continue
		}
		switch a := e.Attribute(s.name.text); {
		case a == nil && !c.broken[e]:
			c.addFlaw(s.name.pos, "attributes: {"+s.name.text+": "+kind.Type+"}", "%s has no attribute %q", e.Name, s.name.text)
		case a != nil && string(a.Type) != kind.Type:
			c.addFlaw(c.attributePos(e, a.Name), "type: "+kind.Type, "%s.%s is a %s, and the %s of a group is a %s", e.Name, a.Name, a.Type, kind.Keyword, kind.Type)
		}
	}
	for _, l := range e.Latest {
		for i, at := range l.fileNames() {
			switch f, a := l.Set[i].Expr.Field, e.Attribute(at.text); {
			case l.Group == nil || f == nil:
			case a == nil && !c.broken[e]:
				c.addFlaw(at.pos, "attributes: {"+at.text+": "+string(f.Type)+"}", "%s has no attribute %q", e.Name, at.text)
			case a != nil && typesClash(a.Type, f.Type):
				c.addFlaw(c.attributePos(e, a.Name), "type: "+string(f.Type), "%s.%s is a %s, and takes the value of %s, a %s", e.Name, a.Name, a.Type, f.Name, f.Type)
			case a != nil && (a.As != "" || a.Zone != nil):
				c.addFlaw(c.attributePos(e, a.Name), string(a.Type), "weir writes %s.%s as its type has it", e.Name, a.Name)
			}
		}
	}
	set := seq.Map(d.Set.tallies, func(s *groupValueDecl) string { return s.name.text })
	for _, s := range d.Set.latest {
		set = append(append(set, s.name.text), seq.Map(s.Also, func(p pair) string { return p.name.text })...)
	}
	for _, a := range e.Attributes {
		given := slices.Contains(e.KeyNames(), a.Name) || e.fixedNames()[a.Name] != "" || a.decl.From.isGiven() ||
			slices.Contains(set, a.Name)
		if !given {
			c.addFlaw(a.decl.name.pos, "set: {"+a.Name+": count}, or leave it out", "nothing gives %s.%s a value", e.Name, a.Name)
		}
		if !a.Default.IsMissing() || a.Defaults != nil || a.Reading != nil || a.Others != nil {
			c.addFlaw(a.decl.name.pos, "leave them out", "%s.%s has rules for what applications write, and weir writes it", e.Name, a.Name)
		}
	}
}

// checkGroupBy reports a field that rows cannot be grouped by.
// A value of another kind than one text, number or boolean cannot be a part of a key.
func checkGroupBy(c *compiler, g *Group) {
	e, d := g.Into, g.decl
	for _, w := range d.Group {
		of := c.Entity(w.text)
		for _, a := range d.sources[of].To {
			f, want := a.Expr.Field, e.Attribute(a.Name)
			if a.Expr.Bucket != nil {
				f = a.Expr.Bucket.Of
			}
			at := placeOf(d.By, a.Name, d.name.pos)
			switch {
			case f == nil:
			case a.Expr.Bucket != nil && want != nil && want.Type != TypeString && want.Type != TypeAny:
				c.addFlaw(c.attributePos(e, a.Name), "type: string", "%s.%s is a %s, and a %s is a text", e.Name, a.Name, want.Type, a.Expr.Bucket.Unit)
			case a.Expr.Bucket == nil && want != nil && typesClash(f.Type, want.Type):
				c.addFlaw(c.attributePos(e, a.Name), "", "%s.%s is a %s, and %s.%s is a %s", e.Name, a.Name, want.Type, of.Name, f.Name, f.Type)
			case !isScalar(f.Type) || f.Type == TypeBinary:
				c.addFlaw(at, "", "rows are grouped by single values, and %s.%s is a %s", of.Name, f.Name, f.Type)
			}
		}
	}
}

// made is the definition of a group's row, besides its values.
// How a name of the key is shown, as a number, a boolean or a text, is part of it: the row is read
// back from its key.
func (g *Group) made() defined {
	x := g.Into.made()
	var all []defined
	for _, a := range g.Into.Attributes {
		if slices.Contains(g.Into.KeyNames(), a.Name) {
			all = append(all, defined{quoteLine("name", a.Name, fmt.Sprint(a.Type == TypeNumber), fmt.Sprint(a.Type == TypeBoolean))})
		}
	}
	x.anyOrder("name", all)
	return x
}
