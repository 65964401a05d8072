package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/mapping"

	"weir/internal/search"
	"weir/internal/system"
)

// benchSearch compares what search adds to a replay with what Bleve's own batches of the
// same documents take.
//
// A replay is timed with search and without, the one right after the other, from the
// first byte until everything has caught up. The difference, which is reading the
// streams once more, making documents of them and indexing these beside all else, is
// held against Bleve's time for as many documents: those that the replay gave its
// index, the newest of each where a row changed several times while they were gathered.
//
// Bleve gets each as a document with the same fields (words, filters, a sort with doc
// values, a stored stamp), cut by its own unicode analyzer, both indexes at a time,
// each batch on disk before the next, in batches of that size with which it is
// fastest. It looks up no stamps and keeps no tombstones, and has the machine for
// itself.
//
// The other lines are the rate while weir's index works, whatever goes on beside it;
// the whole replay, in which records without documents, most of them, are a part; and
// weir's index alone, given the same documents.
func (b *bench) benchSearch() error {
	rec, err := b.openRecording(shortOrFull(b, 30_000, 100_000))
	if err != nil {
		return err
	}
	var with, adds, alone, peer []cost
	var indexing []float64
	n, size := 0, 0
	for i := range shortOrFull(b, 3, 5) {
		s, w, err := b.replayPair(rec, i%2 == 0)
		if err != nil {
			return err
		}
		// Another replay, since one beside a heap of kept documents is slower.
		all, err := b.replaySearching(rec, true)
		if err != nil {
			return err
		}
		if i == 0 {
			n = all.documents
			b.printProgress("%d documents are indexed, of %d records", n, rec.records)
			if size, err = b.bestBatch(all.changes, n); err != nil {
				return err
			}
		}
		a, err := b.indexAlone(all.changes)
		if err != nil {
			return err
		}
		p, err := b.indexWithBleve(all.changes, size)
		if err != nil {
			return err
		}
		with, alone, peer = append(with, s.cost), append(alone, a), append(peer, p)
		adds = append(adds, cost{s.cost.wall - w.wall, s.cost.cpu - w.cpu})
		indexing = append(indexing, float64(s.documents)/s.busy.Seconds())
		b.printProgress("round %d: replay with search %.2f s (processors %.2f s, indexing %.2f s), without %.2f s (%.2f s), index alone %.2f s (%.2f s), bleve %.2f s (%.2f s)", i+1,
			s.cost.wall.Seconds(), s.cost.cpu.Seconds(), s.busy.Seconds(), w.wall.Seconds(), w.cpu.Seconds(),
			a.wall.Seconds(), a.cpu.Seconds(), p.wall.Seconds(), p.cpu.Seconds())
	}
	added := medianCost(adds)
	text := func(cs ...cost) string {
		return fmt.Sprintf("%.0f docs/s, %.0f cpu µs each", medianRate(n, cs), cpuEach(n, cs))
	}
	bleve := text(peer...)
	b.table.add(line{what: fmt.Sprintf("what search adds to a replay, against Bleve's batches of %d", size),
		figure: text(added), peer: bleve, ratio: ratioText(medianRate(n, []cost{added})/medianRate(n, peer), "%")})
	b.table.add(line{what: "  while the index works", figure: fmt.Sprintf("%.0f docs/s", median(indexing)), peer: bleve, ratio: ratioText(median(indexing)/medianRate(n, peer), "%")})
	b.table.add(line{what: "  the whole replay with search", ratio: ratioText(medianRate(n, with)/medianRate(n, peer), "%"),
		figure: fmt.Sprintf("%.0f docs/s, %.0f records/s", medianRate(n, with), medianRate(rec.records, with)), peer: bleve})
	b.table.add(line{what: "  the index alone", figure: text(alone...), peer: bleve, ratio: ratioText(medianRate(n, alone)/medianRate(n, peer), "%")})
	return nil
}

// replayPair replays with search and without, in this order or in the other.
func (b *bench) replayPair(rec recording, first bool) (s searched, w cost, err error) {
	replays := []func() error{
		func() (err error) { s, err = b.replaySearching(rec, false); return },
		func() (err error) { w, err = b.replayOnce(rec, false); return },
	}
	if !first {
		slices.Reverse(replays)
	}
	for _, replay := range replays {
		if err := replay(); err != nil {
			return s, w, err
		}
	}
	return s, w, nil
}

// bestBatch is the size of batches with which Bleve indexes the documents fastest.
func (b *bench) bestBatch(changes map[string][]search.Document, n int) (best int, err error) {
	most := 0.0
	for _, size := range []int{500, 1000, 4000, 16000} {
		c, err := b.indexWithBleve(changes, size)
		if err != nil {
			return 0, err
		}
		b.printProgress("bleve, batches of %d: %.0f docs/s", size, medianRate(n, []cost{c}))
		if r := medianRate(n, []cost{c}); r > most {
			best, most = size, r
		}
	}
	return best, nil
}

// searched has the figures of a replay with search.
type searched struct {
	cost      cost
	busy      time.Duration // of the index
	documents int           // changes of documents
	changes   map[string][]search.Document
}

// replaySearching replays with search; with keep it returns the changes of each
// index's documents.
func (b *bench) replaySearching(rec recording, keep bool) (s searched, err error) {
	r, err := b.openSystem(rec.model, system.Options{})
	if err != nil {
		return s, err
	}
	defer r.removeSystem()
	docs := &documents{Index: r.Index, keep: keep}
	r.part.Runner.Index = docs
	s.cost, err = measureCost(func() error { return r.replayRecording(b.ctx, rec) })
	s.busy, s.documents, s.changes = docs.busy, docs.n, map[string][]search.Document{}
	for _, some := range docs.kept {
		for _, d := range some {
			s.changes[d.Index] = append(s.changes[d.Index], d)
		}
	}
	return s, err
}

// eachBatch calls f with batches of the changes, for all indexes at a time.
func eachBatch(changes map[string][]search.Document, size int, f func(index string, docs []search.Document) error) error {
	var wg sync.WaitGroup
	errs := make(chan error, len(changes))
	for name, docs := range changes {
		wg.Go(func() {
			for len(docs) > 0 {
				n := min(size, len(docs))
				if err := f(name, docs[:n]); err != nil {
					errs <- err
					return
				}
				docs = docs[n:]
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// aloneBatch is as many documents as a follower that catches up applies at a time.
const aloneBatch = 8192

// indexAlone gives weir's index the changes.
func (b *bench) indexAlone(changes map[string][]search.Document) (c cost, err error) {
	r, err := b.openSystem("gallery", system.Options{})
	if err != nil {
		return c, err
	}
	defer r.removeSystem()
	return measureCost(func() error {
		return eachBatch(changes, aloneBatch, func(_ string, docs []search.Document) error {
			results, err := r.Index.Apply(b.ctx, docs)
			return errors.Join(append(results, err)...)
		})
	})
}

// indexWithBleve gives Bleve the changes in batches.
func (b *bench) indexWithBleve(changes map[string][]search.Document, size int) (c cost, err error) {
	dir, err := os.MkdirTemp(b.dir, "bleve-")
	if err != nil {
		return c, err
	}
	defer os.RemoveAll(dir)
	m, err := documentMapping()
	if err != nil {
		return c, err
	}
	indexes := map[string]bleve.Index{}
	for name := range changes {
		if indexes[name], err = bleve.New(filepath.Join(dir, name), m); err != nil {
			return c, err
		}
		defer indexes[name].Close()
	}
	return measureCost(func() error {
		return eachBatch(changes, size, func(name string, docs []search.Document) error {
			if err := b.ctx.Err(); err != nil {
				return err
			}
			return bleveBatch(indexes[name], docs)
		})
	})
}

func bleveBatch(ix bleve.Index, docs []search.Document) error {
	batch := ix.NewBatch()
	for i := range docs {
		d := &docs[i]
		if d.Deleted {
			batch.Delete(d.ID)
			continue
		}
		err := batch.Index(d.ID, map[string]any{
			"words": d.Text, "stamp": d.Position.String(),
			"createdBy": d.Values["createdBy"].Text(), "createdAt": d.Values["createdAt"].Text(),
		})
		if err != nil {
			return err
		}
	}
	return ix.Batch(batch)
}

// documentMapping says of the gallery's documents to Bleve what weir does with them.
func documentMapping() (mapping.IndexMapping, error) {
	m := bleve.NewIndexMapping()
	err := m.AddCustomAnalyzer("words", map[string]any{"type": custom.Name, "tokenizer": unicode.Name, "token_filters": []string{lowercase.Name}})
	field := func(change func(*mapping.FieldMapping)) *mapping.FieldMapping {
		f := bleve.NewTextFieldMapping()
		f.Store, f.IncludeTermVectors, f.IncludeInAll, f.DocValues = false, false, false, false
		f.Analyzer, f.SkipFreqNorm = keyword.Name, true
		change(f)
		return f
	}
	doc := bleve.NewDocumentStaticMapping()
	doc.AddFieldMappingsAt("words", field(func(f *mapping.FieldMapping) { f.Analyzer, f.SkipFreqNorm = "words", false }))
	doc.AddFieldMappingsAt("stamp", field(func(f *mapping.FieldMapping) { f.Index, f.Store = false, true }))
	doc.AddFieldMappingsAt("createdBy", field(func(*mapping.FieldMapping) {}))
	doc.AddFieldMappingsAt("createdAt", field(func(f *mapping.FieldMapping) { f.DocValues = true }))
	m.DefaultMapping = doc
	return m, err
}
