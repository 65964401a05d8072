package embedded

import (
	"testing"

	"pgregory.net/rapid"
)

// within reports, by definition, whether two words are at most one edit apart.
func within(a, b []rune) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	switch {
	case len(a)+len(b) <= 1, len(a) == 1 && len(b) == 1:
		return true
	}
	return len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

func accepts(a oneEdit, word string) bool {
	state := a.Start()
	for i := 0; i < len(word); i++ {
		if state = a.Accept(state, word[i]); !a.CanMatch(state) {
			return false
		}
	}
	return a.IsMatch(state)
}

func TestOneEdit(t *testing.T) {
	for _, letters := range []string{"ab", "abc", "жщ", "aж語😀", "e\u0301"} {
		word := rapid.SliceOfN(rapid.SampledFrom([]rune(letters)), 0, 8)
		rapid.Check(t, func(rt *rapid.T) {
			a, b := word.Draw(rt, "a"), word.Draw(rt, "b")
			if got, want := accepts(oneEdit{a}, string(b)), within(a, b); got != want {
				rt.Fatalf("%q accepts %q: %v", string(a), string(b), got)
			}
		})
	}
	// Every edit of a long word, whatever its script.
	for _, letters := range []string{"abcdefgh", "жизньсон", "ทดสอบคำย", "😀😁😂🤣"} {
		var word []rune
		for len(word) < 130 {
			word = append(word, []rune(letters)...)
			a := oneEdit{word}
			for i := range word {
				head, tail := string(word[:i]), string(word[i+1:])
				for _, near := range []string{head + tail, head + "x" + tail, head + "x" + string(word[i:]), head + "я" + string(word[i:]), string(word)} {
					if !accepts(a, near) {
						t.Fatalf("%q does not accept %q", string(word), near)
					}
				}
				if far := head + "xy" + string(word[i:]); accepts(a, far) {
					t.Fatalf("%q accepts %q", string(word), far)
				}
			}
		}
	}
	for _, bad := range []string{"\xff", "a\xff", "\xd0", "ab\xd0", "ж\xd0"} {
		if accepts(oneEdit{[]rune("ж")}, bad) || accepts(oneEdit{[]rune("ab")}, bad) {
			t.Errorf("%q is accepted", bad)
		}
	}
}
