package console

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// TestHiddenInDeadLetters: neither the list of dead letters nor a letter, with its record and its
// reason, shows what the model hides, however a reason quotes it.
func TestHiddenInDeadLetters(t *testing.T) {
	w := openModel(t, Options{}, strings.NewReplacer(
		"words: string}", "words: string, cost: {type: number, hidden: true}}",
		"\nderive:", `
  Spent:
    where: {kind: spent}
    key: {PK: "SPENT#{product}", SK: ALL}
    attributes: {sum: {type: number, hidden: true}, due: {type: number, hidden: true}}
derive:
  Spent: {group: Review, by: {product: product}, set: {sum: {sum: cost}, due: {sum: cost * stars}}}`,
	).Replace(shop))
	w.put("Product", texts("pot", "Tea pot"))
	for i, cost := range []value.Value{
		value.OfString("geheim"), value.OfString("x\"geheim\n<b>"), value.OfString(strings.Repeat("geheim", 100)), value.OfString(`geheim\`), number(t, "4711e122"), number(t, "4711e5"),
		value.OfList(value.OfString("geheim")),
	} {
		row := value.Item{}.With(value.Attr{Name: "PK", Value: value.OfString("PRODUCT#pot")}, value.Attr{Name: "SK", Value: value.OfString("REVIEW#" + string(rune('a'+i)))},
			value.Attr{Name: "kind", Value: value.OfString("review")}, value.Attr{Name: "stars", Value: number(t, "9e10")}, value.Attr{Name: "cost", Value: cost})
		key := store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}
		failtest.On(t, w.s.Store.Transact(t.Context(), []store.Write{{Ref: store.Ref{Table: "shop-rows", Key: key}, Put: row}}))
	}
	w.derive()
	keep := []deadletter.Letter{
		{Kind: deadletter.Record, Target: "a record of one.jsonl", Reason: `not a DynamoDB number: "geheim"`, Raw: "geheim"},
		{Kind: deadletter.Publish, Target: "cut", Row: pot, Reason: `"` + strings.Repeat("geheim", 200)},
		{Kind: deadletter.Image, Target: "migration v1", Reason: "Spent: /due must be a text, not -4711.5"},
		{Kind: deadletter.Gap, Target: "shard s9", Reason: `records are missing from "s9"`},
	}
	large := texts("pot", "Tea pot")
	for i := range 6000 {
		large = append(large, value.Attr{Name: fmt.Sprintf("z%04d", i), Value: value.OfString(fmt.Sprint(rand.Uint64()))})
	}
	keep = append(keep, deadletter.Letter{Kind: deadletter.Image, Target: "large", Record: owntable.RecordItem(&events.Record{Table: "shop-rows", New: large})})
	for i := range keep {
		if _, err := w.part.Runner.Letters().Keep(t.Context(), keep[i]); err != nil {
			t.Fatal(err)
		}
	}
	secret := regexp.MustCompile(`geheim|4711|4\.711|42\.399|42399`)
	list := w.wants("/console/shop/dead", `cost is the string \(hidden\), not a number`, `cost is the number \(hidden\), not a number below`, `cost \* stars is the number \(hidden\), not a number below`, `cost is the list \(hidden\), not a number`, `from "s9"`, `<td><bdi>a record of one\.jsonl</bdi></td><td class="wide"><bdi>not a DynamoDB number: \(hidden\)</bdi>`)
	pages := map[string]string{"the list": list, "health": w.wants("/console/shop/health", `from "s9"`)}
	for _, d := range w.letters() {
		pages[string(d.Kind)+" "+d.ID] = w.page("/console/shop/dead/" + d.ID)
	}
	if id, _ := w.part.Runner.Letters().Keep(t.Context(), keep[len(keep)-1]); !regexp.MustCompile(`Too large to keep</dt><dd>\d+ bytes</dd>`).MatchString(pages["image "+id]) {
		t.Errorf("the letter that was cut: %s", pages["image "+id])
	}
	if len(pages) < 10 {
		t.Errorf("%d letters", len(pages)-2)
	}
	for name, body := range pages {
		if at := secret.FindStringIndex(body); at != nil {
			t.Errorf("%s has a hidden value: %s", name, body[max(0, at[0]-100):min(len(body), at[1]+20)])
		}
	}
	m := open(t).part.Model
	row := texts("pot", "Tea pot").With(value.Attr{Name: "cost", Value: value.OfString("geheim")})
	d := deadletter.Letter{Record: owntable.RecordItem(&events.Record{Table: "shop-rows", New: row})}
	shown := d.Shown(m)
	if got := recordText(&shown); strings.Contains(got, "geheim") || !strings.Contains(got, "Tea pot") {
		t.Errorf("the record is %q", got)
	}
}

func number(t *testing.T, s string) value.Value {
	t.Helper()
	v, err := value.ParseNumber(s)
	failtest.On(t, err)
	return v
}

// TestHiddenInLedgers: a ledger of a model that hides something shows positions, and no sums.
func TestHiddenInLedgers(t *testing.T) {
	w := open(t)
	w.put("Product", texts("pot", "Tea pot"))
	w.put("Review", review("pot", "ida"))
	w.derive()
	_, ledger, found := strings.Cut(w.page("/console/shop/row?pk=PRODUCT%23pot&sk=ABOUT&table=shop-rows"), "<h2>Ledger</h2>")
	if !found || strings.Contains(ledger, "ida") {
		t.Fatalf("the ledger:\n%s", ledger)
	}
	lines := regexp.MustCompile(`<bdi>([^<]*)</bdi></th><td class="wide"><bdi>([^<]*)<`).FindAllStringSubmatch(ledger, -1)
	for _, line := range lines {
		if is := strings.HasPrefix(line[1], owntable.PositionOf("")); is == (line[2] == model.HiddenText) {
			t.Errorf("%s is shown as %q", line[1], line[2])
		}
	}
	if !regexp.MustCompile(`<bdi>p:[^<]+</bdi></th><td class="wide"><bdi>[0-9]+(, in batch [0-9]+)?</bdi></td><td class="muted">position`).MatchString(ledger) {
		t.Errorf("no position that people can read in\n%s", ledger)
	}
	if len(lines) < 3 {
		t.Errorf("%d attributes", len(lines))
	}
}

// TestHiddenUnderStatus: what an application wrote below the values of a status is hidden as these are.
func TestHiddenUnderStatus(t *testing.T) {
	w := openModel(t, Options{}, strings.NewReplacer("name: string!,", "name: string!, state: {type: string, enum: [new, rated]},",
		"words: string}", "words: {type: string, hidden: true}}", "derive:\n", "derive:\n  Product.state: {steps: {rated: {when: Review, to: {id: product}, set: {cost: words}}}}\n").Replace(shop))
	w.put("Product", texts("pot", "Tea pot").With(value.Attr{Name: "cost", Value: value.OfString("geheim")}))
	w.put("Review", review("pot", "ida").With(value.Attr{Name: "words", Value: value.OfString("geheim too")}))
	w.derive()
	const at = "?pk=PRODUCT%23pot&sk=ABOUT&table=shop-rows"
	if page := w.wants("/console/shop/row"+at, "rated", "weir.own") + w.page("/console/shop/row.json"+at); strings.Contains(page, "geheim") {
		t.Error(page)
	}
}

// TestGroupHidesNothing: the number of rows that a group keeps in its ledger is no secret, so the dead letters of a model
// with a group say all that they have.
func TestGroupHidesNothing(t *testing.T) {
	w := openModel(t, Options{}, strings.NewReplacer(", hidden: true", "", "\nderive:", `
  Spent:
    where: {kind: spent}
    key: {PK: "SPENT#{product}", SK: ALL}
    attributes: {reviews: number}
derive:
  Spent: {group: Review, by: {product: product}, set: {reviews: count}}`).Replace(shop))
	d := deadletter.Letter{Kind: deadletter.Record, Target: "a record of one.jsonl", Reason: `the stars are "many"`}
	if _, err := w.part.Runner.Letters().Keep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	w.wants("/console/shop/dead", `the stars are "many"`)
}
