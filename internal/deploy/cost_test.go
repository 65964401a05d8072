package deploy

import (
	"math"
	"testing"

	"weir/internal/failtest"
	"weir/internal/model"
)

func load(t *testing.T, text string) *model.Model {
	t.Helper()
	m, err := model.Parse("m.yaml", []byte(text))
	failtest.On(t, err)
	return m
}

// TestMeasuredUnits: the formula of counts gives the units that DynamoDB Local answered with (docs/performance.md), to a hundredth.
func TestMeasuredUnits(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	l := Load{RowKB: 1}
	for _, c := range []struct {
		entity         string
		batch, targets float64
		units          float64 // for 1,000 records
	}{{"Album", 10, 5.0, 2525}, {"Album", 100, 11.3, 568}, {"Album", 1000, 49.0, 245}, {"Media", 10, 8.6, 3442}, {"Media", 100, 57, 2282}, {"Media", 1000, 324, 1296}} {
		w := shape{tallies: []target{{indexesOf(m.Entity(c.entity))}}}
		got := 1000 / c.batch * w.counts(c.targets, l)
		if math.Abs(got/c.units-1) > 0.011 {
			t.Errorf("%s in batches of %v: %.0f units, measured are %v", c.entity, c.batch, got, c.units)
		}
	}
}

const shop = `model: shop
tables: {shop: {key: [PK, SK]}}
entities:
  Customer: {where: {t: c}, key: {PK: "C#{id}", SK: C}, attributes: {id: string!, name: string}}
  Order: {where: {t: o}, key: {PK: "O#{id}", SK: O}, attributes: {id: string!, customer: string!, total: number!}}
derive:
  Customer.orders: {count: Order, to: {id: customer}}
  Customer.spent: {sum: Order.total, to: {id: customer}}
`

// TestShares: counts of one row are one write, and what does not repeat costs twice a plain handler: the row and its ledger.
func TestShares(t *testing.T) {
	m := load(t, shop)
	l := Load{Writes: 10, Shards: 4, Window: 1, Targets: 1e9, RowKB: 1, Memory: 0.5}
	all := CostOf(m, l)
	units := func(way int) float64 { return all[way].Lines[0].Count }
	events, records := l.events()
	if math.Abs(events*records-10) > 1e-9 || math.Abs(units(0)/(month*(20+2*events))-1) > 1e-6 || units(1) != month*10 || units(2) != month*40 {
		t.Errorf("%v, %v, %v units, %v events of %v", units(0)/month, units(1)/month, units(2)/month, events, records)
	}
	l.Targets = 1
	if all = CostOf(m, l); units(0)/month > 5*events {
		t.Errorf("one target costs %v units a second in %v events", units(0)/month, events)
	}
	l.Writes, l.Processes = 0, 2
	for shards, dollars := range map[int]float64{4: 17.56, 300: 94.79, 1000: 96.10} { // as measured by the calls of two processes
		l.Shards = shards
		if idle := CostOf(m, l)[0]; math.Abs(idle.Dollars-dollars) > 0.01 || idle.Dollars > 100 {
			t.Errorf("%d shards: %+v", shards, idle)
		}
	}
	if few, many := (Load{Shards: 100}).polls(), (Load{Shards: 10000}).polls(); few != 100 || many != 1000 {
		t.Errorf("%v and %v polls a second", few, many)
	}
}

// TestEvents: an event ends with the window or at 1,000 records, and a slow shard has one for each record.
func TestEvents(t *testing.T) {
	for _, c := range []struct{ writes, shards, window, events float64 }{
		{0, 4, 1, 0}, {4000, 1, 1, 4}, {1, 1000, 1, 0.999}, {1000, 4, 1, 3.984}, {1000, 4, 5, 1},
	} {
		l := Load{Writes: c.writes, Shards: int(c.shards), Window: c.window}
		if got, records := l.events(); math.Abs(got-c.events) > 0.002 || c.writes > 0 && math.Abs(got*records/c.writes-1) > 1e-9 {
			t.Errorf("%+v: %v events of %v", c, got, records)
		}
	}
	if got := distinct(1000, 1000); math.Abs(got-632.3) > 0.1 {
		t.Error(got)
	}
}
