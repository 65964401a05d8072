package model

import (
	"slices"

	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// followKind derives an attribute of the application's rows that follows a field of another row. Rows that rules make follow
// by the names that their rules set (copy.go).
var followKind = kind{
	keys: []string{"follow"}, declare: func() derivation { return &shownDecl{} },
	compile: func(c *compiler) { eachOf(c, c.shown, (*compiler).compileShown) },
	check:   func(c *compiler) { eachOf(c, c.shown, checkShown) },
}

// Follow keeps an attribute of rows equal to a field of another row.
type Follow struct {
	Name   string   // "Comment.author"
	Rule   *RowRule // that makes the rows which follow, nil if the application writes them
	Into   *Entity  // whose rows follow
	Attr   string   // of the row that follows
	From   *Entity  // whose fields say which row is followed: Rule.Source, or Into
	Source *Entity  // whose field is followed
	Field  *Field   // of Source
	Key    []Assign // the names of Source's key, from fields of From
	Keep   bool     // the last value stays when the row of Source is gone
	Input  Input    // without a Rule: the fields that it reads of its own row

	decl *shownDecl
}

// inputs returns the followed fields, which package follow reads of their own row. It sets Input.
func (f *Follow) inputs() (all []reading) {
	what, at, makes := f.Name, pos{}, f.Name
	if f.Rule != nil {
		what, at, makes = f.Rule.Name, f.Rule.decl.name.pos, f.Into.Name
	} else {
		at = f.decl.name.pos
		f.Input = Input{Derivation: f.Name, Fields: assignedFields(f.Key)}
		all = append(all, reading{what: what, at: at, makes: makes, old: true, of: f.Into, in: &f.Input})
	}
	return append(all, reading{what: what, at: at, makes: makes, old: true, of: f.Source, in: &Input{Fields: []*Field{f.Field}}})
}

// Followed returns the key of the row that a row of From follows.
func (f *Follow) Followed(row value.Item) (store.Key, bool) {
	return f.KeyBy(func(by *Field, t *Template) value.Value {
		if f.Source.Group != nil {
			return by.Get(row)
		}
		return by.InKey(row, t)
	})
}

// KeyBy returns the key of the row that is followed, of the values that get returns. weir escapes values in the keys of the rows
// that it makes: all of them in a group's, and in those of other rows the values that people typed.
func (f *Follow) KeyBy(get func(by *Field, t *Template) value.Value) (store.Key, bool) {
	e := f.Source
	return e.keyBy(func(k *KeyTemplate, name string) value.Value {
		a := seq.At(f.Key, func(a *Assign) bool { return a.Name == name })
		if a == nil {
			return value.Value{}
		}
		by, v := a.Expr.Field, a.Expr.Const
		if by != nil {
			v = get(by, k.Template)
		}
		switch typed := by != nil && by.Typed() && v.Kind() == value.String; {
		case e.Group != nil && k.Attr.Type == value.String:
			return value.OfString(k.Template.Escape(value.Scalar(v)))
		case e.Group == nil && e.Derived && typed:
			return value.OfString(k.Template.Escape(v.Text()))
		}
		return v
	})
}

// shownDecl is an attribute of an application's row that follows, as the file has it.
type shownDecl struct {
	// An attribute that is kept equal to a field of another row, also after that changes.
	deriveDecl `noun:"followed value"`
	// Entity.field of the row that is followed.
	Follow word `need:"follow: Entity.field" form:"Entity.field"`
	// Which row: {name in its key: field of the row that follows, or =text}. Equal names need no line.
	By []pair
	// The last value stays when the row followed is gone. Without it the attribute goes with that row.
	Keep bool
}

func (d *shownDecl) enter(c *compiler, e *Entity) {
	f := &Follow{Name: d.name.text, Into: e, From: e, Attr: d.attr.text, Keep: d.Keep, decl: d}
	c.shown = append(c.shown, f)
	e.Follows = append(e.Follows, f)
}

// compileShown compiles an attribute of the application's rows that follows. After a problem it takes part in no derivation.
func (c *compiler) compileShown(f *Follow) {
	before := c.flaws
	source, field := c.resolveDotted(f.decl.Follow, c.findField)
	if source == nil || field == nil {
		return
	}
	f.Field = field
	if f.Key = c.resolveAssigns(source, f.Into, f.decl.By, f.decl.Follow.pos, "by"); c.flaws == before {
		c.linkFollow(f, source)
	}
}

// linkFollow adds a compiled follow to both ends: the source knows who may follow it.
func (c *compiler) linkFollow(f *Follow, source *Entity) {
	f.Source = source
	source.Follow = append(source.Follow, f)
	c.Follows = append(c.Follows, f)
}

// checkShown reports an attribute of a row that cannot follow by itself: weir writes the rows again (history it does not), something
// else writes the attribute, or it is part of a key.
func checkShown(c *compiler, f *Follow) {
	e, at := f.Into, f.decl.attr.pos
	taken := seq.Flat(e.Latest, func(l *Latest) []string { return l.Attributes() })
	switch made := e.Derived && !e.IsHistory(); {
	case made && e.Group == nil && len(e.MadeBy) > 0:
		c.addFlaw(at, e.Name+": {set: {"+f.Attr+": {follow: "+f.decl.Follow.text+"}}}", "weir makes rows of %s, so their attributes follow by what the rule sets", e.Name)
	case made:
		c.addFlaw(at, "copy its rows, and follow in the copy: COPY: {row: "+e.Name+", set: {"+f.Attr+": {follow: "+f.decl.Follow.text+"}}}",
			"rows of %s are made whole by weir, and nothing else is derived on them", e.Name)
	case slices.Contains(taken, f.Attr):
		c.addFlaw(at, "one attribute for each", "%s.%s is derived already", e.Name, f.Attr)
	case slices.ContainsFunc(e.Table.KeyAttrs(), func(k store.KeyAttr) bool { return k.Name == f.Attr }):
		c.addFlaw(at, "choose another name, and search or copy the rows by it", "%s is in a key of %s or of an index of its table, and a value of another row cannot be", f.Attr, e.Name)
	default:
		c.checkDerivable(e, f.Attr, at)
	}
	if c.checkMark(f, at); f.Source != nil {
		c.checkFits(f.decl.name.pos, f.Name, f.Source, f.Key)
	}
}

// checkMark reports an attribute that follows and has a name by which weir marks rows.
func (c *compiler) checkMark(f *Follow, at pos) {
	if owntable.FollowsMark(f.Attr) {
		c.addFlaw(at, "choose another name", "%s cannot follow: weir keeps another mark in the attribute %s of a row", f.Attr, owntable.FollowVersion(f.Attr))
	}
}

// followDecl is {follow: Entity.field} among the names that a rule sets.
type followDecl struct {
	// Kept equal to a field of another row, also after it changes.
	heading `noun:"follow"`
	// Entity.field of the row that is followed.
	Follow word `need:"follow: Entity.field" form:"Entity.field"`
	// Which row: {name in its key: field of the source row}. Equal names need no line.
	By []pair
	// The last value stays when the row followed is gone. Without it the attribute goes with that row.
	Keep bool
}

// isFollow reports whether a map has the key "follow". n must be a map.
func (n node) isFollow() bool {
	for i := 0; i < len(n.y.Content); i += 2 {
		if n.y.Content[i].Value == "follow" {
			return true
		}
	}
	return false
}

// compileFollow compiles an attribute that follows, nil after a problem.
func (c *compiler) compileFollow(r *RowRule, s setDecl) *Follow {
	d, before := s.follow, c.flaws
	f := &Follow{Name: r.Name + "." + s.name.text, Rule: r, Into: r.Into, From: r.Source, Attr: s.name.text, Keep: d.Keep}
	source, field := c.resolveDotted(d.Follow, func(e *Entity, w word) *Field { return c.fieldFor(e, w, r.Into.Hides(f.Attr)) })
	if source == nil {
		return nil
	}
	f.Field = field
	if f.Key = c.resolveAssigns(source, r.Source, d.By, d.Follow.pos, "by"); c.flaws > before {
		return nil
	}
	c.linkFollow(f, source)
	return f
}

// checkAwaited reports an entry of an insertion that takes a value which its source row only shows later: a change of weir's own
// makes the row follow. A row enters later, too, where a test asks for the value.
func checkAwaited(c *compiler, r *RowRule) {
	inserts := slices.Contains(r.Keep, events["insert"])
	if !inserts && !slices.Contains(r.Keep, Enter) {
		return
	}
	read := append(seq.Map(r.Where, func(t Test) *Field { return t.Field }), assignedFields(r.Fields)...)
	if r.Subscribers != nil {
		read = append(read, seq.Map(r.Subscribers.By, func(m Match) *Field { return m.Expr.Field })...)
	}
	for _, late := range r.Source.Follows {
		takes := func(f *Field) bool { return f != nil && slices.Contains(f.Names(), late.Attr) }
		asks := func(t Test) bool { return takes(t.Field) && !t.Is.Holds(value.Value{}) }
		if slices.ContainsFunc(read, takes) && (inserts || !slices.ContainsFunc(r.Where, asks)) {
			hint := "let the entry follow by itself: " + r.Into.Name + "." + late.Attr + ": {follow: " + late.decl.Follow.text + ", by: …}"
			if !inserts {
				hint += ", or where: {" + late.Attr + ": present}"
			}
			c.addFlaw(r.decl.name.pos, hint, "%s takes %s, which follows another row: a row that is inserted does not show it yet", r.Name, late.Name)
			return
		}
	}
}

// notStored returns a field by which a history row follows another row, and which the rule stores in no attribute of
// it; "" for none. The deletion of such a row does not tell which row it followed.
func (f *Follow) notStored() string {
	if len(f.Rule.Keep) == 0 {
		return ""
	}
	for i := range f.Key {
		by := f.Key[i].Expr.Field
		if by != nil && !slices.ContainsFunc(f.Rule.Fields, func(a Assign) bool { return a.Expr.Field != nil && a.Expr.Field.Name == by.Name }) {
			return by.Name
		}
	}
	return ""
}

// checkFollow reports an attribute that follows and is part of a key. It also reports two
// rules into one entity of which only one keeps the last value when the row followed is
// gone: a row does not say which rule made it, so they must agree.
func checkFollow(c *compiler) {
	for i, f := range c.Follows {
		if f.Rule == nil { // see checkShown
			continue
		}
		for _, g := range c.Follows[:i] {
			if g.Rule != nil && g.Into == f.Into && g.Attr == f.Attr && g.Source == f.Source && g.Field.Name == f.Field.Name && g.Keep != f.Keep {
				c.addFlaw(c.setPos(f.Rule, f.Attr), "say keep: true in both, or in none",
					"%s and %s make rows of %s that follow %s.%s, and only one keeps the last value", g.Rule.Name, f.Rule.Name, f.Into.Name, f.Source.Name, f.Field.Name)
			}
		}
		c.checkFits(f.Rule.decl.name.pos, f.Name, f.Source, f.Key)
		at := c.setPos(f.Rule, f.Attr)
		c.checkMark(f, at)
		if name := f.notStored(); name != "" {
			c.addWarning(at, "set an attribute of "+f.Into.Name+" to "+name+", too", "history of %s does not say which %s it follows: when such a row is deleted, weir keeps its place among the followers for ever", f.Into.Name, f.Source.Name)
		}
		for _, k := range f.Into.Keys {
			if k.Template.Slot(f.Attr) >= 0 || k.Attr.Name == f.Attr {
				c.addFlaw(at, "follow it into an attribute with another name", "%s is part of the key %s of the table or an index, and cannot follow what changes later", f.Attr, k.Attr.Name)
				break
			}
		}
	}
}
