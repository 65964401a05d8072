package searchtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/internal/search"
)

// testTypos: one typo is forgiven in words of four letters or more without a digit, and
// only if nothing matches as typed.
func testTypos(t *testing.T, b *bench) {
	b.fillLibrary()
	for _, c := range []struct {
		text, want string
		forgiven   bool
	}{
		{"panther", "panther", false},
		{"panter", "panther", true},   // a letter lost
		{"pannther", "panther", true}, // a letter added
		{"pamther", "panther", true},  // a letter replaced
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
		{"lzay", "dogs", true}, // but in four letters
		{"lzy", "", false},
		{"quick fxo", "", true}, // each word is checked by itself
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

// testLongTypos: typos in long words are forgiven as in others, in every script.
func testLongTypos(t *testing.T, b *bench) {
	for i, letters := range []string{"abcdefgh", "жизньсон", "ทดสอบคนย"} {
		id, n := string(rune('a'+i)), 12
		word := strings.Repeat(letters, n)
		for len(word) > 120 { // longer words are cut
			n--
			word = strings.Repeat(letters, n)
		}
		b.put(id, word)
		b.settle()
		runes := []rune(word)
		for _, at := range []int{0, len(runes) / 2, len(runes) - 2} {
			typo := string(runes[:at]) + string(runes[at+1:]) // a letter lost
			b.wait(search.Query{Text: typo}, []string{id}, true, find)
			typo = string(runes[:at]) + "x" + string(runes[at:])
			b.wait(search.Query{Text: typo + " "}, []string{id}, true, find)
		}
		b.wait(search.Query{Text: string(runes[2:])}, nil, true, find)
	}
}

// testAllTypos: no word within one edit is left out, however many there are.
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

// testTypoPages: later pages forgive typos as the first one did, even if a document
// that matches as typed has been written since.
func testTypoPages(t *testing.T, b *bench) {
	var docs []search.Document
	want := []string{}
	for n := range 7 {
		id := fmt.Sprint("document ", n)
		docs, want = append(docs, b.doc(id, "panther")), append(want, id)
	}
	b.apply(docs...)
	b.settle()
	for _, sort := range []string{"", "n"} {
		for n := 1; n < 8; n++ {
			if got := b.pages(search.Query{Text: "pantehr", Sort: sort}, n, find); !slices.Equal(got, want) {
				t.Errorf("%d a page: %v", n, got)
			}
		}
	}
	q := search.Query{Index: items, Text: "pantehr", Sort: "n", Limit: 3}
	hits, forgiven, err := search.Find(t.Context(), b.ix, q)
	if err != nil || !forgiven || !slices.Equal(ids(hits), want[:3]) {
		t.Fatal(ids(hits), forgiven, err)
	}
	b.put("pantehr", "pantehr")
	b.wait(search.Query{Text: "pantehr"}, []string{"pantehr"}, true, find)
	q.After, q.Limit = hits[2].After, 10
	hits, forgiven, err = search.Find(t.Context(), b.ix, q)
	if err != nil || !forgiven || !slices.Equal(ids(hits), append(want[3:], "pantehr")) {
		t.Errorf("the page behind: %v, forgiven %v, %v", ids(hits), forgiven, err)
	}

	// The other way round: after a first page as typed, later pages match as typed.
	b.put("x", "pantehr")
	b.settle()
	q = search.Query{Index: items, Text: "pantehr", Limit: 1}
	b.wait(search.Query{Text: q.Text}, []string{"pantehr", "x"}, true, find)
	if got := b.pages(q, 1, find); len(got) != 2 {
		t.Errorf("as typed: %v", got)
	}
}
