package query

import (
	"fmt"
	"testing"

	"weir/internal/store"
	"weir/internal/value"
)

func TestKeysNarrowAndFilter(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 1)
	for i := range 5 {
		w.put("Shelf", "shelf", fmt.Sprint("s", i), "at", fmt.Sprintf("2025-01-0%dT00:00:00Z", i+1), "shown", []string{"true", "false"}[i%2], "pin", "1234")
	}
	w.put("Place", "shelf", "s1", "product", "p1")
	w.put("Place", "shelf", "s1", "product", "p2")
	w.put("Place", "shelf", "s10", "product", "p2")
	w.put("Mark", "user", "u1", "type", "like", "product", "p1", "color", "red")
	w.put("Mark", "user", "u1", "type", "like", "product", "p2", "color", "blue")
	w.put("Mark", "user", "u1", "type", "save", "product", "p1", "color", "red")
	w.put("Mark", "user", "u2", "type", "like", "product", "p1", "color", "red")
	w.put("Price", "sku", "a", "from", 9, "amount", 1)
	w.put("Price", "sku", "a", "from", 10, "amount", 2)
	w.put("Price", "sku", "a", "from", -3, "amount", 3)

	w.want("shelf", "shelf=s1", "s1", "shelf")
	w.want("shelf", "shelf=nope", "")
	w.want("shelves", "", "s4,s3,s2,s1,s0", "shelf")
	w.want("shelves-before", "before=2025-01-03T00:00:00Z", "s0,s1", "shelf")
	w.want("shelves-before", "before=2025-01-03T02:00:00+02:00", "s0,s1", "shelf")
	w.want("shelves-before", "before=2025-01-03", "s0,s1", "shelf")
	w.want("shown", "shown=true", "s0 true,s2 true,s4 true", "shelf", "shown")
	w.want("shown", "shown=false", "s1 false,s3 false", "shelf", "shown")
	w.want("kinds", "", "SHELF#s4 null,SHELF#s3 null,SHELF#s2 null,SHELF#s1 null,SHELF#s0 null", "PK", "places")
	w.want("places", "shelf=s1", "p1,p2", "product")
	w.want("marks", "user=u1", "MARK#like#p1,MARK#like#p2,MARK#save#p1", "SK")
	w.want("marks", "user=u1 type=like", "MARK#like#p1,MARK#like#p2", "SK")
	w.want("marks", "user=u1 color=red", "MARK#like#p1,MARK#save#p1", "SK")
	w.want("marks", "user=u1 type=like color=red", "MARK#like#p1", "SK")
	w.want("marks", "user=u1 type=lik", "")
	w.want("marked", "product=p1", "USER#u1 MARK#save#p1,USER#u2 MARK#like#p1,USER#u1 MARK#like#p1", "PK", "SK")
	w.want("marked", "product=p1 type=like", "USER#u2,USER#u1", "PK")
	w.want("price", "sku=a from=10.0", "2", "amount")
	w.want("prices", "sku=a", "10,9,-3", "from")
	w.want("prices-before", "sku=a before=10", "-3,9", "from")
}

func TestRowsLeavePlain(t *testing.T) {
	m := parseModel(t, shopModel)
	w := newWorld(t, m, 0)
	row := makeRow(t, m, "Shelf", "shelf", "s", "at", "2025-01-01T00:00:00Z", "shown", "true", "pin", "1234", "note", "n")
	row = row.With(value.Attr{Name: "weir", Value: value.OfInt(7)}, value.Attr{Name: "weir.note", Value: value.OfInt(7)}, value.Attr{Name: "weird", Value: value.OfInt(8)})
	w.add(m.Entity("Shelf"), row)
	got := string(value.AppendPlainItem(nil, ask(t, w.engine, "shelf", params("shelf=s"), 0)[0]))
	want := `{"GSI1PK":"SHELVES","GSI1SK":"2025-01-01T00:00:00Z#s","PK":"SHELF#s","SK":"META","at":"2025-01-01T00:00:00Z","kind":"Shelf","note":"n","places":0,"shelf":"s","shown":true,"weird":8}`
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}

	w.put("Product", "product", "p", "code", "c")
	w.want("product", "product=p", "0 null null 0", "marks", "mean", "secretly", "colors")
	w.add(m.Entity("Product"), makeRow(t, m, "Product", "product", "p", "marks", 3, "mean", value.MustNumber("4.25")))
	w.want("product", "product=p", "3 4.25", "marks", "mean")
}

func TestExpiredRowsAreNotReturned(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 2)
	now := noon.Unix()
	w.put("Shelf", "shelf", "gone", "at", "2025-01-01T00:00:00Z", "ttl", int(now))
	w.put("Shelf", "shelf", "soon", "at", "2025-01-02T00:00:00Z", "ttl", int(now+1))
	w.put("Shelf", "shelf", "odd", "at", "2025-01-03T00:00:00Z", "ttl", "yesterday")
	w.put("Visit", "user", "u", "visit", "old", "until", "2025-11-13T12:00:00.000Z")
	w.put("Visit", "user", "u", "visit", "new", "until", "2025-11-13T12:00:00.001Z")
	w.put("Visit", "user", "u", "visit", "offset", "until", "2025-11-13T12:30:00+01:00")
	w.put("Visit", "user", "u", "visit", "never", "until", "some day")
	w.put("Visit", "user", "u", "visit", "swept", "until", "2026-11-13T12:00:00Z", "ttl", 1)

	w.want("shelves", "", "odd,soon", "shelf")
	w.want("shelf", "shelf=gone", "")
	w.want("shelf", "shelf=soon", "soon", "shelf")
	w.want("visits", "user=u", "new,never", "visit")
	w.want("visits-before", "user=u before=2026-12-01T00:00:00Z", "old,new,offset,swept", "visit")
	w.want("visits-before", "user=u before=2025-11-13T12:00:00.001Z", "old", "visit")
	w.put("Visit", "user", "v", "visit", "whole", "until", "2025-11-13T12:00:00Z")
	w.put("Visit", "user", "v", "visit", "half", "until", "2025-11-13T12:00:00.5Z")
	w.want("visits-before", "user=v before=2025-11-13T12:00:00Z", "")
	w.want("visits-before", "user=v before=2025-11-13T12:00:00.500Z", "whole", "visit")
	w.want("visits-before", "user=v before=2025-11-13T12:00:00.51Z", "whole,half", "visit")
	w.want("visits-before", "user=v before=2025-11-13T12:00:01Z", "whole,half", "visit")
	w.put("Visit", "user", "d", "visit", "today", "until", "2025-11-13") // a date is its midnight
	w.put("Visit", "user", "d", "visit", "tomorrow", "until", "2025-11-14")
	w.want("visits", "user=d", "tomorrow", "visit")
}

func TestListsThroughAnIndexWithoutASortKey(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 3)
	w.put("Product", "product", "p0", "code", "c", "ttl", 1)
	w.put("Product", "product", "p1", "code", "c", "stars", 1)
	w.put("Product", "product", "p2", "code", "c", "stars", 2)
	w.fake.put(t, "shop", makeRow(t, w.model, "Shelf", "shelf", "x", "at", "2025", "code", "c"))
	w.want("products-by-code", "code=c", "p1,p2", "product")
	w.want("products-by-code", "code=c stars=2.00", "p2", "product")
	w.want("products-by-code", "code=d", "")
}

func TestWalks(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 4)
	putShelves(w, 4, 3)
	w.want("shelf-products", "shelf=s1", "p1,p2,p3", "product")
	w.want("all-places", "", "SHELF#s0 p0,SHELF#s0 p1,SHELF#s0 p2,SHELF#s1 p1,SHELF#s1 p2,SHELF#s1 p3,SHELF#s2 p2,SHELF#s2 p3,SHELF#s2 p4,SHELF#s3 p3,SHELF#s3 p4,SHELF#s3 p5", "PK", "product")
	w.want("all-products", "", "p0,p1,p2,p3,p4,p5", "product")
	w.want("shelf-shelf", "shelf=s2", "p2,p3,p4", "product")
	w.fake.remove("shop", w.key("Product", "product", "p2"))
	w.want("all-products", "", "p0,p1,p3,p4,p5", "product")
	w.want("shelf-products", "shelf=s1", "p1,p3", "product")
}

func TestUniqueWalkChecksWhatDependsOnTheRowBefore(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 5)
	w.put("Product", "product", "p1", "brand", "red")
	w.put("Product", "product", "p2", "brand", "red")
	w.put("Mark", "user", "u", "type", "a", "product", "p1", "color", "red")
	w.put("Mark", "user", "u", "type", "b", "product", "p1", "color", "red")
	w.put("Mark", "user", "u", "type", "a", "product", "p2", "color", "blue")
	w.want("marked-products", "user=u", "p1", "product")
}

func TestUniqueWalkThatEndsInAList(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 6)
	putShelves(w, 3, 2)
	w.want("all-marks-once", "", "USER#u0 MARK#like#p0,USER#u0 MARK#like#p2,USER#u1 MARK#like#p1,USER#u1 MARK#like#p3", "PK", "SK")
}

// What rows of an index of keys do not say is taken to hold; what they do say is
// read from the keys.
func TestIndexOfKeys(t *testing.T) {
	w := newWorld(t, parseModel(t, shopModel), 10)
	mark := func(user, typ, color string, weight int) {
		w.put("Mark", "user", user, "type", typ, "product", "p", "color", color, "at", "2025-01-01T00:00:00Z", "weight", weight)
	}
	mark("u1", "like", "red", 5)
	mark("u2", "save", "red", 6)
	mark("u3", "like", "blue", 5)
	w.fake.put(t, "shop", value.NewItem(
		value.Attr{Name: "PK", Value: value.OfString("THING#1")}, value.Attr{Name: "SK", Value: value.OfString("x")},
		value.Attr{Name: "LPK", Value: value.OfString("LEAN#red")}, value.Attr{Name: "LSK", Value: value.OfString("2025-01-01T00:00:00Z#5")}))
	w.want("lean-marks", "color=red", "USER#u2 LEAN#red red,USER#u1 LEAN#red red", "PK", "LPK", "color")
	w.want("lean-marks", "color=red type=like", "USER#u1", "PK")
	w.want("lean-products", "color=red", "USER#u1,USER#u2", "PK")
}

// putShelves puts shelves with overlapping products, and a mark on each product.
func putShelves(w *world, shelves, each int) {
	for s := range shelves {
		w.put("Shelf", "shelf", fmt.Sprint("s", s), "at", fmt.Sprintf("2025-01-%02dT00:00:00Z", s+1))
		for p := s; p < s+each; p++ {
			name := fmt.Sprint("p", p)
			w.put("Place", "shelf", fmt.Sprint("s", s), "product", name, "at", "2025-01-01T00:00:00Z")
			w.put("Product", "product", name, "title", "product "+name)
			w.put("Mark", "user", fmt.Sprint("u", p%2), "type", "like", "product", name)
		}
	}
}

func (w *world) key(entity string, pairs ...any) (k store.Key) {
	w.Helper()
	e := w.model.Entity(entity)
	row := makeRow(w, w.model, entity, pairs...)
	k, ok := e.Table.KeyOf(row)
	if !ok {
		w.Fatalf("no key in %v", row)
	}
	return k
}

func TestAShortSecretIsRefused(t *testing.T) {
	m := parseModel(t, shopModel)
	if _, err := New(Config{Model: m, Secret: []byte("short")}); err == nil {
		t.Error("a short secret is taken")
	}
}
