package projections

import (
	"fmt"
	"slices"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Excess is something that a row would lead to and that exceeds a limit of the store or
// of a search index.
type Excess struct {
	// Continues a sentence that begins with the attribute's name: "makes the key PK of
	// UserItem 2300 bytes long, 2048 are possible".
	Reason string
	Fields []string // the names in the row that cause it; none if it is the row as a whole
}

// Excesses lists the effects of a change of a row that weir could never derive. It
// checks keys of targets and of rows made, their index keys and sizes, and ids of
// documents. It also checks the effects of a later deletion of the row, since weir cannot
// refuse a deletion. It does not know the parts of a followed row or a subscriber.
//
// kinds adds the effects of each kind of projection, and fold returns the values that it cannot use.
func Excesses(m *model.Model, c *Change, kinds func(x *Limits, c *Change, from Origin), fold func(*Change) []Fault) []Excess {
	x := Limits{Model: m, kinds: kinds, said: map[string]bool{}}
	x.checkRow(c, func(name string) []string { return []string{name} })
	made := *c
	made.Old, made.Was = nil, nil
	for _, f := range fold(&made) {
		if !x.said[f.Derivation] {
			x.SetDerivation(f.Derivation).AddExcess(nil, "gives nothing to %s: %s", f.Derivation, m.ShownText(f.Reason))
		}
	}
	return x.found
}

// LeadsOn reports whether the model derives anything from rows of the entity.
func LeadsOn(e *model.Entity) bool {
	return len(e.Sources)+len(e.Rules)+len(e.Stages)+len(e.LatestOf)+len(e.Follows)+len(e.Search)+len(e.Subscribes) > 0
}

// ReservedBytes returns how many bytes weir may add to a row of the entity.
func ReservedBytes(e *model.Entity) (n int) {
	const number = 24 // the size of a number, such as a version
	for _, t := range e.Values {
		if !t.Hidden {
			n += len(t.Attr) + number
		}
	}
	for _, name := range changedAttributes(e) {
		n += 4*len(name) + 256
	}
	for _, l := range e.Latest {
		for _, name := range l.Attributes() {
			n += len(name) + 256
		}
	}
	if n > 0 {
		n += len(owntable.Version) + number
	}
	for _, f := range e.Follows {
		n += 3*len(f.Attr) + 512
	}
	return n
}

// Limits collects the excesses of one change.
type Limits struct {
	Model      *model.Model
	kinds      func(x *Limits, c *Change, from Origin)
	found      []Excess
	derivation string          // the derivation that is being checked
	said       map[string]bool // derivations with an excess
}

// SetDerivation sets the derivation that the next excesses belong to.
func (x *Limits) SetDerivation(derivation string) *Limits {
	x.derivation = derivation
	return x
}

// CountFound returns how many excesses are noted.
func (x *Limits) CountFound() int { return len(x.found) }

// Origin maps a name in a derived row to the names in the command's row that it is made
// of.
type Origin func(name string) []string

// AddExcess notes an excess of the present derivation, unless the same reason was noted before.
func (x *Limits) AddExcess(fields []string, format string, args ...any) {
	x.said[x.derivation] = true
	one := Excess{fmt.Sprintf(format, args...), fields}
	if !slices.ContainsFunc(x.found, func(have Excess) bool { return have.Reason == one.Reason }) {
		x.found = append(x.found, one)
	}
}

// checkRow checks the effects of a row of the model, including the rows that are made of it.
func (x *Limits) checkRow(c *Change, from Origin) {
	e := c.Is
	if e == nil {
		return
	}
	x.kinds(x, c, from)
}

// Origins returns the origins of several names.
func Origins(names []string, from Origin) (out []string) {
	return seq.Flat(names, from)
}

// CheckTarget checks the key of a target row.
func (x *Limits) CheckTarget(e *model.Entity, to []model.Assign, row value.Item, from Origin) {
	made := Assignments(to, from)
	if key, ok := e.KeyFrom(to, row); ok {
		x.CheckKey(e, key, made)
	} else {
		x.CheckEmpty(e, to, row, made)
	}
}

// Assignments returns an origin for names that are assigned from fields.
func Assignments(to []model.Assign, from Origin) Origin {
	return func(name string) []string {
		for i := range to {
			if f := to[i].Expr.Field; to[i].Name == name && f != nil {
				return Origins(f.Names(), from)
			} else if f := to[i].Expr.Subscriber; to[i].Name == name && f != nil {
				return Origins(f.Names(), from)
			} else if b := to[i].Expr.Bucket; to[i].Name == name && b != nil {
				return Origins(b.Of.Names(), from)
			}
		}
		return nil
	}
}

// CheckKey checks a key of the entity's table.
func (x *Limits) CheckKey(e *model.Entity, key store.Key, made Origin) {
	schema := e.Table.Key
	x.CheckKeyPart(e, schema.Partition, key.Partition, store.MaxPartitionBytes, made)
	x.CheckKeyPart(e, schema.Sort, key.Sort, store.MaxSortBytes, made)
}

// CheckKeyPart checks one key attribute: its type, that it is not empty, and its length.
func (x *Limits) CheckKeyPart(e *model.Entity, a store.KeyAttr, v value.Value, limit int, made Origin) {
	var names []string
	if kt := e.KeyTemplate(a.Name); kt != nil {
		names = kt.Template.Names()
	}
	switch n := len(v.Text()); {
	case a.Name == "" || v.IsMissing():
	case v.Kind() != a.Type:
		x.AddExcess(Origins(names, made), "makes the key %s of %s a %v, it must be a %v", a.Name, e.Name, v.Kind(), a.Type)
	case v.Kind() == value.Number:
	case n == 0:
		x.AddExcess(Origins(names, made), "cannot be empty: it is the key %s of %s", a.Name, e.Name)
	case n > limit:
		x.AddExcess(Origins(names, made), "makes the key %s of %s %d bytes long, %d are possible", a.Name, e.Name, n, limit)
	}
}

// CheckRule checks the rows that a rule makes for the change, and for a later deletion of the
// row. made returns the row that the rule makes for a change from one of its images.
func (x *Limits) CheckRule(rule *model.RowRule, c *Change, from Origin, made func(one *Change, row value.Item) (Put, bool)) {
	names := Assignments(rule.Fields, from)
	changes := []Change{*c, {Table: c.Table, Row: c.Row, Old: c.New, Was: c.Is, Origin: c.Origin}}
	for i := range changes {
		one := &changes[i]
		as, row := *one, one.New
		if len(rule.Keep) > 0 {
			as, row = one.KeptEntry(nil, rule)
		}
		if row == nil {
			continue
		}
		if p, ok := made(&as, row); ok {
			x.CheckMade(&p, names)
		}
	}
	if rule.Input.Uses(c.New) && rule.Subscribers == nil {
		x.CheckEmpty(rule.Into, rule.Fields, c.New, names)
	}
}

// CheckEmpty reports the fields that hold an empty string where another row's key needs text.
func (x *Limits) CheckEmpty(e *model.Entity, to []model.Assign, row value.Item, made Origin) {
	names := e.KeyNames()
	for i := range to {
		f := &to[i]
		if f.Expr.Field == nil || !slices.Contains(names, f.Name) {
			continue
		}
		if v := f.Expr.Field.Get(row); v.Kind() == value.String && v.Text() == "" {
			x.AddExcess(made(f.Name), "cannot be empty: it is in the key of %s", e.Name)
		}
	}
}

// CheckMade checks a row that a rule makes, and the values that are derived from that row.
func (x *Limits) CheckMade(p *Put, from Origin) {
	if p.Image == nil {
		return
	}
	e := p.Rule.Into
	if p.Unclear != "" {
		x.AddExcess(Origins(e.KeyNames(), from), "%s", p.Unclear)
	}
	x.CheckKey(e, p.Row.Key, from)
	for i := range e.Table.Indexes {
		ix := &e.Table.Indexes[i]
		if !ix.Local {
			x.CheckKeyPart(e, ix.Key.Partition, p.Image.Get(ix.Key.Partition.Name), store.MaxPartitionBytes, from)
		}
		x.CheckKeyPart(e, ix.Key.Sort, p.Image.Get(ix.Key.Sort.Name), store.MaxSortBytes, from)
	}
	for _, f := range p.Follows {
		x.CheckKey(f.Source, f.Of.Key, Assignments(f.Key, from))
	}
	const position = 64 // of the source row, and of each value that the row follows
	if n := p.Image.Size() + position*(1+2*len(p.Follows)); n > store.MaxItemBytes {
		x.AddExcess(nil, "makes a row of %s of %d bytes, %d are possible", e.Name, n, store.MaxItemBytes)
	}
	c := PlannedChange(e.Table, p.Row, nil, p.Image, 0)
	if c.Is == e {
		x.checkRow(&c, from)
	}
}
