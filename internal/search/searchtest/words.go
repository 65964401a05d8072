package searchtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/search"
)

// library is what the tests of words look into.
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
	// Text of several parts is one text.
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
		// What is no letter and no digit divides words.
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
		// No word is too common to be one.
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
	// Signs that are operators elsewhere are nothing here.
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

func testTypos(t *testing.T, b *bench) {
	b.fillLibrary()
	for _, c := range []struct {
		text, want string
		forgiven   bool
	}{
		{"panther", "panther", false},
		{"panter", "panther", true},   // a letter lost
		{"pannther", "panther", true}, // one too many
		{"pamther", "panther", true},  // another one
		{"pantehr", "panther", true},  // two swapped
		{"apnther", "panther", true},  // at the beginning too
		{"anther", "panther", true},
		{"panthe", "panther", false}, // a beginning
		{"panthers", "panther", true},
		{"pamtherr", "", true}, // two typos
		{"blakc pan", "panther", true},
		{"blakc panter", "panther", true}, // one in each word
		{"balck 1966", "panther", true},
		{"black 1967", "", true}, // not in numbers
		{"panther 196", "panther", false},
		{"v3 lazy", "", true}, // nor where there is a digit
		{"runer2049", "", false},
		{"teh fence", "", true}, // nor in three letters
		{"fxo", "", false},
		{"lzay", "dogs", true}, // but in four
		{"lzy", "", false},
		{"quick fxo", "", true}, // each word is judged for itself
		{"qiuck fox", "fox", true},
		{"moskva", "", true},
		{"мосвка", "moscow", true}, // letters, not bytes
		{"мосва", "moscow", true},
		{"cfae", "cafe", true},
		{"καφε", "", true},
		{"pnather\u0301", "panther", true},
	} {
		q := search.Query{Index: items, Text: c.text, Limit: 10}
		b.wait(q, strings.Fields(c.want), true, find)
		if _, forgiven, err := search.Find(t.Context(), b.ix, q); err != nil || forgiven != c.forgiven {
			t.Errorf("%q: forgiven is %v, want %v (%v)", c.text, forgiven, c.forgiven, err)
		}
	}
	// Only when nothing matches as typed.
	b.put("panter", "Panter is a word")
	b.settle()
	b.wait(search.Query{Text: "panter"}, []string{"panter"}, true, find)
	b.found(search.Query{Text: "panter", Fuzzy: true}, "panter", "panther")
	b.found(search.Query{Text: "panter"}, "panter")
	b.found(search.Query{Text: "panther", Fuzzy: true}, "panter", "panther")
	b.found(search.Query{Text: "black pan", Fuzzy: true}, "panther")
	b.wait(search.Query{Text: "panter", Fuzzy: true}, []string{"panter", "panther"}, true, find)
}

// testAllTypos: of the words within one edit none is left out, however many there
// are.
func testAllTypos(t *testing.T, b *bench) {
	const word = "planet"
	near := map[string]bool{}
	for i := range len(word) + 1 {
		for c := 'a'; c <= 'z'; c++ {
			near[word[:i]+string(c)+word[i:]] = true
			if i < len(word) {
				near[word[:i]+string(c)+word[i+1:]] = true
			}
		}
		if i < len(word) {
			near[word[:i]+word[i+1:]] = true
		}
		if i+1 < len(word) {
			near[word[:i]+word[i+1:i+2]+word[i:i+1]+word[i+2:]] = true
		}
	}
	delete(near, word)
	var docs []search.Document
	var want []string
	for w := range near {
		docs = append(docs, b.doc(w, w+" body"))
		want = append(want, w)
	}
	for _, far := range []string{"plent", "planetaa", "lpnaet", "tenalp", "plan", "et", "xplanetx"} {
		docs = append(docs, b.doc("far "+far, far+" body"))
	}
	b.apply(docs...)
	b.settle()
	b.wait(search.Query{Text: "planet body"}, want, true, find)
}

// testTypoPages: pages behind the first forgive as the first did, even when
// something has been written since that matches as typed. (It also changes what is
// best, so hits may then come twice or not.)
func testTypoPages(t *testing.T, b *bench) {
	var docs []search.Document
	want := []string{}
	for n := range 7 {
		id := fmt.Sprint("document ", n)
		docs, want = append(docs, b.doc(id, "panther")), append(want, id)
	}
	b.apply(docs...)
	b.settle()
	q := search.Query{Index: items, Text: "pantehr", Limit: 3}
	for n := 1; n < 8; n++ {
		if got := b.pages(q, n, find); !slices.Equal(got, want) {
			t.Errorf("%d a page: %v", n, got)
		}
	}
	hits, forgiven, err := search.Find(t.Context(), b.ix, q)
	if err != nil || !forgiven || len(hits) != 3 {
		t.Fatal(ids(hits), forgiven, err)
	}
	q.After = hits[0].After
	b.put("pantehr", "pantehr")
	b.wait(search.Query{Text: "pantehr"}, []string{"pantehr"}, true, find)
	hits, forgiven, err = search.Find(t.Context(), b.ix, q)
	if err != nil || !forgiven || !slices.ContainsFunc(hits, func(h search.Hit) bool { return h.ID != "pantehr" }) {
		t.Errorf("the page behind: %v, forgiven %v, %v", ids(hits), forgiven, err)
	}

	// And the other way: a page as typed is followed by pages as typed.
	b.put("x", "pantehr")
	b.settle()
	q = search.Query{Index: items, Text: "pantehr", Limit: 1}
	b.wait(search.Query{Text: q.Text}, []string{"pantehr", "x"}, true, find)
	if got := b.pages(q, 1, find); len(got) != 2 {
		t.Errorf("as typed: %v", got)
	}
}
