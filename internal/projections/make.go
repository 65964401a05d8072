package projections

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// EachSent calls yield for each history rule with subscribers that keeps an entry of this change, with the
// change as the rule keeps it, and the row that the entry is made from.
func (c *Change) EachSent(f *Faults, yield func(as *Change, rule *model.RowRule, row value.Item)) {
	for rule := range c.Rules() {
		if rule.Subscribers == nil {
			continue
		}
		if as, row := c.KeptEntry(f, rule); row != nil {
			yield(&as, rule, row)
		}
	}
}

// Rules yields the rules that make rows of the row as it is and was, each once.
func (c *Change) Rules() iter.Seq[*model.RowRule] {
	return func(yield func(*model.RowRule) bool) {
		for i, e := range [...]*model.Entity{c.Is, c.Was} {
			if e == nil || i > 0 && e == c.Is {
				continue
			}
			for _, rule := range e.Rules {
				if !yield(rule) {
					return
				}
			}
		}
	}
}

// KeptEntry returns the image from which a history rule makes an entry of this change, nil for no entry, and the change with
// the event that the rule keeps. An event of the record comes before Enter and Leave, so that a change makes one entry.
// A migration's changes make none.
func (c *Change) KeptEntry(f *Faults, rule *model.RowRule) (as Change, row value.Item) {
	if as = *c; c.isMigration() || owntable.IsSilent(c.Old, c.New) || c.Was == c.Is && !concernedBy(rule, c) {
		return as, nil
	}
	var old, image value.Item
	if c.Was == rule.Source {
		old = c.Old
	}
	if c.Is == rule.Source {
		image = c.New
	}
	if row = image; c.New == nil {
		row = old
	}
	if !slices.Contains(rule.Keep, c.eventName(rule.Source)) {
		row = nil
	}
	enters, leaves := slices.Contains(rule.Keep, model.Enter), slices.Contains(rule.Keep, model.Leave)
	if !enters && !leaves {
		return as, row
	}
	tests := model.Input{Derivation: rule.Name, Where: rule.Where}
	had := old != nil && f.IsUsable(&tests, old, true)
	has := image != nil && f.IsUsable(&tests, image, false)
	switch {
	case row != nil && (has || c.New == nil && had):
		return as, row
	case enters && has && !had:
		as.Event = model.Enter
		return as, image
	case leaves && had && !has:
		as.Event = model.Leave
		return as, old
	}
	return as, nil
}

// concernedBy reports whether a change of a row concerns the rule: the application
// changed something, or a derived value that the rule names has changed.
func concernedBy(rule *model.RowRule, c *Change) bool {
	if !differingAttributes(c.New, c.Old, c.Is).IsMissing() || !differingAttributes(c.Old, c.New, c.Was).IsMissing() {
		return true
	}
	changed := func(f *model.Field) bool { return f != nil && !value.Equal(f.Get(c.Old), f.Get(c.New)) }
	return slices.ContainsFunc(rule.Where, func(t model.Test) bool { return changed(t.Field) }) || anyField(rule.Fields, changed)
}

// anyField reports whether an expression, also one inside a map, reads a field for which is returns
// true. is may get nil.
func anyField(assigns []model.Assign, is func(*model.Field) bool) bool {
	return slices.ContainsFunc(assigns, func(a model.Assign) bool { return is(a.Expr.Field) || anyField(a.Expr.Map, is) })
}

// SameOf reports whether a rule without history makes the same of two images of a row, because nothing that
// it reads of them differs.
func SameOf(rule *model.RowRule, a, b value.Item) bool {
	differs := func(f *model.Field) bool {
		return f != nil && slices.ContainsFunc(f.Attrs(), func(name string) bool { return !value.Equal(a.Get(name), b.Get(name)) })
	}
	follows := func(a model.Assign) bool { return a.Expr.Follow != nil && anyField(a.Expr.Follow.Key, differs) }
	return !slices.ContainsFunc(rule.Where, func(t model.Test) bool { return differs(t.Field) }) &&
		!slices.ContainsFunc(rule.Fields, follows) && !anyField(rule.Fields, differs)
}

// eventName returns the event of the row as a row of the given entity. A row that becomes
// one of the entity's rows is an INSERT.
func (c *Change) eventName(of *model.Entity) string {
	switch {
	case c.Was != of:
		return "INSERT"
	case c.New == nil:
		return "REMOVE"
	}
	return "MODIFY"
}

// making holds the source of a rule's row: the values of its fields (val), and the text
// of those fields that come from a key, as it stands in that key (raw).
type making struct {
	rule     *model.RowRule
	val, raw func(*model.Assign) value.Value
}

// RawOf returns a function that reads a field's text from the source row's key.
func RawOf(row value.Item) func(*model.Assign) value.Value {
	return func(f *model.Assign) value.Value { return f.Expr.Field.Raw(row) }
}

// BuildRow makes a rule's row from the values of its fields. It returns false if the key is
// incomplete. A key attribute has its value in the key, also where a field of its name has another value:
// text from the source's key may be escaped there.
func BuildRow(rule *model.RowRule, val, raw func(*model.Assign) value.Value) (Put, bool) {
	into, m := rule.Into, making{rule, val, raw}
	key, ok := into.Key(func(name string) value.Value { return m.keyPart(name, primaryKeyOf(into, name)) })
	if !ok {
		return Put{}, false
	}
	p := Put{Rule: rule, Row: store.Ref{Table: into.Table.Name, Key: key}, Unclear: m.unclearKey(key)}
	attrs := append(make(value.Item, 0, 16), into.Stamps()...)
	for i := range rule.Fields {
		f := &rule.Fields[i]
		if a := into.Attribute(f.Name); a != nil && f.Expr.Follow == nil {
			v := a.Store(val(f))
			if from := cmp.Or(f.Expr.Field, f.Expr.Subscriber); from != nil && from.Typed() && a.SameForm(from.Declared) {
				v = raw(f)
			}
			attrs = append(attrs, value.Attr{Name: f.Name, Value: v})
		}
	}
	attrs = append(attrs, into.Spelled(m.valueOf, func(k *model.KeyTemplate, name string) string { return m.keyPart(name, k).Text() })...)
	p.Image = into.WithComputed(value.NewItem(append(m.indexKeys(attrs), into.Table.Item(key)...)...))
	return p, true
}

// unclearKey returns why the key of a row that is made does not tell the names that it is made
// from, "" if it does. These are taken from keys as they stand there, so one may hold a
// separator of this key.
func (m making) unclearKey(key store.Key) string {
	for i, kt := range m.rule.Into.PrimaryKey() {
		if !slices.ContainsFunc(kt.Template.Names(), m.isRaw) {
			continue
		}
		is := value.Scalar(key.Partition)
		if i > 0 {
			is = value.Scalar(key.Sort)
		}
		text := func(name string) string { return value.Scalar(m.keyPart(name, kt)) }
		if name, says := kt.Template.Misread(is, text); name != "" {
			return fmt.Sprintf("its key %q would say that %s is %q, not %q, and another row may have that key: choose another template for %s of %s",
				is, name, says, text(name), kt.Attr.Name, m.rule.Into.Name)
		}
	}
	return ""
}

// isRaw reports whether a name's text is used as it stands in another key.
func (m making) isRaw(name string) bool {
	f := m.assignOf(name)
	if f == nil {
		return false
	}
	from := cmp.Or(f.Expr.Field, f.Expr.Subscriber)
	return from != nil && !from.Typed()
}

// indexKeys adds the attributes that put the row into its indexes. It adds none for an
// index whose key is incomplete.
func (m making) indexKeys(attrs value.Item) value.Item {
	into := m.rule.Into
	for i := range into.Table.Indexes {
		idx := &into.Table.Indexes[i]
		start, whole := len(attrs), true
		for _, ka := range [...]store.KeyAttr{idx.Key.Partition, idx.Key.Sort} {
			kt := into.KeyTemplate(ka.Name)
			if ka.Name == "" || kt == nil || slices.Contains(into.PrimaryKey(), kt) || into.Attribute(ka.Name) != nil {
				continue
			}
			v, ok := kt.Build(func(name string) value.Value { return m.keyPart(name, kt) })
			whole = whole && ok
			attrs = append(attrs, value.Attr{Name: ka.Name, Value: v})
		}
		if !whole {
			attrs = attrs[:start]
		}
	}
	return attrs
}

// primaryKeyOf returns the primary key template that contains a name, or the entity's first
// template if none does.
func primaryKeyOf(e *model.Entity, name string) *model.KeyTemplate {
	return cmp.Or(seq.Find(e.PrimaryKey(), func(k *model.KeyTemplate) bool { return k.Template.Slot(name) >= 0 }), e.Keys[0])
}

// keyPart returns a name's value as it stands in a key that we make. Typed text is
// escaped; text that was read from a key is used as it is. A name that no field gives is the one that the
// entity's where says.
func (m making) keyPart(name string, kt *model.KeyTemplate) value.Value {
	f := m.assignOf(name)
	if f == nil {
		return m.rule.Into.Stamp(name)
	}
	from := cmp.Or(f.Expr.Field, f.Expr.Subscriber)
	if from == nil {
		return m.val(f)
	}
	v := m.raw(f) // as the source has it, whatever its type
	if v.Kind() != value.String || !from.Typed() {
		return v
	}
	return value.OfString(kt.Template.Escape(v.Text()))
}

// valueOf is the value that the rule gives a name, Missing if it gives none.
func (m making) valueOf(name string) value.Value {
	if f := m.assignOf(name); f != nil {
		return m.val(f)
	}
	return value.Value{}
}

// assignOf is the rule's entry for a name, nil for none.
func (m making) assignOf(name string) *model.Assign {
	return seq.At(m.rule.Fields, func(a *model.Assign) bool { return a.Name == name })
}

// EvaluateExpr returns the value of an expression on a row. c is needed only for the parts of
// a record, such as $time.
func EvaluateExpr(c *Change, x *model.Expr, row value.Item) value.Value {
	switch {
	case x.Field != nil:
		return x.Field.Get(row)
	case x.Record != "":
		return recordPart(c, x.Record)
	case x.Map != nil:
		var attrs []value.Attr
		for i := range x.Map {
			attrs = append(attrs, value.Attr{Name: x.Map[i].Name, Value: EvaluateExpr(c, &x.Map[i].Expr, row)})
		}
		if it := value.NewItem(attrs...); len(it) > 0 {
			return value.OfMap(it)
		}
		return value.Value{}
	}
	return x.Const
}

// timeFormat is RFC 3339 with all digits of the microseconds, so that times sort as text.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// recordPart returns a part of the record itself, for history. $position has a fixed
// number of digits, so that it sorts as text.
func recordPart(c *Change, name string) value.Value {
	switch name {
	case "$time":
		return value.OfString(c.Time.UTC().Format(timeFormat))
	case "$position":
		s := c.Origin.String()
		return value.OfString("0000000000000000000000000000000000000000"[:max(0, 40-len(s))] + s)
	case "$event":
		switch {
		case c.Event != "":
			return value.OfString(c.Event)
		case c.Old == nil:
			return value.OfString("INSERT")
		case c.New == nil:
			return value.OfString("REMOVE")
		}
		return value.OfString("MODIFY")
	case "$key":
		return value.OfMap(c.Table.Item(c.Row.Key))
	case "$old":
		return c.publishedAttributes(differingAttributes(c.Old, c.New, c.Was))
	case "$new":
		return c.publishedAttributes(differingAttributes(c.New, c.Old, c.Is))
	}
	return value.Value{}
}

// publishedAttributes returns attributes of an image without those that the model hides: the row as it was, and as it
// is, or, of a row that was or is no entity, any entity of the table. It returns Missing if none are left.
func (c *Change) publishedAttributes(attrs value.Value) value.Value {
	if attrs.IsMissing() {
		return attrs
	}
	foreign := c.Old != nil && c.Was == nil || c.New != nil && c.Is == nil
	it := attrs.Item().Filter(func(name string) bool {
		return !c.Was.Hides(name) && !c.Is.Hides(name) && !(foreign && c.Table.HidesIn(name))
	})
	if len(it) == 0 {
		return value.Value{}
	}
	return value.OfMap(it)
}

// TakenField returns a field of the row that a rule made this row from, as it stands in that
// row's key. It returns Missing if this row does not hold the field.
func TakenField(rule *model.RowRule, name string, row value.Item) value.Value {
	for i := range rule.Fields {
		f := rule.Fields[i].Expr.Field
		if f == nil || f.Name != name {
			continue
		}
		into := rule.Into.Field(rule.Fields[i].Name)
		v := into.Get(row)
		switch {
		case into.Typed():
			return v
		case f.Typed() && row.Has(into.Name):
			return v
		case f.Typed():
			return value.OfString(model.Unescape(v.Text()))
		}
		return into.Raw(row)
	}
	return value.Value{}
}

// differingAttributes returns the attributes of an image that differ from the other image, without
// derived attributes. It returns Missing if there is no image or nothing differs.
func differingAttributes(image, other value.Item, e *model.Entity) value.Value {
	if image == nil {
		return value.Value{}
	}
	image, other = UncoveredRow(image), UncoveredRow(other)
	var attrs value.Item
	for _, a := range image {
		if !owntable.IsOurs(a.Name) && !IsDerived(e, a.Name) && !value.Equal(a.Value, other.Get(a.Name)) {
			attrs = append(attrs, a)
		}
	}
	if len(attrs) == 0 {
		return value.Value{}
	}
	return value.OfMap(attrs)
}

// IsDerived reports whether weir computes this attribute on rows of the entity, or has computed it until that was
// retired and has not removed it yet. weir ignores an application's writes to such an attribute.
func IsDerived(e *model.Entity, name string) bool {
	if e == nil {
		return false
	}
	for _, t := range e.Values {
		if t.Attr == name && !t.Hidden {
			return true
		}
	}
	for _, l := range e.Latest {
		for i := range l.Set {
			if l.Set[i].Name == name {
				return e.Attribute(name) == nil || e.Group != nil // else it is the application's, too
			}
		}
	}
	return slices.ContainsFunc(e.Follows, func(f *model.Follow) bool { return f.Attr == name }) || e.Left.Has(name)
}

// MakeRow returns the row that a rule makes from a row that it selects, with the rows that the result follows. It
// returns false if the key is incomplete.
func MakeRow(c *Change, rule *model.RowRule, row value.Item) (Put, bool) {
	p, ok := BuildRow(rule, func(f *model.Assign) value.Value { return EvaluateExpr(c, &f.Expr, row) }, RawOf(row))
	p.Position, p.Source = c.Position, c.Row
	for i := range rule.Fields {
		fl := rule.Fields[i].Expr.Follow
		if fl == nil || rule.Into.Attribute(fl.Attr) == nil {
			continue
		}
		if of, ok := fl.Followed(row); ok {
			p.Follows = append(p.Follows, Following{Follow: fl, Of: store.Ref{Table: fl.Source.Table.Name, Key: of}})
		}
	}
	return p, ok
}
