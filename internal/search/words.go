package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord is the length in bytes at which longer words are cut, in documents and in
// queries.
const maxWord = 128

// Words cuts text into words: maximal runs of letters and digits, without case and
// without accents, with compatibility forms folded (NFKD). Han and Hiragana are written
// without spaces, so each of their characters is a word. Words of a word is the word
// itself. Both drivers index exactly these words.
//
// The words may share memory with text.
func Words(text string) []string {
	if isASCII(text) {
		return cutASCII(strings.ToLower(text))
	}
	// After bytes that are not UTF-8, norm would leave some characters as they are.
	return cut(norm.NFKD.String(strings.ToValidUTF8(text, " ")))
}

// MayForgive reports whether a typo in the word is forgiven: it has four letters or
// more and no digit.
func MayForgive(word string) bool {
	n := 0
	for _, r := range word {
		if unicode.IsNumber(r) {
			return false
		}
		if unicode.IsLetter(r) {
			n++
		}
	}
	return n >= 4
}

// isASCII reports whether a text has one byte for each character, so that cutASCII may cut it.
func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cutASCII is cut for lower-case ASCII text.
func cutASCII(text string) []string {
	if text == "" {
		return nil
	}
	words := make([]string, 0, len(text)/6+1)
	for i := 0; i < len(text); i++ {
		start := i
		for i < len(text) && isWordByte(text[i]) {
			i++
		}
		if i > start {
			words = append(words, text[start:min(i, start+maxWord)])
		}
	}
	return words
}

func isWordByte(c byte) bool { return c-'a' < 26 || c-'0' < 10 }

// cut is Words for text that NFKD has decomposed. Signs that belong to the letter before stay with it.
// A word that is too long ends at maxWord bytes: the rest is dropped, in queries as in documents.
func cut(text string) []string {
	var b strings.Builder // all words, one after the other
	b.Grow(len(text))
	var ends []int
	start, alone := 0, false // of the word begun; alone: it is a single character
	flush := func() {
		if b.Len() > start {
			start = b.Len()
			ends = append(ends, start)
		}
	}
	for i, r := range text {
		switch class := classOf(r, text[i:]); class {
		case letter, single:
			if class == single || alone {
				flush()
			}
			if alone = class == single; b.Len()-start < maxWord {
				writeFolded(&b, r)
			}
		case sign:
			if n := b.Len() - start; n > 0 && n < maxWord {
				b.WriteRune(r)
			}
		case divider:
			flush()
		}
	}
	flush()
	words := make([]string, len(ends))
	all := b.String()
	start = 0
	for i, end := range ends {
		words[i], start = all[start:end], end
	}
	return words
}

// class is the role of a character in a word.
type class uint8

const (
	divider class = iota // between words
	letter               // or a digit
	single               // a letter that is a word by itself
	sign                 // belongs to the letter before it
	nothing              // ignored
)

// classOf classifies r, the first character of at. It ignores soft hyphens, joiners and
// accents: the marks above, below and through a letter, the points of Hebrew and
// Arabic, variants and enclosures. The vowel signs of Indic scripts, the voicing of
// kana and the like are signs: without them the word would be another word.
func classOf(r rune, at string) class {
	switch {
	case r < utf8.RuneSelf:
		if isWordByte(byte(r)) || 'A' <= r && r <= 'Z' {
			return letter
		}
		return divider
	case r == 'ー':
		return sign
	case unicode.IsLetter(r):
		if unicode.In(r, unicode.Han, unicode.Hiragana) {
			return single
		}
		return letter
	case unicode.Is(unicode.M, r):
		c := norm.NFKD.PropertiesString(at).CCC()
		if c >= 200 || 10 <= c && c <= 36 || c == 1 || unicode.Is(unicode.Me, r) || unicode.Is(unicode.Variation_Selector, r) {
			return nothing
		}
		return sign
	case unicode.IsNumber(r):
		return letter
	case unicode.Is(unicode.Cf, r) && r != '\u200b': // a space without width divides
		return nothing
	}
	return divider
}

// writeFolded writes a letter in the form in which letters are compared: without case,
// and without strokes that people take for accents although Unicode does not decompose
// them.
func writeFolded(b *strings.Builder, r rune) {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r |= 0x20
		}
		b.WriteByte(byte(r))
		return
	}
	r = unicode.ToLower(unicode.ToUpper(r)) // both ways: ς and σ have one capital, ı and i too
	switch r {
	case 'ß':
		b.WriteString("ss")
	case 'đ':
		b.WriteByte('d')
	case 'ħ':
		b.WriteByte('h')
	case 'ł':
		b.WriteByte('l')
	case 'ø':
		b.WriteByte('o')
	case 'ŧ':
		b.WriteByte('t')
	default:
		b.WriteRune(r)
	}
}
