package model

import (
	"slices"
	"strings"

	"weir/internal/seq"
)

// copyKind derives rows from rows: copies, history (keep), and feeds, which make a row for
// each subscriber (each: see feed.go). Their attributes may follow other rows (follow.go).
var copyKind = kind{
	keys: []string{"row"}, declare: func() derivation { return &rowDecl{} },
	compile: func(c *compiler) {
		eachOf(c, c.Rows, (*compiler).compileRule)
		c.Rows = slices.DeleteFunc(c.Rows, func(r *RowRule) bool { return r.Source == nil })
	},
	check: func(c *compiler) {
		eachOf(c, c.Rows, checkRowWhole, checkRowComputed, checkRowKey, checkStamps, checkState, checkRowTypes, checkEach, checkAwaited)
		checkFollow(c)
	},
}

// RowRule makes a row from a row: a copy while Keep is empty, history otherwise.
// With Subscribers it makes one for each of them.
// A declaration with several sources is several rules of one name.
// Fields are in the order of the file and have each name once.
type RowRule struct {
	Name        string // "UserItem", "Activity(created)"
	Source      *Entity
	Into        *Entity
	Keep        []string // events (INSERT, MODIFY, REMOVE, Enter, Leave) that make a history row
	Where       []Test
	Fields      []Assign // fields of the new row, without the constants of Into.Where
	Subscribers *Subscribers
	Input       Input // the fields that it reads of rows of Source

	decl *rowDecl
}

// rowDecl is a row rule as the file has it: a copy, a history (keep) or a feed (each).
type rowDecl struct {
	// A row made from each row of an entity: a copy, or, with keep, an entry of history.
	deriveDecl `noun:"row rule"`
	// The entity, or list of them, whose rows it is made from.
	Row []word `need:"row: ENTITY"`
	// History: the events that make an entry, which stays: those of the record, or enter and leave, when a row begins or ends
	// to pass where. Without keep the row is a copy that changes, moves and goes with its source.
	Keep []word `some:"some of insert, modify, remove, enter, leave" one:"insert modify remove enter leave" or:"there is no event %q"`
	// One row for each subscriber, as of the moment when the change is handled. The subscriber's fields are Entity.field under
	// set.
	Each *eachDecl
	// Tests that a source row passes.
	Where []testDecl
	// The fields of the row made: a field of the source row, =text, something of the record ($time, $position, $event, $key,
	// $old, $new), {follow: Entity.field}, or a nested map.
	Set sets `need:"set: {name: field of the source row}"`

	of word // of a rule: that of Row which is its source
}

// split parses "Entity" or "Entity(label)".
func (d *rowDecl) split(r *reader, _ string) bool {
	entity, label, labelled := strings.Cut(d.name.text, "(")
	d.entity = word{entity, d.name.pos}
	name, ok := strings.CutSuffix(label, ")")
	if ok = entity != "" && !strings.Contains(entity, ".") && (!labelled || ok && identifier.MatchString(name)); !ok {
		r.addFlaw(d.name.pos, "Activity, or Activity(created)", "a row rule is named by the entity it makes, not %q", d.name.text)
	}
	return ok
}

func (d *rowDecl) enter(c *compiler, e *Entity) {
	e.Derived = true
	for _, of := range d.Row {
		rule := *d
		rule.of = of
		c.Rows = append(c.Rows, &RowRule{Name: d.name.text, Into: e, decl: &rule})
	}
}

// sets are the names that a rule sets, in the order of the file.
type sets []setDecl

// setDecl gives a name its value: a word, a nested map, or a field that it follows.
type setDecl struct {
	name   word
	value  word
	nested sets
	isMap  bool
	follow *followDecl
}

func (list *sets) read(n node, what string) {
	for _, e := range n.readEntries(what) {
		s := setDecl{name: e.name}
		switch {
		case e.value.isMap() && e.value.isFollow():
			s.follow = &followDecl{}
			if e.value.readDeclaration(e.name, s.follow); !s.follow.Follow.isGiven() {
				s.follow = nil
			}
		case e.value.isMap():
			s.isMap = true
			s.nested.read(e.value, "a nested map")
		default:
			s.value = e.value.readConstant("the value of " + e.name.text)
		}
		*list = append(*list, s)
	}
}

// compileRule compiles a rule. One without a source is left out of the plan.
func (c *compiler) compileRule(r *RowRule) {
	d, source := r.decl, c.findEntity(r.decl.of)
	if source == nil {
		return
	}
	r.Source = source
	source.Rules = append(source.Rules, r)
	r.Into.MadeBy = append(r.Into.MadeBy, r)
	r.Keep = seq.Map(d.Keep, func(w word) string { return events[w.text] })
	r.Where = c.compileTests(source, d.Where, false)
	before := c.flaws
	c.compileSubscribers(r, d)
	for _, s := range d.Set {
		if !c.broken[r.Into] && c.checkExchanged(pair{s.name, s.value}, "set", c.settableNames(r.Into), "the name in "+r.Into.Name, c.fieldNames(source), source.Name) {
			continue
		}
		if c.broken[r.Into] || !c.refuseUnknown(s.name, c.settableNames(r.Into), "%s has no attribute and no key name %q", r.Into.Name, s.name.text) {
			r.Fields = append(r.Fields, Assign{s.name.text, c.compileSet(r, s)})
		}
	}
	c.faulty[r] = len(d.Set) == 0 || c.flaws > before
}

// The events that no record has a name for: a row begins, or ends, to pass the where of a history rule.
const (
	Enter = "ENTER"
	Leave = "LEAVE"
)

// events are the words of keep, with the names that records have for them.
var events = map[string]string{"insert": "INSERT", "modify": "MODIFY", "remove": "REMOVE", "enter": Enter, "leave": Leave}

// settableNames returns the names to which a row rule may give a value.
func (c *compiler) settableNames(into *Entity) []string {
	out := into.attributeNames()
	out = append(out, seq.Flat(into.Keys, func(k *KeyTemplate) []string { return k.Template.Names() })...)
	return sortedOnce(out)
}

// compileSet compiles the value of one name.
func (c *compiler) compileSet(r *RowRule, s setDecl) Expr {
	switch {
	case s.follow != nil:
		return Expr{Follow: c.compileFollow(r, s)}
	case s.isMap && len(s.nested) == 2 && placeOf(s.nested, "from", pos{}) != pos{} && placeOf(s.nested, "plus", pos{}) != pos{}:
		c.addFlaw(s.name.pos, "in "+r.Into.Name+": attributes: {"+s.name.text+": {type: number, from: TIME, plus: 24h}}", "what is computed from a time of the row is declared with its attribute")
		return Expr{}
	case s.isMap:
		return c.compileNested(r, s.nested, r.Into.Hides(s.name.text))
	}
	return c.recordOr(r, s.value, r.Into, s.name.text, r.Into.Hides(s.name.text))
}

// recordOr is compileExpr that also accepts the names that stand for the record.
func (c *compiler) recordOr(r *RowRule, w word, into *Entity, name string, hidden bool) Expr {
	if r.Subscribers != nil && strings.HasPrefix(w.text, r.Subscribers.Of.Name+".") {
		return Expr{Subscriber: c.fieldFor(r.Subscribers.Of, word{w.text[len(r.Subscribers.Of.Name)+1:], w.pos}, hidden)}
	}
	if d := r.decl.Each; d != nil && r.Subscribers == nil && strings.HasPrefix(w.text, d.Of.text) && strings.Contains(w.text, ".") {
		c.flaws++ // mistakes of the subscribers are reported
		return Expr{}
	}
	if !strings.HasPrefix(w.text, "$") {
		return c.exprFor(r.Source, w, into, name, hidden)
	}
	c.refuseUnknown(w, records, "a record has no %q", w.text)
	return Expr{Record: w.text}
}

// compileNested compiles a map. Values in it cannot follow, since only an attribute has a version of its own.
func (c *compiler) compileNested(r *RowRule, sets []setDecl, hidden bool) Expr {
	x := Expr{Map: []Assign{}}
	for _, s := range sets {
		var in Expr
		switch {
		case s.follow != nil:
			c.addFlaw(s.follow.Follow.pos, "give the value an attribute of its own", "only an attribute of the row itself can follow a value, not one inside a map")
		case s.isMap:
			in = c.compileNested(r, s.nested, hidden)
		default:
			if in = c.recordOr(r, s.value, nil, s.name.text, hidden); in.Subscriber != nil {
				c.addFlaw(s.value.pos, "give the value an attribute of its own", "what comes from the subscriber stands by itself, not inside a map")
			}
		}
		x.Map = append(x.Map, Assign{s.name.text, in})
	}
	return x
}

// setPos returns the place where a rule gives a name its value.
func (c *compiler) setPos(r *RowRule, name string) pos {
	return placeOf(r.decl.Set, name, r.decl.name.pos)
}

// setsName reports whether the name gets a value: the file sets it in the rule, even if that was
// reported, or the rule takes it by itself, or the where of the new row's entity fixes it.
func (c *compiler) setsName(r *RowRule, name string) bool {
	return slices.ContainsFunc(r.decl.Set, func(s setDecl) bool { return s.name.text == name }) || r.assignsName(name) || r.Into.fixedNames()[name] != ""
}

// checkRowWhole reports key names and required attributes that a rule does not set.
// Names of an index key count only where nothing else would give them: rows without a whole index
// key are not in the index. An application's rows get the keys of values that are derived on them later.
func checkRowWhole(c *compiler, r *RowRule) {
	if c.broken[r.Into] || c.faulty[r] {
		return
	}
	at := r.decl.name.pos
	has := r.Source.Name + " has " + strings.Join(c.fieldNames(r.Source), ", ")
	missing := map[string]bool{}
	for i, k := range r.Into.Keys {
		for _, name := range k.Template.requiredNames() {
			if !c.setsName(r, name) && !missing[name] && (i < len(r.Into.PrimaryKey()) || r.Into.Derived && r.Into.Attribute(name) == nil) {
				missing[name] = true
				c.addFlaw(at, "{"+name+": FIELD}; "+has, "%s sets no %q, which the key %s of %s needs", r.Name, name, k.Attr.Name, r.Into.Name)
			}
		}
	}
	for _, a := range r.Into.Attributes {
		if a.Required && !c.setsName(r, a.Name) && !missing[a.Name] {
			c.addFlaw(at, "{"+a.Name+": FIELD}; "+has, "%s sets no %q, which %s requires", r.Name, a.Name, r.Into.Name)
		}
	}
}

// checkRowComputed reports an attribute that weir computes on the row made, if the rule sets it too, or if the row does not have the
// fields that it is computed from when it is made.
func checkRowComputed(c *compiler, r *RowRule) {
	if c.broken[r.Into] || c.faulty[r] {
		return
	}
	for _, a := range r.Into.Attributes {
		if a.Computed == nil {
			continue
		}
		if r.assignsName(a.Name) {
			c.addFlaw(c.setPos(r, a.Name), "leave it out", "%s.%s is computed from %s", r.Into.Name, a.Name, a.Computed.From.Name)
		}
		from := []string{a.Computed.From.Name}
		if a.Computed.By != nil {
			from = append(from, a.Computed.By.Name)
		}
		for _, name := range from {
			at := seq.At(r.Fields, func(f *Assign) bool { return f.Name == name })
			switch {
			case at == nil && r.Into.fixedNames()[name] == "":
				c.addFlaw(r.decl.name.pos, "set: {"+name+": FIELD}", "%s sets no %q, from which %s.%s is computed", r.Name, name, r.Into.Name, a.Name)
			case at != nil && at.Expr.Follow != nil:
				c.addFlaw(c.setPos(r, name), "take it from "+r.Source.Name, "%s.%s is computed from %s when the row is made, and a followed value comes later", r.Into.Name, a.Name, name)
			}
		}
	}
}

// checkRowKey reports a rule whose new key lacks a name of the source's key. Two source
// rows would then make the same row.
// History is left out if the record's position is in its key: each record then makes a row of its
// own.
func checkRowKey(c *compiler, r *RowRule) {
	if c.broken[r.Into] || c.broken[r.Source] || c.faulty[r] || onePerRecord(r) {
		return
	}
	var used []string
	for _, name := range r.Into.KeyNames() {
		for _, a := range r.Fields {
			if a.Name == name && a.Expr.Field != nil {
				used = append(used, a.Expr.Field.Name)
			}
		}
	}
	for _, name := range r.Source.KeyNames() {
		if !slices.Contains(used, name) {
			c.addFlaw(r.decl.name.pos, "put a name that is set from it into the key of "+r.Into.Name,
				"two rows of %s could make one row of %s: its key does not contain %q", r.Source.Name, r.Into.Name, name)
		}
	}
}

// checkStamps reports a rule that sets an attribute which the entity's where already fixes.
func checkStamps(c *compiler, r *RowRule) {
	for _, t := range r.Into.Where {
		if _, one := t.Only(); one && r.assignsName(t.Field.Name) {
			c.addFlaw(c.setPos(r, t.Field.Name), "leave it out", "%q is stamped twice: the where of %s writes it already", t.Field.Name, r.Into.Name)
		}
	}
}

// checkState reports a copy that uses data of the record that made it, because a copy must
// be the same whenever it is made. It also reports history of changes whose key is not
// different for each record.
// A copy is made again by builds and corrections, which have the source row and no record.
func checkState(c *compiler, r *RowRule) {
	d := r.decl
	position := false
	for _, a := range r.Fields {
		used := recordsIn(a.Expr)
		if len(used) > 0 && !d.hasKey("keep") {
			c.addFlaw(c.setPos(r, a.Name), "take it from the row, or say keep", "a copy is the same whenever it is made, and %s is of one record", used[0])
		}
		position = position || slices.Contains(used, "$position") && slices.Contains(r.Into.KeyNames(), a.Name)
	}
	if many := slices.Contains(r.Keep, Enter) && slices.Contains(r.Keep, Leave); !position && (many || slices.Contains(r.Keep, events["modify"])) {
		c.addFlaw(r.decl.name.pos, "set a name of its key to $position", "%s keeps an entry of each change, and its key would be the same for two changes of one row", r.Name)
	}
}

// inputs sets and returns the fields that the rule reads of its source, and of subscribers.
func (r *RowRule) inputs() []reading {
	of := reading{what: r.Name, at: r.decl.name.pos, makes: r.Into.Name, old: r.needsOldImages(), of: r.Source, in: &r.Input}
	r.Input = Input{Derivation: r.Name, Where: r.Where, Fields: assignedFields(r.Fields)}
	each := r.Subscribers
	if each == nil {
		return []reading{of}
	}
	each.Input.Derivation = r.Name
	for _, by := range each.By {
		each.Input.Fields = append(each.Input.Fields, by.Field)
		r.Input.Fields = append(r.Input.Fields, assignedFields([]Assign{{Expr: by.Expr}})...)
	}
	for _, a := range r.Fields {
		if a.Expr.Subscriber != nil {
			each.Input.Fields = append(each.Input.Fields, a.Expr.Subscriber)
		}
	}
	return []reading{of, {what: of.what, at: of.at, makes: of.makes, old: true, of: each.Of, in: &each.Input}}
}

// needsOldImages reports whether the rule reads the old image of a change.
func (r *RowRule) needsOldImages() bool {
	return len(r.Keep) == 0 || slices.ContainsFunc(r.Keep, func(event string) bool { return slices.Contains([]string{events["remove"], Enter, Leave}, event) }) ||
		slices.ContainsFunc(r.Fields, func(a Assign) bool { return slices.Contains(recordsIn(a.Expr), "$old") })
}

// recordsIn lists the parts of a record ($time, $old, …) that an expression reads, inside maps
// too. Only history may read them: they are gone when a row is recomputed.
func recordsIn(x Expr) []string {
	if x.Record != "" {
		return []string{x.Record}
	}
	return seq.Flat(x.Map, func(a Assign) []string { return recordsIn(a.Expr) })
}

// checkRowTypes reports a value whose type does not fit its attribute.
// A scalar may become a part of a key, whatever its type: keys are texts.
func checkRowTypes(c *compiler, r *RowRule) {
	for _, s := range r.Fields {
		into := r.Into.Field(s.Name)
		from, source := s.Expr.Field, r.Source
		if s.Expr.Subscriber != nil {
			from, source = s.Expr.Subscriber, r.Subscribers.Of
		}
		if f := s.Expr.Follow; f != nil {
			from, source = f.Field, f.Source
		}
		switch {
		case len(s.Expr.Map) > 0 && into.Type != TypeMap && into.Type != TypeAny:
			c.addFlaw(c.setPos(r, s.Name), "", "%s.%s is a %s, and a map is set", r.Into.Name, s.Name, into.Type)
		case from == nil || into.Key != nil && isScalar(from.Type):
		case typesClash(from.Type, into.Type):
			c.addFlaw(c.setPos(r, s.Name), "", "%s.%s is a %s, and %s.%s is a %s", r.Into.Name, s.Name, into.Type, source.Name, from.Name, from.Type)
		}
	}
}
