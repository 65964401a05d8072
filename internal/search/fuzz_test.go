package search

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzWords: cutting a cut word gives the word itself; the fast path for ASCII agrees
// with the general one; and changes such as space around the text make no difference.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"The quick, brown fox!", "Café Ünïcödé", "ΣΊΣΥΦΟΣ", "東京 2020 らーめん", "हिन्दी", "bad\xffbytes\xc3", "co\u00adoperate join\u200der", strings.Repeat("a", 300), "İstanbul", "1️⃣ ½ Ⅷ", "\u0345"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := Words(text)
		for _, w := range words {
			if w == "" || len(w) > maxWord+utf8.UTFMax || !utf8.ValidString(w) {
				t.Fatalf("%q has the word %q", text, w)
			}
			if again := Words(w); len(again) != 1 || again[0] != w {
				t.Fatalf("the word %q of %q is cut into %q", w, text, again)
			}
		}
		if again := Words(strings.Join(words, " ")); !slices.Equal(again, words) {
			t.Fatalf("%q: %q, again %q", text, words, again)
		}
		if around := Words(" \t" + text + "\n"); !slices.Equal(around, words) {
			t.Fatalf("%q: %q, with space around it %q", text, words, around)
		}
		if !isASCII(text) {
			return
		}
		if slow := cut(text); !slices.Equal(slow, words) {
			t.Fatalf("%q: %q, and %q the slow way", text, words, slow)
		}
		if loud := Words(strings.ToUpper(text)); !slices.Equal(loud, words) {
			t.Fatalf("%q: %q, in capitals %q", text, words, loud)
		}
	})
}
