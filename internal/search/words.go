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
	return cut(norm.NFKD.String(text))
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
	var words []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			words = append(words, b.String())
			b.Reset()
		}
	}
	alone := false // the word begun is one of a single character
	for i, r := range text {
		switch {
		case r < utf8.RuneSelf && isWordByte(byte(r)), unicode.IsLetter(r) && r != 'ー', unicode.IsNumber(r):
			single := unicode.In(r, unicode.Han, unicode.Hiragana)
			if single || alone {
				flush()
			}
			if alone = single; b.Len() < maxWord {
				writeFolded(&b, r)
			}
		case unicode.Is(unicode.M, r) || r == 'ー':
			if b.Len() > 0 && b.Len() < maxWord && !isAccent(r, text[i:]) {
				b.WriteRune(r)
			}
		case unicode.Is(unicode.Cf, r) && r != '\u200b': // soft hyphens, joiners: not there
		default:
			flush()
		}
	}
	flush()
	return words
}

// isAccent tells the marks that are not part of a word: what stands above, below
// and through a letter, the points of Hebrew and Arabic, variants and enclosures.
// The vowel signs of Indic scripts, the voicing of kana and the like stay: without
// them it would be another word. The rune is the first of at.
func isAccent(r rune, at string) bool {
	c := norm.NFKD.PropertiesString(at).CCC()
	return c >= 200 || 10 <= c && c <= 36 || c == 1 ||
		unicode.Is(unicode.Me, r) || unicode.Is(unicode.Variation_Selector, r)
}

// writeFolded writes a letter as it is compared: without case, and without the
// strokes that people take for accents though Unicode does not decompose them.
func writeFolded(b *strings.Builder, r rune) {
	if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
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
