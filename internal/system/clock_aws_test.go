package system_test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
)

const tags = `
model: tags
tables: {tags: {key: [PK, SK]}}
entities:
  Box: {where: {kind: Box}, key: {PK: "BOX#{box}", SK: META}, attributes: {box: string!}}
  Tag: {where: {kind: Tag}, key: {PK: "BOX#{box}", SK: "TAG#{tag}"}, attributes: {box: string!, tag: string!}}
derive:
  Box.tags: {count: Tag}
  Box.different: {distinct: Tag.tag, max: 2000}
queries:
  box: {get: Box, with: [box]}
`

// TestWrongClockOnDynamoDB: the empty ledger of a machine whose clock is wrong by days expires after
// six days by the clock of DynamoDB.
func TestWrongClockOnDynamoDB(t *testing.T) {
	t.Parallel()
	m, err := model.Parse("tags.yaml", []byte(tags))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []time.Duration{-10 * 24 * time.Hour, 10 * 24 * time.Hour} {
		t.Run(fmt.Sprint(wrong), func(t *testing.T) {
			now := func() time.Time { return time.Now().Add(wrong) }
			db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{Now: now})
			s, err := system.Over(t.Context(), db, "", []*model.Model{m}, system.Options{Now: now, NoSearch: true})
			if err != nil {
				t.Fatal(err)
			}
			r := *s.Models[0].Runner
			r.Kinds, r.Catalog = kinds.All(), nil
			row := rowOf("PK", "BOX#b", "SK", "TAG#1", "kind", "Tag", "box", "b", "tag", "1")
			key, _ := m.Tables[0].KeyOf(row)
			goes, ok := projections.NewChange(m.Tables[0], &events.Record{Keys: m.Tables[0].Item(key), Old: row, Position: events.PositionOf(2), Time: time.Unix(2, 0)})
			if !ok {
				t.Fatal("no key")
			}
			if _, err := r.Rows(t.Context(), runner.Batch{ShardKey: "shardKey", Changes: []projections.Change{changeOf(t, m, row, 1), goes}}); err != nil {
				t.Fatal(err)
			}
			page, err := db.Query(t.Context(), store.Query{Table: owntable.TableName})
			if err != nil {
				t.Fatal(err)
			}
			ledgers := 0
			for _, row := range page.Rows {
				at, ok := row.Get(owntable.Expiry).Int64()
				if !ok {
					continue
				}
				ledgers++
				if left := time.Until(time.Unix(at, 0)); left < 143*time.Hour || left > 145*time.Hour {
					t.Errorf("a ledger expires in %v", left)
				}
			}
			if ledgers == 0 {
				t.Error("no ledger expires")
			}
		})
	}
}
