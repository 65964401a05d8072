package embedded

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"weir/internal/search"
)

// word is how the documents of one segment match a word. Ask for documents in ascending
// order only.
type word struct {
	whole  segment.PostingsIterator
	begins *roaring.Bitmap

	at    uint64 // of the posting read last
	share float64
	ended bool
	began bool
}

// scoreOf is the score of a document, see search.Score.
// It depends on the query and the document alone, so a cursor stays right when other documents
// change.
func scoreOf(words []*word, doc uint64) (float64, error) {
	var s search.Score
	for _, w := range words {
		whole, err := w.has(doc)
		switch {
		case err != nil:
			return 0, err
		case whole:
			s.Whole(w.share)
		case w.begins.Contains(uint32(doc)):
			s.Beginning()
		default:
			s.Typo()
		}
	}
	return s.Value(), nil
}

// has reports whether a document has the whole word; share is the one for
// search.Score.Whole.
func (w *word) has(doc uint64) (bool, error) {
	for !w.ended && (!w.began || w.at < doc) {
		p, err := w.whole.Advance(doc)
		if err != nil {
			return false, err
		}
		w.began = true
		if w.ended = p == nil; w.ended {
			break
		}
		w.at, w.share = p.Number(), math.Sqrt(float64(p.Frequency()))*p.Norm()
	}
	return !w.ended && w.at == doc, nil
}
