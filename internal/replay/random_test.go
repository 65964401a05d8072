package replay_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/replay"
	"weir/internal/soaktest"
	"weir/internal/value"
)

var (
	worlds    = flag.Int("worlds", 16, "how many random worlds TestWorlds replays both ways")
	worldSeed = flag.Uint64("worldseed", 1, "the seed of the first world; 0 is any")
)

// shop has every derivation that is applied in bulk: counts, sums, means and distincts, with
// conditions, hidden ones, several of one target, from two entities, to a target that may be
// missing, to another table, and of a row that is itself a target.
const shop = `
model: shop
tables:
  shop: {key: [PK, SK], ttl: ttl, indexes: {byMood: [mood, PK], byKind: [kind]}}
  other: {key: [id]}
entities:
  Branch: {table: shop, where: {kind: branch}, key: {PK: "B#{branch}", SK: META}, attributes: {mood: string, open: flag, city: string}}
  Order: {table: shop, where: {kind: order}, key: {PK: "B#{branch}", SK: "O#{order}"}, attributes: {city: string, amount: number, mood: string}}
  Gift: {table: shop, where: {kind: gift}, key: {PK: "B#{branch}", SK: "G#{gift}"}, attributes: {city: string}}
  City: {table: other, where: {type: city}, key: {id: "{city}"}, attributes: {name: string}}
derive:
  Branch.orders: {count: [Order, Gift], to: {branch: branch}}
  Branch.large: {count: Order, where: {mood: large}, to: {branch: branch}}
  Branch.revenue: {sum: Order.amount, to: {branch: branch}}
  Branch.usual: {mean: Order.amount, to: {branch: branch}, round: 2}
  Branch.cities: {distinct: Order.city, to: {branch: branch}, max: 30}
  Branch.amounts: {distinct: Order.amount, to: {branch: branch}}
  City.orders: {count: Order, to: {city: city}}
  City.all: {sum: Branch.orders, to: {city: city}}
  City.rich: {count: Branch, where: {revenue: {above: 500}}, to: {city: city}}
  City.gifts: {count: Gift, to: {city: city}}
`

// flat is the shop without the derivations that read derived values, so that the changes of a
// row are reduced to one, with a target that is a source, and unique values.
var flat = func() string {
	s := strings.Replace(shop, "  City.all: {sum: Branch.orders, to: {city: city}}\n", "  City.branches: {count: Branch, to: {city: city}}\n", 1)
	s = strings.Replace(s, "  City.rich: {count: Branch, where: {revenue: {above: 500}}, to: {city: city}}\n", "  City.open: {distinct: Branch.mood, to: {city: city}, max: 9}\n", 1)
	return strings.Replace(s, "attributes: {mood: string, open: flag", "unique: [mood], attributes: {mood: string, open: flag", 1)
}()

// teller makes up a stream: each old image is the last new one of its key.
type teller struct {
	*rand.Rand
	rows  map[string]value.Item
	at    uint64
	wrong bool // some images have values that a derivation cannot use, or a store refuses
	whole bool // all records have the position that they were recorded with
}

func (r *teller) text(of string, n int) value.Value { return value.OfString(fmt.Sprint(of, r.IntN(n))) }

// next is the next record, of one of few rows.
func (r *teller) next() events.Entry {
	branch := value.OfString(fmt.Sprint("B#b", r.IntN(4)))
	kind := []string{"branch", "order", "order", "order", "gift", "city", "none", "vote"}[r.IntN(8)]
	table, attrs := "shop", []value.Attr{{Name: "kind", Value: value.OfString(kind)}, {Name: "PK", Value: branch}}
	add := func(name string, v value.Value) { attrs = append(attrs, value.Attr{Name: name, Value: v}) }
	switch kind {
	case "branch":
		add("SK", value.OfString("META"))
		add("city", r.text("c", 4))
	case "order":
		add("SK", r.text("O#o", 6))
		add("city", r.text("c", 4))
		add("amount", value.OfInt(r.Int64N(2000)-1000))
	case "gift":
		add("SK", r.text("G#g", 3))
		add("city", r.text("c", 4))
	case "city":
		table, attrs = "other", []value.Attr{{Name: "type", Value: value.OfString("city")}, {Name: "id", Value: r.text("c", 4)}}
	case "vote":
		add("SK", r.text("V#c", 3))
	case "none": // a row of no entity, or one that was an order
		add("SK", r.text("O#o", 6))
		attrs[0].Value = value.OfString("nothing")
	}
	r.more(kind, add)
	if r.IntN(3) == 0 && table == "shop" {
		add("mood", []value.Value{value.OfString("large"), value.OfString("small")}[r.IntN(2)])
	}
	if r.IntN(6) == 0 && table == "shop" {
		add("ttl", value.OfInt(4_000_000_000+r.Int64N(10)))
	}
	if r.IntN(5) == 0 { // what another projector derived
		add("orders", value.OfInt(r.Int64N(9)))
		add("weir", value.OfInt(r.Int64N(9)))
	}
	if r.wrong && r.IntN(30) == 0 {
		attrs = slices.DeleteFunc(attrs, func(a value.Attr) bool { return a.Name == "amount" || a.Name == "mood" })
		add([]string{"amount", "mood"}[r.IntN(2)], []value.Value{value.OfString("much"), value.OfBool(true)}[r.IntN(2)])
	}
	return r.record(table, value.NewItem(attrs...))
}

// record is the record of a write, or sometimes of a removal, of a row.
func (r *teller) record(table string, row value.Item) events.Entry {
	var keys value.Item
	name := table
	for _, k := range []string{"PK", "SK", "id"} {
		if row.Has(k) {
			keys = keys.With(value.Attr{Name: k, Value: row.Get(k)})
			name += "|" + row.Get(k).Text()
		}
	}
	old := r.rows[name]
	if r.IntN(4) == 0 {
		row = nil
	}
	if row == nil && old == nil {
		return r.next()
	}
	r.rows[name] = row
	r.at += 1 + r.Uint64N(3)
	return events.Entry{
		Record: events.Record{
			Table: table, Keys: keys, Old: old, New: row, Position: events.PositionOf(r.at * 1000),
			Time: time.UnixMicro(1_700_000_000_000_000 + int64(r.at)*300_000).UTC(),
		},
		Location: events.Location{File: "made up", Line: int64(r.at), Offset: int64(r.at)},
	}
}

// stream is so many records.
func (r *teller) stream(n int) (out []events.Entry) {
	for range n {
		out = append(out, r.next())
	}
	return out
}

// delivered is a stream as recordings have it: whole, in pieces that overlap, again, with
// pieces missing, or in another order.
func (r *teller) delivered(stream []events.Entry) (out []events.Entry) {
	if r.IntN(4) == 0 {
		return stream
	}
	for range 1 + r.IntN(6) {
		from := r.IntN(len(stream))
		out = append(out, stream[from:from+r.IntN(len(stream)-from)+1]...)
	}
	if r.IntN(3) == 0 && !r.whole { // forms without sequence numbers, and exports of rows
		for i := range out {
			if r.IntN(3) == 0 {
				out[i].Record.Position = events.Position{}
			}
			if r.IntN(20) == 0 {
				out[i].Record.Time, out[i].Record.Old = time.Time{}, nil
				out[i].Record.Position = events.Position{}
			}
		}
	}
	if r.wrong {
		for range r.IntN(3) {
			out[r.IntN(len(out))].Bad = &events.Bad{Err: fmt.Errorf("torn"), Raw: []byte(`{"torn`), Size: 6}
		}
	}
	return out
}

// batches cuts entries.
func (r *teller) batches(entries []events.Entry) (out [][]events.Entry) {
	most := 1 + r.IntN(60)
	for len(entries) > 0 {
		n := min(1+r.IntN(most), len(entries))
		out = append(out, slices.Clone(entries[:n]))
		entries = entries[n:]
	}
	return out
}

func copied(batches [][]events.Entry) (out [][]events.Entry) {
	for _, b := range batches {
		out = append(out, slices.Clone(b))
	}
	return out
}

// TestWorlds replays random recordings both ways, into directories that are opened again in
// between: rows, marks, ledgers, index entries, counts and what is said are the same.
func TestWorlds(t *testing.T) {
	soaktest.Calm(t)
	for name, text := range map[string]string{
		"applied": shop, "reduced": flat, "made": made, "unplaced": unplaced, "fed": fed, "facts": facts, "sets": sets,
	} {
		t.Run(name, func(t *testing.T) { testWorlds(t, text, name == "reduced", name == "made" || name == "fed") })
	}
}

func testWorlds(t *testing.T, text string, reduced, whole bool) {
	m, err := model.Parse("shop.yaml", []byte(text))
	failtest.On(t, err)
	seed := *worldSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-worldseed %d", seed)
	bulks, lives := 0, 0
	count, wrong := *worlds, uint64(4) // one in so many has values of other types
	if testing.Short() {
		count, wrong = min(count, 2), 2
	}
	for i := range uint64(count) {
		r := &teller{Rand: rand.New(rand.NewPCG(seed+i, 1)), rows: map[string]value.Item{}, wrong: i%wrong == wrong-1, whole: whole}
		live, one := newBulkWorld(t, m), newBulkWorld(t, m)
		one.reduced = &reduced
		stream := r.stream(1 + r.IntN(300))
		for round := range 1 + r.IntN(3) {
			batches := r.batches(r.delivered(stream))
			want := live.live(copied(batches))
			var got replay.Summary
			if one.lives == 0 && (round == 0 || r.IntN(3) > 0) {
				got = one.bulk(copied(batches), 1+r.IntN(1<<(1+r.IntN(18))))
			} else { // what follows a bulk, and the streams of its tables
				got = one.live(copied(batches))
			}
			if !sameRows(t, fmt.Sprintf("-worldseed %d, round %d", seed+i, round), live, one, want, got) {
				return
			}
			if one.lives == 0 && one.derivedLetters() > 0 {
				t.Fatalf("-worldseed %d: letters of derivations are kept in bulk", seed+i)
			}
			if r.IntN(2) == 0 {
				one.again()
			}
		}
		bulks, lives = bulks+one.bulks, lives+min(one.lives, 1)
		live.sys.Close()
		one.sys.Close()
	}
	t.Logf("%d replays in bulk to their end, %d worlds that went on live", bulks, lives)
	if bulks < count/2 {
		t.Errorf("%d replays of %d worlds were in bulk", bulks, count)
	}
}
