package dynamodb_test

import (
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/value"
)

// TestOriginsTravelOnDynamoDB: puts and removals of a replay appear in the stream with
// their own time, position and reason, changes by other programs in between do not, and
// no caller sees the attributes that carry this.
func TestOriginsTravelOnDynamoDB(t *testing.T) {
	table := store.Table{Name: "things", Key: store.KeySchema{Partition: store.KeyAttr{Name: "PK", Type: value.String}}, Stream: true}
	db := dynamodbtest.Open(t, dynamodbtest.Config(t), []store.Table{table}, dynamodb.Options{})
	ref := store.Ref{Table: "things", Key: store.Key{Partition: value.OfString("a")}}
	row := func(v int64) value.Item {
		return value.NewItem(value.Attr{Name: "PK", Value: value.OfString("a")}, value.Attr{Name: "v", Value: value.OfInt(v)})
	}
	origin := func(n int, expired bool) *store.Origin {
		return &store.Origin{Time: time.Date(2020, 1, 1, 0, 0, n, 0, time.UTC), Position: events.PositionOf(uint64(n)), Expired: expired}
	}
	others := store.Write{Ref: ref, Ops: []store.Op{{Kind: store.Set, Attr: "v", Value: value.OfInt(9)}}, Return: true}
	for i, w := range []store.Write{
		{Ref: ref, Put: row(1), Origin: origin(1, false)}, others,
		{Ref: ref, Put: row(2), Origin: origin(2, false)},
		{Ref: ref, Ops: []store.Op{{Kind: store.Set, Attr: "v", Value: value.OfInt(3)}}, Origin: origin(7, false)},
		{Ref: ref, Delete: true, Origin: origin(3, true)},
		{Ref: ref, Delete: true, Origin: origin(4, false)}, // of nothing
		{Ref: ref, Put: row(5)}, {Ref: ref, Delete: true},
	} {
		if err := db.Transact(t.Context(), []store.Write{w}); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		got, err := db.Get(t.Context(), []store.Ref{ref})
		if err != nil || len(got[0]) > 2 {
			t.Fatalf("after write %d: %v, %v", i, got, err)
		}
	}
	shards, err := db.Shards(t.Context(), "things")
	if err != nil {
		t.Fatal(err)
	}
	page, err := db.Read(t.Context(), "things", shards[0].ID, events.Position{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := []*store.Origin{origin(1, false), nil, origin(2, false), origin(7, false), origin(3, true), nil, nil}
	if len(page.Records) != len(want) {
		t.Fatalf("%d records, want %d", len(page.Records), len(want))
	}
	for i, r := range page.Records {
		switch {
		case want[i] == nil && r.Origin.IsZero() && !r.Expired && r.Time.Year() > 2020:
		case want[i] != nil && r.Origin == want[i].Position && r.Time.Equal(want[i].Time) && r.Expired == want[i].Expired:
		default:
			t.Errorf("record %d: origin %v, time %v, expired %v; want %+v", i, r.Origin, r.Time, r.Expired, want[i])
		}
		if len(r.New) > 2 || len(r.Old) > 2 {
			t.Errorf("record %d shows how: %v, %v", i, r.New, r.Old)
		}
	}
}
