package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord is the longest word kept whole, in bytes; what is longer is cut there,
// in documents and in queries alike.
const maxWord = 128

// Words cuts text into words: maximal runs of letters and digits, without case
// and without accents, compatibility forms folded (NFKD). Han and Hiragana, which
// are written without spaces, are words of one character each. Cutting a word
// gives the word itself. Both drivers index these words and nothing else.
//
// The words may share memory with text.
func Words(text string) []string {
	if isASCII(text) {
		return cutASCII(strings.ToLower(text))
	}
	// Behind bytes that are not UTF-8 some characters would stay as they are.
	return cut(norm.NFKD.String(strings.ToValidUTF8(text, " ")))
}

// MayForgive reports whether a typo is forgiven in the word: four letters or more
// and no digit.
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

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cutASCII is cut for text in small letters that is ASCII throughout.
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

// cut is Words for text that NFKD has decomposed.
func cut(text string) []string {
	var b strings.Builder // all words, one behind the other
	b.Grow(len(text))
	var ends []int
	start, alone := 0, false // of the word begun; it is one of a single character
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

// class is what a character is to a word.
type class uint8

const (
	divider class = iota // between words
	letter               // or a digit
	single               // a letter that is a word by itself
	sign                 // goes with the letter before it
	nothing              // not there at all
)

// classOf classifies a character, the first of at. Soft hyphens and joiners are not
// there, nor are accents: the marks above, below and through a letter, the points
// of Hebrew and Arabic, variants and enclosures. The vowel signs of Indic scripts,
// the voicing of kana and the like are signs: without them it would be another word.
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

// writeFolded writes a letter as it is compared: without case, and without the
// strokes that people take for accents though Unicode does not decompose them.
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
