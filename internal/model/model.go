// Package model reads a model file, checks it and compiles it into the plan that
// everything else works by: which row is which entity, where its names are, what
// is derived from it, how it is searched, and which queries there are.
//
// A Model is made once by Load and never changes. It holds no data and does no
// I/O after loading. Names of rows' parts, the fields, are the row's attributes
// and the names that its key templates read out of its keys.
package model

import (
	"slices"

	"weir/internal/store"
	"weir/internal/value"
)

// Model is a compiled model file.
type Model struct {
	Name     string
	File     string // as given, for messages
	Tables   []*Table
	Entities []*Entity
	Tallies  []*Tally
	Rows     []*RowRule
	Follows  []*Follow
	Steps    []*Steps
	Searches []*Search
	Queries  []*Query

	Migrations []*Migration
	Old        []*Table // that are only migrated from
}

// Table is a table of the model, as the store knows it.
type Table struct {
	store.Table
	Entities []*Entity // in the order of the file; a row is the first that matches, and lint sees to it that it is the only one
	OldImage bool      // the stream has old images (the default)
	KeysOnly bool      // the stream has no images at all

	kind *Field // what entities tell their rows by, nil for nothing
}

// Entity is a kind of row.
type Entity struct {
	Name       string
	Table      *Table
	Where      []Test         // all hold for a row of this entity
	Keys       []*KeyTemplate // the table's key first (partition, sort), then those of its indexes
	Attributes []*Attribute
	Flags      []string // the attributes that are flags
	Expires    *Field   // the time (RFC 3339 text, or epoch seconds) from which the row is not returned, nil for none
	Derived    bool     // only weir writes rows of this entity

	Unique    []*Unique // what commands are held to
	New       []New
	Nested    []Nested
	Once      *Once
	Supersede *Supersede

	Values  []*Tally   // what is tallied onto rows of this entity
	Sources []*Source  // the tallies that rows of this entity count towards
	Rules   []*RowRule // the rows made from rows of this entity
	MadeBy  []*RowRule // the rules that make rows of this entity
	Follow  []*Follow  // the values of this entity that other rows follow
	Search  []*Search  // the indexes that rows of this entity are in
	Steps   []*Steps   // what moves along on rows of this entity
	Stages  []*Stage   // the words that rows of this entity reach
	Others  []*Others  // the lists that rows of this entity stand for
	Told    []*RowRule // the rules that make a row for each row of this entity

	Migrations []*Migration // what rows of this entity, old ones, become
	Replaces   []*Making    // what makes rows of this entity in an old row's place

	kind *Test // of Where, on the table's kind; nil for none
	open bool  // any attribute may be there: none are declared
}

// KeyTemplate says how one key attribute of an entity is made and read.
type KeyTemplate struct {
	Attr     store.KeyAttr
	Template *Template
}

// Attribute is a declared attribute of an entity.
type Attribute struct {
	Name     string
	Type     Type
	Required bool
	Default  value.Value // as rows hold it, a flag as a string; Missing for none
	Defaults *Defaults   // nil: the default goes by nothing else
	Enum     []string
	Max      int         // the longest text, in characters; 0 for no limit
	Least    value.Value // the least number, Missing for no limit
	Most     value.Value // the greatest
	Hidden   bool        // never leaves through a query or a search
	Reading  *Reading    // nil: it reads as it is stored
	Others   *Others     // of a list: what it stands for where there is none
	Forward  bool        // commands move it along its enum, never back
	Computed *Computed
}

// Field is a name of an entity's rows, resolved: an attribute, or a place in a
// key template. A name that the table's own key template reads is taken from
// there, since the key is always there and cannot change; any other from the
// attribute.
type Field struct {
	Name string
	Type Type // of the declared attribute; TypeString from a key, TypeAny when undeclared
	Attr string
	Key  *Template // nil: the attribute as it is
	Slot int
}

// Get is the field's value in a row as the application means it, Missing when it
// has none. Of a name that stands in the row's key it is the attribute of that name,
// where the row has one that the key was made of; otherwise what the key says.
func (f *Field) Get(row value.Item) value.Value {
	raw := f.Raw(row)
	if f.Key == nil || raw.IsMissing() {
		return raw
	}
	own := value.Scalar(row.Get(f.Name))
	if own == "" || own == raw.Text() {
		return raw
	}
	if f.Key.Escape(own) == raw.Text() || f.Key.plain(row, row.Get(f.Attr).Text()) {
		return value.OfString(own)
	}
	return raw
}

// Raw is Get, but for what stands in the row's key: that is as it stands there.
func (f *Field) Raw(row value.Item) value.Value {
	v := row.Get(f.Attr)
	if f.Key == nil || v.Kind() != value.String {
		return v
	}
	var buf [maxNames]string
	values := buf[:len(f.Key.names)]
	if !f.Key.Match(v.Text(), values) || values[f.Slot] == "" {
		return value.Value{}
	}
	return value.OfString(values[f.Slot])
}

// InKey is the field's value as it stands in a key that t makes for the same thing:
// escaped where the row's own key has it escaped, and as it is where that key has it
// so.
func (f *Field) InKey(row value.Item, t *Template) value.Value {
	raw := f.Raw(row)
	if f.Key == nil || raw.IsMissing() {
		return raw
	}
	own := f.Get(row)
	if !value.Equal(own, raw) && f.Key.Escape(own.Text()) == raw.Text() {
		return value.OfString(t.Escape(own.Text()))
	}
	return own
}

// Typed is true when a person typed the value, false when it was read from a key
// and is used raw.
func (f *Field) Typed() bool { return f.Key == nil }

// Test is a condition on a row's field: it is present or absent, or one of the
// values. With Not it is none of them; an absent field is none of them.
type Test struct {
	Field   *Field
	OneOf   []value.Value // scalars; empty when only presence is tested
	Not     bool
	Present bool // with no OneOf: the field must be there; with Not: must be absent
}

// Assign gives a name its value.
type Assign struct {
	Name string
	Expr Expr
}

// Expr is where a value comes from: exactly one of its parts is set.
type Expr struct {
	Field  *Field
	Const  value.Value
	Record string // $time, $position, $event, $key, $old, $new: from the record
	Map    []Assign
	Follow *Follow
	Each   *Field // of the follower that the row is made for
}

// Query is a named query. It is a search when Search is set, and otherwise a walk
// of Steps: the first from the parameters, each later one for every row of the
// one before it. What the last step reads is the answer.
type Query struct {
	Name   string
	Params []Param // in the order of the file
	Single bool    // at most one row
	Unique bool    // each row of the last step once, in the order of their keys
	Steps  []*Step
	Search *Search
	With   []Bind     // of a search: filters
	Sort   *Field     // the order, where that is not the key's
	Return []Returned // what is given of the row found; none for all of it
}

// Param is a parameter of a query.
type Param struct {
	Name     string
	Optional bool
	Default  value.Value // where it is left out; Missing for none
	Type     Type
	List     bool // values with commas between them
}

// Step reads rows of one entity by key, from its table or an index.
type Step struct {
	Entity  *Entity
	Index   *store.Index // nil: the table
	Get     bool         // one row by its whole key
	Also    []*Entity    // rows of these too
	With    []Bind       // fixed fields: what the key's templates can use narrows the read, the rest filters
	Any     []Bind       // where given, at least one of these fields is among its parameter's values
	Below   *Bind        // rows whose field is below the value
	Reverse bool
	Expired bool // expired rows too
}

// Bind fixes a field of a step to a parameter, a constant, or a field of the row
// of the step before.
type Bind struct {
	Field *Field
	Param string
	Const value.Value
	Prior *Field // a list stands for each of its elements
}

// Table finds a table by name, nil when there is none. One that is only migrated
// from is found too.
func (m *Model) Table(name string) *Table {
	for _, tables := range [...][]*Table{m.Tables, m.Old} {
		for _, t := range tables {
			if t.Name == name {
				return t
			}
		}
	}
	return nil
}

// Entity finds an entity by name, nil when there is none.
func (m *Model) Entity(name string) *Entity {
	for _, e := range m.Entities {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Query finds a query by name, nil when there is none.
func (m *Model) Query(name string) *Query {
	for _, q := range m.Queries {
		if q.Name == name {
			return q
		}
	}
	return nil
}

// Classify says which entity a row of the table is, nil when none: its conditions
// hold and its primary key has the shape of the entity's templates.
func (t *Table) Classify(row value.Item) *Entity {
	if row == nil {
		return nil
	}
	var kind value.Value
	if t.kind != nil {
		kind = t.kind.Get(row)
	}
	for _, e := range t.Entities {
		if (e.kind == nil || e.kind.takes(kind)) && e.Match(row) {
			return e
		}
	}
	return nil
}

// sortByKind finds the attribute that the first of the table's entities to test one
// tests, by which most rows are told apart before anything else is looked at.
func (t *Table) sortByKind() {
	for _, e := range t.Entities {
		for i := range e.Where {
			f := e.Where[i].Field
			if f.Key != nil {
				continue
			}
			if t.kind == nil {
				t.kind = f
			}
			if f.Attr == t.kind.Attr {
				e.kind = &e.Where[i]
				break
			}
		}
	}
}

// Match reports whether the row is one of this entity.
func (e *Entity) Match(row value.Item) bool {
	return Holds(e.Where, row) && e.MatchKey(row)
}

// MatchKey reports whether the templates of the primary key match the row's.
func (e *Entity) MatchKey(row value.Item) bool {
	var buf [maxNames]string
	for _, k := range e.PrimaryKey() {
		v := row.Get(k.Attr.Name)
		if v.Kind() != k.Attr.Type {
			return false
		}
		if k.Template.Whole() {
			continue
		}
		if v.Kind() != value.String || !k.Template.Match(v.Text(), buf[:len(k.Template.names)]) {
			return false
		}
	}
	return true
}

// PrimaryKey is the templates of the table's own key.
func (e *Entity) PrimaryKey() []*KeyTemplate {
	if e.Table.Key.Sort.Name == "" {
		return e.Keys[:1]
	}
	return e.Keys[:2]
}

// Spelled are the names that stand in keys otherwise than their values are, with
// those values: where no attribute holds it, a row that weir writes has one of that
// name, so that it says its values itself. text is what a key has for a name.
func (e *Entity) Spelled(get func(name string) value.Value, text func(k *KeyTemplate, name string) string) (out []value.Attr) {
	for _, k := range e.Keys {
		for _, name := range k.Template.names {
			v := get(name)
			if v.Kind() != value.String || e.Attribute(name) != nil || text(k, name) == v.Text() {
				continue
			}
			out = append(out, value.Attr{Name: name, Value: v})
		}
	}
	return out
}

// Spells reports whether Spelled may name an attribute so.
func (e *Entity) Spells(name string) bool {
	return e.Attribute(name) == nil && slices.ContainsFunc(e.Keys, func(k *KeyTemplate) bool { return k.Template.Slot(name) >= 0 })
}

// KeyTemplate finds the template of a key attribute, nil when the entity has none.
func (e *Entity) KeyTemplate(attr string) *KeyTemplate {
	for _, k := range e.Keys {
		if k.Attr.Name == attr {
			return k
		}
	}
	return nil
}

// Attribute finds a declared attribute, nil when there is none.
func (e *Entity) Attribute(name string) *Attribute {
	for _, a := range e.Attributes {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Field resolves a name of this entity's rows. It always answers: a name that is
// neither declared nor in the primary key is an undeclared attribute, or, in rows
// that weir makes, stands in the key of an index.
func (e *Entity) Field(name string) *Field {
	for _, k := range e.PrimaryKey() {
		if i := k.Template.Slot(name); i >= 0 && !k.Template.Whole() {
			return &Field{Name: name, Type: TypeString, Attr: k.Attr.Name, Key: k.Template, Slot: i}
		}
	}
	f := &Field{Name: name, Type: TypeAny, Attr: name}
	if k := e.keyNamed(name); k != nil {
		f.Attr, f.Type = k.Attr.Name, keyAttrType(k.Attr.Type)
	}
	if a := e.Attribute(name); a != nil {
		f.Type = a.Type
		return f
	}
	for _, t := range e.Values {
		switch {
		case t.Attr != name:
		case t.IsSet():
			f.Type = TypeStrings
			return f
		case t.Kind.Number:
			f.Type = TypeNumber
			return f
		}
	}
	if !e.Derived || f.Type != TypeAny {
		return f
	}
	for _, k := range e.Keys[len(e.PrimaryKey()):] {
		if i := k.Template.Slot(name); i >= 0 && !k.Template.Whole() {
			return &Field{Name: name, Type: TypeString, Attr: k.Attr.Name, Key: k.Template, Slot: i}
		} else if i >= 0 {
			f.Attr, f.Type = k.Attr.Name, keyAttrType(k.Attr.Type)
		}
	}
	return f
}

func keyAttrType(k store.KeyType) Type {
	switch k {
	case value.Number:
		return TypeNumber
	case value.Binary:
		return TypeBinary
	}
	return TypeString
}

// keyNamed finds the primary key attribute whose whole template is the name.
func (e *Entity) keyNamed(name string) *KeyTemplate {
	for _, k := range e.PrimaryKey() {
		if k.Template.Whole() && k.Template.names[0] == name {
			return k
		}
	}
	return nil
}

// Key builds the primary key from the values of its names. It reports false when
// one is missing, or not of the key attribute's type.
func (e *Entity) Key(get func(name string) value.Value) (store.Key, bool) {
	return e.keyBy(func(_ *KeyTemplate, name string) value.Value { return get(name) })
}

func (e *Entity) keyBy(get func(k *KeyTemplate, name string) value.Value) (store.Key, bool) {
	var k store.Key
	for i, kt := range e.PrimaryKey() {
		v, ok := kt.Build(func(name string) value.Value { return get(kt, name) })
		if !ok {
			return store.Key{}, false
		}
		if i == 0 {
			k.Partition = v
		} else {
			k.Sort = v
		}
	}
	return k, true
}

// KeyFrom builds the primary key that a row gives with its own fields, as the keys of
// the same application have them.
func (e *Entity) KeyFrom(to []Assign, row value.Item) (store.Key, bool) {
	return e.keyBy(func(k *KeyTemplate, name string) value.Value {
		for i := range to {
			switch x := &to[i].Expr; {
			case to[i].Name != name:
			case x.Field != nil:
				return x.Field.InKey(row, k.Template)
			default:
				return x.Const
			}
		}
		return value.Value{}
	})
}

// Build makes the key attribute's value from the values of the template's names.
func (k *KeyTemplate) Build(get func(name string) value.Value) (value.Value, bool) {
	if k.Template.Whole() {
		v := get(k.Template.names[0])
		if v.Kind() == value.String && k.Attr.Type == value.Number {
			n, err := value.ParseNumber(v.Text())
			return n, err == nil
		}
		if v.Kind() == value.Bool && k.Attr.Type == value.String {
			return value.OfString(value.Scalar(v)), true
		}
		return v, v.Kind() == k.Attr.Type && (v.Kind() == value.Number || v.Text() != "")
	}
	s, ok := k.Template.Build(func(name string) string { return value.Scalar(get(name)) })
	return value.OfString(s), ok
}

// BuildTyped is Build for values that people typed: inside a text each is escaped,
// so that no value can forge another row's key.
func (k *KeyTemplate) BuildTyped(get func(name string) value.Value) (value.Value, bool) {
	return k.Build(func(name string) value.Value {
		v := get(name)
		if v.Kind() == value.String {
			v = value.OfString(k.Template.Escape(v.Text()))
		}
		return v
	})
}

// Holds reports whether all tests hold for the row.
func Holds(tests []Test, row value.Item) bool {
	for i := range tests {
		if !tests[i].holds(row) {
			return false
		}
	}
	return true
}

func (t *Test) holds(row value.Item) bool { return t.takes(t.Field.Get(row)) }

// takes reports whether the test holds for a row whose field is v.
func (t *Test) takes(v value.Value) bool {
	if len(t.OneOf) == 0 {
		there := v.Kind() != value.Missing && v.Kind() != value.Null
		return there == t.Present
	}
	for _, w := range t.OneOf {
		if SameScalar(v, w) {
			return !t.Not
		}
	}
	return t.Not
}

// SameScalar compares scalars as people write them: a boolean equals a flag's
// string of the same word, a number only a number of the same value.
func SameScalar(a, b value.Value) bool {
	if a.Kind() == value.Bool || b.Kind() == value.Bool {
		return value.Scalar(a) == value.Scalar(b) && value.Scalar(a) != "" && a.Kind() != value.Number && b.Kind() != value.Number
	}
	return value.Equal(a, b)
}
