package system_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// bill is what requests cost, by table and operation.
type bill struct {
	mu       sync.Mutex
	units    map[string]float64
	requests map[string]int
}

func (b *bill) take(c dynamodb.Capacity) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.units[c.Table] += c.Write
	b.requests[c.Table+" "+c.Op]++
}

func (b *bill) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.units, b.requests = map[string]float64{}, map[string]int{}
}

// TestCostOnDynamoDB holds the runner to its price, by what DynamoDB says it took: for each
// target of a batch one ledger row of one unit and one write of the target, whatever
// the number of records; nothing for a record that contributes nothing; no marker,
// no transaction.
func TestCostOnDynamoDB(t *testing.T) {
	m, err := model.Load("gallery")
	failtest.On(t, err)
	tables, err := system.Tables([]*model.Model{m})
	failtest.On(t, err)
	var paid bill
	paid.start()
	db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{Consumed: paid.take})
	const albums, records = 7, 500
	own := writeAlbums(t, db, albums, &paid)
	r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now}
	at := uint64(0)
	batch := func() runner.Batch {
		b := runner.Batch{ShardKey: "shardKey"}
		for i := range records {
			at++
			row := rowOf("PK", fmt.Sprintf("ALBUM#%d", i%albums), "SK", fmt.Sprintf("MEDIA#%d", at), "EntityType", "AlbumMedia",
				"albumId", fmt.Sprint(i%albums), "mediaId", fmt.Sprint(at), "addedAt", "2025-01-01T00:00:00Z")
			b.Changes = append(b.Changes, changeOf(t, m, row, at))
		}
		return b
	}
	apply := func(b runner.Batch, ledgers, targets float64, what string) {
		t.Helper()
		paid.start()
		if _, err := r.ApplyRows(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if paid.units[owntable.TableName] != ledgers || paid.units["gallery"] != targets {
			t.Errorf("%s: %v units on ledgers, %v on targets; want %v and %v", what, paid.units[owntable.TableName], paid.units["gallery"], ledgers, targets)
		}
		for op, n := range paid.requests {
			if op != "weir UpdateItem" && op != "gallery UpdateItem" || n != albums {
				t.Errorf("%s: %d of %s", what, n, op)
			}
		}
	}
	b := batch()
	apply(b, albums, albums*own, "the first batch")
	apply(batch(), albums, albums*own, "the second batch")
	third := batch()
	apply(third, albums, albums*own, "the third batch")
	// A conditional write that fails costs its units and changes nothing.
	paid.start()
	if _, err := r.ApplyRows(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	if n := paid.requests["weir UpdateItem"] + paid.requests["gallery UpdateItem"]; n > 2*albums {
		t.Errorf("a batch that comes again takes %d requests", n)
	}
}

// writeAlbums puts the targets there, and says what a write of one takes.
func writeAlbums(t *testing.T, db store.Store, n int, paid *bill) (units float64) {
	for i := range n {
		row := rowOf("PK", fmt.Sprintf("ALBUM#%d", i), "SK", "METADATA", "EntityType", "Album", "id", fmt.Sprint(i), "title", "Summer",
			"isPublic", "true", "createdAt", "2025-01-01T00:00:00Z", "createdBy", "u", "GSI1PK", "ALBUM", "GSI1SK", fmt.Sprintf("2025-01-01T00:00:00Z#%d", i))
		paid.start()
		ref := store.Ref{Table: "gallery", Key: store.Key{Partition: row.Get("PK"), Sort: row.Get("SK")}}
		put := store.Write{Ref: ref, Put: row, If: store.Cond{{{Attr: "PK", Is: store.Absent}}}}
		touch := store.Write{Ref: ref, Ops: []store.Op{{Kind: store.Set, Attr: "mediaCount", Value: value.OfInt(0)}}}
		for _, w := range []store.Write{put, touch} {
			paid.start()
			if out, err := db.Write(t.Context(), []store.Write{w}); err != nil || out[0].Err != nil {
				t.Fatal(err, out[0].Err)
			}
		}
		units = paid.units["gallery"]
	}
	return units
}

func changeOf(t *testing.T, m *model.Model, row value.Item, at uint64) projections.Change {
	key, _ := m.Tables[0].KeyOf(row)
	c, ok := projections.NewChange(m.Tables[0], &events.Record{Keys: m.Tables[0].Item(key), New: row, Position: events.PositionOf(at), Time: time.Unix(int64(at), 0)})
	if !ok {
		t.Fatal("no key")
	}
	return c
}

// rowOf is an item of alternating names and strings.
func rowOf(pairs ...string) value.Item {
	var attrs []value.Attr
	for i := 0; i < len(pairs); i += 2 {
		attrs = append(attrs, value.Attr{Name: pairs[i], Value: value.OfString(pairs[i+1])})
	}
	return value.NewItem(attrs...)
}
