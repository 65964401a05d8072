package runner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/embedded"
	"weir/internal/value"
)

const expiring = `
model: offers
tables: {offers: {key: [PK, SK], ttl: ttl}}
entities:
  Offer: {where: {kind: Offer}, key: {PK: "OFFER#{id}", SK: META}, attributes: {id: string!, ttl: number}}
  Card: {where: {kind: Card}, key: {PK: CARDS, SK: "{id}"}, attributes: {id: string!, ttl: number}}
derive:
  Card: {row: Offer, set: {id: id, ttl: ttl}}
`

// TestExpiredCopiesCostNothing: TTL deletes copies before their sources, which have expired too.
// The records of that cause no write, not even one whose condition fails, since DynamoDB charges
// for both. A copy that an application deletes before its source has expired is made again.
func TestExpiredCopiesCostNothing(t *testing.T) {
	m, err := loadText(t, expiring)
	failtest.On(t, err)
	table, expires := m.Tables[0], time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	db, err := embedded.Open("store", []store.Table{owntable.Table(), table.Table}, embedded.Options{FS: vfs.NewMem(), Shards: 1})
	failtest.On(t, err)
	meter := &metered{Store: db}
	r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: meter, Now: time.Now}
	row := func(pk, sk, kind string, n int) value.Item {
		return value.NewItem(
			value.Attr{Name: "PK", Value: value.OfString(pk)}, value.Attr{Name: "SK", Value: value.OfString(sk)}, value.Attr{Name: "kind", Value: value.OfString(kind)},
			value.Attr{Name: "id", Value: value.OfString(fmt.Sprint(n))}, value.Attr{Name: "ttl", Value: value.OfInt(expires.Unix())})
	}
	at := uint64(0)
	apply := func(when time.Time, expired bool, old, now value.Item) {
		t.Helper()
		at++
		keys := now
		if keys == nil {
			keys = old
		}
		c, _ := projections.NewChange(table, &events.Record{Table: table.Name, Keys: keys, Old: old, New: now, Position: events.PositionOf(at), Time: when, Expired: expired})
		_, err := r.ApplyRows(t.Context(), runner.Batch{ShardKey: owntable.ShardKey(table.Name, "s"), Changes: []projections.Change{c}})
		failtest.On(t, err)
	}
	card := func(n int) store.Ref {
		return store.Ref{Table: table.Name, Key: store.Key{Partition: value.OfString("CARDS"), Sort: value.OfString(fmt.Sprint(n))}}
	}
	removed := func(n int, when time.Time, expired bool) value.Item {
		t.Helper()
		rows, err := db.Get(t.Context(), []store.Ref{card(n)})
		failtest.On(t, err)
		if rows[0] == nil {
			t.Fatal("there is no copy")
		}
		_, err = db.Write(t.Context(), []store.Write{{Ref: card(n), Delete: true}})
		failtest.On(t, err)
		meter.wrote.Store(0)
		apply(when, expired, rows[0], nil)
		rows, err = db.Get(t.Context(), []store.Ref{card(n)})
		failtest.On(t, err)
		return rows[0]
	}
	for n := range 10 {
		offer := row(fmt.Sprint("OFFER#", n), "META", "Offer", n)
		key, _ := table.KeyOf(offer)
		_, err := db.Write(t.Context(), []store.Write{{Ref: store.Ref{Table: table.Name, Key: key}, Put: offer}})
		failtest.On(t, err)
		apply(expires.Add(-time.Hour), false, nil, offer)
		if n == 0 {
			if removed(n, expires.Add(-time.Minute), false) == nil {
				t.Error("the copy of a row that has not expired is gone")
			}
			continue
		}
		if is := removed(n, expires.Add(time.Duration(n)*time.Hour), n%2 == 0); is != nil || meter.wrote.Load() > 0 {
			t.Errorf("the copy is %v after %d writes", is, meter.wrote.Load())
		}
	}
	failtest.On(t, db.Close())
}
