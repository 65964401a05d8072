package system_test

import (
	"testing"

	"weir/internal/model"
	"weir/internal/projections/tally"
	"weir/internal/repair"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/store/dynamodb"
	"weir/internal/store/dynamodb/dynamodbtest"
	"weir/internal/system"
	"weir/internal/system/systemtest"
	"weir/internal/verify"
)

// TestRepairedOnDynamoDB: what carries a position is put right while others may read
// the streams, and what counts is left, and said.
func TestRepairedOnDynamoDB(t *testing.T) {
	t.Parallel()
	for _, b := range busies[:2] {
		t.Run(b.model, func(t *testing.T) {
			t.Parallel()
			m, err := model.Load(b.model)
			if err != nil {
				t.Fatal(err)
			}
			tables, err := system.Tables([]*model.Model{m})
			if err != nil {
				t.Fatal(err)
			}
			db := dynamodbtest.Open(t, dynamodbtest.Config(t), tables, dynamodb.Options{})
			systemtest.Made(t, db, m)
			s, err := system.Over(t.Context(), db, "", []*model.Model{m}, system.Options{NoSearch: true})
			if err != nil {
				t.Fatal(err)
			}
			b.writeTo(t, s, 1, 30)
			verifyNothing(t, s)
			d := newRand(3)
			for b.spoilSome(t, s, d) == 0 {
			}
			if b.model == "wardrobe" { // a copy that is gone, and its source's end that nobody saw
				own := first(t, db, "WardrobeTable", []string{"EntityType=UserItem"})
				key, _ := m.Tables[0].KeyOf(own)
				writeOne(t, db, store.Write{Ref: store.Ref{Table: "WardrobeTable", Key: key}, Delete: true})
			}
			mended, counts := 0, 0
			r := repair.Repair{Verify: s.Verify(s.Models[0]), Runner: s.Models[0].Runner, NoCounts: true, Yield: func(verify.Difference) { mended++ }}
			left, _, err := r.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range left {
				if _, ledger := l.Fix.(*tally.LedgerFix); !ledger || l.Why != runner.ErrLag {
					t.Errorf("left: %+v", l)
				}
				counts++
			}
			if b.model == "gallery" && counts == 0 || b.model == "wardrobe" && mended == 0 {
				t.Errorf("%d put right, %d counts left", mended, counts)
			}
			b.writeTo(t, s, 2, 30) // and what comes after is right
			if counts == 0 {
				verifyNothing(t, s)
			}
		})
	}
}

// writeTo has the application write, and all of it applied.
func (b *busy) writeTo(t *testing.T, s *system.System, seed uint64, n int) {
	t.Helper()
	d := newRand(seed)
	for i := range n {
		table, row := b.put(d, i)
		key, _ := s.Models[0].Model.Table(table).KeyOf(row)
		writeOne(t, s.Store, store.Write{Ref: store.Ref{Table: table, Key: key}, Put: row})
	}
	if err := catchUp(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}
