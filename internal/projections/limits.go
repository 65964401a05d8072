package projections

import (
	"fmt"
	"slices"

	"weir/internal/book"
	"weir/internal/model"
	"weir/internal/search"
	"weir/internal/store"
	"weir/internal/value"
)

// Excess is something that a row would lead to and that no store or index takes.
type Excess struct {
	Reason string   // goes on where the attribute's name ends: "makes the key PK of UserItem 2300 bytes long, 2048 are possible"
	Fields []string // the names of the row that it is made of; none: the row as a whole
}

// Excesses says what a change of a row would lead to that can never be derived: keys of
// targets and of rows made, their index keys and sizes, ids of documents. What deleting
// the row later would lead to counts too, since a deletion is not refused. What a row
// followed or a follower adds is not known here.
func Excesses(m *model.Model, c *Change) []Excess {
	x := excesses{model: m, said: map[string]bool{}}
	x.row(c, func(name string) []string { return []string{name} })
	made := *c
	made.Old, made.Was = nil, nil
	for _, f := range Fold(&made).Faults {
		if !x.said[f.Derivation] {
			x.of(f.Derivation).add(nil, "gives nothing to %s: %s", f.Derivation, f.Reason)
		}
	}
	return x.found
}

// LeadsOn reports whether anything is derived from rows of the entity.
func LeadsOn(e *model.Entity) bool {
	return len(e.Sources)+len(e.Rules)+len(e.Stages)+len(e.Search)+len(e.Told) > 0
}

// Reserve is how many bytes weir may add to a row of the entity.
func Reserve(e *model.Entity) (n int) {
	const number = 24 // and a version
	for _, t := range e.Values {
		if !t.Hidden {
			n += len(t.Attr) + number
		}
	}
	for _, name := range moving(e) {
		n += 4*len(name) + 256
	}
	if n > 0 {
		n += len(book.Version) + number
	}
	return n
}

type excesses struct {
	model      *model.Model
	found      []Excess
	derivation string          // that is looked at
	said       map[string]bool // the derivations that something was found of
}

// of is what is found from here on of a derivation.
func (x *excesses) of(derivation string) *excesses {
	x.derivation = derivation
	return x
}

// origin gives the names of the command's row that a name of a row was made of.
type origin func(name string) []string

func (x *excesses) add(fields []string, format string, args ...any) {
	x.said[x.derivation] = true
	one := Excess{fmt.Sprintf(format, args...), fields}
	if !slices.ContainsFunc(x.found, func(have Excess) bool { return have.Reason == one.Reason }) {
		x.found = append(x.found, one)
	}
}

// row looks at what comes of a row of the model, and of the rows made of it.
func (x *excesses) row(c *Change, from origin) {
	e := c.Is
	if e == nil {
		return
	}
	for _, src := range e.Sources {
		x.of(src.Tally.Name).source(src, c.New, from)
	}
	for _, st := range e.Stages {
		if model.Holds(st.Where, c.New) {
			x.of(st.Steps.Name).target(st.Steps.Target, st.To, c.New, from)
		}
	}
	for _, rule := range e.Rules {
		x.of(rule.Name).rule(rule, c, from)
	}
	for _, rule := range e.Told {
		x.of(rule.Name).follower(rule, c, from)
	}
	for _, s := range e.Search {
		if d, ok := DocumentOf(x.model, s, e, c.Row.Key, c.New); ok {
			x.document(s, d.ID, origins(e.KeyNames(), from))
		}
	}
}

// origins are those of several names.
func origins(names []string, from origin) (out []string) {
	for _, name := range names {
		out = append(out, from(name)...)
	}
	return out
}

func (x *excesses) source(src *model.Source, row value.Item, from origin) {
	if !model.Holds(src.Where, row) || src.Field != nil && src.Field.Get(row).IsMissing() {
		return
	}
	before := len(x.found)
	x.target(src.Tally.Target, src.To, row, from)
	var e Effects
	contribute(&e, src, row, false)
	if src.Field == nil || len(x.found) > before {
		return
	}
	for _, f := range e.Faults {
		x.add(from(src.Field.Name), "gives nothing to %s: %s", f.Derivation, f.Reason)
	}
	for _, a := range e.Adds {
		if len(a.Field) > maxAttrName {
			x.add(from(src.Field.Name), "has a value for %s of %d bytes, %d are possible", src.Tally.Name, len(a.Field), maxAttrName)
		}
	}
}

// maxAttrName is the longest name of an attribute in DynamoDB, which a value of a
// distinct becomes.
const maxAttrName = 65535

// target looks at the key of a row that something is published on.
func (x *excesses) target(e *model.Entity, to []model.Assign, row value.Item, from origin) {
	made := assignments(to, from)
	if key, ok := e.KeyFrom(to, row); ok {
		x.key(e, key, made)
	} else {
		x.empty(e, to, row, made)
	}
}

// assignments gives the names of the command's row that assigned names are made of.
func assignments(to []model.Assign, from origin) origin {
	return func(name string) []string {
		for i := range to {
			if f := to[i].Expr.Field; to[i].Name == name && f != nil {
				return from(f.Name)
			} else if f := to[i].Expr.Each; to[i].Name == name && f != nil {
				return from(f.Name)
			}
		}
		return nil
	}
}

// key looks at a key of the entity's table.
func (x *excesses) key(e *model.Entity, key store.Key, made origin) {
	schema := e.Table.Key
	x.part(e, schema.Partition, key.Partition, store.MaxPartitionBytes, made)
	x.part(e, schema.Sort, key.Sort, store.MaxSortBytes, made)
}

func (x *excesses) part(e *model.Entity, a store.KeyAttr, v value.Value, limit int, made origin) {
	var names []string
	if kt := e.KeyTemplate(a.Name); kt != nil {
		names = kt.Template.Names()
	}
	switch n := len(v.Text()); {
	case a.Name == "" || v.IsMissing():
	case v.Kind() != a.Type:
		x.add(origins(names, made), "makes the key %s of %s a %v, it must be a %v", a.Name, e.Name, v.Kind(), a.Type)
	case v.Kind() == value.Number:
	case n == 0:
		x.add(origins(names, made), "cannot be empty: it is the key %s of %s", a.Name, e.Name)
	case n > limit:
		x.add(origins(names, made), "makes the key %s of %s %d bytes long, %d are possible", a.Name, e.Name, n, limit)
	}
}

func (x *excesses) document(s *model.Search, id string, fields []string) {
	if len(id) > search.MaxID {
		x.add(fields, "makes the id of a document in search %s %d bytes long, %d are possible", s.Name, len(id), search.MaxID)
	}
}

// rule looks at the rows that a rule makes: of the change, and of the row's deletion.
func (x *excesses) rule(rule *model.RowRule, c *Change, from origin) {
	names := assignments(rule.Fields, from)
	changes := []Change{*c, {Table: c.Table, Row: c.Row, Old: c.New, Was: c.Is, Origin: c.Origin}}
	for i := range changes {
		one := &changes[i]
		row := one.New
		if row == nil {
			row = one.Old
		}
		if one.New == nil && len(rule.Keep) == 0 || len(rule.Keep) > 0 && !slices.Contains(rule.Keep, one.event(rule.Source)) {
			continue
		}
		p, ok := made(one, rule, row)
		if rule.Each != nil {
			var e Effects
			if foldTell(one, rule, row, &e); len(e.Tells) == 0 {
				continue
			}
			p, ok = e.Tells[0].For(unknown(rule, true))
		}
		if ok {
			x.made(&p, names)
		}
	}
	if model.Holds(rule.Where, c.New) && rule.Each == nil {
		x.empty(rule.Into, rule.Fields, c.New, names)
	}
}

// empty says which text of a row is nothing where the key of another needs something.
func (x *excesses) empty(e *model.Entity, to []model.Assign, row value.Item, made origin) {
	names := e.KeyNames()
	for i := range to {
		f := &to[i]
		if f.Expr.Field == nil || !slices.Contains(names, f.Name) {
			continue
		}
		if v := f.Expr.Field.Get(row); v.Kind() == value.String && v.Text() == "" {
			x.add(made(f.Name), "cannot be empty: it is in the key of %s", e.Name)
		}
	}
}

// unknown stands for the values that a rule's rows take from followers, or, the other
// way round, for those that followers take from what they are told of: as short as
// such a value may be.
func unknown(rule *model.RowRule, followers bool) value.Item {
	var attrs []value.Attr
	for i := range rule.Fields {
		if f := &rule.Fields[i]; (f.Expr.Each != nil) == followers {
			attrs = append(attrs, value.Attr{Name: f.Name, Value: value.OfString("1")})
		}
	}
	return value.NewItem(attrs...)
}

// follower looks at the rows that are made for a row that follows.
func (x *excesses) follower(rule *model.RowRule, c *Change, from origin) {
	j, ok := JoinOf(rule, c.Is, c.Row, c.New)
	if !ok {
		return
	}
	t := Tell{Rule: rule, Fields: unknown(rule, false)}
	p, ok := t.For(j.Fields)
	if ok {
		x.key(rule.Into, p.Row.Key, func(name string) []string {
			for i := range rule.Fields {
				if f := &rule.Fields[i]; f.Name == name && f.Expr.Each != nil {
					return from(f.Expr.Each.Name)
				}
			}
			return nil
		})
	}
}

// made looks at a row that is made, and at what comes of it.
func (x *excesses) made(p *Put, from origin) {
	if p.Image == nil {
		return
	}
	e := p.Rule.Into
	x.key(e, p.Row.Key, from)
	for i := range e.Table.Indexes {
		ix := &e.Table.Indexes[i]
		if !ix.Local {
			x.part(e, ix.Key.Partition, p.Image.Get(ix.Key.Partition.Name), store.MaxPartitionBytes, from)
		}
		x.part(e, ix.Key.Sort, p.Image.Get(ix.Key.Sort.Name), store.MaxSortBytes, from)
	}
	for _, f := range p.Follows {
		x.key(f.Source, f.Of.Key, assignments(f.Key, from))
	}
	const position = 64 // that it was made from, and of each value that it follows
	if n := p.Image.Size() + position*(1+2*len(p.Follows)); n > store.MaxItemBytes {
		x.add(nil, "makes a row of %s of %d bytes, %d are possible", e.Name, n, store.MaxItemBytes)
	}
	c := Planned(e.Table, p.Row, nil, p.Image, 0)
	if c.Is == e {
		x.row(&c, from)
	}
}
