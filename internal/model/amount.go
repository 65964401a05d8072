package model

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/seq"
	"weir/internal/value"
)

// Amount is the contribution of a source row to a tally: the value of a field, or a number that is
// computed from several, as in "quantity * price - discount".
// An amount never changes after Load and may be shared by many goroutines.
type Amount struct {
	Text   string   // as the file has it
	Fields []*Field // in the order in which they stand there
	terms  []term   // of a computed amount; none for a single field
	whole  bool     // all of its fields and numbers are
	// Function gives the additions of the row, instead; nil for none. Fields are then all that it gets.
	Function *Function
}

// term is a product. The amount is the sum of its terms.
type term struct {
	minus   bool
	factors []factor
}

// factor is a field, or a number if field is nil.
type factor struct {
	field  *Field
	number value.Value
}

// maxOperands is the largest number of fields and numbers of an amount. With it no result needs
// more digits than value.Exact computes with.
const maxOperands = value.MaxFactors

// amountForm is the hint for a text that is no amount.
const amountForm = "fields and numbers with *, + or - between them, spaces around these and no brackets: Item.quantity * Item.price"

// Computed reports whether the amount is computed, and so always a number.
func (a *Amount) Computed() bool { return len(a.terms) > 0 }

// Has reports whether the amount depends on a field of that name. A nil amount has none.
func (a *Amount) Has(name string) bool {
	return a != nil && slices.ContainsFunc(a.Fields, func(f *Field) bool { return f.Name == name || slices.Contains(f.Names(), name) })
}

// Lacks reports whether a field of the amount is absent or NULL, so the row gives nothing.
// NULL counts as absent, as in every condition (value.Condition).
func (a *Amount) Lacks(row value.Item) bool {
	return a.Function == nil && slices.ContainsFunc(a.Fields, func(f *Field) bool {
		k := f.Get(row).Kind()
		return k == value.Missing || k == value.Null
	})
}

// Of returns the amount of a row, Missing if a field of it is absent or NULL. unfit is the field
// from which nothing can be computed; beyond is why the result cannot be added up.
// It is exact: no step of the computation rounds.
// Use v only if unfit and beyond are nil. For a single field v is whatever the row has, of any
// kind, and nothing is unfit: which kinds count is the aggregate's part.
func (a *Amount) Of(row value.Item) (v value.Value, unfit *Unfit, beyond error) {
	if !a.Computed() {
		if v = a.Fields[0].Get(row); v.Kind() == value.Null {
			v = value.Value{}
		}
		return v, nil, nil
	}
	if a.Lacks(row) {
		return value.Value{}, nil, nil
	}
	for _, f := range a.Fields {
		if v = f.Get(row); v.Kind() != value.Number {
			return v, &Unfit{f, v, "a number"}, nil
		}
	}
	var sum value.Exact
	for _, t := range a.terms {
		var buf [maxOperands]value.Value
		factors := buf[:0]
		for _, x := range t.factors {
			if x.field != nil {
				x.number = x.field.Get(row)
			}
			factors = append(factors, x.number)
		}
		sum.AddProduct(t.minus, factors...)
	}
	if v, beyond = sum.Number(); beyond == nil {
		if want := checkSummable(v, a.whole); want != "" {
			beyond = fmt.Errorf("the number %s, not %s", value.QuoteShort(v.Text()), want)
		}
	}
	return v, nil, beyond
}

// noteSum notes that the amount is added up: its numbers must be those that a sum can take.
func (a *Amount) noteSum() {
	a.whole = true
	for _, f := range a.Fields {
		f.Summed = true
		a.whole = a.whole && f.isWhole()
	}
	for _, t := range a.terms {
		for _, x := range t.factors {
			a.whole = a.whole && (x.field != nil || checkSummable(x.number, true) == "")
		}
	}
}

// definition is the definition of an amount: of a single field the one that it had before
// amounts could be computed, so that the hash of existing derivations stays.
// Terms and factors keep their order, so a * b and b * a are two definitions, and a change of one
// into the other is built again.
func (a *Amount) definition() (x defined) {
	if a.Function != nil {
		x.addLine("function", a.Function.Name, fmt.Sprint(a.Function.Version))
		x.anyOrder("field", seq.Map(a.Fields, (*Field).definition))
		return x
	}
	if !a.Computed() {
		return a.Fields[0].definition()
	}
	for i, t := range a.terms {
		of := defined{}
		of.addLine("minus", fmt.Sprint(t.minus))
		for k, f := range t.factors {
			if f.field == nil {
				of.addLine(fmt.Sprint("number ", k), f.number.Text())
			} else {
				of.addWithin(fmt.Sprint("field ", k), f.field.definition())
			}
		}
		x.addWithin(fmt.Sprint("term ", i), of)
	}
	return x
}

// amountEntity returns the entity whose rows an amount is of: that of its first field. dotted is
// false if it names no field, and the name is "" if the amount has none.
func amountEntity(text string) (name string, dotted bool) {
	for i, operand := range strings.Fields(text) {
		if _, err := value.ParseNumber(operand); err != nil && i%2 == 0 {
			name, _, dotted = strings.Cut(operand, ".")
			return name, dotted
		}
	}
	return "", false
}

// amountOf writes an entity's name before the fields of an amount.
func amountOf(entity, text string) string {
	operands := strings.Fields(text)
	for i, operand := range operands {
		if _, err := value.ParseNumber(operand); err != nil && i%2 == 0 {
			operands[i] = entity + "." + operand
		}
	}
	return strings.Join(operands, " ")
}

// compileAmount compiles Entity.field, or Entity.field * Entity.other - 1. It reports mistakes and
// returns nil then.
// numbers says that the aggregate is of numbers.
// A name with *, + or - in it that the entity has as a field is that field: attributes may have
// such names, and spaces decide.
func (c *compiler) compileAmount(e *Entity, w word, numbers, hidden bool) *Amount {
	words := strings.Fields(w.text)
	a := &Amount{Text: strings.Join(seq.Map(words, func(w string) string { return strings.TrimPrefix(w, e.Name+".") }), " ")}
	before := c.flaws
	switch name := a.Text; {
	case len(words) == 1 && strings.ContainsAny(name, "*+-") && !c.hasField(e, name) && !c.broken[e]:
		c.addFlaw(w.pos, amountForm, "%s has no field %q", e.Name, name)
	case len(words)%2 == 0:
		c.addFlaw(w.pos, amountForm, "%q is not an amount", w.text)
	case len(words)/2+1 > maxOperands:
		c.addFlaw(w.pos, "", "%q has more than %d fields and numbers", w.text, maxOperands)
	case len(words) == 1 && numbers:
		a.Fields = []*Field{c.measuredFor(e, word{name, w.pos}, hidden)}
	case len(words) == 1:
		a.Fields = []*Field{c.fieldFor(e, word{name, w.pos}, hidden)}
	default:
		c.compileProduct(e, a, w, words, hidden)
	}
	if c.flaws > before {
		return nil
	}
	return a
}

// compileProduct compiles the terms of an amount that is computed, from its words.
func (c *compiler) compileProduct(e *Entity, a *Amount, w word, words []string, hidden bool) {
	a.terms = []term{{}}
	for i, text := range words {
		switch last := &a.terms[len(a.terms)-1]; {
		case i%2 == 0:
			x := c.compileOperand(e, word{text, w.pos}, hidden)
			if last.factors = append(last.factors, x); x.field != nil {
				a.Fields = append(a.Fields, x.field)
			}
		case text == "+" || text == "-":
			a.terms = append(a.terms, term{minus: text == "-"})
		case text != "*":
			c.addFlaw(w.pos, amountForm, "%q is none of *, + and -, in %q", text, w.text)
		}
	}
}

// compileOperand compiles a field or a number of an amount.
func (c *compiler) compileOperand(e *Entity, w word, hidden bool) factor {
	if n, err := value.ParseNumber(w.text); err == nil {
		return factor{number: n}
	}
	name, ok := strings.CutPrefix(w.text, e.Name+".")
	if !ok {
		hint := e.Name + "." + w.text
		if other, _, found := strings.Cut(w.text, "."); found && c.Entity(other) != nil {
			hint = "a value for each, and an attribute of the row that is computed from both: {type: number, is: ONE - OTHER}"
		}
		c.addFlaw(w.pos, hint, "an amount is of fields of one row, and %q is no field of %s", w.text, e.Name)
		return factor{}
	}
	return factor{field: c.measuredFor(e, word{name, w.pos}, hidden)}
}
