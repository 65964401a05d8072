package query

import "testing"

// TestCommasAreTrimmed: blanks around a value count neither in an attribute that lists values with commas nor in a
// parameter.
func TestCommasAreTrimmed(t *testing.T) {
	w := newWorld(t, parseModel(t, `
model: shop
tables: {shop: {key: [PK, SK]}}
entities:
  Order:
    where: {kind: Order}
    key: {PK: "C#{customer}", SK: "O#{no}"}
    attributes: {no: number, tags: commas, state: string}
queries:
  tagged: {list: Order, with: {customer: customer, tags: tag}}
  states: {list: Order, with: [customer], where: {state: {in: {param: states}}}}
`), 9)
	w.put("Order", "customer", "c", "no", 1, "tags", "red, gift", "state", "open")
	w.put("Order", "customer", "c", "no", 2, "tags", "red,blue ", "state", "paid")
	for _, tag := range []string{"gift", " gift", "gift "} {
		if got := brief(ask(t, w.engine, "tagged", map[string]string{"customer": "c", "tag": tag}, 0), "no"); got != "1" {
			t.Errorf("%q: %s", tag, got)
		}
	}
	if got := brief(ask(t, w.engine, "tagged", map[string]string{"customer": "c", "tag": "blue"}, 0), "no"); got != "2" {
		t.Error(got)
	}
	if got := brief(ask(t, w.engine, "states", map[string]string{"customer": "c", "states": "paid , open"}, 0), "no"); got != "1,2" {
		t.Error(got)
	}
}
