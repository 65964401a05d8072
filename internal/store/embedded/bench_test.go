package embedded

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sys/unix"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// benchRows is how many rows the benchmarks write over and over, so that each
// write after the first round has an old image.
const benchRows = 50_000

func str(name string) store.KeyAttr { return store.KeyAttr{Name: name, Type: value.String} }

func benchTable() store.Table {
	t := store.Table{Name: "bench", Key: store.KeySchema{Partition: str("PK"), Sort: str("SK")}, Stream: true}
	for i := range 3 {
		t.Indexes = append(t.Indexes, store.Index{
			Name: fmt.Sprintf("GSI%d", i),
			Key:  store.KeySchema{Partition: str(fmt.Sprintf("GSI%dPK", i)), Sort: str(fmt.Sprintf("GSI%dSK", i))},
		})
	}
	return t
}

// benchRow is row n of about 1 KB in 21 attributes, as it is first written.
func benchRow(n int) store.Write {
	id := fmt.Sprintf("%016x", uint64(n)*0x9e3779b97f4a7c15)
	attrs := []value.Attr{
		{Name: "PK", Value: value.OfString("ALBUM#" + id)},
		{Name: "SK", Value: value.OfString("METADATA")},
		{Name: "EntityType", Value: value.OfString("Album")},
		{Name: "mediaCount", Value: value.OfInt(0)},
		{Name: "updatedAt", Value: value.OfString("2024-05-01T10:00:00.000Z")},
		{Name: "description", Value: value.OfString(benchWords(n, 68))},
		{Name: "isPublic", Value: value.OfBool(true)},
	}
	for i := range 3 {
		attrs = append(attrs,
			value.Attr{Name: fmt.Sprintf("GSI%dPK", i), Value: value.OfString(fmt.Sprintf("ALBUM_BY#%d", n%97))},
			value.Attr{Name: fmt.Sprintf("GSI%dSK", i), Value: value.OfString("2024-05-01T10:00:00.000Z#" + id)})
	}
	for i := range 8 {
		attrs = append(attrs, value.Attr{Name: fmt.Sprintf("field%02d", i), Value: value.OfString(strings.Repeat(id[:8], 3))})
	}
	it := value.NewItem(attrs...)
	k, _ := (&store.Table{Key: benchTable().Key}).KeyOf(it)
	return store.Write{Ref: store.Ref{Table: "bench", Key: k}, Put: it}
}

// benchWords is text of n words that compresses about as well as prose.
func benchWords(seed, n int) string {
	rng := rand.New(rand.NewPCG(uint64(seed), 7))
	var b strings.Builder
	for range n {
		w := rng.Uint64()
		for range 3 + w%5 {
			w >>= 5
			b.WriteByte("etaoinshrdlucmfwypvbgkqjxzetaoin"[w%32])
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// benchNext is the row as it is written in a later round: with another counter
// and date and, with moves, other sort keys in all indexes.
func benchNext(w store.Write, round int, moves bool) store.Write {
	w.Put = slices.Clone(w.Put)
	date := fmt.Sprintf("2024-05-%02dT10:00:00.%03dZ", round%28+1, round%1000)
	for i := range w.Put {
		switch a := &w.Put[i]; {
		case a.Name == "mediaCount":
			a.Value = value.OfInt(int64(round))
		case a.Name == "updatedAt":
			a.Value = value.OfString(date)
		case moves && strings.HasPrefix(a.Name, "GSI") && strings.HasSuffix(a.Name, "SK"):
			a.Value = value.OfString(date + a.Value.Text()[24:])
		}
	}
	return w
}

// bench gives the next thousand writes again and again.
type bench struct {
	mode  string
	rng   *rand.Rand
	rows  []store.Write
	round int
	ws    []store.Write
}

func newBench(mode string) *bench {
	g := &bench{mode: mode, rng: rand.New(rand.NewPCG(1, 2))}
	for n := range benchRows {
		g.rows = append(g.rows, benchRow(n))
	}
	return g
}

func (g *bench) batch(size int) []store.Write {
	g.ws = g.ws[:0]
	g.round++
	for i := range size {
		if g.mode == "Insert" {
			g.ws = append(g.ws, benchRow((g.round-1)*1000+i))
			continue
		}
		g.ws = append(g.ws, benchNext(g.rows[g.rng.IntN(benchRows)], g.round, g.mode == "Move"))
	}
	return g.ws
}

func benchStore(b *testing.B) *Store {
	s, err := Open(b.TempDir(), []store.Table{benchTable()}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	})
	return s
}

// run times b.N writes in batches of a thousand, and reports what they took of
// both processors, the key-value store's own work behind them included.
func (g *bench) run(b *testing.B, write func([]store.Write)) {
	if g.mode != "Insert" {
		for at := 0; at < benchRows; at += 1000 {
			write(g.rows[at : at+1000])
		}
	}
	var took time.Duration
	b.ResetTimer()
	cpu := cpuTime()
	for done := 0; done < b.N; {
		b.StopTimer()
		start := cpuTime()
		ws := g.batch(min(1000, b.N-done))
		took += cpuTime() - start
		b.StartTimer()
		write(ws)
		done += len(ws)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	b.ReportMetric(float64((cpuTime()-cpu-took).Microseconds())/float64(b.N), "cpu-us/write")
}

func cpuTime() time.Duration {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkWrite writes rows of about 1 KB with three index entries, a thousand in
// a call, each with all its images in the stream. Update leaves the entries where
// they are, Move moves all three, Insert makes rows.
func BenchmarkWrite(b *testing.B) {
	for _, mode := range []string{"Insert", "Update", "Move"} {
		b.Run(mode, func(b *testing.B) {
			s := benchStore(b)
			newBench(mode).run(b, func(ws []store.Write) {
				out, err := s.Write(context.Background(), ws)
				if err != nil {
					b.Fatal(err)
				}
				for i := range out {
					if out[i].Err != nil {
						b.Fatal(out[i].Err)
					}
				}
			})
		})
	}
}

// BenchmarkPlainPebble is the peer: the same rows and index entries in plain
// batches of the same size, with nothing read, checked or streamed.
func BenchmarkPlainPebble(b *testing.B) {
	for _, mode := range []string{"Insert", "Update", "Move"} {
		b.Run(mode, func(b *testing.B) {
			s := benchStore(b)
			newBench(mode).run(b, func(ws []store.Write) { plainWrite(b, s.db, s.tables["bench"], ws) })
		})
	}
}

// BenchmarkWriteOne writes one row a call from many goroutines.
func BenchmarkWriteOne(b *testing.B) {
	s := benchStore(b)
	g := newBench("Update")
	var n atomic.Int64
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := int(n.Add(1))
			ws := []store.Write{benchNext(g.rows[i*7919%benchRows], i, false)}
			if out, err := s.Write(context.Background(), ws); err != nil || out[0].Err != nil {
				b.Error(err, out[0].Err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

// BenchmarkGet reads rows that are there and rows that are not, a hundred a call.
func BenchmarkGet(b *testing.B) {
	s := benchStore(b)
	g := newBench("Update")
	for at := 0; at < benchRows; at += 1000 {
		plainWrite(b, s.db, s.tables["bench"], g.rows[at:at+1000])
	}
	for _, mode := range []string{"Present", "Missing"} {
		b.Run(mode, func(b *testing.B) {
			refs := make([]store.Ref, 100)
			for done := 0; done < b.N; done += len(refs) {
				for i := range refs {
					refs[i] = g.rows[g.rng.IntN(benchRows)].Ref
					if mode == "Missing" {
						refs[i].Key.Sort = value.OfString("NONE")
					}
				}
				if _, err := s.Get(context.Background(), refs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRead reads a stream of records with both images, a thousand a page.
func BenchmarkRead(b *testing.B) {
	s := benchStore(b)
	g := newBench("Update")
	for range 60 {
		do(b, s, g.batch(1000)...)
	}
	do(b, s, g.batch(1000)...)
	b.ResetTimer()
	read := 0
	for read < b.N {
		for _, sh := range s.tables["bench"].meta.Shards {
			rs, err := drain(context.Background(), s, "bench", shardName(sh.ID), events.Position{}, 1000)
			if err != nil {
				b.Fatal(err)
			}
			read += len(rs)
		}
	}
	b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkQuery reads pages of fifty rows from an index.
func BenchmarkQuery(b *testing.B) {
	s := benchStore(b)
	g := newBench("Update")
	for at := 0; at < benchRows; at += 1000 {
		do(b, s, g.rows[at:at+1000]...)
	}
	b.ResetTimer()
	for i := range b.N {
		q := store.Query{Table: "bench", Index: "GSI1", Partition: value.OfString(fmt.Sprintf("ALBUM_BY#%d", i%97)), Limit: 50}
		if p, err := s.Query(context.Background(), q); err != nil || len(p.Rows) != 50 {
			b.Fatal(len(p.Rows), err)
		}
	}
}

func plainWrite(b *testing.B, db *pebble.DB, tab *table, ws []store.Write) {
	batch := db.NewBatch()
	defer batch.Close()
	var key, row []byte
	for i := range ws {
		key = appendRowKey(key[:0], tab, ws[i].Key)
		row = value.AppendItem(row[:0], ws[i].Put)
		_ = batch.Set(key, row, nil)
		for _, ix := range tab.indexes {
			entry, ok, err := ix.entry(tab.keyValues(nil, ws[i].Put))
			if !ok || err != nil {
				b.Fatal("no entry")
			}
			key = appendEntryKey(key[:0], ix, entry, ws[i].Key)
			_ = batch.Set(key, nil, nil)
		}
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSweep deletes expired rows of four tables, 1,000 at a time, as run does. One
// operation is one row.
func BenchmarkSweep(b *testing.B) {
	var tables []store.Table
	for i := range 4 {
		tables = append(tables, store.Table{Name: fmt.Sprint("t", i), Key: store.KeySchema{Partition: store.KeyAttr{Name: "PK", Type: value.String}}, TTL: "ttl", Stream: true})
	}
	s, err := Open(b.TempDir(), tables, Options{})
	if err != nil {
		b.Fatal(err)
	}
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
