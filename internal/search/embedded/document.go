package embedded

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/blevesearch/bleve/v2/document"
	index "github.com/blevesearch/bleve_index_api"

	"weir/internal/events"
	"weir/internal/search"
	"weir/internal/value"
)

const (
	fieldStamp  = "p"
	fieldWords  = "t"
	fieldGone   = "x"
	prefilter   = "f:"
	presort     = "o:"
	termGone    = "x"
	termGoneAt  = "h"
	stampLength = len(events.Position{}) + 8
)

// stamp says which change of a document an index holds: its position, and a mark
// of the content, by which the same change is known when it comes again.
type stamp struct {
	position events.Position
	mark     uint64
}

func (s stamp) bytes() []byte {
	b := make([]byte, 0, stampLength)
	return binary.BigEndian.AppendUint64(append(b, s.position[:]...), s.mark)
}

func parseStamp(b []byte) (stamp, bool) {
	if len(b) != stampLength {
		return stamp{}, false
	}
	var s stamp
	n := copy(s.position[:], b)
	s.mark = binary.BigEndian.Uint64(b[n:])
	return s, true
}

// stampOf is the stamp of a change in an index of this schema.
func stampOf(s *search.Schema, d *search.Document) stamp {
	m := newMark()
	if d.Deleted {
		m.add("deleted")
		return stamp{d.Position, m.sum}
	}
	for _, t := range d.Text {
		m.add(t)
	}
	for _, fields := range [][]string{s.Filters, s.Sorts} {
		m.add("")
		for _, f := range fields {
			m.addValue(d.Values[f])
		}
	}
	return stamp{d.Position, m.sum}
}

// mark is FNV-1a over strings with their lengths.
type mark struct{ sum uint64 }

func newMark() mark { return mark{14695981039346656037} }

func (m *mark) add(s string) {
	h := (m.sum ^ uint64(len(s))) * 1099511628211
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	m.sum = h
}

func (m *mark) addValue(v value.Value) {
	m.add(v.Kind().Descriptor())
	m.add(v.Text())
	if v.Bool() {
		m.add("true")
	}
	for _, e := range v.Elements() {
		m.addValue(e.Value)
	}
}

// live is a document as scorch takes it.
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

// tombstone is what a deleted document leaves.
func tombstone(id string, st stamp, now time.Time) index.Document {
	doc := document.NewDocument(id)
	doc.AddField(storedStamp(st))
	doc.AddField(&field{
		name: fieldGone, options: index.IndexField | index.SkipFreqNorm,
		terms: []string{termGone, goneAt(now)},
	})
	return doc
}

func goneAt(t time.Time) string { return fmt.Sprintf("%s%010d", termGoneAt, t.Unix()/3600) }

func storedStamp(st stamp) document.Field {
	return document.NewTextFieldCustom(fieldStamp, nil, st.bytes(), index.StoreField, nil)
}

// field is a field whose terms are ready, or cut from text by search.Words when
// scorch analyzes it.
type field struct {
	name    string
	options index.FieldIndexingOptions
	text    []string
	terms   []string
	freqs   index.TokenFrequencies
	length  int
}

// Analyze counts the terms. Scorch calls it once, from one of its analysts.
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
