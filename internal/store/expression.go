package store

import (
	"strconv"
	"strings"

	"weir/internal/value"
)

// Expression is an update or a condition in DynamoDB's language. No name and no value is ever part of its text.
type Expression struct {
	Text             string
	Bytes, Operators int // the length of the text, and how many operators and functions it has; DynamoDB limits both
}

// Expressions returns a write's update and condition, as the DynamoDB driver sends them.
func (w *Write) Expressions() (update, condition Expression) {
	var p Placeholders
	return p.Update(w.Ops), p.Condition(w.If)
}

// Placeholders have the names and values of one request's placeholders. The zero Placeholders are ready to use.
type Placeholders struct {
	Names  []string      // of #0, #1, …; each name has one
	Values []value.Value // of :0, :1, …
	byName map[string]string
}

// name returns the placeholder of an attribute's name. Names are always placeholders, since many words are reserved.
func (p *Placeholders) name(n string) string {
	if of := p.byName[n]; of != "" {
		return of
	}
	if p.byName == nil {
		p.byName = map[string]string{}
	}
	p.byName[n] = "#" + strconv.Itoa(len(p.Names))
	p.Names = append(p.Names, n)
	return p.byName[n]
}

// value returns the placeholder of a value. Equal values have a placeholder each.
func (p *Placeholders) value(v value.Value) string {
	p.Values = append(p.Values, v)
	return ":" + strconv.Itoa(len(p.Values)-1)
}

// Update returns the update of operations, each of another attribute: DynamoDB refuses two paths to one.
func (p *Placeholders) Update(ops []Op) Expression {
	var sections [Remove + 1][]string
	operators := 0
	for i := range ops {
		op := &ops[i]
		name, kind, text := p.name(op.Attr), op.Kind, ""
		switch {
		case kind == Set:
			text = name + "=" + p.value(op.Value)
		case kind == Add && op.From.IsMissing():
			text = name + " " + p.value(op.Value)
			operators++
		case kind == Add:
			text = name + "=if_not_exists(" + name + "," + p.value(op.From) + ")+" + p.value(op.Value)
			kind, operators = Set, operators+2
		default:
			kind, text = Remove, name
		}
		sections[kind] = append(sections[kind], text)
	}
	var parts []string
	for kind, word := range [...]string{Set: "SET ", Add: "ADD ", Remove: "REMOVE "} {
		if len(sections[kind]) > 0 {
			parts = append(parts, word+strings.Join(sections[kind], ","))
		}
	}
	return expression(strings.Join(parts, " "), operators)
}

func expression(text string, operators int) Expression { return Expression{text, len(text), operators} }

// Condition returns a condition, whose text is "" for one that always holds. A clause without tests becomes one that
// never holds.
func (p *Placeholders) Condition(c Cond) Expression {
	clauses := make([]string, len(c))
	operators := max(0, len(c)-1)
	for i, clause := range c {
		if len(clause) == 0 {
			any := p.name("weir")
			clauses[i] = "(attribute_exists(" + any + ") AND attribute_not_exists(" + any + "))"
			operators += 3
			continue
		}
		tests := make([]string, len(clause))
		for j := range clause {
			tests[j] = p.test(&clause[j])
			operators++
			if clause[j].Is == Ne {
				operators += 2
			}
		}
		clauses[i] = "(" + strings.Join(tests, " OR ") + ")"
		operators += len(clause) - 1
	}
	return expression(strings.Join(clauses, " AND "), operators)
}

// test is one of several tests that are joined by OR. DynamoDB refuses redundant
// parentheses.
func (p *Placeholders) test(t *Test) string {
	name := p.name(t.Attr)
	switch t.Is {
	case Exists:
		return "attribute_exists(" + name + ")"
	case Absent:
		return "attribute_not_exists(" + name + ")"
	case Ne:
		return "attribute_not_exists(" + name + ") OR " + name + "<>" + p.value(t.Value)
	}
	return name + map[Comparison]string{Eq: "=", Lt: "<", Le: "<="}[t.Is] + p.value(t.Value)
}

// KeyCondition returns the KeyConditionExpression of a query with a partition.
// A query has one condition on the sort key (DynamoDB), so From and Below together are BETWEEN,
// which includes Below: the caller leaves out the row at Below.
func (p *Placeholders) KeyCondition(keys *KeySchema, q *Query) string {
	cond := p.name(keys.Partition.Name) + "=" + p.value(q.Partition)
	if keys.Sort.Name == "" {
		return cond
	}
	r := &q.Sort
	name := func() string { return " AND " + p.name(keys.Sort.Name) }
	given := func(v value.Value) bool {
		return v.Kind() == value.Number || !v.IsMissing() && v.Text() != "" // "" bounds nothing from below
	}
	switch {
	case given(r.Equal):
		cond += name() + "=" + p.value(r.Equal)
	case given(r.Prefix):
		cond += " AND begins_with(" + p.name(keys.Sort.Name) + "," + p.value(r.Prefix) + ")"
	case given(r.From) && given(r.Below):
		cond += name() + " BETWEEN " + p.value(r.From) + " AND " + p.value(r.Below)
	case given(r.From):
		cond += name() + ">=" + p.value(r.From)
	case given(r.Below):
		cond += name() + "<" + p.value(r.Below)
	}
	return cond
}
