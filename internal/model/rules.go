package model

import (
	"slices"
	"time"

	"weir/internal/store"
	"weir/internal/value"
)

// What an entity or an attribute says of the commands that write it. Rows that
// come by other ways are taken as they are.

// Unique is a field whose value one row at a time may have.
type Unique struct {
	Field *Field
	Index *store.Index // finds the rows with a value
}

// New is the value that a new row gets where a command gives none.
type New struct {
	Name string // an attribute, or a name in the primary key
	Made string // NewID or NewTime
}

// What New makes.
const (
	NewID   = "$uuid"
	NewTime = "$now"
)

// Nested says that commands may give attributes as members of an object: those of
// Member are the attributes that begin with Prefix and a point.
type Nested struct{ Member, Prefix string }

// Once keeps the idempotency keys of an entity's creates in rows of the model's
// own: one of Of is made with each new row.
type Once struct {
	Of  *Entity
	Key *Attribute // of the entity: the idempotency key
	Set []Assign   // the fields of the row of Of, from the new row's
	Row []Assign   // the names of the entity's key, from fields of the row of Of
}

// Supersede says what a row that passes Where does to the one whose key has other
// words in it: that one goes, and Time is noted in List of this one.
type Supersede struct {
	Where []Test
	Other []Assign // names in the key, each with the constant that the other row has
	List  *Attribute
	Time  *Field
}

// Computed is an attribute made from a time of the row: epoch seconds, Plus later.
// With By, how much later is said by the word that the row has there.
type Computed struct {
	From *Field
	Plus time.Duration
	By   *Attribute
	Each map[string]time.Duration
}

// Fields are the attributes that it is made from.
func (c *Computed) Fields() []string {
	out := []string{c.From.Attr}
	if c.By != nil {
		out = append(out, c.By.Name)
	}
	return out
}

// Value is the attribute for a row, Missing where the row does not say.
func (c *Computed) Value(row value.Item) value.Value {
	t, err := time.Parse(time.RFC3339, c.From.Get(row).Text())
	if err != nil {
		return value.Value{}
	}
	plus := c.Plus
	if c.By != nil {
		var ok bool
		if plus, ok = c.Each[row.Get(c.By.Name).Text()]; !ok {
			return value.Value{}
		}
	}
	return value.OfInt(t.Add(plus).Unix())
}

// Defaults are the values that an attribute has when none is written, by the word
// of another attribute.
type Defaults struct {
	By   *Attribute
	Each map[string]value.Value
}

// ByOthers gives a row the defaults that go by its other attributes.
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

// Outside says which limit of a number attribute a value is beyond, "at most 5"; "" for
// none.
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

// Rank is the place of a value in the attribute's enum, words of an older
// application included; -1 for anything else.
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

// findsBy reports whether an index leads to the rows with a value of the field
// alone.
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
