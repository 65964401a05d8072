package owntable_test

import (
	"strings"
	"testing"

	"weir/internal/owntable"
)

// TestLongTextsAreNotForged: a long text is kept by its hash, and nobody can type what
// that is; not for a claim, an idempotency key or a list of followers.
func TestLongTextsAreNotForged(t *testing.T) {
	long := strings.Repeat("k", 900)
	short := "#" + owntable.Hash(long)
	if owntable.Texts([]string{long}) != short {
		t.Fatal("a long text is kept in another way: find out how, and who can type it")
	}
	if owntable.Claim("m", "f", long).String() == owntable.Claim("m", "f", short).String() || owntable.Once("m", long).String() == owntable.Once("m", short).String() ||
		owntable.SubscriberList("r", []string{long}) == owntable.SubscriberList("r", []string{short}) {
		t.Error("a short text has the key of a long one")
	}
	seen := map[string]string{}
	for _, texts := range [][]string{{"a"}, {"#a"}, {"%23a"}, {"##a"}, {"a#"}, {"a", "b"}, {"a|b"}, {"#"}, {"%23"}, {""}, {"", ""}, {long}, {short}, {"#" + owntable.Hash(short)}} {
		name, who := owntable.Texts(texts), strings.Join(texts, "\x00")
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q are both %s", other, who, name)
		}
		seen[name] = who
	}
}
