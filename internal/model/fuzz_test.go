package model

import (
	"errors"
	"strings"
	"testing"
)

// FuzzTemplate holds keys to what they promise both ways, for any template and any
// text: what Match reads out of a foreign key builds that key; what a person typed
// comes back from the key that is built of it, and no other typing makes that key.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"ALBUM#{id}", "{a}#{b}", "/{show}[/{season}]", "{a}[#{b}|{c}]", "{id}", "METADATA", "{a}%{b}", "A{a}%41{b}Z", "{a}é{b}", "#{a}##{b}#"} {
		f.Add(text, "ALBUM#1#2", "1#2", "%23")
		f.Add(text, "/1446/1450", "a/b", "é\xff")
	}
	f.Fuzz(func(t *testing.T, text, key, a, b string) {
		tmpl, err := ParseTemplate(text)
		if err != nil {
			if tmpl != nil || text != "" && !strings.Contains(err.Error(), "template ") {
				t.Fatalf("%+v, %v", tmpl, err)
			}
			return
		}
		if again, err := ParseTemplate(tmpl.String()); err != nil || again.String() != text {
			t.Fatalf("%q is printed %q, %v", text, tmpl, err)
		}
		readsBack(t, tmpl, key)
		typesBack(t, tmpl, a, b)
	})
}

func readsBack(t interface{ Fatalf(string, ...any) }, tmpl *Template, key string) {
	values := make([]string, len(tmpl.Names()))
	if !tmpl.Match(key, values) {
		return
	}
	again, ok := tmpl.Build(func(name string) string { return values[tmpl.Slot(name)] })
	if !ok || again != key {
		t.Fatalf("%s reads %q as %q, and builds %q of it", tmpl, key, values, again)
	}
}

// typesBack types a for every name but the last, and b for that. A template whose
// literals a name could end in is not one that keeps typed values apart; lint sees
// to it that between names there is a separator.
func typesBack(t *testing.T, tmpl *Template, a, b string) {
	names := tmpl.Names()
	if len(names) == 0 || a == "" || b == "" || !separated(tmpl) {
		return
	}
	build := func(first, last string) (string, []string) {
		typed := make([]string, len(names))
		for i := range typed {
			typed[i] = tmpl.Escape(first)
		}
		typed[len(typed)-1] = tmpl.Escape(last)
		key, ok := tmpl.Build(func(name string) string { return typed[tmpl.Slot(name)] })
		if !ok {
			t.Fatalf("%s is not built of %q", tmpl, typed)
		}
		return key, typed
	}
	key, typed := build(a, b)
	got := make([]string, len(names))
	if !tmpl.Match(key, got) {
		t.Fatalf("%s does not match its own %q", tmpl, key)
	}
	for i := range names {
		if got[i] != typed[i] {
			t.Fatalf("%s of %q: %s is %q, not %q", tmpl, key, names[i], got[i], typed[i])
		}
	}
	if back := Unescape(got[len(got)-1]); back != b && !tmpl.Whole() {
		t.Fatalf("%s: %q typed, %q read", tmpl, b, back)
	}
	if other, _ := build(b, a); other == key && a != b && len(names) > 1 {
		t.Fatalf("%s: %q and %q make one key, %q", tmpl, a, b, key)
	}
}

// separated reports whether there is, in each literal behind a name, a sign that
// no escaped value has.
func separated(tmpl *Template) bool {
	for i, p := range tmpl.parts {
		if i > 0 && p.slot < 0 && !strings.ContainsFunc(p.literal, tmpl.isBorder) {
			return false
		}
	}
	return true
}

// checkProblems holds the answer to any text to what Parse says of it.
func checkProblems(t *testing.T, text []byte, m *Model, err error) {
	t.Helper()
	if (m == nil) == (err == nil) {
		t.Fatalf("model %v, error %v", m, err)
	}
	if err == nil {
		return
	}
	var problems *Problems
	if !errors.As(err, &problems) || len(problems.List) == 0 {
		t.Fatalf("error %v", err)
	}
	lines := 2 // YAML knows line breaks that not every editor counts
	for _, br := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		lines += strings.Count(string(text), br)
	}
	for i, p := range problems.List {
		if p.File != "m.yaml" || p.Line < 1 || p.Line > lines || p.Column < 0 || p.Message == "" {
			t.Fatalf("problem %d of a text with %d lines: %+v", i, lines, p)
		}
		if strings.ContainsAny(p.String(), "\n\r") {
			t.Fatalf("problem %d takes more than a line: %q", i, p.String())
		}
	}
	if _, again := Parse("m.yaml", text); again == nil || again.Error() != err.Error() {
		t.Fatalf("once %v,\nthen %v", err, again)
	}
}
