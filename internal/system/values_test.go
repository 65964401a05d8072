package system_test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/value"
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

// TestManyValuesOnEmbedded and TestManyValuesOnDynamoDB: one batch of 1,000 creates that
// touches 1,000 values of one target counts right, whether their shard is known or not, and a
// repair corrects as many in one write.
func TestManyValuesOnEmbedded(t *testing.T) {
	manyValues(t, func(t *testing.T, tables []store.Table) store.Store { return embeddedStore(t, tables) })
}

func TestManyValuesOnDynamoDB(t *testing.T) {
	manyValues(t, func(t *testing.T, tables []store.Table) store.Store {
		return dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
	})
}

func manyValues(t *testing.T, open func(*testing.T, []store.Table) store.Store) {
	m, err := model.Parse("tags.yaml", []byte(tags))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	const creates = 1000
	db := open(t, tables)
	box := rowOf("PK", "BOX#b", "SK", "META", "kind", "Box", "box", "b")
	key, _ := m.Tables[0].KeyOf(box)
	ws := []store.Write{{Ref: store.Ref{Table: "tags", Key: key}, Put: box}}
	b := runner.Batch{ShardKey: "shardKey"}
	for i := range creates {
		tag := fmt.Sprintf("a tag of some length, number %d", i)
		row := rowOf("PK", "BOX#b", "SK", "TAG#"+tag, "kind", "Tag", "box", "b", "tag", tag)
		k, _ := m.Tables[0].KeyOf(row)
		ws = append(ws, store.Write{Ref: store.Ref{Table: "tags", Key: k}, Put: row})
		b.Changes = append(b.Changes, changeOf(t, m, row, uint64(i+1)))
	}
	if _, err := db.Write(t.Context(), ws); err != nil {
		t.Fatal(err)
	}
	r := &runner.Runner{Kinds: kinds.All(), Model: m, Store: db, Now: time.Now}
	for range 2 { // it comes again
		if n, err := r.Rows(t.Context(), b); err != nil || n.Dead > 0 || n.Applied != creates {
			t.Fatalf("%+v, %v", n, err)
		}
		rows, err := db.Get(t.Context(), []store.Ref{ws[0].Ref})
		if err != nil {
			t.Fatal(err)
		}
		for _, attr := range []string{"tags", "different"} {
			if got := rows[0].Get(attr); !value.Equal(got, value.OfInt(creates)) {
				t.Errorf("%s is %v, of %d", attr, got.Text(), creates)
			}
		}
	}
	repairsMany(t, r, ws[0].Ref)
}

// repairsMany spoils every sum of a ledger, which a repair corrects in one write.
func repairsMany(t *testing.T, r *runner.Runner, target store.Ref) {
	ref := owntable.Ledger(r.Model.Name, target)
	rows, err := r.Store.Get(t.Context(), []store.Ref{ref})
	if err != nil {
		t.Fatal(err)
	}
	good, bad := rows[0].Filter(owntable.IsSum), rows[0].Clone()
	for i := range bad {
		if owntable.IsSum(bad[i].Name) {
			bad[i].Value = value.OfInt(7)
		}
	}
	if out, err := r.Store.Write(t.Context(), []store.Write{{Ref: ref, Put: bad}}); err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
	w, differs, err := owntable.LedgerRow(bad).Repair(ref, good, nil, r.First(), false)
	if !differs || err != nil {
		t.Fatal(differs, err)
	}
	if done, err := r.Did(t.Context(), w); !done || err != nil {
		t.Fatal(done, err)
	}
	if rows, err = r.Store.Get(t.Context(), []store.Ref{ref}); err != nil || !value.EqualItems(rows[0].Filter(owntable.IsSum), good) {
		t.Errorf("the ledger has %d sums, not %d, or others: %v", len(rows[0].Filter(owntable.IsSum)), len(good), err)
	}
}
