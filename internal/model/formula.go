package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/seq"
	"weir/internal/value"
)

// Formula says how a computed attribute is read from other fields of its row: by a path into a map or a list, as the size of
// a list, as the sum of a list's numbers, as a number computed from numbers, or as the time between two times. No row has
// the attribute. A formula never changes after Load and may be shared by many goroutines.
type Formula struct {
	of     []*Field // the fields that it is read from
	fold   string   // of a path: the operation on the value; "" for the value itself
	path   []string // from the value of the field: ".name" of a map, "[3]" of a list, "[]" for each element
	amount *Amount  // of numbers
	unit   int64    // of times: the seconds of the unit
	own    *Attribute
}

// The folds of a path.
const (
	foldSize = "size"
	foldSum  = "sum"
)

// laterForm is the hint for a time that is computed from another one.
const laterForm = "a time that is later by a fixed or chosen span is for rows that commands write or weir makes: {type: number, from: at, plus: 720h}"

// formulaForm is the hint for a text that is no formula.
const formulaForm = "a path like address.city or tags[0], size(tags), sum(items[].price), quantity * price - discount, or closed - opened with in: minutes"

// timeUnits are the units of the time between two times, in seconds.
var timeUnits = map[string]int64{"seconds": 1, "minutes": 60, "hours": 60 * 60, "days": 24 * 60 * 60}

// eachElement is the step of a path that stands for all elements of a list.
const eachElement = "[]"

// pathStep is a step at the beginning of a text.
var pathStep = regexp.MustCompile(`^(?:\.[^.\[\]()\s]+|\[[0-9]{0,9}\])`)

// cutPath splits a path such as size(address.lines[0]) into its fold, the field at which it begins, and its steps. Names of
// attributes may have periods in them: the longest that is declared counts. ok is false for a text that is no path.
func (e *Entity) cutPath(text string) (fold, root string, steps []string, ok bool) {
	if inner, closed := strings.CutSuffix(text, ")"); closed {
		fold, text, ok = strings.Cut(inner, "(")
		if !ok || fold != foldSize && fold != foldSum {
			return "", "", nil, false
		}
	}
	end := len(text)
	if i := strings.IndexAny(text, ".["); i >= 0 {
		end = i
		for j := len(text); j > i; j-- {
			if (j == len(text) || text[j] == '.' || text[j] == '[') && e.Attribute(text[:j]) != nil {
				end = j
				break
			}
		}
	}
	root = text[:end]
	for text = text[end:]; text != ""; {
		step := pathStep.FindString(text)
		if step == "" {
			return "", "", nil, false
		}
		steps, text = append(steps, step), text[len(step):]
	}
	return fold, root, steps, root != ""
}

// formulaAt returns the place of a computed attribute among the entity's, -1 if there is none of the name.
func (e *Entity) formulaAt(name string) int {
	return slices.IndexFunc(e.Formulas, func(a *Attribute) bool { return a.Name == name })
}

// HasFormula reports whether the name is that of a computed attribute, which no row has.
func (e *Entity) HasFormula(name string) bool { return e.formulaAt(name) >= 0 }

// formulaField is Field for a computed attribute. It may name those that are declared before it.
func (e *Entity) formulaField(i int) *Field {
	a := e.Formulas[i]
	f := &Field{Name: a.Name, Type: a.Type, Attr: a.Name, Declared: a}
	words := strings.Fields(a.Is)
	if len(words) == 1 {
		f.Formula = e.pathFormula(words[0], a, i)
		return f
	}
	x := &Formula{own: a, unit: timeUnits[a.In]}
	typ := TypeNumber
	if x.unit > 0 {
		typ = TypeTime
	}
	terms := []term{{}}
	for k, w := range words {
		last := &terms[len(terms)-1]
		if n, err := value.ParseNumber(w); k%2 == 0 && err == nil {
			last.factors = append(last.factors, factor{number: n})
		} else if k%2 == 0 {
			of := e.resolveOperand(w, typ, i)
			x.of, last.factors = append(x.of, of), append(last.factors, factor{field: of})
		} else if w != "*" {
			terms = append(terms, term{minus: w == "-"})
		}
	}
	if x.unit == 0 {
		x.amount = &Amount{Text: a.Is, Fields: x.of, terms: terms}
		x.amount.noteSum()
	}
	f.Formula = x
	return f
}

// resolveOperand is a field of a computed attribute: one of the row, or a path into one, which has the type that is needed.
func (e *Entity) resolveOperand(text string, typ Type, before int) *Field {
	fold, _, steps, ok := e.cutPath(text)
	if !ok || fold == "" && len(steps) == 0 {
		return e.fieldBefore(text, before)
	}
	a := &Attribute{Name: text, Type: typ}
	x := e.pathFormula(text, a, before)
	a.Hidden = x.of[0].Declared != nil && x.of[0].Declared.Hidden
	return &Field{Name: text, Type: typ, Attr: text, Declared: a, Formula: x}
}

// pathFormula is a path as a formula.
func (e *Entity) pathFormula(text string, own *Attribute, before int) *Formula {
	fold, root, steps, ok := e.cutPath(text)
	if !ok {
		root = text // which the compiler reports
	}
	return &Formula{own: own, fold: fold, path: steps, of: []*Field{e.fieldBefore(root, before)}}
}

// fieldBefore is Field for a computed attribute, which may name others that stand before it. So no attribute is
// computed from itself.
func (e *Entity) fieldBefore(name string, before int) *Field {
	if e.formulaAt(name) >= before {
		return &Field{Name: name, Type: TypeAny, Attr: name}
	}
	f := e.Field(name)
	if f.Key != nil && f.Declared != nil { // a name in the key is read as it is declared
		switch f.Declared.Type {
		case TypeNumber:
			f.Number, f.Type = true, TypeNumber
		case TypeTime:
			f.Type = TypeTime
		}
	}
	return f
}

// ReadAs returns the type that a value must have so that computed attributes can be read from it: a map or a list for a path,
// and that of an attribute which is the value itself. It is "" if nothing asks for one.
func (e *Entity) ReadAs(name string) Type {
	for _, a := range e.Formulas {
		for _, w := range strings.Fields(a.Is) {
			switch _, root, steps, _ := e.cutPath(w); {
			case root != name:
			case len(steps) > 0 && steps[0][0] == '.':
				return TypeMap
			case len(steps) > 0:
				return TypeList
			case w == a.Is && a.As != "":
				return TypeNumber
			case w == a.Is:
				return a.Type
			}
		}
	}
	return ""
}

// Names returns the names that the field is read by: its own, or those of the fields that it is computed from.
func (f *Field) Names() []string {
	if f.Formula == nil {
		return []string{f.Name}
	}
	return seq.Flat(f.Formula.of, (*Field).Names)
}

// Attrs returns the attributes of a row that the field is read from.
func (f *Field) Attrs() []string {
	if f.Formula == nil {
		return []string{f.Attr, f.Name}
	}
	return seq.Flat(f.Formula.of, (*Field).Attrs)
}

// readValue returns the value that a row has by the formula, Missing if it lacks a part of it. unfit is the first part that
// cannot be used.
func (x *Formula) readValue(row value.Item) (v value.Value, unfit *Unfit) {
	lacks := false
	var buf [maxOperands]value.Value
	all := buf[:0]
	for _, f := range x.of {
		v, want := f.Read(row)
		if want != "" {
			return value.Value{}, f.unfit(row, want)
		}
		all, lacks = append(all, v), lacks || v.Kind() == value.Missing || v.Kind() == value.Null
	}
	switch {
	case lacks:
		return value.Value{}, nil
	case x.unit > 0:
		return unitsBetween(all[0], all[1], x.unit), nil
	case x.amount != nil:
		v, unfit, beyond := x.amount.Of(row)
		if beyond != nil {
			unfit = x.unfitResult(v)
		}
		return v, unfit
	}
	v = x.of[0].Stored(row)
	if a := x.own; x.of[0].Key != nil && v.Kind() == value.String && (a.Type == TypeNumber || a.As != "") {
		if n, err := value.ParseNumber(v.Text()); err == nil {
			v = n // a key has it as text
		}
	}
	return x.followPath(v)
}

// followPath returns the result of the path for the value of its field.
func (x *Formula) followPath(v value.Value) (value.Value, *Unfit) {
	said := x.of[0].Name
	each := slices.Index(x.path, eachElement)
	if each < 0 {
		v, said, unfit := x.walkPath(v, said, x.path)
		switch {
		case unfit != nil || v.IsMissing() || x.fold != foldSize:
			return v, unfit
		case !isList(v):
			return value.Value{}, x.unfitPath(said, v, "a list or a set")
		}
		return value.OfInt(int64(v.Len())), nil
	}
	list, said, unfit := x.walkPath(v, said, x.path[:each])
	switch {
	case unfit != nil || list.IsMissing():
		return value.Value{}, unfit
	case !isList(list):
		return value.Value{}, x.unfitPath(said, list, "a list")
	}
	var sum value.Exact
	for i, el := range list.Elements() {
		v, said, unfit := x.walkPath(el.Value, said+"["+strconv.Itoa(i)+"]", x.path[each+1:])
		switch {
		case unfit != nil:
			return value.Value{}, unfit
		case v.Kind() == value.Number && checkSummable(v, x.own.Whole) == "":
			sum.Add(v, 0)
		case !v.IsMissing():
			return value.Value{}, x.unfitPath(said, v, wantOf(x.own.Whole))
		}
	}
	total, err := sum.Number()
	if err != nil || checkSummable(total, x.own.Whole) != "" {
		return value.Value{}, x.unfitResult(total)
	}
	return total, nil
}

// walkPath follows steps from a value that has the path said. A value that is absent or NULL on the way is Missing.
func (x *Formula) walkPath(v value.Value, said string, steps []string) (value.Value, string, *Unfit) {
	for _, step := range steps {
		name, member := strings.CutPrefix(step, ".")
		switch k := v.Kind(); {
		case k == value.Missing || k == value.Null:
			return value.Value{}, said, nil
		case member && k != value.Map:
			return value.Value{}, said, x.unfitPath(said, v, "a map")
		case member:
			v = v.Item().Get(name)
		case !isList(v):
			return value.Value{}, said, x.unfitPath(said, v, "a list")
		default:
			i, _ := strconv.Atoi(step[1 : len(step)-1])
			if i >= v.Len() {
				return value.Value{}, said, nil
			}
			v = v.At(i)
		}
		said += step
	}
	if v.Kind() == value.Null {
		v = value.Value{}
	}
	return v, said, nil
}

// isList reports whether a value has elements. Those of a set are in order.
func isList(v value.Value) bool { return slices.Contains(fits[TypeList].kinds, v.Kind()) }

// unitsBetween returns the whole units from one time to another. A part of a unit does not count.
func unitsBetween(to, from value.Value, unit int64) value.Value {
	a, okA := value.Time(to)
	b, okB := value.Time(from)
	if !okA || !okB {
		return value.Value{}
	}
	seconds, rest := a.Unix()-b.Unix(), time.Duration(a.Nanosecond()-b.Nanosecond())
	if seconds > 0 && rest < 0 {
		seconds--
	} else if seconds < 0 && rest > 0 {
		seconds++
	}
	return value.OfInt(seconds / unit)
}

// unfitPath is a value on the way of a path that has another kind than the path needs.
func (x *Formula) unfitPath(path string, v value.Value, want string) *Unfit {
	return &Unfit{Field: &Field{Name: path, Declared: x.own}, Value: v, Want: want}
}

// unfitResult is a result that no sum can take, or no number can hold: it is Missing then.
func (x *Formula) unfitResult(v value.Value) *Unfit {
	return &Unfit{Field: &Field{Name: x.own.Name, Declared: x.own}, Value: v, Want: wantOf(x.own.Whole || x.amount != nil && x.amount.whole)}
}

// wantOf is the form of a number that a sum can take.
func wantOf(whole bool) string {
	if whole {
		return wantWhole
	}
	return wantSummed
}

// definition is the part that decides the value, besides the type of the attribute.
func (x *Formula) definition() (out defined) {
	switch {
	case x.unit > 0:
		out.addLine("between", fmt.Sprint(x.unit))
	case x.amount != nil:
		out.addWithin("amount", x.amount.definition())
		return out
	default:
		out.addLine("path", append([]string{x.fold}, x.path...)...)
	}
	for i, f := range x.of {
		out.addWithin(fmt.Sprint("of ", i), f.definition())
	}
	return out
}

// formulaKeys are the keys that a computed attribute may have.
var formulaKeys = []string{"type", "is", "in", "as", "zone", "hidden", "whole"}

// checkFormula reports a computed attribute that cannot be read from the row's fields, or whose name something else has.
func (c *compiler) checkFormula(e *Entity, i int) {
	a := e.Formulas[i]
	d, words := a.decl, strings.Fields(a.Is)
	for _, key := range slices.Sorted(maps.Keys(d.has)) {
		if !slices.Contains(formulaKeys, key) {
			c.addFlaw(d.placeOf(key), "leave it out", "%s.%s is computed from other fields, so it has no %q", e.Name, a.Name, key)
		}
	}
	taken := ""
	switch {
	case slices.Contains(e.DerivedAttributes(), a.Name):
		taken = "derived"
	case slices.ContainsFunc(e.Keys, func(k *KeyTemplate) bool { return k.Template.Slot(a.Name) >= 0 || k.Attr.Name == a.Name }):
		taken = "in a key, which rows have"
	case e.isTested(a.Name):
		taken = "tested by the where of " + e.Name
	case a.Name == e.Table.TTL:
		taken = "the ttl of table " + e.Table.Name
	}
	if taken != "" {
		c.addFlaw(d.name.pos, "choose another name", "%s.%s is computed when it is read, and also %s", e.Name, a.Name, taken)
	}
	times := 0
	before := c.flaws
	for k, text := range words {
		w := word{text, d.Is.pos}
		if k%2 == 1 {
			if text != "+" && text != "-" && text != "*" {
				c.addFlaw(w.pos, formulaForm, "%q is none of *, + and -, in %q", text, a.Is)
			}
			continue
		}
		switch typ := c.checkOperand(e, i, w, len(words) == 1); {
		case typ == TypeTime:
			times++
		case len(words) > 1 && a.In == "" && typ != TypeNumber && typ != TypeAny:
			hint := ""
			if times > 0 {
				hint = laterForm
			}
			c.addFlaw(w.pos, hint, "%s is computed from numbers, and %s is a %s", a.Name, text, typ)
		case a.In != "" && typ != TypeAny && len(words) == 3:
			c.addFlaw(w.pos, "", "%s is the time between two times, and %s is a %s", a.Name, text, typ)
		}
	}
	number := len(words) > 1 || strings.HasSuffix(a.Is, ")")
	switch difference := len(words) == 3 && words[1] == "-"; {
	case c.flaws > before:
	case len(words)%2 == 0:
		c.addFlaw(d.Is.pos, formulaForm, "%q is no value of a row", a.Is)
	case len(words)/2+1 > maxOperands:
		c.addFlaw(d.Is.pos, "", "%q has more than %d fields and numbers", a.Is, maxOperands)
	case a.In != "" && !difference:
		c.addFlaw(d.placeOf("in"), "is: closed - opened", "%q is for the time between two times", "in")
	case !difference && times > 0 && len(words) > 1:
		c.addFlaw(d.Is.pos, laterForm, "%s is computed from a time, and %q is no difference of two times", a.Name, a.Is)
	case !d.hasKey("in") && times > 0 && len(words) > 1:
		c.addFlaw(d.Is.pos, "in: minutes, or seconds, hours or days", "%s is the time between two times, and does not say in what", a.Name)
	case number && a.Type != TypeNumber:
		c.addFlaw(d.name.pos, "type: number", "%s.%s is a %s, and %q makes a number", e.Name, a.Name, a.Type, a.Is)
	}
}

// checkOperand reports a text that is neither a field of the row nor a path into one, and returns its type.
func (c *compiler) checkOperand(e *Entity, before int, w word, alone bool) Type {
	if _, err := value.ParseNumber(w.text); err == nil && !alone {
		return TypeNumber
	}
	fold, root, steps, ok := e.cutPath(w.text)
	if !ok {
		c.addFlaw(w.pos, formulaForm, "%q is no value of a row", w.text)
		return TypeAny
	}
	if e.formulaAt(root) >= before {
		c.addFlaw(w.pos, "declare "+root+" before it", "%s is computed too, and not declared before %s", root, e.Formulas[before].Name)
		return TypeAny
	}
	if c.broken[e] || c.refuseUnknown(word{root, w.pos}, c.fieldNames(e), "%s has no field %q", e.Name, root) {
		return TypeAny
	}
	f := e.fieldBefore(root, before)
	needs := []Type{TypeAny, TypeList, TypeStrings, TypeNumbers}
	switch {
	case len(steps) > 0 && steps[0][0] == '.':
		needs = []Type{TypeAny, TypeMap}
	case len(steps) == 0 && fold == "":
		return f.Type
	}
	switch each := len(seq.Where(steps, func(step string) bool { return step == eachElement })); {
	case !slices.Contains(needs, f.Type):
		c.addFlaw(w.pos, "", "%s is a %s, and %q needs a %s", root, f.Type, w.text, needs[1])
	case fold == foldSum && each != 1:
		c.addFlaw(w.pos, "sum(items[].price), or sum(prices[])", "%q says the elements of no list, or of several", w.text)
	case fold != foldSum && each > 0:
		c.addFlaw(w.pos, "sum("+strings.TrimSuffix(strings.TrimPrefix(w.text, "size("), ")")+"), or tags[0] for one element", "%q has many values", w.text)
	}
	if fold != "" {
		return TypeNumber
	}
	return TypeAny
}

// checkUnnamed reports a path in place of a field, and says how it is declared with a type that may stand there. It returns
// whether it did.
func (c *compiler) checkUnnamed(e *Entity, w word, typ Type) bool {
	text := w.text
	fold, root, steps, ok := e.cutPath(text)
	if !ok || fold == "" && len(steps) == 0 || c.hasField(e, text) || !c.hasField(e, root) {
		return false
	}
	if slices.Contains(steps, eachElement) && fold == "" {
		fold, text = foldSum, foldSum+"("+text+")"
	}
	name := fold
	if fold != "" {
		typ = TypeNumber
	} else {
		name = strings.Trim(steps[len(steps)-1], ".[]")
	}
	if strings.Trim(name, "0123456789") == "" || c.hasField(e, name) {
		name = root + "Value"
	}
	c.addFlaw(w.pos, fmt.Sprintf("attributes: {%s: {type: %s, is: %q}}, and here %s", name, typ, text, name), "%q is a value in a field of %s, which needs a name", w.text, e.Name)
	return true
}
