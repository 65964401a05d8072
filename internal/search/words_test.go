package search

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{" \t\n", nil},
		{"...", nil},
		{"The quick, brown fox!", []string{"the", "quick", "brown", "fox"}},
		{"snake_case dotted.name a-b a/b a'b", []string{"snake", "case", "dotted", "name", "a", "b", "a", "b", "a", "b"}},
		{"v2.0 1,000 3rd", []string{"v2", "0", "1", "000", "3rd"}},
		// Accents, composed and decomposed, and what people take for them.
		{"Café Ünïcödé", []string{"cafe", "unicode"}},
		{"Cafe\u0301", []string{"cafe"}},
		{"a\u0301\u0327\u0302", []string{"a"}},
		{"\u0301a", []string{"a"}},
		{"Søren Łódź Đorđe", []string{"soren", "lodz", "dorde"}},
		{"Ёлка й", []string{"елка", "и"}},
		{"Việt", []string{"viet"}},
		{"شَمْس", []string{"شمس"}},
		{"שָׁלוֹם", []string{"שלום"}},
		// Case.
		{"Straße STRASSE STRAẞE", []string{"strasse", "strasse", "strasse"}},
		{"İstanbul ISTANBUL ıstanbul", []string{"istanbul", "istanbul", "istanbul"}},
		{"ΣΊΣΥΦΟΣ σίσυφος", []string{"σισυφος"[:len("σισυφο")] + "σ", "σισυφοσ"}},
		{"ᾳ ΑΙ", []string{"α", "αι"}},
		{"ꭰ Ꭰ", []string{"ꭰ", "ꭰ"}},
		{"Ǆ ǅ ǆ", []string{"dz", "dz", "dz"}},
		// Compatibility forms.
		{"ＦＵＬＬ ﬁlm x² ½ Ⅷ ™", []string{"full", "film", "x2", "1", "2", "viii", "tm"}},
		// Scripts without spaces, and with signs that are not accents.
		{"東京 2020", []string{"東", "京", "2020"}},
		{"abc東京def", []string{"abc", "東", "京", "def"}},
		{"さくら", []string{"さ", "く", "ら"}},
		{"がか", []string{"か\u3099", "か"}},
		{"らーめん ー", []string{"らー", "め", "ん"}},
		{"ラーメン ﾗｰﾒﾝ", []string{"ラーメン", "ラーメン"}},
		{"한글", []string{"\u1112\u1161\u11ab\u1100\u1173\u11af"}},
		{"हिन्दी की", []string{"हिन्दी", "की"}},
		{"ภาษาไทย", []string{"ภาษาไทย"}},
		// Characters that are ignored, and characters that separate words.
		{"co\u00adoperate zero\u200bwidth join\u200der", []string{"cooperate", "zero", "width", "joiner"}},
		{"🎬 movie👍🏽night 👨‍👩‍👧", []string{"movie", "night"}},
		{"1️⃣ a\ufe0f", []string{"1", "a"}},
		{"a\u20dd", []string{"a"}},
		{"bad\xffbytes\xc3", []string{"bad", "bytes"}},
		{"a\x00b", []string{"a", "b"}},
	} {
		if got := Words(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q:\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

func TestLongWords(t *testing.T) {
	for _, letter := range []string{"a", "A", "ж", "漢", "😀", "e\u0301", "ﷺ"} {
		text := strings.Repeat(letter, 5000)
		for _, w := range Words(text) {
			if len(w) > maxWord+utf8.UTFMax {
				t.Errorf("%s: a word of %d bytes", letter, len(w))
			}
		}
	}
	long := strings.Repeat("abcdefgh", 100)
	if a, b := Words(long), Words(long+"x é"); a[0] != b[0] || len(a[0]) != maxWord {
		t.Errorf("%q and %q", a, b)
	}
}

// TestEveryRune: for every letter, cutting a word gives the word itself, and case makes
// no difference.
func TestEveryRune(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		words := Words(string(r))
		for _, w := range words {
			if again := Words(w); len(again) != 1 || again[0] != w {
				t.Errorf("%U is %q, and that is %q", r, w, again)
			}
		}
		upper, lower := Words(string(unicode.ToUpper(r))), Words(string(unicode.ToLower(r)))
		if r != '\u0345' && (!slices.Equal(upper, words) || !slices.Equal(lower, words)) { // a mark whose capital is a letter
			t.Errorf("%U is %q, its capital %q, its small letter %q", r, words, upper, lower)
		}
	}
}

// TestTwoWays: ASCII text is cut like all other text, and every text is cut word by
// word.
func TestTwoWays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ascii := rapid.StringOfN(rapid.RuneFrom(nil, unicode.ASCII_Hex_Digit, unicode.Latin, unicode.Pc, unicode.Zs), 0, 60, 400).Draw(rt, "text")
		ascii = strings.Map(func(r rune) rune {
			if r >= utf8.RuneSelf {
				return ' '
			}
			return r
		}, ascii)
		fast, slow := Words(ascii), cut(ascii)
		if !slices.Equal(fast, slow) {
			rt.Fatalf("%q: %q and %q", ascii, fast, slow)
		}
		text := rapid.String().Draw(rt, "any text")
		words := Words(text)
		if again := Words(strings.Join(words, " ")); !slices.Equal(again, words) {
			rt.Fatalf("%q: %q, again %q", text, words, again)
		}
	})
}

func TestMayForgive(t *testing.T) {
	for word, want := range map[string]bool{
		"": false, "abc": false, "abcd": true, "abc4": false, "2049": false, "caféé": true, "жжж": false, "жжжж": true, "abcd²": false, "東": false, "की": false,
	} {
		if got := MayForgive(word); got != want {
			t.Errorf("%q: %v", word, got)
		}
	}
}
