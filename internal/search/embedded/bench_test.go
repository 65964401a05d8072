package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/mapping"
	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/events"
	"weir/internal/search"
	"weir/internal/value"
)

// The two benchmarks index the same documents in batches of the same size, one
// through Apply, one by Bleve's own batches with a mapping of the same fields.

const benchBatch = 500

var benchSchema = search.Schema{Name: "bench", Filters: []string{"userId", "public"}, Sorts: []string{"createdAt"}}

// vocabulary has words as in a catalog: few of them are in many documents.
var vocabulary = func() []string {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 30000)
	for i := range words {
		b := make([]byte, 3+r.IntN(8))
		for j := range b {
			b[j] = byte('a' + r.IntN(26))
		}
		words[i] = string(b)
	}
	return words
}()

func benchDocument(r *rand.Rand, zipf *rand.Zipf, n int) search.Document {
	sentence := func(words int) string {
		var b strings.Builder
		for i := range words {
			w := vocabulary[zipf.Uint64()]
			if i%4 == 0 {
				w = strings.ToUpper(w[:1]) + w[1:]
			}
			b.WriteString(w + " ")
		}
		return b.String()
	}
	return search.Document{
		Index: "bench", ID: fmt.Sprintf("ALBUM#%08x#METADATA", uint32(n)*2654435761), Position: events.PositionOf(uint64(n + 1)),
		Text: []string{sentence(3 + r.IntN(4)), sentence(8 + r.IntN(10))},
		Values: map[string]value.Value{
			"userId":    value.OfString(fmt.Sprintf("user-%d", r.IntN(2000))),
			"public":    value.OfBool(r.IntN(2) == 0),
			"createdAt": value.OfString(time.Unix(1700000000+int64(n)*7, 0).UTC().Format(time.RFC3339)),
		},
	}
}

type benchDocs struct {
	r    *rand.Rand
	zipf *rand.Zipf
	n    int
}

func newBenchDocs() *benchDocs {
	r := rand.New(rand.NewPCG(3, 4))
	return &benchDocs{r: r, zipf: rand.NewZipf(r, 1.1, 8, uint64(len(vocabulary)-1))}
}

// measure runs index over b.N batches and reports documents a second and the
// process's CPU time for one, which a busy machine distorts less.
func measure(b *testing.B, index func([]search.Document) error) {
	b.Helper()
	source := newBenchDocs()
	batches := make([][]search.Document, b.N)
	for i := range batches {
		batches[i] = source.batch()
	}
	b.ReportAllocs()
	before := cpuTime()
	b.ResetTimer()
	for _, docs := range batches {
		if err := index(docs); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	n := float64(b.N * benchBatch)
	b.ReportMetric(n/b.Elapsed().Seconds(), "docs/s")
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/n, "cpu-µs/doc")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (d *benchDocs) batch() []search.Document {
	out := make([]search.Document, benchBatch)
	for i := range out {
		out[i] = benchDocument(d.r, d.zipf, d.n)
		d.n++
	}
	return out
}

func BenchmarkApply(b *testing.B) {
	ix, err := Open(b.TempDir(), []search.Schema{benchSchema}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	measure(b, func(docs []search.Document) error {
		errs, err := ix.Apply(b.Context(), docs)
		return errors.Join(append(errs, err)...)
	})
}

func BenchmarkBleveBatch(b *testing.B) {
	ix, err := bleve.New(b.TempDir()+"/ix", bleveMapping(b))
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	measure(b, func(docs []search.Document) error {
		batch := ix.NewBatch()
		for _, d := range docs {
			err := batch.Index(d.ID, map[string]any{
				"text":      d.Text,
				"userId":    d.Values["userId"].Text(),
				"public":    fmt.Sprint(d.Values["public"].Bool()),
				"createdAt": d.Values["createdAt"].Text(),
			})
			if err != nil {
				return err
			}
		}
		return ix.Batch(batch)
	})
}

func bleveMapping(b *testing.B) mapping.IndexMapping {
	m := bleve.NewIndexMapping()
	err := m.AddCustomAnalyzer("words", map[string]any{
		"type": custom.Name, "tokenizer": unicode.Name, "token_filters": []string{lowercase.Name},
	})
	if err != nil {
		b.Fatal(err)
	}
	bare := func(f *mapping.FieldMapping) *mapping.FieldMapping {
		f.Store, f.IncludeTermVectors, f.IncludeInAll, f.DocValues = false, false, false, false
		return f
	}
	text := bare(bleve.NewTextFieldMapping())
	text.Analyzer = "words"
	doc := bleve.NewDocumentStaticMapping()
	doc.AddFieldMappingsAt("text", text)
	for _, name := range []string{"userId", "public", "createdAt"} {
		f := bare(bleve.NewTextFieldMapping())
		f.Analyzer = keyword.Name
		f.SkipFreqNorm = true
		f.DocValues = name == "createdAt"
		doc.AddFieldMappingsAt(name, f)
	}
	m.DefaultMapping = doc
	return m
}

// BenchmarkUnchecked is BenchmarkApply without the work for exactly-once: no stamps are
// read, and there are no tombstones and no grouping.
func BenchmarkUnchecked(b *testing.B) {
	ix, err := Open(b.TempDir(), []search.Schema{benchSchema}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	c := ix.corpora["bench"]
	measure(b, func(docs []search.Document) error {
		batch := index.NewBatch()
		for i := range docs {
			batch.Update(live(&c.schema, &docs[i], stamp{}))
		}
		return c.persist(batch)
	})
}
