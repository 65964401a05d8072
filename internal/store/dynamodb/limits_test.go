package dynamodb

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"weir/internal/store"
	"weir/internal/value"
)

// TestExpressionSizes: the sizes that the contract limits are those of the texts that this
// driver sends.
func TestExpressionSizes(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	table := &store.Table{Name: "things", Key: store.KeySchema{Partition: store.KeyAttr{Name: "PK", Type: value.String}}}
	for range 300 {
		w := store.Write{Ref: thing("a")}
		for i := range 1 + dice.IntN(300) {
			op := store.Op{Kind: store.OpKind(dice.IntN(3)), Attr: fmt.Sprintf("a%d", i), Value: value.OfInt(1)}
			if op.Kind == store.Add && dice.IntN(2) == 0 {
				op.From = value.OfInt(7)
			}
			w.Ops = append(w.Ops, op)
		}
		for range dice.IntN(20) {
			var clause []store.Test
			for range 1 + dice.IntN(3) {
				clause = append(clause, store.Test{Attr: fmt.Sprintf("a%d", dice.IntN(400)), Is: store.Comparison(dice.IntN(6)), Value: value.OfInt(1)})
			}
			w.If = append(w.If, clause)
		}
		p, err := plan(table, &w)
		if err != nil {
			t.Fatal(err)
		}
		update, condition := w.Expressions()
		if update.Bytes != len(*p.update) {
			t.Fatalf("an update of %d bytes is taken for one of %d: %s", len(*p.update), update.Bytes, *p.update)
		}
		if p.condition != nil && condition.Bytes != len(*p.condition) {
			t.Fatalf("a condition of %d bytes is taken for one of %d: %s", len(*p.condition), condition.Bytes, *p.condition)
		}
	}
}
