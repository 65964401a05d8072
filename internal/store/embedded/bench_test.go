package embedded

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/store"
	"weir/internal/value"
)

func str(name string) store.KeyAttr { return store.KeyAttr{Name: name, Type: value.String} }

// BenchmarkSweep deletes expired rows of four tables, 1,000 at a time, as run does. One
// operation is one row.
func BenchmarkSweep(b *testing.B) {
	var tables []store.Table
	for i := range 4 {
		tables = append(tables, store.Table{Name: fmt.Sprint("t", i), Key: store.KeySchema{Partition: store.KeyAttr{Name: "PK", Type: value.String}}, TTL: "ttl", Stream: true})
	}
	s, err := Open(b.TempDir(), tables, Options{})
	failtest.On(b, err)
	defer s.Close()
	now := time.Now()
	for from := 0; from < b.N; from += 500 {
		var ws []store.Write
		for i := from; i < min(from+500, b.N); i++ {
			pk := value.OfString(fmt.Sprint("row", i))
			ws = append(ws, store.Write{Ref: store.Ref{Table: tables[i%4].Name, Key: store.Key{Partition: pk}}, Put: value.NewItem(
				value.Attr{Name: "PK", Value: pk}, value.Attr{Name: "ttl", Value: value.OfInt(now.Add(-time.Hour).Unix())},
				value.Attr{Name: "text", Value: value.OfString(strings.Repeat("x", 500))})})
		}
		if _, err := s.Write(b.Context(), ws); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for left := b.N; left > 0; {
		n, err := s.Sweep(b.Context(), now, 1000, nil)
		if err != nil || n == 0 {
			b.Fatal(n, err)
		}
		left -= n
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
