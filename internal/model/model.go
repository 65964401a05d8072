// Package model reads a model file, checks it and compiles it into a Model, the plan that
// the other packages follow. The plan says which entity a row belongs to, where its fields
// are stored, which values are derived from it, how it is searched, and which queries exist.
//
// Load makes a Model once; it never changes and may be shared. It holds no data and does no
// I/O after loading. The fields of a row are its attributes and the names that its key
// templates read out of its keys.
//
// A file goes through three stages, and each keeps going after a mistake, so that one run of lint
// shows as many as possible:
//
//	load.go, read.go        YAML to nodes with their places
//	decl*.go                nodes to declarations, whose names are not looked up yet: structs whose fields are the keys of the
//	                        language with the values that may stand under each. They are the one table of keys: declare.go reads and checks
//	                        with it, models/schema.json is made of it
//	compile*.go             declarations to the Model: names become entities, fields, templates
//	check*.go               mistakes that only the whole model shows, such as loops and keys that collide
//
// The part of a kind of derivation in these stages is in one file: tally.go, set.go, group.go,
// status.go, latest.go, copy.go, follow.go, feed.go, search.go; derive.go lists the kinds.
// Templates of keys, which bind names both ways, are in template.go, spelling.go and overlap.go.
// derivation.go and diff.go define a derivation for the catalog, and its changes.
// problem.go and meant.go make messages: the place, the mistake, and which name may be meant.
// amount.go, bucket.go and condition.go are the parts that several kinds use: the amount of a row, the
// calendar's part that a time is in, and the tests of a row. formula.go has attributes that no row has,
// since they are computed from others when something reads them.
package model

import (
	"slices"
	"sync/atomic"
	"time"

	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Model is a compiled model file. It has passed every check of lint and never changes, so any
// number of goroutines may read it. Names are resolved to pointers; lists keep the order of the
// file.
type Model struct {
	Name     string
	File     string // as given, for messages
	Arg      string // by which Load found it, "" of one that was parsed
	Flags    []Flag // with which its user says where its rows are; see Command
	Tables   []*Table
	Entities []*Entity
	Tallies  []*Tally // also those of groups
	Groups   []*Group
	Rows     []*RowRule
	Follows  []*Follow
	Statuses []*Status
	Latest   []*Latest
	Searches []*Search
	Queries  []*Query

	Migrations []*Migration
	Old        []*Table // tables that are only migrated from

	Warnings []Problem // of lint

	text []byte // of the file
}

// Table is a table of the model, as the store knows it.
type Table struct {
	store.Table
	Entities []*Entity    // in the order of the file; the first match wins; a check allows one only
	Images   store.Images // that its stream must have

	kind *Field // the field that tells entities apart, nil for none
	decl *tableDecl
}

// Entity is a kind of row.
type Entity struct {
	Name       string
	Table      *Table
	Where      []Test         // all hold for a row of this entity
	Keys       []*KeyTemplate // the table's key first (partition, sort), then those of its indexes
	Attributes []*Attribute
	Formulas   []*Attribute // the computed attributes, which no row has: they are read from other fields
	Expires    *Field       // the time (RFC 3339 text, or epoch seconds) from which the row is not returned, nil for none
	Derived    bool         // only weir writes rows of this entity
	Group      *Group       // of which rows of this entity are the summaries, nil if they are none
	Left       *Left        // the values of retired derivations on its rows; the only part that is not of the model file

	Unique    []*Unique // the rules for commands; see rules.go
	New       []New
	Nested    []Nested
	Once      *Once
	Supersede *Supersede

	Values     []*Tally   // the tallies shown on rows of this entity
	Sources    []*Source  // the tallies that rows of this entity count towards
	Rules      []*RowRule // the rows made from rows of this entity
	MadeBy     []*RowRule // the rules that make rows of this entity
	Follow     []*Follow  // the values of this entity that other rows follow
	Search     []*Search  // the indexes that rows of this entity are in
	Statuses   []*Status  // the statuses on rows of this entity
	Stages     []*Stage   // the status words that rows of this entity reach
	Latest     []*Latest  // the values that rows of this entity show of the latest of other rows
	LatestOf   []*Latest  // the derivations of the latest row of this entity
	Follows    []*Follow  // the attributes of this entity's rows that follow other rows, where the application writes the rows
	Others     []*Others  // the lists whose elements rows of this entity are
	Subscribes []*RowRule // the rules that make a row for each row of this entity

	Migrations []*Migration // the migrations whose old rows are of this entity
	Replaces   []*Making    // the makings that replace an old row by one of this entity

	kind *Test // the test of Where on the table's kind; nil for none
	open bool  // rows may have any attributes, and none are declared
	decl *entityDecl
}

// KeyTemplate says how one key attribute of an entity is built and parsed.
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
	Defaults *Defaults   // nil: the default does not depend on other attributes
	// Enum lists the only values of a text, in their order; nil for any.
	Enum   []string
	Max    int         // maximum length of a text in characters; 0 for no limit
	Least  value.Value // the smallest number, Missing for no limit
	Most   value.Value // the largest number, Missing for no limit
	Hidden bool        // no query or search returns it
	Whole  bool        // a number is whole, and below 10^27
	As     As          // how rows have it, "" for the form of its type
	// Zone is that of times that name none; nil: such a text is no time.
	Zone      *time.Location
	zoneRules string   // of the zone, see calendar.go
	Reading   *Reading // nil: queries show the stored value
	Others    *Others  // for a list: the list in its place if a row has none
	Forward   bool     // commands move it only forward along its enum
	// Computed says how commands compute it; nil if they give it.
	Computed *Computed
	// Is says from which fields it is read when something asks for it, "" for an attribute that rows have. In is the unit of
	// the time between two times.
	Is, In string

	decl *attributeDecl
}

// Field is a resolved name of an entity's rows: an attribute, or a name in a key template. A
// name in the template of the table's own key is read from the key, because every row has
// its key and it never changes. A name that stands only in the key of an index is read from there.
// Any other name is read from the attribute.
type Field struct {
	Name string
	Type Type // of the declared attribute; TypeString from a key, TypeAny when undeclared
	// Attr is the attribute that is read, or the key attribute whose template has the name.
	Attr string
	Key  *Template // nil: the value is the attribute's
	// Slot is the place of the name in Key.
	Slot int
	// Sparse says that the key is that of an index: a row may lack it, or have another text there.
	Sparse bool
	// Number says that the entity declares the name as a number, and that the value is one.
	Number bool
	// Summed says that a sum or a mean adds up the numbers, so they must be in its bounds.
	Summed bool
	// Declared is the declaration of the attribute with the name, nil for none.
	Declared *Attribute
	// Formula computes the value; nil: the row has it.
	Formula *Formula
}

// Stored returns the field's value as the row has it, Missing if it has none: keys, and the values by
// which rows are found, are made of it. Get reads it as the declared type has it. For a name in the
// row's key, it prefers the attribute of that name if the key was built from it; otherwise it parses
// the key.
func (f *Field) Stored(row value.Item) value.Value {
	if f.Formula != nil {
		v, _ := f.Formula.readValue(row)
		return v
	}
	if f.Number {
		return f.readNumber(row)
	}
	raw := f.Raw(row)
	if f.Key == nil || raw.IsMissing() {
		return raw
	}
	own := value.Scalar(row.Get(f.Name))
	if own == "" || own == raw.Text() {
		return raw
	}
	if f.Key.Escape(own) == raw.Text() || f.Key.isPlain(row, row.Get(f.Attr).Text()) {
		return value.OfString(own)
	}
	return raw
}

// readNumber returns the number that the row has under the name, or the one that its key has as a
// text. A text in the key that is no number is returned as it is.
func (f *Field) readNumber(row value.Item) value.Value {
	if own := row.Get(f.Name); own.Kind() == value.Number {
		return own
	}
	raw := f.Raw(row)
	if n, err := value.ParseNumber(raw.Text()); err == nil {
		return n
	}
	return raw
}

// Raw is Stored, but returns a name in the row's key exactly as the key holds it, which may be
// escaped. Of a key in lower case, it returns the case that the attribute of that name has, if the key was built from it.
func (f *Field) Raw(row value.Item) value.Value {
	if f.Formula != nil {
		return f.Stored(row)
	}
	v := row.Get(f.Attr)
	if f.Key == nil || v.Kind() != value.String {
		return v
	}
	var buf [maxNames]string
	values := buf[:len(f.Key.names)]
	if !f.Key.Match(v.Text(), values) || values[f.Slot] == "" {
		return value.Value{}
	}
	if own := value.Scalar(row.Get(f.Name)); f.Key.lower && own != "" {
		for _, text := range [...]string{own, f.Key.Escape(own)} {
			if f.Key.caseText(text) == values[f.Slot] {
				return value.OfString(text)
			}
		}
	}
	return value.OfString(values[f.Slot])
}

// InKey returns the field's value for a key that t builds. It is escaped if the row's own
// key holds it escaped, and unescaped if that key holds it unescaped.
func (f *Field) InKey(row value.Item, t *Template) value.Value {
	raw := f.Raw(row)
	if f.Key == nil || raw.IsMissing() {
		return raw
	}
	own := f.Stored(row)
	if !value.Equal(own, raw) && f.Key.Escape(own.Text()) == raw.Text() {
		return value.OfString(t.Escape(own.Text()))
	}
	return own
}

// Typed reports whether the value is as a person typed it. It is false for a value that is
// read from a key and used raw.
func (f *Field) Typed() bool { return f.Key == nil }

// Test is a condition on a row's field.
type Test struct {
	Field *Field
	Is    value.Condition
}

// Listed returns the values of which the field must have one, none if the test does not list
// them. A time is left out: one instant has many texts.
func (t *Test) Listed() []value.Value {
	for i := range t.Is {
		if t.Is[i].Op == value.In && t.Is[i].As == value.AsIs {
			return t.Is[i].Values
		}
	}
	return nil
}

// Only returns the value that weir writes into a row which must pass the test: the only one
// that the test names. It reports false if the test names none or several.
func (t *Test) Only() (value.Value, bool) {
	for i := range t.Is {
		if t.Is[i].Op == value.In && len(t.Is[i].Values) == 1 {
			return t.Is[i].Values[0], true
		}
	}
	return value.Value{}, false
}

// Stamps returns the attributes that a row which weir makes of this entity has by the entity's where. A value that the where says
// of a name in a key is in the key. The result belongs to the caller.
func (e *Entity) Stamps() (out []value.Attr) {
	for i := range e.Where {
		if v, ok := e.Where[i].Only(); ok && e.Where[i].Field.Key == nil {
			if a := e.Where[i].Field.Declared; a != nil {
				v = a.Store(v)
			}
			out = append(out, value.Attr{Name: e.Where[i].Field.Attr, Value: v})
		}
	}
	return out
}

// Stamp returns the only value that the entity's where names for a name, Missing if there is none.
func (e *Entity) Stamp(name string) value.Value {
	for i := range e.Where {
		if v, ok := e.Where[i].Only(); ok && e.Where[i].Field.Name == name {
			return v
		}
	}
	return value.Value{}
}

// Constants returns all values that the test compares with.
func (t *Test) Constants() (out []value.Value) {
	for i := range t.Is {
		out = append(out, t.Is[i].Values...)
	}
	return out
}

// Assign gives a name the value of an expression.
type Assign struct {
	Name string
	Expr Expr
}

// Expr says where a value comes from. Exactly one of its fields is set.
// Which fields may be set depends on where it stands: only history has Record, only feeds have Subscriber.
type Expr struct {
	Field      *Field
	Const      value.Value
	Record     string // $time, $position, $event, $key, $old, $new: from the record
	Map        []Assign
	Follow     *Follow
	Subscriber *Field // of the subscriber that the row is made for
	Bucket     *Bucket
}

// Query is a named query. If Search is set, it is a search. Otherwise it runs Steps: the
// first reads by the parameters, and each later step reads once for every row of the step
// before. The result is the rows that the last step reads.
// Queries are not run here: package query compiles them once more, into reads.
type Query struct {
	Name   string
	Params []Param // in the order of the file
	Single bool    // at most one row
	Unique bool    // each row of the last step is returned once, in key order
	Steps  []*Step
	Search *Search
	With   []Bind     // of a search: filters
	Where  []Filter   // of a search: tests of the rows found besides
	Sort   *Field     // the order of the rows; nil for the order of the key
	Return []Returned // the attributes to return; none for the whole row

	decl *queryDecl
}

// Param is a parameter of a query.
type Param struct {
	Name     string
	Optional bool
	Default  value.Value // the value if a call omits the parameter; Missing for none
	Type     Type
	List     bool     // values with commas between them
	OneOf    []string // the only values, nil for any
}

// Step reads rows of one entity by key, from its table or an index.
type Step struct {
	Entity  *Entity
	Index   *store.Index // nil: the table
	Get     bool         // one row by its whole key
	Also    []*Entity    // further entities whose rows are read
	With    []Bind       // fixed fields: those that the key's templates can use narrow the read, the rest filters
	Any     []Bind       // where given, one of these fields must be among its parameter's values
	Where   []Filter     // tests of rows besides; they do not narrow the read
	Range   []RangeTerm  // all of the one name that follows in the sort key; only rows that pass are read
	Reverse bool
	Expired bool // expired rows are returned too

	decl *stepDecl
}

// Bind fixes a field of a step to a parameter, to a constant, or to a field of the row from
// the step before.
type Bind struct {
	Field *Field
	Param string
	Const value.Value
	Prior *Field // a list stands for each of its elements
}

// RangeTerm bounds the sort keys that a step reads: by AtLeast, Above, AtMost, Below or Begins.
type RangeTerm struct {
	Op value.Op
	Bind
}

// Table returns the table with the name, nil if there is none. It also finds tables that are
// only migrated from.
func (m *Model) Table(name string) *Table {
	return seq.Find(m.AllTables(), func(t *Table) bool { return t.Name == name })
}

// Entity returns the entity with the name, nil if there is none.
func (m *Model) Entity(name string) *Entity {
	return seq.Find(m.Entities, func(e *Entity) bool { return e.Name == name })
}

// Query returns the query with the name, nil if there is none.
func (m *Model) Query(name string) *Query {
	return seq.Find(m.Queries, func(q *Query) bool { return q.Name == name })
}

// Classify returns the entity of a row of the table, nil for none. The row passes the
// entity's where, and its primary key matches the entity's templates.
// It reads no other row, and gives the same answer for the same row always: no entity depends on other rows.
func (t *Table) Classify(row value.Item) *Entity {
	if row == nil || owntable.IsRegionFence(&t.Table, row) {
		return nil
	}
	var kind value.Value
	if t.kind != nil {
		kind = t.kind.Get(row)
	}
	return seq.Find(t.Entities, func(e *Entity) bool { return (e.kind == nil || e.kind.Is.Holds(kind)) && e.Match(row) })
}

// sortByKind chooses the attribute by which Classify first tells entities apart: the one
// that the first entity with a test tests. For most rows that decides.
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

// Match reports whether the row belongs to this entity.
func (e *Entity) Match(row value.Item) bool {
	return Holds(e.Where, row) && e.MatchKey(row)
}

// CanBe reports whether a row can be of the entity, by its table and its key.
func (e *Entity) CanBe(row store.Ref) bool {
	return e.Table.Name == row.Table && e.MatchKey(e.Table.Item(row.Key))
}

// MatchKey reports whether the row's primary key matches the entity's templates.
// It looks at the shape alone: whether the row passes the entity's where is another question
// (Table.Classify asks both).
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

// PrimaryKey returns the templates of the table's own key.
func (e *Entity) PrimaryKey() []*KeyTemplate {
	if e.Table.Key.Sort.Name == "" {
		return e.Keys[:1]
	}
	return e.Keys[:2]
}

// Spelled returns the names whose text in a key differs from their value, each with the
// value. A row that weir writes gets an attribute for each such name that no other attribute
// holds, so that the row itself says its values. text returns the text of a name in a key.
func (e *Entity) Spelled(get func(name string) value.Value, text func(k *KeyTemplate, name string) string) (out []value.Attr) {
	for _, k := range e.Keys {
		for _, name := range k.Template.names {
			v := get(name)
			if v.Kind() != value.String || e.Attribute(name) != nil || k.Template.caseText(text(k, name)) == v.Text() {
				continue
			}
			out = append(out, value.Attr{Name: name, Value: v})
		}
	}
	return out
}

// Spells reports whether Spelled may return an attribute with this name.
func (e *Entity) Spells(name string) bool {
	return e.Attribute(name) == nil && slices.ContainsFunc(e.Keys, func(k *KeyTemplate) bool { return k.Template.Slot(name) >= 0 })
}

// KeyTemplate returns the template of a key attribute, nil if the entity has none.
func (e *Entity) KeyTemplate(attr string) *KeyTemplate {
	return seq.Find(e.Keys, func(k *KeyTemplate) bool { return k.Attr.Name == attr })
}

// Attribute returns the declared attribute with the name, nil if there is none.
func (e *Entity) Attribute(name string) *Attribute {
	return seq.Find(e.Attributes, func(a *Attribute) bool { return a.Name == name })
}

// attributeNames returns the names of the declared attributes, in the order of the file.
func (e *Entity) attributeNames() []string {
	return seq.Map(e.Attributes, func(a *Attribute) string { return a.Name })
}

// Field resolves a name of this entity's rows and never returns nil. A name that is neither
// declared, derived nor in the primary key is read from the first key of an index that has it, and is
// otherwise taken for an undeclared attribute.
// The Field is new for each call and belongs to the caller. Resolve names once, not for each row.
func (e *Entity) Field(name string) *Field {
	for _, k := range e.PrimaryKey() {
		if i := k.Template.Slot(name); i >= 0 && !k.Template.Whole() {
			return &Field{Name: name, Type: TypeString, Attr: k.Attr.Name, Key: k.Template, Slot: i, Declared: e.Attribute(name)}
		}
	}
	if i := e.formulaAt(name); i >= 0 {
		return e.formulaField(i)
	}
	f := &Field{Name: name, Type: TypeAny, Attr: name, Declared: e.Attribute(name)}
	if k := e.keyNamed(name); k != nil {
		f.Attr, f.Type = k.Attr.Name, keyAttrType(k.Attr.Type)
	}
	if f.Declared != nil {
		f.Type = f.Declared.Type
		return f
	}
	for _, t := range e.Values {
		if t.Attr == name && (t.Kind.Number || t.Kind.Type != string(TypeNumber)) {
			f.Type = Type(t.Kind.Type)
			return f
		}
	}
	if of, ok := e.takenField(name); ok {
		f.Type = of
		return f
	}
	if f.Type != TypeAny || !e.Derived && e.isTested(name) {
		return f
	}
	for _, k := range e.Keys[len(e.PrimaryKey()):] {
		if i := k.Template.Slot(name); i >= 0 && !k.Template.Whole() {
			return &Field{Name: name, Type: TypeString, Attr: k.Attr.Name, Key: k.Template, Slot: i, Sparse: true}
		} else if i >= 0 {
			f.Attr, f.Type = k.Attr.Name, keyAttrType(k.Attr.Type)
		}
	}
	return f
}

// isTested reports whether the entity's where tests the name, so that it is an attribute of its rows.
func (e *Entity) isTested(name string) bool {
	return e.decl != nil && slices.ContainsFunc(e.decl.Where, func(t testDecl) bool { return t.name.text == name })
}

// IndexNames returns the names that stand only in the keys of indexes, in order. The result belongs to the caller.
func (e *Entity) IndexNames() (out []string) {
	for _, k := range e.Keys[len(e.PrimaryKey()):] {
		for _, name := range k.Template.names {
			if f := e.Field(name); (f.Sparse || f.Attr == k.Attr.Name && f.Attr != name) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// keyAttrType is the type of a name that is a whole key attribute.
func keyAttrType(k store.KeyType) Type {
	switch k {
	case value.Number:
		return TypeNumber
	case value.Binary:
		return TypeBinary
	}
	return TypeString
}

// keyNamed returns the primary key attribute whose template consists of this name alone.
func (e *Entity) keyNamed(name string) *KeyTemplate {
	return seq.Find(e.PrimaryKey(), func(k *KeyTemplate) bool { return k.Template.Whole() && k.Template.names[0] == name })
}

// Key builds the primary key from the values of its names. It reports false if a value is
// missing or does not have the key attribute's type.
// The names are those of PrimaryKey's templates. It does not check the length of the key: store.Table.CheckKey does.
func (e *Entity) Key(get func(name string) value.Value) (store.Key, bool) {
	return e.keyBy(func(_ *KeyTemplate, name string) value.Value { return get(name) })
}

// TypedKey is Key for values that a person typed: it escapes in each the characters that could forge
// another key.
func (e *Entity) TypedKey(get func(name string) value.Value) (store.Key, bool) {
	return e.keyOf(func(k *KeyTemplate) (value.Value, bool) { return k.BuildTyped(get) })
}

// keyBy builds the primary key from values that may depend on the template they go into.
func (e *Entity) keyBy(get func(k *KeyTemplate, name string) value.Value) (store.Key, bool) {
	return e.keyOf(func(k *KeyTemplate) (value.Value, bool) {
		return k.Build(func(name string) value.Value { return get(k, name) })
	})
}

// keyOf puts a primary key together from its attributes.
// A table without a sort key has a Missing one. ok is false if a part cannot be built; no half key
// is returned.
func (e *Entity) keyOf(build func(k *KeyTemplate) (value.Value, bool)) (store.Key, bool) {
	var k store.Key
	for i, kt := range e.PrimaryKey() {
		v, ok := build(kt)
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

// KeyFrom builds the primary key of another row from a row's fields. It escapes a value only
// if the row's own key holds it escaped, so the result is the key that the same application
// would write.
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

// Build returns the key attribute's value, built from the values of the template's names.
// A template that is one name keeps the type of the key attribute; any other makes a text. Values
// are put in as they are: the caller escapes typed values.
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

// BuildTyped is Build for values that people typed. It escapes each value inside a text, so
// that no value can forge another row's key.
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
// No tests hold for every row.
func Holds(tests []Test, row value.Item) bool {
	return !slices.ContainsFunc(tests, func(t Test) bool { return !t.Is.Holds(t.Field.Get(row)) })
}

// Left has the attributes that retired derivations have left on rows of an entity. They are in no model file: a program reads
// them from the catalog when it starts. The zero Left is empty. It may be set and read by any goroutine.
type Left struct{ names atomic.Pointer[[]string] }

// Set replaces the attributes.
func (l *Left) Set(names []string) { l.names.Store(&names) }

// Has reports whether an attribute is one of them.
func (l *Left) Has(name string) bool {
	if l == nil {
		return false
	}
	names := l.names.Load()
	return names != nil && slices.Contains(*names, name)
}
