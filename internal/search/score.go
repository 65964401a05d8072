package search

import (
	"fmt"
)

// Score is how well a document matches, and the same in both drivers but for rounding. It
// depends on the query and the document alone: not on what else is in the index, nor on
// which segment or shard the document is in. So an answer that is best first can be gone on
// with after others were written: what matches throughout keeps its place, and comes once.
// (A document that is itself changed meanwhile goes to its new place.)
//
// A word that the document has whole is worth more than one that it has only as a
// beginning, and that more than one with a typo, whatever the rest is. Between documents that
// are equal in this, those are better of whose text the words are more.
type Score struct {
	class  int
	share  float64
	number int
}

// What a word is worth by how the document has it.
const (
	WorthWhole     = 2
	WorthBeginning = 1
	WorthTypo      = 0
)

// Whole counts a word that the document has: share is the square root of how much of the
// document's words it is.
func (s *Score) Whole(share float64) {
	s.class += WorthWhole
	s.share += min(share, 1)
	s.number++
}

// Beginning counts a word with which one of the document's begins.
func (s *Score) Beginning() { s.class, s.number = s.class+WorthBeginning, s.number+1 }

// Typo counts a word that the document has but for a typo.
func (s *Score) Typo() { s.class, s.number = s.class+WorthTypo, s.number+1 }

// Value is the score.
func (s *Score) Value() float64 { return float64(s.class) + s.share/float64(s.number+1) }

// MaxTerms is how many of an index's words one query may look at where it names
// beginnings or forgives typos. It bounds what a query costs.
const MaxTerms = 1 << 20

// ErrBroad is an ErrQuery: the word begins more of the index's words than one query may
// look at.
var ErrBroad = fmt.Errorf("%w: it is too broad", ErrQuery)

// TooBroad is an ErrBroad about a word.
func TooBroad(word string) error {
	return fmt.Errorf("%w: more than %d words begin with %.40q; type more of the word", ErrBroad, MaxTerms, word)
}
