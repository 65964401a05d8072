package query

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/value"
)

const whereModel = `
model: shop
tables: {shop: {key: [PK, SK], indexes: {lean: {key: [LPK, LSK], projection: keys}}}}
entities:
  Order:
    where: {kind: Order}
    key: {PK: "C#{customer}", SK: "O#{no}", LPK: "L#{customer}", LSK: "N#{no}"}
    attributes: {no: number, total: number, at: time, state: string, note: string, code: {type: string, enum: [x, y]}}
search:
  orders: {of: Order, text: [note]}
queries:
  dear: {list: Order, with: [customer], where: {total: {atLeast: {param: "least?"}, below: {param: most=100}}, state: {not: closed}}}
  numbered: {list: Order, with: [customer], where: {no: {between: [{param: low}, {param: high}]}}}
  since: {list: Order, with: [customer], where: {at: {above: {param: at}}}}
  states: {list: Order, with: [customer], where: {state: {in: {param: states}}}}
  not-states: {list: Order, with: [customer], where: {state: {not: {param: states}}}}
  noted: {list: Order, with: [customer], where: {note: {exists: true, begins: {param: start}}}}
  plain: {list: Order, with: [customer], where: {note: absent}}
  one: {get: Order, with: [customer, no], where: {total: {above: 10}}}
  lean: {list: Order, by: lean, with: [customer], where: {no: {atLeast: 2}}}
  each: {list: Order, with: [customer], where: {state: open}, then: {get: Order, with: {customer: customer, no: no}, where: {total: {above: {param: least}}}}, unique: true}
  find: {search: orders, where: {total: {atMost: {param: "most?"}}, state: {not: closed}}}
`

// TestWhere: a query's rows are those that pass its where.
func TestWhere(t *testing.T) {
	w := newWorld(t, parseModel(t, whereModel), 9)
	w.put("Order", "customer", "c", "no", 1, "total", 5, "state", "open", "at", "2026-01-01T01:00:00+01:00", "note", "gift red")
	w.put("Order", "customer", "c", "no", 2, "total", 50, "state", "paid", "at", "2026-01-01T00:00:00.5Z", "note", "red")
	w.put("Order", "customer", "c", "no", 3, "total", 500, "state", "closed", "at", "2026-01-02T00:00:00Z")
	w.put("Order", "customer", "c", "no", 10, "total", value.MustNumber("12345678901234567890123456789012345678"), "state", "open", "note", "red gift")
	w.put("Order", "customer", "c", "no", 11, "total", "50")

	w.want("dear", "customer=c", "1,2", "no")
	w.want("dear", "customer=c least=5.1", "2", "no")
	w.want("dear", "customer=c most=99999999999999999999999999999999999999", "1,10,2", "no")
	w.want("dear", "customer=c least=12345678901234567890123456789012345678 most=12345678901234567890123456789012345679", "10", "no")
	w.want("dear", "customer=c least=12345678901234567890123456789012345677 most=12345678901234567890123456789012345678", "")
	w.want("numbered", "customer=c low=2 high=10", "10,2,3", "no")
	w.want("since", "customer=c at=2026-01-01T00:00:00Z", "2,3", "no")
	w.want("since", "customer=c at=2026-01-01T00:30:00+00:30", "2,3", "no")
	w.want("since", "customer=c at=2025-12-31", "1,2,3", "no")
	w.want("states", "customer=c states=open,paid", "1,10,2", "no")
	w.want("not-states", "customer=c states=open,paid", "11,3", "no")
	w.want("noted", "customer=c start=red", "10,2", "no")
	w.want("plain", "customer=c", "11,3", "no")
	w.want("one", "customer=c no=2", "2", "no")
	w.want("one", "customer=c no=1", "")
	w.want("lean", "customer=c", "N#10,N#11,N#2,N#3", "LSK")
	w.put("Order", "customer", "c", "no", 4, "kind", "Invoice") // a row of another application, with keys of the same form
	w.want("lean", "customer=c", "N#10,N#11,N#2,N#3", "LSK")
	w.want("each", "customer=c least=5", "10", "no")
	w.want("find", "q=red", "1,2,10", "no")
	w.want("find", "q=red most=50", "1,2", "no")
	w.want("find", "q=red most=5", "1", "no")
}

// TestWherePages: pages of any size together have the rows that pass, once and in order.
func TestWherePages(t *testing.T) {
	w := newWorld(t, parseModel(t, whereModel), 10)
	var want []string
	for i := range 400 {
		w.put("Order", "customer", "c", "no", 1000+i, "total", i%70, "state", "open")
		if i%70 >= 60 {
			want = append(want, fmt.Sprint(1000+i))
		}
	}
	for _, limit := range []int{1, 7, 60, 1000} {
		if got := brief(ask(t, w.engine, "dear", params("customer=c least=60"), limit), "no"); got != strings.Join(want, ",") {
			t.Errorf("pages of %d:\n got %s", limit, got)
		}
	}
}
