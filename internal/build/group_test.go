package build_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/soaktest"
	"weir/internal/store"
	"weir/internal/value"
)

// sold has summary rows, summary rows of these, and copies of the first that follow the second.
const sold = `model: sold
tables:
  sold: {key: [PK, SK]}
entities:
  Order: {where: {type: Order}, key: {PK: "ORDER#{nr}", SK: ORDER}, attributes: {shop: string, at: time, total: number}}
  Day: {where: {type: Day}, key: {PK: "SHOP#{shop}", SK: "DAY#{day}"}, attributes: {orders: number, total: number, average: number, top: number, last: string}}
  Shop: {where: {type: Shop}, key: {PK: SHOPS, SK: "{shop}"}, attributes: {days: number, total: number, best: number}}
  Top: {where: {type: Top}, key: {PK: "TOP#{day}", SK: "{shop}"}, attributes: {total: number, all: number, top: number}}
derive:
  Day: {group: Order, by: {day: {day: at, zone: Europe/Berlin}}, set: {orders: count, total: {sum: total}, average: {mean: total, round: 1}` + latestSold + `}}
  Shop: {group: Day, set: {days: count, total: {sum: total}, best: {max: top}}}
  Top: {row: Day, set: {day: day, shop: shop, total: total, top: top, all: {follow: Shop.total}}}
`

// latestSold are the values of one order of a day.
const latestSold = `, top: {max: total}, last: {latest: nr, by: at, where: {total: {below: 3}}}`

var soldNames = []string{"Day", "Shop", model.BuildInPlace}

// soldAt are times in UTC, and the days that Berlin has then.
var soldAt = map[string]string{"2026-03-28T22:59:59Z": "2026-03-28", "2026-03-28T23:00:00Z": "2026-03-29", "2026-03-29T22:00:00Z": "2026-03-30"}

func editSold(w *interleaved) {
	nr := w.d.IntN(8)
	switch w.d.IntN(8) {
	case 0: // a row that is weir's own
		key := []any{"PK", fmt.Sprint("SHOP#", w.d.IntN(2)), "SK", "DAY#2026-03-29"}
		for _, row := range w.rows(w.table) {
			if row.Get("PK").Text() != key[1] || row.Get("SK").Text() != key[3] {
				continue
			}
			if w.d.IntN(2) == 0 {
				w.write(key...)
				return
			}
			at, _ := w.model.Tables[0].KeyOf(row)
			out, err := w.Store.Write(w.Context(), []store.Write{{Ref: store.Ref{Table: w.table, Key: at}, Put: row.With(value.Attr{Name: "orders", Value: value.OfInt(77)})}})
			w.ok(err)
			w.ok(out[0].Err)
		}
	case 1, 2:
		w.write("PK", fmt.Sprint("ORDER#", nr), "SK", "ORDER")
	default:
		at := []string{"2026-03-28T22:59:59Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"}[w.d.IntN(3)]
		w.write("PK", fmt.Sprint("ORDER#", nr), "SK", "ORDER", "type", "Order", "shop", fmt.Sprint(w.d.IntN(2)), "at", at, "total", w.d.IntN(4))
	}
}

// compareSold compares what is derived with what the orders say, without weir's code, and then
// as verify does.
func (f *fixture) compareSold() {
	f.Helper()
	type sums struct {
		n, total, top int64
		last          string // the orders of a day have one time: the greatest key is the latest
	}
	days, shops := map[[2]string]*sums{}, map[string]*sums{}
	have := map[string]string{}
	for _, row := range f.rows(f.table) {
		text := func(name string) string { return row.Get(name).Text() }
		switch text("type") {
		case "Order":
			at, total := [2]string{text("shop"), soldAt[text("at")]}, int64(0)
			total, _ = row.Get("total").Int64()
			if days[at] == nil {
				days[at] = &sums{}
			}
			days[at].n, days[at].total, days[at].top = days[at].n+1, days[at].total+total, max(days[at].top, total)
			if total < 3 {
				days[at].last = max(days[at].last, text("PK")[len("ORDER#"):])
			}
		default:
			have[text("PK")+" "+text("SK")] = fmt.Sprint(text("type"), " ", text("orders"), text("days"), " ", text("total"), " ", text("all")+text("top")+text("best"), " ", text("last"))
		}
	}
	want := map[string]string{}
	for at, s := range days {
		if shops[at[0]] == nil {
			shops[at[0]] = &sums{}
		}
		shop := shops[at[0]]
		shop.n, shop.total, shop.top = shop.n+1, shop.total+s.total, max(shop.top, s.top)
		want["SHOP#"+at[0]+" DAY#"+at[1]] = fmt.Sprint("Day ", s.n, " ", s.total, " ", s.top, " ", s.last)
	}
	for shop, s := range shops {
		want["SHOPS "+shop] = fmt.Sprint("Shop ", s.n, " ", s.total, " ", s.top, " ")
	}
	for at, s := range days { // a copy of a group's row, which follows another one's
		want["TOP#"+at[1]+" "+at[0]] = fmt.Sprint("Top  ", s.total, " ", fmt.Sprint(shops[at[0]].total)+fmt.Sprint(s.top), " ")
	}
	for key, is := range want {
		if have[key] != is {
			f.Errorf("%s is %q, want %q", key, have[key], is)
		}
		delete(have, key)
	}
	for key, is := range have {
		f.Errorf("%s is %q, and no order is in it", key, is)
	}
	f.verified()
}

// TestInterleavedGroups: as TestInterleaved, with groups, groups of groups, and copies of them.
func TestInterleavedGroups(t *testing.T) {
	soaktest.Calm(t)
	interleave(t, &scenario{sold, soldNames, editSold, (*fixture).compareSold})
}

// TestLatestAdded: values of one row are added to the live sums of a group. The sums stay right while they are built.
func TestLatestAdded(t *testing.T)           { latestAdded(t, open) }
func TestLatestAddedOnDynamoDB(t *testing.T) { latestAdded(t, openOnDynamoDB) }

func latestAdded(t *testing.T, open func(testing.TB, *model.Model) *fixture) {
	older := strings.NewReplacer(latestSold, "", "average: number, top: number, last: string", "average: number", ", best: {max: top}", ", best: count", ", top: top", ", top: total").Replace(sold)
	f := open(t, load(t, older))
	order := func(nr int, day string, total int) {
		f.write("PK", fmt.Sprint("ORDER#", nr), "SK", "ORDER", "type", "Order", "shop", "0", "at", day, "total", total)
	}
	order(1, "2026-03-28T22:59:59Z", 3)
	order(2, "2026-03-28T22:59:59Z", 2)
	order(3, "2026-03-28T23:00:00Z", 1)
	f.catchUp()
	f.build(owntable.BuildLive, soldNames...)
	f.with(load(t, sold))
	f.announced(soldNames...)
	order(4, "2026-03-28T22:59:59Z", 1)
	f.write("PK", "ORDER#3", "SK", "ORDER")
	f.catchUp()
	for _, row := range f.rows(f.table) {
		if row.Get("type").Text() == "Day" && (row.Get("orders").Text() != "3" || row.Get("total").Text() != "6" || row.Has("top")) {
			t.Errorf("during the build: %v", row)
		}
	}
	f.verified()
	f.build(owntable.BuildLive, soldNames...)
	f.catchUp()
	f.compareSold()
	f.write("PK", "ORDER#4", "SK", "ORDER")
	order(5, "2026-03-29T22:00:00Z", 0)
	f.catchUp()
	f.compareSold()
	f.clock.Add(25)
	f.build(owntable.BuildVerified, soldNames...)
	f.write("PK", "ORDER#5", "SK", "ORDER")
	f.catchUp()
	f.compareSold()
}
