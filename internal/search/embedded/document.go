package embedded

import (
	"fmt"
	"time"

	"github.com/blevesearch/bleve/v2/document"
	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/search"
)

const (
	// The names of fields, beginnings of names, and terms, as the package comment lists them. They are stored: a change
	// needs another Format.
	fieldStamp = "p"
	fieldWords = "t"
	fieldGone  = "x"
	prefilter  = "f:"
	presort    = "o:"
	termGone   = "x"
	termGoneAt = "h"
)

// live is a document in scorch's form.
// A filter without a value has no term, so a search that fixes it does not find the document. One
// sort key for each sort; a document without it sorts behind all others.
func live(s *search.Schema, d *search.Document, st stamp) index.Document {
	doc := document.NewDocument(d.ID)
	doc.Fields = make([]document.Field, 0, 3+len(s.Filters)+len(s.Sorts))
	doc.AddField(storedStamp(st))
	doc.AddField(&field{name: fieldWords, options: index.IndexField, text: d.Text})
	for _, f := range s.Filters {
		if terms := search.Terms(d.Values[f]); len(terms) > 0 {
			doc.AddField(&field{name: prefilter + f, options: index.IndexField | index.SkipFreqNorm, terms: terms})
		}
	}
	for _, f := range s.Sorts {
		if key, ok := search.SortKey(d.Values[f]); ok {
			options := index.IndexField | index.SkipFreqNorm | index.DocValues
			doc.AddField(&field{name: presort + f, options: options, terms: []string{key}})
		}
	}
	return doc
}

// tombstone is the entry of a deleted document in the index.
func tombstone(id string, st stamp, now time.Time) index.Document {
	doc := document.NewDocument(id)
	doc.AddField(storedStamp(st))
	doc.AddField(&field{
		name: fieldGone, options: index.IndexField | index.SkipFreqNorm,
		terms: []string{termGone, goneAt(now)},
	})
	return doc
}

// goneAt is the term of an hour. Terms sort by time, so a range of them finds tombstones that are old enough to go.
func goneAt(t time.Time) string { return fmt.Sprintf("%s%010d", termGoneAt, t.Unix()/3600) }

// storedStamp is the field with a document's stamp, which is stored and not searched.
func storedStamp(st stamp) document.Field {
	return document.NewTextFieldCustom(fieldStamp, nil, st.bytes(), index.StoreField, nil)
}

// field is a field with its terms, or with text that search.Words cuts when scorch
// analyzes it.
type field struct {
	name    string
	options index.FieldIndexingOptions
	text    []string
	terms   []string
	freqs   index.TokenFrequencies
	length  int
}

// Analyze counts the terms. Scorch calls it once, from one of its analysis goroutines.
func (f *field) Analyze() {
	for _, t := range f.text {
		f.terms = append(f.terms, search.Words(t)...)
	}
	f.length = len(f.terms)
	f.freqs = make(index.TokenFrequencies, len(f.terms))
	slab := make([]index.TokenFreq, len(f.terms))
	for i, t := range f.terms {
		tf := f.freqs[t]
		if tf == nil {
			tf = &slab[i]
			tf.Term = []byte(t)
			f.freqs[t] = tf
		}
		if !f.options.SkipFreqNorm() {
			tf.SetFrequency(tf.Frequency() + 1)
		}
	}
	f.text, f.terms = nil, nil
}

func (f *field) Name() string                                     { return f.name }
func (f *field) Value() []byte                                    { return nil }
func (f *field) ArrayPositions() []uint64                         { return nil }
func (f *field) EncodedFieldType() byte                           { return 't' }
func (f *field) Options() index.FieldIndexingOptions              { return f.options }
func (f *field) AnalyzedLength() int                              { return f.length }
func (f *field) AnalyzedTokenFrequencies() index.TokenFrequencies { return f.freqs }
func (f *field) NumPlainTextBytes() uint64                        { return 0 }
func (f *field) Size() int                                        { return 64 * (1 + f.length) }
