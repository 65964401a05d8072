package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"weir/internal/owntable"

	"weir/internal/events"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// accepting is a store that accepts each write and stores nothing, so that a benchmark
// measures the runner alone.
type accepting struct{ store.Store }

func (accepting) Write(_ context.Context, ws []store.Write) ([]store.Outcome, error) {
	return make([]store.Outcome, len(ws)), nil
}

// BenchmarkRows applies a batch of 1,000 rows that count towards some targets, with ten
// tallies each.
func BenchmarkRows(b *testing.B) {
	for _, targets := range []int{500, 10} {
		b.Run(fmt.Sprintf("%d-targets", targets), func(b *testing.B) { benchmarkRows(b, targets) })
	}
}

func benchmarkRows(b *testing.B, targets int) {
	text := shelf
	for i := range 10 {
		text += fmt.Sprintf("  Box.sum%d: {sum: Thing.n%d, to: {id: box}}\n", i, i)
	}
	text = strings.ReplaceAll(text, "{name: string}", "{n0: number, n1: number, n2: number, n3: number, n4: number, n5: number, n6: number, n7: number, n8: number, n9: number}")
	m, err := loadText(b, text)
	must(b, err)
	h := newHarness(b, m)
	defer h.close()
	r, t := h.runner(nil), m.Table("shelf")
	r.Store = accepting{h.store}
	batch := runner.Batch{ShardKey: owntable.ShardKey("shelf", "0")}
	for i := range 1000 {
		key := value.NewItem(
			value.Attr{Name: "PK", Value: value.OfString(fmt.Sprintf("BOX#%d", i%targets))},
			value.Attr{Name: "SK", Value: value.OfString(fmt.Sprintf("THING#%d", i))},
		)
		row := key.With(value.Attr{Name: "type", Value: value.OfString("Thing")})
		for n := range 10 {
			row = row.With(value.Attr{Name: fmt.Sprintf("n%d", n), Value: value.OfInt(int64(i))})
		}
		c, ok := projections.NewChange(t, &events.Record{Table: "shelf", Keys: key, New: row, Position: events.PositionOf(uint64(i + 1))})
		if !ok {
			b.Fatal("a record without its table's key")
		}
		batch.Changes = append(batch.Changes, c)
	}
	b.ReportAllocs()
	for b.Loop() {
		n, err := r.Rows(b.Context(), batch)
		if err != nil || n.Applied != len(batch.Changes) {
			b.Fatal(n, err)
		}
	}
}
