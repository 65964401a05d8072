package console

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/reader"
	"weir/internal/scratch"
	"weir/internal/store"
	"weir/internal/value"
)

// recordings are the records that were applied, as recorded files have them.
func (w *world) recordings() (take func(*model.Table, []events.Record), from Recordings) {
	var all []events.Entry
	take = func(t *model.Table, records []events.Record) {
		for _, rec := range records {
			rec.Table = t.Name
			all = append(all, events.Entry{Record: rec, Location: events.Location{File: "day/one.jsonl", Line: int64(len(all) + 1)}})
		}
	}
	return take, func(_ context.Context, yield func(*events.Entry, string) error) error {
		for i := range all {
			e := all[i]
			if err := yield(&e, e.Record.Table); err != nil {
				return err
			}
		}
		return nil
	}
}

// deriveAlso has everything derived, and the records taken in elsewhere, too.
func (w *world) deriveAlso(take func(*model.Table, []events.Record)) {
	w.t.Helper()
	done := make(chan struct{})
	close(done)
	seen := w.seen.Records("shop")
	f := reader.Follower{Runner: w.part.Runner, Applied: func(t *model.Table, records []events.Record) {
		seen(t, records)
		take(t, records)
	}}
	if err := f.CatchUp(w.t.Context(), done); err != nil {
		w.t.Fatal(err)
	}
}

const whyReviews = "/console/shop/why?attr=reviews&pk=PRODUCT%23pot&sk=ABOUT&table=shop-rows"

// TestHistory: the page says which records changed a value, and what the row showed, with a picture;
// it says what it has looked at, and gives no value that it cannot know.
func TestHistory(t *testing.T) {
	w := open(t)
	w.wants(whyReviewsOf(w), `it has applied no record`, `None of them has a part in it`)
	for i := range 3 {
		w.put("Review", review("pot", fmt.Sprintf("u%d", i)))
		w.derive()
	}
	w.put("Product", texts("other", "Another"))
	w.put("Review", review("other", "ida"))
	w.derive()
	body := w.wants(whyReviews,
		`The last \d+ records that this process applied, from 20`,
		`<bdi>\+1</bdi></td><td class="num"><bdi></bdi></td><th scope="row" class="does"><a [^>]*><bdi>PRODUCT#pot · REVIEW#u1</bdi>`,
		`<bdi>shows it in place of 2</bdi></td><td class="num"><bdi>3</bdi></td><th scope="row" class="does"><a [^>]*><bdi>PRODUCT#pot · ABOUT</bdi>`,
		`<figcaption class="muted">\d values from 0|<figcaption class="muted">\d values from 1 to 3, the last is 3`,
		`<svg class="picture"[^>]*><title>[^<]*</title><path d="M1\.0 `)
	if strings.Contains(body[strings.Index(body, "What changed it"):], "other") {
		t.Error("a record of another product is in the history")
	}
	h := w.seen.models["shop"]
	h.mu.Lock()
	h.number += 1000
	h.mu.Unlock()
	w.wants(whyReviews, `1000 earlier ones are not at hand`, `A stream drops its records once they are applied\.[^<]*<code>projector run --recordings FILE</code>`)
}

// whyReviewsOf writes the product, and returns the page of its count.
func whyReviewsOf(w *world) string {
	w.put("Product", texts("pot", "Tea pot"))
	done := make(chan struct{})
	close(done)
	f := reader.Follower{Runner: w.part.Runner}
	if err := f.CatchUp(w.t.Context(), done); err != nil {
		w.t.Fatal(err)
	}
	return whyReviews
}

// TestRecordedHistory: from recordings the page has each value from the first record on, where the
// record is, and page by page; it says where it stopped.
func TestRecordedHistory(t *testing.T) {
	w := open(t)
	take, from := w.recordings()
	w.c.options.Recordings = map[string]Recordings{"shop": from}
	w.put("Product", texts("pot", "Tea pot"))
	w.deriveAlso(take)
	for i := range 70 {
		w.put("Review", review("pot", fmt.Sprintf("u%02d", i)))
	}
	w.deriveAlso(take)
	w.wants(whyReviews, `href="([^"]*&history=recordings#history)">Look at the recordings`)
	path := whyReviews + "&history=recordings"
	body := w.wants(path, `All 7\d records of the recordings\.`, `<bdi>\+1</bdi></td><td class="num"><bdi>70</bdi></td><th scope="row" class="does"><a [^>]*><bdi>PRODUCT#pot · REVIEW#u69</bdi></a></th><td class="muted">one\.jsonl:\d+`,
		`50 of 7\d records shown`, `70 values from 1 to 70, the last is 70|7\d values from 0 to 70, the last is 70`)
	if strings.Contains(body, "REVIEW#u01</bdi></a></th><td class=\"muted") {
		t.Error("the page has records of the next one")
	}
	next := regexp.MustCompile(`href="([^"#]*)#history">Earlier records`).FindStringSubmatch(body)
	if next == nil {
		t.Fatalf("no next page in\n%s", body)
	}
	w.wants(next[1], `<bdi>\+1</bdi></td><td class="num"><bdi>1</bdi></td><th scope="row" class="does"><a [^>]*><bdi>PRODUCT#pot · REVIEW#u00</bdi>`, `Last records`)

	w.c.options.mostRecorded = 11
	if body = w.wants(path, `The first 11 records of the recordings\. The recordings go on after these`); strings.Contains(body, "REVIEW#u69</bdi></a></th><td class=\"muted") {
		t.Error("more was read than is said")
	}
	w.c.options.Recordings["shop"] = func(context.Context, func(*events.Entry, string) error) error { return errors.New("geheim") }
	if body = w.wants(path, `cannot be read to their end; the log says why`); strings.Contains(body, "geheim") {
		t.Error("the page has the error")
	}
}

// TestHistoryIsBounded: of many lines the last are kept, and of many values few are drawn.
func TestHistoryIsBounded(t *testing.T) {
	h := &teller{}
	began := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for i := range 4 * mostLines {
		h.keepLine(historyLine{Value: fmt.Sprint(i)}, began.Add(time.Duration(i)*time.Second), fmt.Sprint(i))
	}
	o := &history{}
	o.page(h, 0, "/x?y")
	if len(h.lines) != mostLines || o.All != 4*mostLines || len(o.Lines) != pageRows || o.Lines[0].Value != fmt.Sprint(4*mostLines-1) {
		t.Errorf("%d lines, %d in all, %d shown", len(h.lines), o.All, len(o.Lines))
	}
	if n := len(o.Picture.Path); n > 16*2*(mostPoints+1) {
		t.Errorf("a path of %d bytes", n)
	}
	if !strings.HasSuffix(o.Picture.Path, "V2.0H239") {
		t.Errorf("the last value is not at its place: %s", o.Picture.Path[len(o.Picture.Path)-60:])
	}
}

// TestHiddenHistory: a history has no value that the model hides.
func TestHiddenHistory(t *testing.T) {
	m, err := model.Parse("hides.yaml", []byte(`model: hides
tables: {rows: {key: [PK, SK]}}
entities:
  Shop:
    where: {kind: shop}
    key: {PK: "SHOP#{id}", SK: ABOUT}
  Sale:
    where: {kind: sale}
    key: {PK: "SHOP#{shop}", SK: "SALE#{sale}"}
    attributes: {cost: {type: string, hidden: true}, price: number, isOpen: boolean}
derive:
  Shop.sales: {count: Sale, to: {id: shop}}
  Shop.taken: {sum: Sale.price, to: {id: shop}}
  Shop.spent: {distinct: Sale.cost, to: {id: shop}, max: 10, hidden: true}
  Shop.open: {count: Sale, where: {isOpen: true}, to: {id: shop}}
`))
	failtest.On(t, err)
	for attr, want := range map[string]bool{"sales": false, "taken": false, "open": false, "spent": true} {
		if got := m.HidesValuesOf("Shop." + attr); got != want {
			t.Errorf("what is added to %s is secret: %v", attr, got)
		}
	}
	p := &whyPage{Value: shown{Text: model.HiddenText}}
	w := open(t)
	pot := store.Ref{Table: "shop-rows", Key: store.Key{Partition: value.OfString("PRODUCT#pot"), Sort: value.OfString("ABOUT")}}
	if err := w.c.fillHistory(&request{c: w.c, part: w.part, Request: httptest.NewRequest("GET", "/", nil)}, p, w.part.Model.Tables[0], pot, "reviews"); err != nil || p.History != nil {
		t.Errorf("a value that is hidden has a history: %+v %v", p.History, err)
	}
	h := &teller{m: m, attr: "spent", secret: true}
	ref := store.Ref{Table: "rows", Key: store.Key{Partition: value.OfString("SHOP#a"), Sort: value.OfString("ABOUT")}}
	if h.why, err = scratch.NewWhy(m, printed(m.Tables[0], ref), "spent"); err != nil {
		t.Fatal(err)
	}
	keys := value.NewItem(value.Attr{Name: "PK", Value: value.OfString("SHOP#a")}, value.Attr{Name: "SK", Value: value.OfString("SALE#1")})
	e := &events.Entry{Record: events.Record{Table: "rows", Keys: keys, New: keys.With(
		value.Attr{Name: "kind", Value: value.OfString("sale")}, value.Attr{Name: "cost", Value: value.OfString("4711")})}}
	h.why.Find(e, "rows")
	failtest.On(t, errors.Join(h.why.Choose(w.c.scratch()), h.explainRecord(t.Context(), e, "rows"), h.why.Close()))
	if len(h.lines) != 1 || h.lines[0].Added != model.HiddenText {
		t.Errorf("%+v", h.lines)
	}
}
