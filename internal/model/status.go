package model

import (
	"cmp"
	"slices"
	"strings"

	"weir/internal/seq"
)

// statusKind derives a status: an attribute that moves along its enum in steps.
var statusKind = kind{
	keys: []string{"steps"}, declare: func() derivation { return &stepsDecl{} },
	compile: func(c *compiler) { eachOf(c, c.Statuses, (*compiler).compileStages) },
	check:   func(c *compiler) { eachOf(c, c.Statuses, checkStatus, checkStages) },
}

// Status is derived from facts: it moves a declared attribute along the words of its enum, as far as
// facts allow. The result is a pure function of the application's own value, below which it
// never falls, and of the rows that reach each word. It does not depend on their order.
type Status struct {
	Name   string // "Round.status"
	Target *Entity
	Attr   *Attribute
	Stages []*Stage // in the order of the enum
	Input  Input    // the fields that it reads of rows of Target

	decl *stepsDecl
}

// Stage is one word of a status and the facts that reach it: a row of Source that passes
// Where, or, with List, such a row for every element of that list of the target.
type Stage struct {
	Status *Status
	Word   string
	Rank   int // the word's index in the enum
	Source *Entity
	Where  []Test
	To     []Assign   // the names of the target's key, from fields of Source
	List   *Attribute // a list of the target; nil: one row is enough
	Who    *Field     // of Source: which element of List a row is for
	Max    int        // how many elements List may have, or, without it, rows may reach the word; 0 for any number, never 0 with Set and without List
	Set    []Assign   // attributes of the target: the latest of a field of the rows that count
	Input  Input      // the fields that it reads of rows of Source

	decl *stageDecl
}

// Others say which list stands in the place of one that a row does not have: the values of Field in all
// rows of Of whose other key names have the values of Key.
type Others struct {
	Name  string // "Round.attendees"
	On    *Entity
	Of    *Entity
	Field *Field   // a name in Of's key
	Key   []Assign // Of's other key names, from fields of the row with the list
	Links []*Field // the same names, as fields of Of
	Used  bool     // a stage asks for each of them
	Input Input    // the fields of rows of Of that are read
}

// Reading says how queries show an attribute if that differs from the stored value.
type Reading struct {
	Legacy map[string]string // words of an older application, with the words that replace them
	After  *Field            // the time from which it shows Late
	Late   string
}

// Attributes returns the attributes that the status may write: its own and those of its
// stages.
func (s *Status) Attributes() []string {
	out := []string{s.Attr.Name}
	for _, st := range s.Stages {
		out = append(out, seq.Map(st.Set, func(a Assign) string { return a.Name })...)
	}
	return out
}

// Returned is an attribute of a query's result. Results consist of these in place of the
// row's own attributes. Exactly one field after Name is set.
type Returned struct {
	Name     string
	Field    *Field     // of the row found
	Size     *Attribute // how many elements a list of the row has, those it stands for included
	Distinct *Counted
}

// Counted counts the distinct values that a field has in one partition.
type Counted struct {
	Entity *Entity
	Field  *Field
	Key    []Assign // the names of the partition key, from fields of the row found
}

// IsList reports whether values of the type have elements.
func (t Type) IsList() bool { return t == TypeList || t == TypeStrings || t == TypeNumbers }

// readsEach reports whether the step reads once for each element of a list of the
// row before.
func (s *Step) readsEach() bool {
	return slices.ContainsFunc(s.With, func(b Bind) bool { return b.Each() })
}

// Each reports whether the bind takes the elements of a list one after the other.
func (b *Bind) Each() bool { return b.Prior != nil && b.Prior.Key == nil && b.Prior.Type.IsList() }

// inputs sets and returns the fields that the status reads: of its own row, and of the rows that reach its words.
func (s *Status) inputs() (all []reading) {
	add := func(of *Entity, in *Input, word pos) {
		all = append(all, reading{what: s.Name, at: s.decl.name.pos, word: word, makes: s.Name, old: true, of: of, in: in})
	}
	s.Input = Input{Derivation: s.Name, Fields: []*Field{s.Target.Field(s.Attr.Name)}}
	for _, st := range s.Stages {
		st.Input = Input{Derivation: s.Name, Where: st.Where, Fields: assignedFields(st.To, st.Set)}
		add(st.Source, &st.Input, st.decl.name.pos)
		if st.List == nil {
			continue
		}
		st.Input.Fields = append(st.Input.Fields, st.Who)
		s.Input.Fields = append(s.Input.Fields, s.Target.Field(st.List.Name))
		if o := st.List.Others; o != nil {
			s.Input.Fields = append(s.Input.Fields, assignedFields(o.Key)...)
			o.Input = Input{Derivation: o.Name, Fields: append(slices.Clone(o.Links), o.Field)}
			add(o.Of, &o.Input, pos{})
		}
	}
	return append(all, reading{what: s.Name, at: s.decl.name.pos, old: true, of: s.Target, in: &s.Input})
}

// stepsDecl is a status as the file has it.
type stepsDecl struct {
	// An attribute that moves along the words of its enum as far as facts say, in whatever order they come. The application's
	// own value is the least it says.
	deriveDecl `noun:"steps"`
	// For words of the enum, the rows that reach them.
	Steps named[stageDecl] `need:"steps: {WORD: {when: ENTITY}}"`
}

// enter finds the attribute: the application writes it too, so it has to be declared, with the enum that gives the order.
func (d *stepsDecl) enter(c *compiler, e *Entity) {
	a := e.Attribute(d.attr.text)
	if a == nil || len(a.Enum) == 0 {
		c.addFlaw(d.attr.pos, "declare it: "+d.attr.text+": {type: string, enum: [first, next, …]}",
			"%s.%s moves along the words of its enum, and has none: the application writes it too", e.Name, d.attr.text)
		return
	}
	s := &Status{Name: d.name.text, Target: e, Attr: a, decl: d}
	e.Statuses = append(e.Statuses, s)
	c.Statuses = append(c.Statuses, s)
}

// stageDecl is a stage of a status as the file has it.
type stageDecl struct {
	// A word is reached when there is a row, or, with each, a row for every element of a list.
	heading `noun:"stage"`
	// The entity whose rows reach it.
	When word `need:"when: ENTITY"`
	// Tests that a source row passes.
	Where []testDecl
	// Which row moves: {name in its key: field of the row that reaches the word, or =text}. Equal names need no line.
	To []pair
	// A list of the row that moves: there has to be a row for each of its elements, and one at least.
	Each word `with:"who" type:"list strings numbers"`
	// The field that says for which element a row is.
	Who word `with:"each" type:"string number boolean flag time binary commas any"`
	// The most elements of each, or, without each, the most rows that reach the word; a target with more is parked. Left out:
	// any number; 1000 rows for a stage without each that has a set, since each change reads them all.
	Max int `from:"1" to:"1000"`
	// Attributes that get fields of the latest row that counts, all of one row: {attribute: field}. The first line says which
	// row is the latest.
	Set []pair `type:"string number boolean flag time binary commas any"`
}

// maxReached limits how many rows may reach one word of one target that takes attributes
// from them, if the stage has no max: each change reads them all to find the latest. It is
// also the largest max that a stage can have, since it reads one row for each element of its list.
const maxReached = 1000

// compileReadings compiles the parts of attributes that refer to other fields and rows. Call
// it once all entities are known.
func (c *compiler) compileReadings() {
	for _, e := range c.Entities {
		for _, a := range e.Attributes {
			if len(a.decl.Legacy)+len(a.decl.After) > 0 {
				a.Reading = c.compileReading(e, a)
			}
			if a.decl.Else.isGiven() {
				a.Others = c.compileOthers(e, a)
			}
		}
	}
}

// compileReading compiles how words of older applications are read: those that legacy translates, and
// the one that holds once a time has passed.
func (c *compiler) compileReading(e *Entity, a *Attribute) *Reading {
	d, r := a.decl, &Reading{Legacy: map[string]string{}}
	for _, p := range d.Legacy {
		if slices.Contains(a.Enum, p.name.text) {
			c.addFlaw(p.name.pos, "leave one of them out", "%q is a word of today, by the enum of %s, and of an older application", p.name.text, a.Name)
		}
		if c.oneOf(a, p.value) {
			r.Legacy[p.name.text] = p.value.text
		}
	}
	for _, p := range d.After {
		if c.oneOf(a, p.value) {
			r.After, r.Late = checkType(c, d, "after", p.name, c.fieldFor(e, p.name, a.Hidden)), p.value.text
		}
	}
	return r
}

// oneOf reports a word that the attribute's enum does not have.
func (c *compiler) oneOf(a *Attribute, w word) bool {
	return w.isGiven() && !c.refuseUnknown(w, a.Enum, "%s is never %q", a.Name, w.text)
}

// attributeOf returns the attribute that the file names. It reports one that is not declared, and returns nil.
func (c *compiler) attributeOf(e *Entity, w word) *Attribute {
	if e.HasFormula(w.text) {
		c.addFlaw(w.pos, "name an attribute that rows have", "%s.%s is computed when it is read, and cannot stand here", e.Name, w.text)
		return nil
	}
	c.refuseUnknown(w, e.attributeNames(), "%s has no attribute %q", e.Name, w.text)
	return e.Attribute(w.text)
}

// compileOthers compiles where a list comes from for rows that have none: from rows of another entity,
// one for each value, found by the list's row.
func (c *compiler) compileOthers(e *Entity, a *Attribute) *Others {
	d, before := a.decl, c.flaws
	of, field := c.resolveDotted(d.Else, c.findField)
	if field == nil {
		return nil
	}
	o := &Others{Name: e.Name + "." + a.Name, On: e, Of: of, Field: field}
	rest := slices.DeleteFunc(of.KeyNames(), func(name string) bool { return name == field.Name })
	if len(rest) == len(of.KeyNames()) && !c.broken[of] {
		c.addFlaw(d.Else.pos, "", "%s must be a name in the key of %s, so that each value has one row", field.Name, of.Name)
		return nil
	}
	if o.Key = c.assignsTo(of, rest, e, d.By, d.Else.pos, "by"); c.flaws > before {
		return nil
	}
	o.Links = seq.Map(rest, of.Field)
	return o
}

// resolveDotted resolves Entity.field, the field by take. It reports a name that does not exist.
// w is taken apart at its first dot, so fields may have dots in their names and entities may not.
func (c *compiler) resolveDotted(w word, take func(*Entity, word) *Field) (*Entity, *Field) {
	name, field, _ := strings.Cut(w.text, ".")
	e := c.findEntity(word{name, w.pos})
	return e, take(e, word{field, w.pos})
}

// compileStages compiles the stages of a status. They come in the order of the enum, whatever the order of the file.
func (c *compiler) compileStages(s *Status) {
	for _, d := range s.decl.Steps {
		if st := c.compileStage(s, d); st != nil {
			s.Stages = append(s.Stages, st)
		}
	}
	slices.SortStableFunc(s.Stages, func(x, y *Stage) int { return cmp.Compare(x.Rank, y.Rank) })
}

// compileStage compiles one stage, nil after a problem.
// A stage without each that sets attributes reads all its source rows, and so gets a max of
// maxReached if the model has none.
func (c *compiler) compileStage(s *Status, d *stageDecl) *Stage {
	st := &Stage{Status: s, decl: d, Word: d.name.text, Rank: slices.Index(s.Attr.Enum, d.name.text), Max: max(d.Max, 0)}
	before := c.flaws
	c.refuseUnknown(d.name, s.Attr.Enum, "%s is never %q", s.Name, d.name.text)
	if st.Source = c.findEntity(d.When); st.Source == nil {
		return nil
	}
	st.Where = c.compileTests(st.Source, d.Where, false)
	st.To = c.resolveAssigns(s.Target, st.Source, d.To, d.When.pos, "to")
	var orders word // a hidden field that chooses the row: attributes behind it would tell its order
	for _, p := range d.Set {
		hides := s.Target.Hides(p.name.text)
		f := checkType(c, d, "set", p.value, c.fieldFor(st.Source, p.value, hides))
		if st.Source.Hides(p.value.text) {
			orders = p.value
		} else if !hides {
			c.checkHidden(st.Source, orders)
		}
		c.attributeOf(s.Target, p.name)
		st.Set = append(st.Set, Assign{p.name.text, Expr{Field: f}})
	}
	if d.Each.isGiven() && d.Who.isGiven() {
		c.compileEach(st, d)
	} else if d.Max < 0 && len(st.Set) > 0 {
		st.Max = maxReached
	}
	if c.flaws > before {
		return nil
	}
	st.Source.Stages = append(st.Source.Stages, st)
	return st
}

// compileEach compiles the list of a stage.
// The list of others is registered with their entity once, however many stages use it.
func (c *compiler) compileEach(st *Stage, d *stageDecl) {
	target := st.Status.Target
	st.List = checkType(c, d, "each", d.Each, c.attributeOf(target, d.Each))
	st.Who = checkType(c, d, "who", d.Who, c.findField(st.Source, d.Who))
	c.checkHidden(target, d.Each)
	if st.List != nil && st.List.Others != nil && !st.List.Others.Used {
		o := st.List.Others
		o.Used = true
		o.Of.Others = append(o.Of.Others, o)
	}
}

// compileReturns compiles the attributes that a query returns of the row it found.
func (c *compiler) compileReturns(q *Query, d *queryDecl, of *Entity) {
	for _, r := range d.Return {
		out := Returned{Name: r.name.text}
		switch {
		case r.field.isGiven():
			out.Field = c.findField(of, r.field)
		case r.Size.isGiven():
			out.Size = checkType(c, r, "size", r.Size, c.attributeOf(of, r.Size))
			c.checkHidden(of, r.Size)
		case r.Distinct.isGiven():
			out.Distinct = c.compileCounted(of, r)
		default:
			c.flaws++
		}
		q.Return = append(q.Return, out)
	}
}

// compileCounted compiles a count over a partition of the table itself, not of an index.
// The partition must be fixed by the row that the query has found, so one answer reads one partition.
func (c *compiler) compileCounted(of *Entity, d *returnDecl) *Counted {
	e, f := c.resolveDotted(d.Distinct, c.findField)
	if checkType(c, d, "distinct", d.Distinct, f) == nil {
		return nil
	}
	return &Counted{Entity: e, Field: f, Key: c.assignsTo(e, e.PrimaryKey()[0].Template.requiredNames(), of, d.By, d.Distinct.pos, "by")}
}

// checkReading reports an attribute that is shown differently from its stored form, if its declaration is inconsistent, or if
// keys, wheres, filters or orders use its stored value.
func (c *compiler) checkReading(e *Entity, a *Attribute) {
	d := a.decl
	if a.Reading == nil {
		return
	}
	at := d.name.pos
	if len(a.Enum) == 0 {
		c.addFlaw(at, "enum: [one, two]", "%s reads as other words than are stored, and has no enum of them", a.Name)
	}
	for _, k := range e.Keys {
		if k.Template.Slot(a.Name) >= 0 {
			c.addFlaw(at, "keep the key to words that are stored", "%s reads otherwise than it is stored, and the key %s holds what is stored", a.Name, k.Attr.Name)
		}
	}
	for _, t := range c.testedFields(e) {
		if t.name == a.Name {
			c.addFlaw(t.pos, "", "%s reads otherwise than it is stored, and %s would go by what is stored", a.Name, t.what)
		}
	}
}

// use is a place where the stored value of a field matters.
type use struct {
	name, what string
	pos
}

// testedFields returns the fields of an entity that a where, a filter or an order uses.
// Each has the place in the file that an error about it names.
func (c *compiler) testedFields(e *Entity) (out []use) {
	add := func(what string, at pos, fields ...*Field) {
		for _, f := range fields { // nothing of a computed attribute reads otherwise either
			out = append(out, seq.Map(f.Names(), func(name string) use { return use{name, what, at} })...)
		}
	}
	field := func(t Test) *Field { return t.Field }
	add(e.Name, e.decl.name.pos, seq.Map(e.Where, field)...)
	for _, r := range c.reads {
		if r.of == e {
			add(r.what, cmp.Or(r.word, r.at), seq.Map(r.in.Where, field)...)
		}
	}
	for _, l := range e.LatestOf {
		add(l.Name, l.decl.name.pos, l.By)
	}
	for _, s := range e.Search {
		add("the search index "+s.Name, s.decl.name.pos, s.Input.Fields...)
	}
	return out
}

// checkStatus reports a status that is not on an attribute of the application, or whose
// stored words decide something else, such as a key.
func checkStatus(c *compiler, s *Status) {
	at := s.decl.attr.pos
	c.checkOpen(s.Target, at, "", "")
	seen := map[string]string{}
	for _, st := range s.Stages {
		c.checkWritten(s, st, seen)
	}
	for _, name := range s.Attributes() {
		c.checkSettled(s, name, at)
	}
}

// checkWritten reports attributes that a stage cannot set.
// Two stages that set one attribute would leave it open which of them counts.
func (c *compiler) checkWritten(s *Status, st *Stage, seen map[string]string) {
	for _, a := range st.Set {
		at := placeOf(st.decl.Set, a.Name, pos{})
		switch before, twice := seen[a.Name]; {
		case a.Name == s.Attr.Name:
			c.addFlaw(at, "leave it out", "%s is what moves, and set by its steps", a.Name)
		case twice:
			c.addFlaw(at, "one attribute for each", "%s is set by %s already", a.Name, before)
		case typesClash(a.Expr.Field.Type, s.Target.Attribute(a.Name).Type):
			c.addFlaw(at, "", "%s is a %s, and %s.%s a %s", a.Name, s.Target.Attribute(a.Name).Type, st.Source.Name, a.Expr.Field.Name, a.Expr.Field.Type)
		}
		seen[a.Name] = st.Word
	}
}

// checkSettled reports an attribute that a status moves, but that must not change: it is part of
// a key, tells which entity its row is, or is the table's TTL.
func (c *compiler) checkSettled(s *Status, name string, at pos) {
	for i, k := range s.Target.Keys {
		if k.Template.Slot(name) >= 0 && (i < len(s.Target.PrimaryKey()) || !k.Template.Whole()) {
			c.addFlaw(at, "make "+name+" itself the key attribute of an index", "the key %s of %s is made of %s, and nothing would write it again when that moves", k.Attr.Name, s.Target.Name, name)
		}
	}
	for _, t := range s.Target.Where {
		if t.Field.Name == name {
			c.addFlaw(at, "", "%s tells what %s is, and cannot move", name, s.Target.Name)
		}
	}
	if name == s.Target.Table.TTL {
		c.addFlaw(at, "", "%s is the ttl of table %s", name, s.Target.Table.Name)
	}
}

// checkStages reports a stage for which one element could have several rows.
func checkStages(c *compiler, s *Status) {
	for _, st := range s.Stages {
		d := st.decl
		c.checkFits(d.name.pos, s.Name, s.Target, st.To)
		if st.List == nil {
			continue
		}
		for _, name := range st.Source.KeyNames() {
			if name != st.Who.Name && !st.usesField(name) {
				c.addFlaw(d.name.pos, "", "several rows of %s can be for one element of %s: its key has %q besides", st.Source.Name, st.List.Name, name)
			}
		}
	}
}

// usesField reports whether the target's key uses this field of the source.
func (st *Stage) usesField(name string) bool {
	return slices.ContainsFunc(st.To, func(a Assign) bool { return a.Expr.Field != nil && a.Expr.Field.Name == name })
}

// checkReturns reports a result of chosen attributes for a query that may find several rows.
func checkReturns(c *compiler, q *Query) {
	if len(q.Return) > 0 && !q.Single {
		c.addFlaw(q.decl.placeOf("return"), "", "return is for a query that finds one row")
	}
}

// checkSort reports a sort that cannot be done: it needs a query of a single list step.
func checkSort(c *compiler, q *Query) {
	if q.Sort == nil {
		return
	}
	at := q.decl.placeOf("sort")
	if len(q.Steps) > 1 || q.Steps[0].Get || q.Unique {
		c.addFlaw(at, "leave it out", "sort orders the rows of one list")
	} else {
		c.checkHeld(q.Steps[0], q.Sort, q.decl.Sort)
	}
	if q.Steps[0].decl.hasKey("order") {
		c.addFlaw(q.Steps[0].decl.placeOf("order"), "leave one of them out", "order goes by the sort key, and the rows by %s", q.Sort.Name)
	}
}

// checkReadsEach reports a step that reads a row for each element of a list, if it is not a get
// or if the query does not return each row once.
func checkReadsEach(c *compiler, q *Query, s *Step, d *stepDecl) {
	switch {
	case !s.readsEach():
	case !s.Get:
		c.addFlaw(d.pos(), "get: "+s.Entity.Name, "for each element of a list one row is read by its key")
	case !q.Unique:
		c.addFlaw(d.pos(), "unique: true", "a list may name a row twice, and the query does not say that each comes once")
	}
}
