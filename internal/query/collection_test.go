package query

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

const collectionModel = `
model: shop
tables: {shop: {key: [PK, SK], indexes: {GSI1: [GSI1PK, GSI1SK]}}}
entities:
  Customer: {where: {kind: Customer}, key: {PK: "C#{customer}", SK: PROFILE, GSI1PK: "T#{tenant}", GSI1SK: "C#{customer}"}, attributes: {name: string, tenant: string}}
  Order: {where: {kind: Order}, key: {PK: "C#{customer}", SK: "ORDER#{no}#{channel}", GSI1PK: "T#{tenant}", GSI1SK: "O#{at}"}, attributes: {no: number, total: number, at: time, tenant: string}}
  Note: {where: {kind: Note}, key: {PK: "C#{customer}", SK: "NOTE#{n}"}, attributes: {text: string}}
queries:
  all: {list: [Customer, Order], with: [customer]}
  newest: {list: [Order, Customer], with: [customer], order: newest}
  tenant: {list: [Customer, Order], by: GSI1, with: [tenant]}
  order: {get: Order, with: [customer, no, channel]}
`

// TestCollection: a list of several entities has all their rows of a partition, in the order of
// their keys, each with its entity, whatever stands between them, on pages of any size.
func TestCollection(t *testing.T) {
	m := parseModel(t, collectionModel)
	t.Run("in memory", func(t *testing.T) { newWorld(t, m, 11).collection() })
	t.Run("embedded", func(t *testing.T) { newRealWorld(t, m).collection() })
}

// TestCollectionOnDynamoDB is the same on DynamoDB Local, where the rows of the entities have one
// partition too, and the index is one of its own.
func TestCollectionOnDynamoDB(t *testing.T) {
	m := parseModel(t, collectionModel)
	newWorldOn(t, m, dynamodbtest.Open(t, dynamodbtest.Config(t), tablesOf(m), dynamodb.Options{Now: atNoon})).collection()
}

func (w *world) collection() {
	w.put("Customer", "customer", "c#1", "name", "Ann", "tenant", "t")
	w.put("Customer", "customer", "c", "name", "Bob", "tenant", "t")
	var orders, back []string
	for i := range 30 {
		w.put("Order", "customer", "c", "no", 100+i, "channel", "web", "tenant", "t", "at", fmt.Sprintf("2026-01-%02dT00:00:00Z", 30-i), "total", i)
		w.put("Note", "customer", "c", "n", fmt.Sprintf("%d", i), "text", "x")
		orders = append(orders, fmt.Sprintf("Order %d web", 100+i))
		back = append([]string{orders[i]}, back...)
	}
	w.settle()
	for _, limit := range []int{0, 1, 7, 31} {
		got := func(name, given string) string {
			return brief(ask(w.T, w.engine, name, params(given), limit), EntityMark, "no", "channel")
		}
		if want := strings.Join(append(orders, "Customer null null"), ","); got("all", "customer=c") != want {
			w.Errorf("pages of %d:\n got %s\nwant %s", limit, got("all", "customer=c"), want)
		}
		if want := strings.Join(append([]string{"Customer null null"}, back...), ","); got("newest", "customer=c") != want {
			w.Errorf("pages of %d, newest first:\n got %s\nwant %s", limit, got("newest", "customer=c"), want)
		}
		if want := strings.Join(append([]string{"Customer null null", "Customer null null"}, back...), ","); got("tenant", "tenant=t") != want {
			w.Errorf("pages of %d, by an index:\n got %s\nwant %s", limit, got("tenant", "tenant=t"), want)
		}
		if want := "Customer null null"; got("all", "customer=c#1") != want {
			w.Errorf("a value with a separator: %s", got("all", "customer=c#1"))
		}
	}
}

// TestNamesOfTheKey: an answer has the names that stand only in the key, by the types that the
// entity declares, and Select leaves what is asked for.
func TestNamesOfTheKey(t *testing.T) {
	w := newWorld(t, parseModel(t, collectionModel), 12)
	row := w.put("Order", "customer", "c", "no", 7, "channel", "web", "total", 1)
	if row.Has("channel") || row.Has("customer") {
		t.Fatalf("the row itself has the names: %v", row)
	}
	w.want("order", "customer=c no=7 channel=web", "c 7 web 1", "customer", "no", "channel", "total")
	w.want("all", "customer=c", "Order c web", EntityMark, "customer", "channel")

	w.fake.put(t, "shop", row.Filter(func(name string) bool { return name != "no" }))
	res, err := w.engine.Run(context.Background(), "order", params("customer=c no=7 channel=web"), Page{})
	if err != nil || len(res.Items) != 1 || !value.Equal(res.Items[0].Get("no"), value.OfInt(7)) {
		t.Errorf("a number that stands only in the key: %v, %v", res.Items, err)
	}
	if got := string(value.AppendPlainItem(nil, Select(res.Items[0], []string{"total", "none", "channel"}))); got != `{"total":1,"channel":"web"}` {
		t.Error(got)
	}
}
