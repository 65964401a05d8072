package copies_test

import (
	"testing"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/copies"
	"weir/internal/store"
	"weir/internal/value"
)

const shop = `
model: shop
tables: {shop: {key: [PK, SK]}}
entities:
  City:
    where: {kind: city}
    key: {PK: "C#{city}", SK: META}
    attributes: {name: string}
  Order:
    where: {kind: order}
    key: {PK: "O#{order}", SK: META}
    attributes: {city: string, state: string, other: string}
  Note:
    where: {kind: note}
    key: {PK: "N#{order}", SK: META}
    attributes: {town: string}
derive:
  Note:
    row: Order
    where: {state: [open, late]}
    set: {order: order, town: {follow: City.name, by: {city: city}}}
`

// TestNothingRead: a change asks for a copy only if it changes what the rule reads: a field, its conditions, or the key
// of what the copy follows.
func TestNothingRead(t *testing.T) {
	m, err := model.Parse("shop.yaml", []byte(shop))
	if err != nil {
		t.Fatal(err)
	}
	table := m.Table("shop")
	row := func(state, city, other string) value.Item {
		text := func(name, v string) value.Attr { return value.Attr{Name: name, Value: value.OfString(v)} }
		return value.NewItem(text("PK", "O#1"), text("SK", "META"), text("kind", "order"), text("state", state), text("city", city), text("other", other))
	}
	for _, c := range []struct {
		what       string
		old, new   value.Item
		puts, left int
	}{
		{"what it does not read", row("open", "a", "x"), row("open", "a", "y"), 0, 0},
		{"another state that it takes", row("open", "a", "x"), row("late", "a", "x"), 0, 0},
		{"a state that it leaves out", row("open", "a", "x"), row("done", "a", "x"), 1, 1},
		{"a state that it takes again", row("done", "a", "x"), row("late", "a", "x"), 1, 0},
		{"the city", row("open", "a", "x"), row("open", "b", "x"), 1, 1},
	} {
		key, _ := table.KeyOf(c.new)
		puts, left := copies.Fold(&projections.Change{
			Table: table, Row: store.Ref{Table: table.Name, Key: key}, Old: c.old, New: c.new, Was: table.Classify(c.old), Is: table.Classify(c.new),
		}, nil)
		if len(puts) != c.puts || len(left) != c.left {
			t.Errorf("%s: %d rows and %d that are left, not %d and %d", c.what, len(puts), len(left), c.puts, c.left)
		}
	}
}
