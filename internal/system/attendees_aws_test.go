package system_test

import (
	"fmt"
	"testing"
	"time"
	"weir/internal/owntable"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
)

// TestManyAttendeesOnDynamoDB says that a round of more attendees than a transaction or
// a batch of reads holds becomes rated when the last of them has rated, in either mode.
func TestManyAttendeesOnDynamoDB(t *testing.T) {
	t.Parallel()
	m, err := model.Load("movienight")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now}
	const many = 220 // two transactions of 100 and more
	at := uint64(0)
	apply := func(table string, rows ...value.Item) {
		t.Helper()
		b := runner.Batch{ShardKey: owntable.ShardKey(table, "s")}
		for _, row := range rows {
			at++
			tab := m.Table(table)
			key, _ := tab.KeyOf(row)
			c, ok := projections.NewChange(tab, &events.Record{Table: table, Keys: tab.Item(key), New: row, Position: events.PositionOf(at), Time: time.Unix(int64(at), 0)})
			if !ok {
				t.Fatal("no key")
			}
			b.Changes = append(b.Changes, c)
		}
		if n, err := r.Rows(t.Context(), b); err != nil || n.Dead > 0 {
			t.Fatal(n, err)
		}
	}
	group := "group"
	round := rowOf("round_id", "of "+group, "group_id", group, "started_by", "u1", "status", "watched")
	ref := store.Ref{Table: "Rounds", Key: store.Key{Partition: round.Get("round_id")}}
	if out, err := db.Write(t.Context(), []store.Write{{Ref: ref, Put: round}}); err != nil || out[0].Err != nil {
		t.Fatal(out, err)
	}
	var members, ratings []value.Item
	for i := range many {
		who := fmt.Sprint("u", i)
		members = append(members, rowOf("group_id", group, "user_id", who))
		ratings = append(ratings, rowOf("round_id", "of "+group, "member_id", who, "rating", "liked", "rated_at", fmt.Sprintf("2026-01-05T10:00:00.%03dZ", i)))
	}
	shows := func(status, at string) {
		t.Helper()
		rows, err := db.Get(t.Context(), []store.Ref{ref})
		if err != nil || rows[0].Get("status").Text() != status || rows[0].Get("rated_at").Text() != at {
			t.Fatalf("%v at %v, %v; should be %s at %q", rows[0].Get("status"), rows[0].Get("rated_at"), err, status, at)
		}
	}
	apply("Rounds", round)
	apply("GroupMemberships", members...)
	apply("Ratings", ratings[:many-1]...)
	shows("watched", "")
	apply("Ratings", ratings[many-1])
	shows("rated", fmt.Sprintf("2026-01-05T10:00:00.%03dZ", many-1))
}
