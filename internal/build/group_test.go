package build_test

import (
	"fmt"
	"testing"

	"weir/internal/model"
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
  Day: {where: {type: Day}, key: {PK: "SHOP#{shop}", SK: "DAY#{day}"}, attributes: {orders: number, total: number, average: number}}
  Shop: {where: {type: Shop}, key: {PK: SHOPS, SK: "{shop}"}, attributes: {days: number, total: number}}
  Top: {where: {type: Top}, key: {PK: "TOP#{day}", SK: "{shop}"}, attributes: {total: number, all: number}}
derive:
  Day: {group: Order, by: {day: {day: at, zone: Europe/Berlin}}, set: {orders: count, total: {sum: total}, average: {mean: total, round: 1}}}
  Shop: {group: Day, set: {days: count, total: {sum: total}}}
  Top: {row: Day, set: {day: day, shop: shop, total: total, all: {follow: Shop.total}}}
`

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
	type sums struct{ n, total int64 }
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
			days[at].n, days[at].total = days[at].n+1, days[at].total+total
		default:
			have[text("PK")+" "+text("SK")] = fmt.Sprint(text("type"), " ", text("orders"), text("days"), " ", text("total"), " ", text("all"))
		}
	}
	want := map[string]string{}
	for at, s := range days {
		if shops[at[0]] == nil {
			shops[at[0]] = &sums{}
		}
		shops[at[0]].n, shops[at[0]].total = shops[at[0]].n+1, shops[at[0]].total+s.total
		want["SHOP#"+at[0]+" DAY#"+at[1]] = fmt.Sprint("Day ", s.n, " ", s.total, " ")
	}
	for shop, s := range shops {
		want["SHOPS "+shop] = fmt.Sprint("Shop ", s.n, " ", s.total, " ")
	}
	for at, s := range days { // a copy of a group's row, which follows another one's
		want["TOP#"+at[1]+" "+at[0]] = fmt.Sprint("Top  ", s.total, " ", shops[at[0]].total)
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
