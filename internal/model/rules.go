package model

import (
	"maps"
	"slices"
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// The rules that entities and attributes declare for the commands that write them. weir does
// not apply these rules to rows that applications write directly.

// Unique is a field of which no two rows may have the same value at the same time.
type Unique struct {
	Field *Field
	Index *store.Index // finds the rows with a value
}

// New is a value that a new row gets if the command does not give one.
type New struct {
	Name string // an attribute, or a name in the primary key
	Made string // NewID or NewTime
}

// The values that New can make.
const (
	NewID   = "$uuid"
	NewTime = "$now"
)

// Nested lets commands give attributes as members of an object: the members of Member are
// the attributes whose names begin with Prefix and a dot.
type Nested struct{ Member, Prefix string }

// Once keeps the idempotency keys of an entity's create commands in rows of the model. Each
// new row is created together with a row of Of.
type Once struct {
	Of  *Entity
	Key *Attribute // of the entity: the idempotency key
	Set []Assign   // the fields of the row of Of, from the new row's
	Row []Assign   // the names of the entity's key, from fields of the row of Of
}

// Supersede lets a row that passes Where replace the row whose key has other words in it.
// The other row is deleted, and Time is appended to List of the new row.
type Supersede struct {
	Where []Test
	Other []Assign // names in the key, each with the constant that the other row has
	List  *Attribute
	Time  *Field
}

// Computed is an attribute computed from a time of the row, in epoch seconds: Plus is added
// to that time. With By, the amount depends on the word that the row has in By.
type Computed struct {
	From   *Field
	Bucket *Bucket // of a group's row: From is this part of the calendar, and its begin is the time
	Plus   time.Duration
	By     *Attribute
	Each   map[string]time.Duration
}

// Fields returns the attributes that the value is computed from.
func (c *Computed) Fields() []string {
	out := c.From.Attrs()
	if c.By != nil {
		out = append(out, c.By.Name)
	}
	return out
}

// Value returns the attribute for a row, Missing if the row lacks a field that it is computed from.
// The result is in epoch seconds, as DynamoDB's TTL needs it. A time with a fraction is cut to its
// second.
func (c *Computed) Value(row value.Item) value.Value {
	t, ok := time.Time{}, false
	if c.Bucket != nil {
		t, ok = beginOf(c.Bucket.Unit, c.Bucket.Zone, c.From.Get(row).Text())
	} else {
		t, ok = value.Time(c.From.Get(row))
	}
	if !ok {
		return value.Value{}
	}
	plus := c.Plus
	if c.By != nil {
		var ok bool
		if plus, ok = c.Each[value.Scalar(row.Get(c.By.Name))]; !ok {
			return value.Value{}
		}
	}
	return value.OfInt(t.Add(plus).Unix())
}

// WithComputed returns a row that weir makes with the attributes that are computed from its others.
func (e *Entity) WithComputed(row value.Item) value.Item {
	for _, a := range e.Attributes {
		if a.Computed != nil {
			row = row.With(value.Attr{Name: a.Name, Value: a.Store(a.Computed.Value(row))})
		}
	}
	return row
}

// ExpiresMade reports whether weir makes the entity's rows with a time from which TTL deletes them.
func (e *Entity) ExpiresMade() bool {
	a := e.Attribute(e.Table.TTL)
	return e.Derived && a != nil && a.Computed != nil
}

// definition is the part that decides the value on rows that weir makes.
func (c *Computed) definition() (x defined) {
	x.addLine("plus", c.Plus.String())
	x.addWithin("from", c.From.definition())
	if c.Bucket != nil {
		x.addLine("begin", string(c.Bucket.Unit), c.Bucket.rules)
	}
	if c.By != nil {
		x.addLine("by", c.By.Name)
		for _, w := range slices.Sorted(maps.Keys(c.Each)) {
			x.addLine("each", w, c.Each[w].String())
		}
	}
	return x
}

// Defaults are the default values of an attribute, by the word that the row has in another
// attribute.
type Defaults struct {
	By   *Attribute
	Each map[string]value.Value
}

// ByOthers returns the row with the defaults that depend on its other attributes.
// The row that it is given stays as it is; an attribute that the row has is never replaced.
func (e *Entity) ByOthers(row value.Item) value.Item {
	for _, a := range e.Attributes {
		if a.Defaults == nil || row.Has(a.Name) {
			continue
		}
		if v, ok := a.Defaults.Each[value.Scalar(row.Get(a.Defaults.By.Name))]; ok {
			row = row.With(value.Attr{Name: a.Name, Value: v})
		}
	}
	return row
}

// Outside returns the limit of a number attribute that a value violates, like "at most 5";
// "" for none.
func (a *Attribute) Outside(v value.Value) string {
	switch {
	case v.Kind() != value.Number:
		return ""
	case !a.Least.IsMissing() && value.Compare(v, a.Least) < 0:
		return "at least " + a.Least.Text()
	case !a.Most.IsMissing() && value.Compare(v, a.Most) > 0:
		return "at most " + a.Most.Text()
	}
	return ""
}

// Rank returns the index of a value in the attribute's enum, -1 if it is not there. A word
// of an older application has the rank of the word that replaced it.
func (a *Attribute) Rank(v value.Value) int {
	text := v.Text()
	if v.Kind() != value.String {
		return -1
	}
	if a.Reading != nil {
		if now, ok := a.Reading.Legacy[text]; ok {
			text = now
		}
	}
	return slices.Index(a.Enum, text)
}

// findsBy reports whether an index finds the rows with a value of this field, given nothing
// else.
func (e *Entity) findsBy(ix *store.Index, field string) bool {
	used := false
	for i, ka := range [...]store.KeyAttr{ix.Key.Partition, ix.Key.Sort} {
		k := e.KeyTemplate(ka.Name)
		if ka.Name == "" {
			break
		}
		if k == nil {
			return false
		}
		names := k.Template.Names()
		if i == 0 && !(len(names) == 0 || len(names) == 1 && names[0] == field) {
			return false
		}
		used = used || len(names) > 0 && names[0] == field
	}
	return used
}
