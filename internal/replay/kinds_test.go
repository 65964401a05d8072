package replay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/replay"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// with is the shop with more attributes, entities and derivations.
func with(entities, derive string) string {
	s := strings.NewReplacer(
		"attributes: {mood: string, open: flag, city: string}}", "attributes:\n"+
			"    {mood: string, open: flag, city: string, best: string, people: list, state: {type: string, enum: [new, busy, rich, done]}}}",
		"attributes: {city: string, amount: number, mood: string}}", "attributes:\n"+
			"    {city: string, amount: number, mood: string, tag: string, ttl: number}}",
		"derive:\n", entities+"derive:\n",
	).Replace(shop)
	return s + derive
}

// made has rows that weir makes of rows: copies with a TTL, that follow, and move; copies of copies;
// a history that keeps the last value of what it follows; groups, of groups and of copies too; and
// counts of all these.
var made = with(`
  Copy: {table: shop, where: {kind: copy}, key: {PK: "C#{branch}", SK: "C#{city}#{order}"}, attributes: {amount: number, ttl: number, feels: string}}
  Log: {table: shop, where: {kind: log}, key: {PK: "L#{branch}", SK: "L#{position}"}, attributes: {event: string, of: map, old: map, new: map, town: string}}
  Second: {table: shop, where: {kind: second}, key: {PK: "2#{city}", SK: "{branch}#{order}"}, attributes: {amount: number}}
  Town: {table: shop, where: {kind: town}, key: {PK: "T#{town}", SK: TOWN}, attributes: {rows: number, total: number, orders: number}}
  Size: {table: shop, where: {kind: size}, key: {PK: "M#{rows}", SK: SIZE}, attributes: {towns: number}}
`, `
  Copy: {row: Order, where: {city: {exists: true}}, set: {branch: branch, order: order, city: city, amount: amount, ttl: ttl, feels: {follow: Branch.mood}}}
  Log:
    row: [Order, Gift]
    keep: [insert, modify, remove]
    set: {branch: branch, position: $position, event: $event, of: $key, old: $old, new: $new, town: {follow: City.name, by: {city: city}, keep: true}}
  Second: {row: Copy, set: {city: city, order: order, amount: amount, branch: branch}}
  Town: {group: [Order, Copy], by: {town: city}, set: {rows: count, total: {sum: amount}, orders: {distinct: order, max: 40}}}
  Size: {group: Town, by: {rows: rows}, set: {towns: count}}
  City.copies: {count: Copy, to: {city: city}}
  City.second: {sum: Second.amount, to: {city: city}}
  Branch.logged: {count: Log, to: {branch: branch}}
`)

// unplaced is made with a history whose newest entry wins, so that records without a position of their
// own lead to the same rows.
var unplaced = strings.NewReplacer("L#{position}", "L#{order}", "position: $position", "order: order",
	"row: [Order, Gift]", "row: Order", "keep: [insert, modify, remove]", "keep: [insert]").Replace(made)

// fed has a feed: each gift of a city is told of the city's orders.
var fed = with(`
  Note: {table: shop, where: {kind: note}, key: {PK: "N#{home}#{gift}", SK: "{branch}#{order}#{position}"}, attributes: {amount: number, city: string}}
`, `
  Note:
    row: Order
    keep: [insert, modify]
    each: {of: Gift, by: [city]}
    set: {home: Gift.branch, gift: Gift.gift, branch: branch, order: order, position: $position, amount: amount, city: city}
  City.notes: {count: Note, to: {city: city}}
`)

// facts has statuses, of rows, of elements of a list and with a limit; the latest and the greatest of
// rows; and counts of what they show.
var facts = with(`
  Vote: {table: shop, where: {kind: vote}, key: {PK: "B#{branch}", SK: "V#{who}"}, attributes: {mood: string}}
`, `
  Branch.state:
    steps:
      busy: {when: Order, to: {branch: branch}}
      rich: {when: Order, where: {mood: large}, to: {branch: branch}, max: 2, set: {best: city}}
      done: {when: Vote, who: who, each: people, to: {branch: branch}}
  Branch.top: {max: Order.amount, to: {branch: branch}}
  City.low: {min: Order.amount, also: {lowMood: mood}, to: {city: city}}
  City.last: {latest: Order.mood, by: amount, to: {city: city}}
  City.top: {max: Branch.top, to: {city: city}}
  City.done: {count: Branch, where: {state: done}, to: {city: city}}
`)

// sets has sets that are spread over several rows, and short ones.
var sets = with(`
  Tags: {table: shop, where: {kind: tags}, key: {PK: "S#{branch}", SK: "S[#{leaf}]"}}
  Few: {table: shop, where: {kind: few}, key: {PK: "S#{branch}", SK: "F[#{leaf}]"}}
`, `
  Tags.tags: {set: Order.tag, to: {branch: branch}}
  Few.cities: {set: Gift.city, to: {branch: branch}}
`)

// more are attributes that only the models of this file read.
func (r *teller) more(kind string, add func(string, value.Value)) {
	switch kind {
	case "order":
		if r.IntN(2) == 0 {
			add("tag", value.OfString(r.text("tag", 40).Text()+strings.Repeat("-", 300)))
		}
	case "branch":
		if r.IntN(2) == 0 {
			add("state", value.OfString([]string{"new", "busy", "rich", "done"}[r.IntN(4)]))
		}
		var people []value.Value
		for i := range r.IntN(3) {
			people = append(people, value.OfString("c"+string(rune('0'+i))))
		}
		add("people", value.OfList(people...))
	case "city":
		if r.IntN(2) == 0 {
			add("name", r.text("name", 9))
		}
	}
}

// TestLongLists: what goes to more rows than one step of a list handles gets there before the window
// lands.
func TestLongLists(t *testing.T) {
	const many = 2*runner.PageOfList + 50
	var feed, follow scripted
	for i := range many {
		feed.put("B#b", fmt.Sprint("G#", i), "kind", "gift", "city", "c")
		follow.put("B#b", fmt.Sprint("O#", i), "kind", "order", "city", "c")
	}
	feed.put("B#b", "O#1", "kind", "order", "city", "c")
	feed.put("B#b", "O#2", "kind", "order", "city", "c")
	follow.put("B#b", "META", "kind", "branch", "mood", "good")
	follow.put("B#b", "META", "kind", "branch", "mood", "better")
	told, shown := 0, 0
	for _, row := range both(t, fed, "a long list of subscribers", feed.all).scan(store.Query{Table: "shop"}) {
		if row.Get("kind").Text() == "note" {
			told++
		}
	}
	for _, row := range both(t, strings.Replace(made, "max: 40", "max: 900", 1), "a long list of followers", follow.all).scan(store.Query{Table: "shop"}) {
		if row.Get("feels").Text() == "better" {
			shown++
		}
	}
	if told != 2*many || shown != many {
		t.Errorf("%d rows were told and %d show the value, not %d and %d", told, shown, 2*many, many)
	}
}

// TestOverCopies: what a recording writes over rows that nothing is derived from is mended.
func TestOverCopies(t *testing.T) {
	text := with(`
  Copy: {table: shop, where: {kind: copy}, key: {PK: "C#{branch}", SK: "C#{order}"}, attributes: {city: string}}
`, `
  Copy: {row: Order, set: {branch: branch, order: order, city: city}}
`)
	var s scripted
	for i := range 40 {
		s.put("B#b", fmt.Sprint("O#", i), "kind", "order", "city", "c")
	}
	s.put("C#b", "C#1", "kind", "other", "city", "d")
	s.put("C#b", "C#2", "kind", "city", "city", "d")
	w := both(t, text, "rows over copies", s.all)
	copied := 0
	for _, row := range w.scan(store.Query{Table: "shop", Partition: value.OfString("C#b")}) {
		if row.Get("kind").Text() == "copy" && row.Get("city").Text() == "c" {
			copied++
		}
	}
	if copied != 40 {
		t.Errorf("%d of 40 copies are there", copied)
	}
}

// watching notes the most bytes that a window of a Load has when it lands.
type watching struct {
	store.Store
	most *int
}

func (w watching) Load(ctx context.Context, o store.LoadOptions) (store.Load, error) {
	l, err := w.Store.Load(ctx, o)
	if l == nil {
		return nil, err
	}
	return watched{l, w.most}, err
}

type load = store.Load // has a method of its own name

type watched struct {
	load
	most *int
}

func (l watched) Land(ctx context.Context) error {
	*l.most = max(*l.most, l.Bytes())
	return l.load.Land(ctx)
}

// TestMuchOfEach: a window stays below twice its size where each record suddenly leads to many rows.
func TestMuchOfEach(t *testing.T) {
	m, err := model.Parse("shop.yaml", []byte(fed))
	failtest.On(t, err)
	var s scripted
	for i := range 100 {
		s.put("B#b", fmt.Sprint("G#", i), "kind", "gift", "city", "c")
	}
	for i := range 300 {
		s.put("B#b", fmt.Sprint("O#", i), "kind", "order", "city", "c")
	}
	w, most := newBulkWorld(t, m), 0
	r := w.replay()
	r.Store = watching{r.Store, &most}
	b, why, err := replay.New(context.Background(), r, replay.Size{Memory: 2 << 20, Disk: 1 << 30})
	failtest.On(t, err)
	if why != "" {
		t.Fatal(why)
	}
	failtest.On(t, b.Batch(context.Background(), slices.Clone(s.all), ""))
	failtest.On(t, b.Land(context.Background()))
	failtest.On(t, b.Close())
	if w.verified(); most < 2<<20 || most > 4<<20 {
		t.Errorf("a window of 2 MB has %d bytes", most)
	}
}
