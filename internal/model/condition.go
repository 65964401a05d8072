package model

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/seq"
	"weir/internal/value"
)

// Filter is a test of a query. Its values may be parameters.
type Filter struct {
	Field *Field
	Terms []FilterTerm
}

// FilterTerm is a term whose values come from Param, if that is set. A term whose parameter
// is left out asks for nothing.
type FilterTerm struct {
	value.Term
	Param string
}

// Holds reports whether a value passes the filter, given the arguments of the call.
// args has the arguments by the names of parameters; one that is absent was left out. It may be
// called from many goroutines: the filter does not change.
func (f *Filter) Holds(v value.Value, args map[string]value.Value) bool {
	for i := range f.Terms {
		t := f.Terms[i].Term
		if name := f.Terms[i].Param; name != "" {
			arg := args[name]
			if arg.IsMissing() {
				continue
			}
			if t.Values = []value.Value{arg}; arg.Kind() == value.List {
				t.Values = seq.Map(arg.Elements(), func(e value.Attr) value.Value { return e.Value })
			}
		}
		if !t.Holds(v) {
			return false
		}
	}
	return true
}

// testDecl is one line of a where.
type testDecl struct {
	name  word
	terms []termDecl
}

// termDecl is one word of a test with its values.
type termDecl struct {
	op     value.Op
	at     pos
	values []node
}

// paramDecl is {param: NAME} in place of a value.
type paramDecl struct {
	// A value that the caller of a query gives.
	heading `noun:"parameter"`
	// The name of the parameter. "name?" may be left out, name=text has a default. The parameter of in and not is a list with
	// commas.
	Param word `need:"{param: NAME}"`
}

// isSingle reports whether the test names one value and nothing else.
func (d *testDecl) isSingle() bool {
	return len(d.terms) == 1 && d.terms[0].op == value.In && len(d.terms[0].values) == 1
}

// text is the test as a model file has it.
func (d *testDecl) text() string {
	return "{" + strings.Join(seq.Map(d.terms, func(t termDecl) string {
		v := t.values[0].y
		if len(v.Content) > 1 {
			return t.op.String() + ": {param: " + strconv.Quote(v.Content[1].Value) + "}" // "name?" needs the quotes
		}
		return t.op.String() + ": " + v.Value
	}), ", ") + "}"
}

// readTests reads a where: each entry is a test of one field, and all must hold. A value alone
// means that the field equals it.
// Between is read as two terms, so nothing behind this knows the word.
func (n node) readTests(what string) []testDecl {
	var out []testDecl
	for _, e := range n.readEntries(what) {
		d := testDecl{name: e.name}
		switch {
		case e.value.isMap():
			d.terms = readTerms(e)
		case e.value.isGiven() && presence[e.value.y.Value] != 0:
			d.terms = []termDecl{{op: presence[e.value.y.Value], at: e.value.pos()}}
		default:
			d.terms = n.r.addTerm(nil, value.In, e.value, e.name.text)
		}
		if len(d.terms) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// testKeys are the words of a test, testOps the operators of those with values, and presence the words in place of a value.
var (
	presence = map[string]value.Op{"present": value.Exists, "absent": value.Absent}
	testKeys = []string{"in", "not", "atLeast", "above", "atMost", "below", "between", "begins", "exists"}
	testOps  = map[string]value.Op{
		"in": value.In, "not": value.NotIn, "begins": value.Begins,
		"atLeast": value.AtLeast, "above": value.Above, "atMost": value.AtMost, "below": value.Below,
	}
)

// readTerms reads a test that is a map, in the order of the file. All terms of it must hold. A problem
// is reported at its place in the file, and that term is left out.
func readTerms(e entry) (out []termDecl) {
	test := e.value.readFields("test", testKeys)
	if len(e.value.y.Content) == 0 {
		test.r.addFlaw(e.value.pos(), e.name.text+": {not: VALUE}", "the test of %q asks for nothing", e.name.text)
	}
	for _, in := range e.value.readEntries("a test") {
		key := in.name.text
		n, said := test.has[key]
		switch op := testOps[key]; {
		case !said:
		case key == "exists":
			if op = value.Absent; n.readFlag(test.describeKey(key)) {
				op = value.Exists
			}
			out = append(out, termDecl{op: op, at: n.pos()})
		case key == "between" && n.isList() && len(n.listElements()) == 2:
			out = append(out, termDecl{value.AtLeast, n.pos(), n.listElements()[:1]}, termDecl{value.AtMost, n.pos(), n.listElements()[1:]})
		case key == "between":
			n.reportWrong(test.describeKey(key), "a list of two values, the least and the greatest")
		case n.isList() && op != value.In && op != value.NotIn:
			n.reportWrong(test.describeKey(key), "one value")
		default:
			out = test.r.addTerm(out, op, n, e.name.text)
		}
	}
	return out
}

// addTerm adds a term of the values of a node. It reports a list of none.
func (r *reader) addTerm(out []termDecl, op value.Op, n node, name string) []termDecl {
	values := n.listElements()
	if len(values) == 0 {
		r.addFlaw(n.pos(), "", "the test of %q names no value", name)
		return out
	}
	return append(out, termDecl{op, n.pos(), values})
}

// compileTests compiles the conditions of a where. The where of an entity itself (own) introduces
// its names as fields; any other where must use fields that the entity has, and must not ask
// for values that rows of the entity never have.
func (c *compiler) compileTests(e *Entity, ds []testDecl, own bool) []Test {
	var out []Test
	for _, d := range ds {
		var f *Field
		if own {
			if f = e.Field(d.name.text); !d.isSingle() { // one value alone is in the model itself, and no secret
				c.checkHidden(e, d.name)
			}
		} else {
			f = c.findField(e, d.name)
		}
		if f == nil {
			continue
		}
		if _, is := c.compileTerms(e, f, d, nil); len(is) > 0 {
			if out = append(out, Test{f, is}); !own {
				c.checkPossible(e, f, is, d.name)
			}
		}
	}
	return out
}

// compileFilters compiles the where of a query's step.
// After a flaw the query is not used, because a filter that is missing would answer with more rows than it should.
func (c *compiler) compileFilters(q *Query, e *Entity, ds []testDecl) (out []Filter) {
	for _, d := range ds {
		if f := c.findField(e, d.name); f != nil {
			terms, is := c.compileTerms(e, f, d, q)
			c.checkPossible(e, f, is, d.name)
			out = append(out, Filter{f, terms})
		}
	}
	return out
}

// checkPossible reports a test that no row of the entity passes, or none that commands write.
func (c *compiler) checkPossible(e *Entity, f *Field, is value.Condition, w word) {
	if is.Empty() {
		return // reported with its terms
	}
	if testsExclude(e.Where, []Test{{f, is}}) {
		c.addRemark(w.pos, "leave the line out, or ask for what the where of "+e.Name+" lets pass", "no row of %s passes this test of %q: it contradicts the where of %s", e.Name, w.text, e.Name)
	}
	c.outOfReach(e, f, is, w.pos)
}

// compileTerms compiles the words of a test. q is the query whose parameters it may name, nil where
// there are none. is has those that no parameter decides; terms that no value passes together are reported.
func (c *compiler) compileTerms(e *Entity, f *Field, d testDecl, q *Query) (out []FilterTerm, is value.Condition) {
	for _, td := range d.terms {
		t, ok := c.compileTerm(e, f, td, q)
		if !ok {
			continue
		}
		if out = append(out, t); t.Param == "" {
			is = append(is, t.Term)
		}
	}
	always := f.Key != nil && !f.Sparse && f.Slot < len(f.Key.requiredNames())
	if is.Empty() || always && slices.ContainsFunc(is, func(t value.Term) bool { return t.Op == value.Absent }) {
		c.addRemark(d.name.pos, "", "no value of %q passes this test", d.name.text)
	}
	return out, is
}

// compileTerm compiles one word of a test. ok is false after a problem.
func (c *compiler) compileTerm(e *Entity, f *Field, d termDecl, q *Query) (FilterTerm, bool) {
	out := FilterTerm{Term: value.Term{Op: d.op}}
	if d.op == value.Exists || d.op == value.Absent {
		return out, true
	}
	read, a := c.comparedAs(e, f, &out.Term)
	if !c.checkComparable(read, d) {
		return out, false
	}
	if d.op != value.In && d.op != value.NotIn {
		a = nil // a bound may be any value, also one that rows do not have
	}
	if n := d.values[0]; len(d.values) == 1 && n.isMap() {
		before, w := c.flaws, c.readParameter(n, q, f.Name)
		if !w.isGiven() {
			return out, false
		}
		out.Param = c.bindParam(q, read, a, w, d.op == value.In || d.op == value.NotIn)
		return out, c.flaws == before
	}
	for _, n := range d.values {
		if v := c.readTyped(read, a, n); !v.IsMissing() {
			out.Values = append(out.Values, v)
		}
	}
	if d.op == value.Begins && len(out.Values) == 1 && out.Values[0].Text() == "" {
		c.addFlaw(d.at, f.Name+": present", "every text begins with nothing")
		return out, false
	}
	return out, len(out.Values) == len(d.values)
}

// comparedAs says how a term reads the field: it sets As, and returns the field with the type
// that the term's values have. A name in a key is text for words about equality. A bound
// takes it as the type that the entity declares for it.
// The field that it returns is a copy, so its type is of this term alone.
func (c *compiler) comparedAs(e *Entity, f *Field, t *value.Term) (*Field, *Attribute) {
	a := e.Attribute(f.Name)
	read := *f
	if f.Key != nil && a != nil && t.Op >= value.AtLeast && t.Op <= value.Below && (a.Type == TypeNumber || a.Type == TypeTime) {
		if read.Type = a.Type; a.Type == TypeNumber {
			t.As = value.AsNumbers
		}
	}
	if read.Type == TypeTime && t.Op != value.Begins {
		t.As = value.AsTimes
	}
	return &read, a
}

// checkComparable reports a word that the type of the field does not have.
func (c *compiler) checkComparable(f *Field, d termDecl) bool {
	switch {
	case d.op < value.AtLeast:
		return true
	case d.op == value.Begins && (f.Type == TypeString || f.Type == TypeAny):
		return true
	case d.op != value.Begins && (f.Type == TypeString || f.Type == TypeNumber || f.Type == TypeTime || f.Type == TypeAny):
		return true
	}
	c.addFlaw(d.at, map[bool]string{true: "atLeast and below bound a time"}[d.op == value.Begins && f.Type == TypeTime],
		"%s is a %s, and has no %q", f.Name, cmp.Or(f.Type, TypeAny), d.op.String())
	return false
}

// readParameter reads {param: NAME}. It returns the zero word after a problem.
func (c *compiler) readParameter(n node, q *Query, name string) word {
	if q == nil {
		c.addFlaw(n.pos(), "a value, or a list of values", "only the where of a query has parameters, not this test of %q", name)
		return word{}
	}
	d := &paramDecl{}
	n.readDeclaration(word{}, d)
	return d.Param
}

// bindParam declares the parameter of a field: a name, "name?" or "name=text".
func (c *compiler) bindParam(q *Query, f *Field, a *Attribute, w word, list bool) string {
	name, optional := strings.CutSuffix(w.text, "?")
	name, text, with := strings.Cut(name, "=")
	if with && optional {
		c.addFlaw(w.pos, name+"="+text, "a parameter with a default may be left out anyway")
	}
	p := Param{Name: name, Optional: optional || with, Type: f.Type, List: list}
	if with {
		if p.Default = c.fromText(f.Name, f.Type, a, word{text, w.pos}); p.Default.IsMissing() {
			return name
		}
	}
	c.noteParameter(q, p, w)
	return name
}
