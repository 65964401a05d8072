package model

import (
	"slices"
	"strings"

	"weir/internal/aggregate"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// tallyKind derives a count, sum, mean, distinct or set: see package aggregate and set.go.
var tallyKind = kind{
	keys: seq.Map(aggregate.All, func(a *aggregate.Aggregate) string { return a.Keyword }), declare: func() derivation { return &tallyDecl{} },
	compile: func(c *compiler) { eachOf(c, c.Tallies, (*compiler).compileTally) },
	check: func(c *compiler) {
		eachOf(c, c.Tallies, checkTallyAttribute, checkSets, checkTallyFields)
	},
}

// aggregateOf returns the aggregate with a keyword, nil if there is none.
func aggregateOf(keyword string) *aggregate.Aggregate {
	return seq.Find(aggregate.All, func(a *aggregate.Aggregate) bool { return a.Keyword == keyword })
}

// Tally aggregates rows of some entities into an attribute of another entity's rows.
type Tally struct {
	Name    string // "Album.mediaCount"
	Kind    *aggregate.Aggregate
	Target  *Entity
	Attr    string
	Hidden  bool // kept in the ledger only
	Round   int  // decimals of a mean
	Max     int  // how many values a distinct may have, 0 for any number
	Sources []*Source
	Group   *Group // that it is a value of, nil for none

	decl *tallyDecl
}

// IsSet reports whether the tally is a set, which has rows of its own.
func (t *Tally) IsSet() bool { return t.Kind == aggregate.Set }

// Numbers reports whether a set is one of numbers: every field that it is made of is declared as
// one, and is no part of a key. No other value can be in it.
func (t *Tally) Numbers() bool {
	return t.IsSet() && !slices.ContainsFunc(t.Sources, func(s *Source) bool { return !s.hasNumbers() })
}

// hasNumbers reports whether each value that the source has for a set is declared as a number.
func (s *Source) hasNumbers() bool {
	f := s.Amount.Fields[0]
	return f.Type == TypeNumber && f.Key == nil
}

// Shows reports whether rows of the target show one value of the tally.
func (t *Tally) Shows() bool { return !t.Hidden && t.Kind.Shown != nil }

// Source is one entity whose rows count towards a tally.
type Source struct {
	Tally  *Tally
	Entity *Entity
	Amount *Amount // the field that is summed, averaged or told apart; of a count, the number that counted rows have, or nil
	Where  []Test
	To     []Assign // the names of the target's key, from this entity's fields
	Input  Input    // Where and To
	Given  Input    // Amount, and of a value of a group the last tests of Where

	own int // how many tests of Where are of this value of a group alone
}

// Reads returns the fields of its rows that a source depends on.
// A change of a row in none of these adds nothing. The slice belongs to the caller.
func (s *Source) Reads() []*Field { return append(s.Given.reads(), s.Input.reads()...) }

// TargetOf returns the key of the row that a source row counts for. ok is false if the row
// counts for none; unfit is the field that it cannot be counted by, nil if there is nothing
// wrong.
func (s *Source) TargetOf(row value.Item) (key store.Key, unfit *Unfit, ok bool) {
	if s.Tally.Group != nil {
		return s.Tally.Target.groupKey(s.To, row)
	}
	key, ok = s.Tally.Target.KeyFrom(s.To, row)
	return key, nil, ok
}

// inputs sets and returns the fields that the tally reads. Rows of the target need images too, to show it on.
func (t *Tally) inputs() (all []reading) {
	at, rows := t.decl.name.pos, t
	if t.Group != nil {
		rows = t.Group.Rows
	}
	for _, s := range t.Sources {
		shared := len(s.Where) - s.own
		s.Input = Input{Derivation: rows.Name, Where: s.Where[:shared], Fields: assignedFields(s.To)}
		if s.Given.Derivation, s.Given.Where = t.Name, s.Where[shared:]; s.Amount != nil {
			s.Given.Fields = s.Amount.Fields
		}
		for _, in := range []*Input{&s.Input, &s.Given} {
			all = append(all, reading{what: t.Name, at: at, makes: t.Name, old: true, of: s.Entity, in: in})
		}
	}
	return append(all, reading{what: t.Name, at: at, of: t.Target, in: &Input{}})
}

// tallyDecl is a tally as the file has it.
type tallyDecl struct {
	// A number kept in a row by counting or adding up other rows.
	deriveDecl `noun:"tally"`
	// count: How many rows there are: Entity, or a list of them. Entity.field counts those that have a number there, as a mean
	// of the field does.
	// sum: The sum of Entity.field, or of an amount: Entity.field * Entity.other.
	// mean: The mean of Entity.field or of an amount, absent when there are no rows.
	// distinct: How many different values Entity.field has.
	// set: The values of Entity.field themselves, as a set of any length: spread over rows whose sort key ends in [#{leaf}], and
	// one row to those who get it.
	Of keyword `keys:"count sum mean distinct set" some:"an entity or a field of it, or a list of them"`
	// Tests that a source row passes.
	Where []testDecl
	// Which row gets it: {name in the key of that row: field of the counted row, or =text}. Equal names need no line.
	To []pair
	// The decimals of a mean, rounded half up.
	Round int `from:"0" to:"20" with:"mean" need:"round: 2"`
	// The most values that a distinct shows. With more it is not shown.
	Max int `from:"1" to:"1000000000" with:"distinct"`
	// Counted in the ledger alone: the row shows neither the values nor how many they are, and no query gives them.
	Hidden bool `with:"distinct"`
}

func (d *tallyDecl) enter(c *compiler, e *Entity) {
	t := &Tally{
		Name: d.name.text, Kind: aggregateOf(d.Of.key), Target: e, Attr: d.attr.text, Hidden: d.Hidden,
		Round: max(d.Round, 0), Max: max(d.Max, 0), decl: d,
	}
	c.Tallies = append(c.Tallies, t)
	e.Values = append(e.Values, t)
	if t.IsSet() {
		c.markSpread(e)
	}
	c.addOwnKey(e, t)
}

// compileTally compiles the sources of a tally. A source with a problem is left out; the tally stays, so
// that references to it are checked.
func (c *compiler) compileTally(t *Tally) {
	d := t.decl
	for _, of := range d.Of.of {
		name, dotted := amountEntity(of.text)
		if name == "" || strings.ContainsAny(name, "()") {
			c.addFlaw(of.pos, amountForm, "%q is not an amount", of.text)
			continue
		}
		s := &Source{Tally: t}
		if s.Entity = c.findEntity(word{name, of.pos}); s.Entity == nil {
			continue
		}
		switch {
		case !t.Kind.OfRows && !dotted:
			c.addFlaw(of.pos, t.Kind.Keyword+": "+name+".FIELD", "a %s is of a field of %s", t.Kind.Keyword, name)
		case dotted && !isFunction(of.text):
			s.Amount = c.compileAmount(s.Entity, of, t.Kind.OfRows || t.Kind.Of == aggregate.Numbers, t.Hidden || t.Target.Hides(t.Attr))
			if s.Amount != nil && t.Kind.Sums {
				s.Amount.noteSum()
			}
		}
		before := c.flaws
		if isFunction(of.text) {
			s.Where = c.compileTests(s.Entity, d.Where, false)
			c.compileFunction(t, s, of)
		} else if t.Group != nil {
			of, ok := t.Group.decl.sources[s.Entity]
			if !ok {
				continue
			}
			own := c.compileTests(s.Entity, d.Where, false)
			s.Where, s.To, s.own = slices.Concat(of.Where, own), of.To, len(own)
		} else {
			s.Where = c.compileTests(s.Entity, d.Where, false)
			before = c.flaws
			c.recipe = func(says []string) string { return t.suggestRecipe(c, s.Entity, says) }
			s.To = c.resolveAssigns(t.Target, s.Entity, d.To, of.pos, "to")
			c.recipe = nil
		}
		if c.flaws > before || !t.Kind.OfRows && s.Amount == nil {
			continue
		}
		t.Sources = append(t.Sources, s)
		s.Entity.Sources = append(s.Entity.Sources, s)
	}
}

// addOwnKey lets an index use the value itself as its key. The attribute is then the key
// attribute and needs no template.
func (c *compiler) addOwnKey(e *Entity, t *Tally) {
	for _, a := range e.Table.KeyAttrs() {
		if a.Name == t.Attr && e.KeyTemplate(a.Name) == nil && !c.broken[e] {
			e.Keys = append(e.Keys, &KeyTemplate{Attr: a, Template: singleName(a.Name)})
		}
	}
}

// checkTallyAttribute reports a tally whose attribute something else writes too, or that
// cannot be derived because it is part of a key or the table's TTL.
func checkTallyAttribute(c *compiler, t *Tally) {
	at := t.decl.attr.pos
	if t.Group != nil && t == t.Group.Rows {
		return
	}
	switch k := t.Target.KeyTemplate(t.Attr); {
	case k == nil || c.broken[t.Target]:
	case slices.Contains(t.Target.PrimaryKey(), k) || k.Template.String() != "{"+t.Attr+"}":
		c.addFlaw(at, "choose another name", "%s is a key attribute, and a derived value cannot be one", t.Attr)
	case k.Attr.Type != value.Number || t.Hidden || !t.Kind.Number:
		c.addFlaw(at, "declare it as {"+t.Attr+": number} in the index", "%s is the key of an index, a %s, and only a shown number can be derived there", t.Attr, k.Attr.Type)
	}
	c.checkDerivable(t.Target, t.Attr, at)
	if !t.IsSet() && t.Group == nil {
		c.checkOpen(t.Target, at, t.Kind.Keyword+": "+t.decl.Of.word().text, t.Attr)
	}
}

// checkDerivable reports an attribute that something else writes: the application, also as a part of the key or as the table's TTL.
func (c *compiler) checkDerivable(e *Entity, name string, at pos) {
	switch {
	case e.Attribute(name) != nil && e.Group == nil:
		c.addFlaw(at, "leave it out of the attributes of "+e.Name, "%s.%s is derived, and declared as an attribute that the application writes", e.Name, name)
	case name == e.Table.TTL && name != "":
		c.addFlaw(at, "choose another name", "%s is the ttl of table %s", name, e.Table.Name)
	case slices.Contains(e.KeyNames(), name):
		c.addFlaw(at, "choose another name", "%s is a name in the key of %s", name, e.Name)
	}
}

// checkOpen reports derivations onto rows that weir makes, besides the values of a group, and shows where they can be: of is
// the source, as the file has it.
func (c *compiler) checkOpen(e *Entity, at pos, of, attr string) {
	_, source, _ := strings.Cut(of, ": ")
	source, _, _ = strings.Cut(source, ".")
	hint := "derive it onto the row that " + e.Name + " is made from, and copy it"
	switch {
	case e.Group != nil && of == "":
		hint = "derive it onto a row that an application writes"
	case e.Group != nil:
		all := seq.Map(e.Group.decl.Group, func(w word) string { return w.text })
		if !slices.Contains(all, source) {
			all = append(all, source)
		}
		hint = e.Name + ": {group: [" + strings.Join(all, ", ") + "], set: {" + attr + ": {" + of + "}}}"
	case len(e.MadeBy) > 0 && e.MadeBy[0].Source != nil && len(e.MadeBy[0].Keep) == 0 && of != "":
		from := e.MadeBy[0].Source.Name
		hint = from + "." + attr + ": {" + of + "}, and " + attr + ": " + attr + " under the set of " + e.Name
	}
	if e.Derived {
		c.addFlaw(at, hint, "rows of %s are made whole by weir, and nothing else is derived on them", e.Name)
	}
}

// checkTallyFields reports a source field that the kind of tally cannot aggregate.
func checkTallyFields(c *compiler, t *Tally) {
	d := t.decl
	for i, s := range t.Sources {
		if slices.ContainsFunc(t.Sources[:i], func(o *Source) bool { return o.Entity == s.Entity }) {
			c.addFlaw(d.placeOf(t.Kind.Keyword), "", "%s names %s twice", t.Name, s.Entity.Name)
		}
		if t.Group == nil { // checkGroupBy
			c.checkFits(d.name.pos, t.Name, t.Target, s.To)
		}
		if s.Amount == nil || s.function() != nil {
			continue
		}
		at := d.placeOf(t.Kind.Keyword)
		if s.Amount.Computed() && (t.Kind.OfRows || t.Kind.Of != aggregate.Numbers) {
			c.addFlaw(at, "", "%s: only a sum and a mean are of an amount that is computed, and this is a %s", t.Name, t.Kind.Keyword)
			continue
		}
		for _, f := range s.Amount.Fields {
			c.checkTallied(t, s.Entity, f, at)
		}
		if s.Amount.whole && t.Round > maxWholeRound {
			c.addFlaw(d.placeOf("round"), "", "a mean of whole numbers has at most %d decimals, and round is %d", maxWholeRound, t.Round)
		}
	}
}

// checkTallied reports a field that a tally cannot aggregate.
func (c *compiler) checkTallied(t *Tally, of *Entity, f *Field, at pos) {
	switch fits := t.Kind.Of.Fits(string(f.Type)); {
	case t.Kind.OfRows && !fits:
		c.addFlaw(at, "count: "+of.Name+", where: {"+f.Name+": present}, or distinct: "+of.Name+"."+f.Name, "a count is of rows, or of rows with a number, and %s.%s is a %s", of.Name, f.Name, f.Type)
	case !fits:
		c.addFlaw(at, "", "a %s %s, %s.%s is a %s", t.Kind.Keyword, t.Kind.Of.Is, of.Name, f.Name, f.Type)
	case f.Summed && f.Declared != nil:
		c.checkSummed(t, of, f, at)
	}
}

// maxWholeRound is the largest round of a mean of whole numbers, so that it fits a number with 38 digits.
const maxWholeRound = value.MaxDigits - wholePlaces

// checkSummed reports a declaration that allows numbers which a sum cannot take.
func (c *compiler) checkSummed(t *Tally, of *Entity, f *Field, at pos) {
	for _, l := range f.Declared.limits() {
		if want := checkSummable(l.value, f.isWhole()); want != "" && !f.isWhole() {
			c.addFlaw(at, "whole: true, if "+f.Name+" is whole", "%s adds up %s.%s, whose %s is %s, not %s", t.Name, of.Name, f.Name, l.key, l.value.Text(), want)
		}
	}
}
