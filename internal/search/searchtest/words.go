package searchtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/search"
)

// library has the documents that the tests of words search.
var library = map[string]string{
	"fox":       "The quick brown fox, jumping",
	"dogs":      "Quick lazy dogs; over_the-fence v2.0",
	"panther":   "Black Panther 1966",
	"cafe":      "Café Zürich — Straße",
	"odysseus":  "Ὀδυσσεύς ΣΊΣΥΦΟΣ",
	"istanbul":  "İstanbul ISPARTA",
	"moscow":    "Москва Ёлка",
	"tokyo":     "東京物語 トウキョウ",
	"seoul":     "서울 이야기",
	"delhi":     "दिल्ली",
	"fullwidth": "ＦＵＬＬ ½ x² ﬁlm",
	"emoji":     "🎬 movie👍🏽night",
	"numbers":   "blade runner 2049",
	"nothing":   "",
	"stop":      "to be or not to be",
}

func (b *bench) fillLibrary() {
	b.t.Helper()
	var docs []search.Document
	for id, text := range library {
		docs = append(docs, b.doc(id, text))
	}
	b.apply(docs...)
	b.settle()
}

func testWords(t *testing.T, b *bench) {
	b.fillLibrary()
	// Several text parts are searched as one text.
	b.apply(search.Document{Index: items, ID: "parts", Position: b.next(), Text: []string{"first part", "", "second piece"}})
	b.settle()
	for _, c := range []struct{ text, want string }{
		// All words, in any order, each whole.
		{"quick", "fox dogs"},
		{"quick fox", "fox"},
		{"fox quick", "fox"},
		{"fox dogs", ""},
		{"qui fox", ""},
		{"quick quick quick", "fox dogs"},
		{"first piece", "parts"},
		// The last one as a beginning too.
		{"qui", "fox dogs"},
		{"q", "fox dogs"},
		{"fox qui", "fox"},
		{"lazy do", "dogs"},
		{"lazy do ", "dogs"},
		{"lazy dogsx", ""},
		{"quick q", "fox dogs"},
		// Case and accents.
		{"QUICK Fox", "fox"},
		{"cafe zurich", "cafe"},
		{"CAFÉ", "cafe"},
		{"cafe\u0301", "cafe"},
		{"strasse", "cafe"},
		{"STRASSE", "cafe"},
		{"STRAẞE", "cafe"},
		{"οδυσσευς", "odysseus"},
		{"ΟΔΥΣΣΕΥΣ", "odysseus"},
		{"σισυφος", "odysseus"},
		{"istanbul", "istanbul"},
		{"İSTANBUL", "istanbul"},
		{"москва елка", "moscow"},
		{"МОСК", "moscow"},
		// Other scripts.
		{"東京", "tokyo"},
		{"物語", "tokyo"},
		{"語物", "tokyo"},
		{"東海", ""},
		{"トウ", "tokyo"},
		{"서", "seoul"},
		{"이야기 서울", "seoul"},
		{"दिल्ली", "delhi"},
		{"full film", "fullwidth"},
		{"x2", "fullwidth"},
		{"ﬁl", "fullwidth"},
		// Characters that are neither letters nor digits separate words.
		{"over the fence", "dogs"},
		{"over_the_fence", "dogs"},
		{"v2.0", "dogs"},
		{"v2", "dogs"},
		{"movie night", "emoji"},
		{"movienight", ""},
		{"2049", "numbers"},
		{"20", "numbers"},
		{"runner 2049 blade", "numbers"},
		{"1966 panther", "panther"},
		// There are no stop words.
		{"to be or not to be", "stop"},
		{"not the", ""},
		{"the", "fox dogs"},
	} {
		b.found(search.Query{Text: c.text}, strings.Fields(c.want)...)
	}
}

func testHostileText(t *testing.T, b *bench) {
	b.fillLibrary()
	all := []string{}
	for id := range library {
		all = append(all, id)
	}
	for _, text := range []string{"", " ", " \t\n"} {
		b.found(search.Query{Text: text}, all...)
	}
	// Text without any word matches nothing.
	for _, text := range []string{"+", "-", "*", "?", "~", ":", `"`, `""`, "()", "\\", "/", "&& ||", "!", "[ ]", "{}", "^", "🎬", "\x00", "\xff", "\u0301", "…"} {
		b.found(search.Query{Text: text})
	}
	// Signs that are operators elsewhere have no meaning here.
	for _, text := range []string{
		"+quick -fox", "quick NOT", "quick:fox", "quick*fox", `"fox quick"`, "(quick) fox)", "quick~2 fox~", "fox^3 quick", "quick && fox", "/quick/ fox",
		"fox\x00quick", "fox\xffquick", `fox\quick`, "{\"quick\":\"fox\"}", "<quick>fox", "fox'quick",
	} {
		q := search.Query{Text: text, Index: items, Limit: 10}
		if _, err := b.ix.Search(t.Context(), q); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	b.found(search.Query{Text: `+"fox" (quick*`}, "fox")
	b.found(search.Query{Text: "-fox"}, "fox")
	b.found(search.Query{Text: "q*"}, "fox", "dogs")
	b.found(search.Query{Text: "*uick"})
	b.found(search.Query{Text: "_id:fox"})
	b.found(search.Query{Text: "fox OR dogs"})

	long := strings.Repeat("abcdefghij", 100)
	b.put("long", long)
	b.found(search.Query{Text: long}, "long")
	b.found(search.Query{Text: long[:500]}, "long")
	b.found(search.Query{Text: long[:50]}, "long")
	var many []string
	for n := range 200 {
		many = append(many, fmt.Sprint("many", n))
	}
	b.put("many", strings.Join(many, " "))
	b.found(search.Query{Text: strings.Join(many, " ")}, "many")
	slices.Reverse(many)
	b.found(search.Query{Text: strings.Join(many, " ")}, "many")
	b.found(search.Query{Text: strings.Join(many, " ") + " absent"})
	_, err := b.ix.Search(t.Context(), search.Query{Index: items, Limit: 1, Text: strings.Repeat("ha ho hi hu ", 100) + strings.Join(many, " x") + strings.Join(many, " y")})
	if !errors.Is(err, search.ErrQuery) {
		t.Errorf("more words than anybody types: %v", err)
	}
}
