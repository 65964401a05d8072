package model

import (
	"cmp"
	"slices"

	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// latestKind derives attributes that take the values of one source row: of the row that comes
// first when they are ordered by one of their fields.
var latestKind = kind{
	keys: latestKeywords, declare: func() derivation { return &latestDecl{} },
	compile: func(c *compiler) { eachOf(c, c.Latest, (*compiler).compileLatest) },
	check:   func(c *compiler) { eachOf(c, c.Latest, checkLatestAttributes, checkLatestFields) },
}

// The keywords of kinds of Latest.
const (
	keyMax      = "max"
	keyMin      = "min"
	keyLatest   = "latest"
	keyEarliest = "earliest"
)

// latestKeywords are the keys of which a declaration has one.
var latestKeywords = []string{keyMax, keyMin, keyLatest, keyEarliest}

// IsLatest reports whether a derivation of a kind is a Latest.
func IsLatest(kind string) bool { return slices.Contains(latestKeywords, kind) }

// Latest derives attributes of a target row from one of its source rows: the row whose field By
// is the greatest (max, latest) or the least (min, earliest). All of them are of that one row.
type Latest struct {
	Name   string // "Channel.lastText"
	Kind   string // the keyword
	Target *Entity
	Source *Entity
	By     *Field
	Where  []Test   // which source rows take part
	To     []Assign // the names of the target's key, from fields of Source
	Set    []Assign // the attributes, from fields of Source; the first is the one of the name
	Group  *Group   // that it is a value of, nil for none
	Input  Input    // the part that decides the target: of a value of a group, the fields that the group reads, and otherwise all
	Given  Input    // the other fields that a value of a group reads

	own  int // how many tests of Where are of this value of a group alone
	decl *latestDecl
}

// TargetOf returns the key of the row that shows the latest of a row and others. It is as Source.TargetOf.
func (l *Latest) TargetOf(row value.Item) (key store.Key, unfit *Unfit, ok bool) {
	if l.Group != nil {
		return l.Target.groupKey(l.To, row)
	}
	key, ok = l.Target.KeyFrom(l.To, row)
	return key, nil, ok
}

// Greatest reports whether the row with the greatest value is taken, not the least.
func (l *Latest) Greatest() bool { return l.Kind == keyMax || l.Kind == keyLatest }

// Attributes returns the attributes that it writes.
func (l *Latest) Attributes() []string {
	return seq.Map(l.Set, func(a Assign) string { return a.Name })
}

// fileNames returns them as the file has them.
func (l *Latest) fileNames() []word {
	return append([]word{l.decl.attr}, seq.Map(l.decl.Also, func(p pair) word { return p.name })...)
}

// Covers returns those of its attributes that the target declares: the application writes them too, and its value shows
// where no row gives one. There are none on the row of a group, which weir makes.
func (l *Latest) Covers() []string {
	if l.Group != nil {
		return nil
	}
	return slices.DeleteFunc(l.Attributes(), func(name string) bool { return l.Target.Attribute(name) == nil })
}

// Covered returns the attributes of the entity's rows over whose values, which the application wrote, weir shows others.
func (e *Entity) Covered() []string {
	return append(seq.Flat(e.Statuses, (*Status).Attributes), seq.Flat(e.Latest, (*Latest).Covers)...)
}

// Recomputes returns the names of the values that rows of the entity show of facts: statuses and the
// latest of rows. They are computed and shown together.
func (e *Entity) Recomputes() []string {
	return append(seq.Map(e.Statuses, func(s *Status) string { return s.Name }), seq.Map(e.Latest, func(l *Latest) string { return l.Name })...)
}

// IsRecomputed reports whether rows of the entity show anything of facts.
func (e *Entity) IsRecomputed() bool { return len(e.Statuses)+len(e.Latest) > 0 }

// takenField returns the type of an attribute that shows a field of another row: of the latest row, or of one that it follows.
// It is the type of that field. ok is false if nothing of the entity takes the attribute from another row.
func (e *Entity) takenField(name string) (Type, bool) {
	if f := seq.Find(e.Follows, func(f *Follow) bool { return f.Attr == name }); f != nil {
		if f.Field == nil {
			return TypeAny, true
		}
		return f.Field.Type, true
	}
	for _, l := range e.Latest {
		for _, a := range l.Set {
			switch {
			case a.Name != name:
			case a.Expr.Field == nil:
				return TypeAny, true
			default:
				return a.Expr.Field.Type, true
			}
		}
	}
	return TypeAny, false
}

// inputs sets and returns the fields that the latest reads.
func (l *Latest) inputs() (all []reading) {
	shared, at := len(l.Where)-l.own, l.decl.name.pos
	l.Input = Input{Derivation: l.Name, Where: l.Where[:shared], Fields: assignedFields(l.To)}
	l.Given = Input{Derivation: l.Name, Where: l.Where[shared:], Fields: assignedFields(l.Set)}
	if l.By != nil {
		l.Given.Fields = append(l.Given.Fields, l.By)
	}
	if l.Group == nil {
		l.Input.Fields, l.Given.Fields = append(l.Input.Fields, l.Given.Fields...), nil
	} else {
		l.Input.Derivation = l.Group.Rows.Name
	}
	if l.Source != nil {
		all = append(all, reading{what: l.Name, at: at, makes: l.Name, old: true, of: l.Source, in: &l.Input}, reading{what: l.Name, at: at, makes: l.Name, old: true, of: l.Source, in: &l.Given})
	}
	return append(all, reading{what: l.Name, at: l.decl.name.pos, old: true, of: l.Target, in: &Input{}})
}

// latestDecl is a latest, earliest, max or min as the file has it.
type latestDecl struct {
	// Attributes that take the values of one source row: the one with the greatest or the least value of a field. Of rows with
	// equal values it is the one whose key is the greatest, or the least.
	deriveDecl `noun:"latest"`
	// max: The greatest value of Entity.field.
	// min: The least value of Entity.field.
	// latest: Entity.field of the row with the greatest value of by.
	// earliest: Entity.field of the row with the least value of by.
	Of keyword `keys:"max min latest earliest" form:"Entity.field"`
	// The field that says which row is the latest or the earliest.
	By word `with:"latest earliest" need:"by: FIELD"`
	// Tests that a source row passes.
	Where []testDecl
	// Which row gets it: {name in the key of that row: field of the source row, or =text}. Equal names need no line.
	To []pair
	// More attributes, from fields of the same source row: {attribute: field}. One that the row lacks is absent.
	Also []pair `name:"attribute"`
}

func (d *latestDecl) enter(c *compiler, e *Entity) {
	l := &Latest{Name: d.name.text, Kind: d.Of.key, Target: e, Set: []Assign{{Name: d.attr.text}}, decl: d}
	l.Set = append(l.Set, seq.Map(d.Also, func(p pair) Assign { return Assign{Name: p.name.text} })...)
	c.Latest = append(c.Latest, l)
	e.Latest = append(e.Latest, l)
}

// compileLatest resolves a latest. After a problem it takes part in no derivation, so nothing else is reported of it.
// The attribute that the declaration is on is the first of Set; the others follow in the order of
// the file.
func (c *compiler) compileLatest(l *Latest) {
	d, before := l.decl, c.flaws
	var shown *Field
	if l.Source, shown = c.resolveDotted(d.Of.word(), c.findMeasured); l.Source == nil {
		return
	}
	if l.By = shown; l.Kind == keyLatest || l.Kind == keyEarliest {
		l.By = c.findMeasured(l.Source, d.By)
	}
	l.Set[0].Expr.Field = shown
	for i, p := range d.Also {
		l.Set[i+1].Expr.Field = c.findMeasured(l.Source, p.value)
	}
	l.Where = c.compileTests(l.Source, d.Where, false)
	if l.Group != nil {
		if of, ok := l.Group.decl.sources[l.Source]; ok && c.flaws == before {
			l.own, l.Where, l.To = len(l.Where), slices.Concat(of.Where, l.Where), of.To
			l.Source.LatestOf = append(l.Source.LatestOf, l)
		}
		return
	}
	c.recipe = func(says []string) string {
		if shown == nil {
			return ""
		}
		value := "{" + l.Kind + ": " + shown.Name
		if d.By.isGiven() {
			value += ", by: " + d.By.text
		}
		return c.groupAndFollow(d.deriveDecl, l.Target, l.Source, d.To, len(d.Where) > 0, says, l.Kind, value+"}", shown.Type)
	}
	l.To = c.resolveAssigns(l.Target, l.Source, d.To, d.Of.word().pos, "to")
	if c.recipe = nil; c.flaws == before {
		l.Source.LatestOf = append(l.Source.LatestOf, l)
	}
}

// checkLatestAttributes reports an attribute that something else writes too, or that cannot be
// derived because it is part of a key, tells which entity its row is, or is the table's TTL.
func checkLatestAttributes(c *compiler, l *Latest) {
	d := l.decl
	e := l.Target
	if l.Group == nil {
		of := l.Kind + ": " + d.Of.word().text
		if d.By.isGiven() {
			of += ", by: " + d.By.text
		}
		c.checkOpen(e, d.attr.pos, of, d.attr.text)
	}
	for i, a := range l.Set {
		at := l.fileNames()[i].pos
		before := l.Attributes()[:i]
		before = append(before, seq.Flat(e.Latest[:slices.Index(e.Latest, l)], func(o *Latest) []string { return o.Attributes() })...)
		switch {
		case slices.Contains(before, a.Name) || c.valueOf(e, a.Name) != nil:
			c.addFlaw(at, "one attribute for each", "%s.%s is derived already", e.Name, a.Name)
		case slices.ContainsFunc(e.Table.KeyAttrs(), func(k store.KeyAttr) bool { return k.Name == a.Name }):
			c.addFlaw(at, "choose another name, and search or copy the rows by it", "%s is in a key of %s or of an index of its table, and a value of another row cannot be", a.Name, e.Name)
		case e.Attribute(a.Name) != nil && e.Group == nil:
			c.checkInitial(e.Attribute(a.Name), a.Expr.Field, at)
		default:
			c.checkDerivable(e, a.Name, at)
		}
	}
}

// checkInitial reports an attribute whose own value cannot stand under the value of another row.
func (c *compiler) checkInitial(a *Attribute, shown *Field, at pos) {
	switch {
	case a.Reading != nil || a.Others != nil || a.Computed != nil:
		c.addFlaw(at, "leave them out", "%s is the value of another row where there is one, and has rules for its own", a.Name)
	case shown != nil && (typesClash(a.Type, shown.Type) || !a.SameForm(cmp.Or(shown.Declared, a))):
		c.addFlaw(a.decl.name.pos, "declare it as "+string(shown.Type), "%s takes the value of %s, a %s, and is declared in another form", a.Name, shown.Name, shown.Type)
	}
}

// checkLatestFields reports a field that orders nothing, and one that cannot be part of the key of the target.
func checkLatestFields(c *compiler, l *Latest) {
	d := l.decl
	at := d.placeOf(d.Of.key)
	if l.By != nil && (!isScalar(l.By.Type) || l.By.Type == TypeBinary || l.By.Type == TypeBoolean) { // these have no order
		c.addFlaw(at, "", "a %s goes by numbers, times or texts, %s.%s is a %s", d.Of.key, l.Source.Name, l.By.Name, l.By.Type)
	}
	if l.Source != nil && l.Group == nil { // checkGroupBy
		c.checkFits(l.decl.name.pos, l.Name, l.Target, l.To)
	}
}

// derivation is the catalog's view of a latest. "max" and "latest" of one field have one
// definition, as have "min" and "earliest".
func (l *Latest) derivation() Derivation {
	d := Derivation{Name: l.Name, Into: l.Target.Name, Kind: l.Kind, attrs: l.Attributes(), From: []string{l.Source.Name}, Reads: []string{l.Source.Table.Name, l.Target.Table.Name}}
	x := &d.definition
	x.addLine("latest", map[bool]string{true: "greatest", false: "least"}[l.Greatest()])
	x.addWithin("target", l.Target.identity())
	x.addWithin("source", l.Source.identity())
	x.addWithin("by", l.By.definition())
	x.addTests("where", l.Where)
	x.addAssigns("to", l.To)
	x.addAssigns("set", l.Set)
	if over := l.Covers(); len(over) > 0 {
		x.addLine("over", over...)
	}
	return d
}
