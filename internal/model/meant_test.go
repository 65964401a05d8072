package model

import (
	"strings"
	"testing"
)

func TestMeant(t *testing.T) {
	known := []string{"id", "albumId", "title"}
	for name, want := range map[string]string{
		"titel": `; did you mean "title"?`, "albumid": `; did you mean "albumId"?`, "ids": `; did you mean "id"?`,
		"x": "", "": "", "elsewhere": "", strings.Repeat("title", 20): "",
	} {
		if got := Meant(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := Meant("title", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"same", "same", 0}, {"album", "albmu", 1}, {"album", "albums", 1},
		{"kitten", "sitting", 3}, {"ab", "ba", 1}, {strings.Repeat("a", 100), "a", maxGuessed},
	} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
