package search

import (
	"fmt"
)

// Score is how well a document matches. It is the same in both drivers, except for
// rounding. It depends only on the query and the document: not on other documents in
// the index, and not on the segment or shard that has the document. So an answer in the
// order of scores can be continued after other documents were written: a document that
// matches throughout keeps its place and appears once. (If the document itself changes
// meanwhile, it moves to its new place.)
//
// A whole word of the document counts more than the beginning of one, and that counts
// more than a word with a typo, whatever the rest is. Between documents that are equal
// in this, the better one is that of whose text the words are a larger share.
type Score struct {
	class  int
	share  float64
	number int
}

// How much a matching word adds to the score.
const (
	WorthWhole     = 2
	WorthBeginning = 1
	WorthTypo      = 0
)

// Whole counts a word that the document has. share is the square root of the word's
// share of all words of the document.
func (s *Score) Whole(share float64) {
	s.class += WorthWhole
	s.share += min(share, 1)
	s.number++
}

// Beginning counts a word with which one of the document's words begins.
func (s *Score) Beginning() { s.class, s.number = s.class+WorthBeginning, s.number+1 }

// Typo counts a word that the document has with a typo.
func (s *Score) Typo() { s.class, s.number = s.class+WorthTypo, s.number+1 }

// Value is the score.
func (s *Score) Value() float64 { return float64(s.class) + s.share/float64(s.number+1) }

// MaxTerms is how many of an index's words one query may look at for beginnings and
// typos. It limits the cost of a query.
const MaxTerms = 1 << 20

// ErrBroad is an ErrQuery: more of the index's words begin with the word than one query
// may look at.
var ErrBroad = fmt.Errorf("%w: it is too broad", ErrQuery)

// TooBroad is an ErrBroad that names the word.
func TooBroad(word string) error {
	return fmt.Errorf("%w: more than %d words begin with %.40q; type more of the word", ErrBroad, MaxTerms, word)
}
