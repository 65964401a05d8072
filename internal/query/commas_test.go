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

// TestSearchFilterOfCommas: a filter of an attribute that lists values with commas finds the rows whose list has the value, as
// a query does.
func TestSearchFilterOfCommas(t *testing.T) {
	w := newWorld(t, parseModel(t, `
model: shop
tables: {shop: {key: [PK, SK]}}
entities:
  Order:
    where: {kind: Order}
    key: {PK: "C#{customer}", SK: "O#{no}"}
    attributes: {no: number, title: string, tags: commas}
search:
  orders: {of: Order, text: [title], filters: [tags]}
queries:
  find: {search: orders}
`), 9)
	w.put("Order", "customer", "c", "no", 1, "title", "lamp", "tags", "red, gift")
	w.put("Order", "customer", "c", "no", 2, "title", "lamp", "tags", "red,blue ")
	w.put("Order", "customer", "c", "no", 3, "title", "lamp", "tags", "blue")
	w.put("Order", "customer", "c", "no", 4, "title", "lamp")
	for tag, want := range map[string]string{"gift": "1", " gift ": "1", "red": "1,2", "blue": "2,3", "red, gift": "", "re": ""} {
		if got := brief(ask(t, w.engine, "find", map[string]string{"q": "lamp", "tags": tag}, 0), "no"); got != want {
			t.Errorf("%q: %s, not %s", tag, got, want)
		}
	}
}
