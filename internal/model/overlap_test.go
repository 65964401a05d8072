package model

import (
	"testing"

	"pgregory.net/rapid"
)

func TestMeet(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"METADATA", "METADATA", true},
		{"METADATA", "META", false},
		{"ALBUM#{id}", "ALBUM#{x}#{y}", true},
		{"ALBUM#{id}", "MEDIA#{id}", false},
		{"{x}", "METADATA", true},
		{"A#{x}", "A#", false},
		{"{x}#END", "START#{y}", true},
		{"{x}#A", "{y}#B", false},
		{"USER#{id}", "USER_SESSION#{id}", false},
		{"USER{id}", "USER_SESSION#{id}", true},
		{"/{a}[/{b}]", "/{x}", true},
		{"X{a}[/{b}Z]", "{c}Z", true},
	} {
		a, b := parse(t, c.a), parse(t, c.b)
		if got := keysMeet(a, b, nil, nil, anyTexts); got != c.want || keysMeet(b, a, nil, nil, anyTexts) != c.want {
			t.Errorf("%s and %s meet: %v", c.a, c.b, got)
		}
	}
	a, b := parse(t, "X#{k}#{a}"), parse(t, "X#one")
	if keysMeet(a, b, map[string]string{"k": "one"}, nil, anyTexts) {
		t.Error("a known name stands for itself")
	}
}

// A key that one template makes and the other one reads is in both.
func TestMeetMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := templates(t), templates(t)
		values := map[string]string{}
		for _, name := range a.Names() {
			values[name] = rapid.StringMatching(`[A-C#|/.:-]{1,8}`).Draw(t, name)
		}
		key, ok := a.Build(getter(values))
		if !ok || !b.Match(key, make([]string, len(b.Names()))) {
			t.Skip("they do not share this key")
		}
		if !keysMeet(a, b, nil, nil, anyTexts) {
			t.Fatalf("%s and %s share %q", a, b, key)
		}
	})
}
