package model

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func parse(t rapid.TB, text string) *Template {
	tmpl, err := ParseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func getter(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestTemplatesThatCannotBe(t *testing.T) {
	for _, text := range []string{
		"", "[x]", "[{a}]", "a[b]", "A#{a", "A#a}", "A#{}", "A#{{a}}", "{a}{b}", "{a}#{a}", "{a}[{b}]", "{a}[/{b}", "{a}/{b}]",
		"{a}[/{b}][/{c}]", "{a}[/{b}]c", "{a}[/[{b}]]", "{a}#{b}#{c}#{d}#{e}#{f}#{g}#{h}#{i}",
	} {
		if got, err := ParseTemplate(text); err == nil {
			t.Errorf("%q is taken: %+v", text, got)
		}
	}
}

func TestTemplateShapes(t *testing.T) {
	for _, c := range []struct {
		text, names string
		whole       bool
	}{
		{"METADATA", "", false},
		{"{id}", "id", true},
		{"ALBUM#{id}", "id", false},
		{"{a}#", "a", false},
		{"/{show}[/{season}]", "show season", false},
		{"{a}[/{b}]", "a b", false},
	} {
		p := parse(t, c.text)
		if got := strings.Join(p.Names(), " "); got != c.names || p.Whole() != c.whole || p.String() != c.text {
			t.Errorf("%s: names %s, whole %v", p, got, p.Whole())
		}
	}
	if p := parse(t, "{a}#{b}"); p.Slot("a") != 0 || p.Slot("b") != 1 || p.Slot("c") != -1 {
		t.Error("slots")
	}
}

func TestTemplateBuild(t *testing.T) {
	values := map[string]string{"a": "1", "b": "2", "c": ""}
	for _, c := range []struct {
		text, key string
		ok        bool
	}{
		{"METADATA", "METADATA", true},
		{"{a}", "1", true},
		{"A#{a}#{b}", "A#1#2", true},
		{"A#{a}#{c}", "", false},
		{"/{a}[/{b}]", "/1/2", true},
		{"/{a}[/{c}]", "/1", true},
		{"/{a}[/{b}/{c}]", "/1", true},
		{"/{c}[/{b}]", "", false},
	} {
		if key, ok := parse(t, c.text).Build(getter(values)); key != c.key || ok != c.ok {
			t.Errorf("%s: %q, %v", c.text, key, ok)
		}
	}
}

func TestTemplatePrefix(t *testing.T) {
	values := map[string]string{"a": "1", "b": "2"}
	for _, c := range []struct {
		text, prefix string
		whole        bool
	}{
		{"METADATA", "METADATA", true},
		{"A#{a}#{b}", "A#1#2", true},
		{"A#{a}#{c}", "A#1#", false},
		{"{c}#{a}", "", false},
		{"/{a}[/{b}]", "/1/2", true},
		{"/{a}[/{c}]", "/1/", false},
	} {
		if prefix, whole := parse(t, c.text).Prefix(getter(values)); prefix != c.prefix || whole != c.whole {
			t.Errorf("%s: %q, %v", c.text, prefix, whole)
		}
	}
}

func TestTemplateMatch(t *testing.T) {
	for _, c := range []struct{ text, key, values string }{
		{"ALBUM#{id}", "ALBUM#1", "1"},
		{"ALBUM#{id}", "ALBUM#1#2", "1#2"}, // the last name takes the rest
		{"ALBUM#{id}", "ALBUM#", "-"},
		{"ALBUM#{id}", "ALBU", "-"},
		{"ALBUM#{id}", "MEDIA#1", "-"},
		{"{a}#{b}", "1#2#3", "1|2#3"},
		{"{a}#{b}", "#2", "-"},
		{"{a}#{b}", "1#", "-"},
		{"{a}#X", "1#X#X", "1#X"},
		{"{a}#X", "1", "-"},
		{"METADATA", "METADATA", ""},
		{"METADATA", "METADATA2", "-"},
		{"/{show}[/{season}]", "/1446", "1446|"},
		{"/{show}[/{season}]", "/1446/1450", "1446|1450"},
		{"/{show}[/{season}]", "/1446/", "1446/|"},
		{"/{show}[/{season}]", "1446", "-"},
		{"IT#{a}[#{b}#{c}]", "IT#1#2", "1#2||"}, // half a tail is none
		{"{state}|{asset}", "IN_PROGRESS|1|2", "IN_PROGRESS|1|2"},
	} {
		p := parse(t, c.text)
		values := make([]string, len(p.Names()))
		got := "-"
		if p.Match(c.key, values) {
			got = strings.Join(values, "|")
		}
		if got != c.values {
			t.Errorf("%s of %q: %s, want %s", c.text, c.key, got, c.values)
		}
	}
}

// templates draws a template whose names are kept apart by separators.
func templates(t *rapid.T) *Template {
	text, names := rapid.StringMatching(`([A-Z]{1,5}[#|/])?`).Draw(t, "prefix"), "abcdef"
	n := rapid.IntRange(1, len(names)).Draw(t, "names")
	tail := rapid.IntRange(1, n).Draw(t, "tail")
	for i := range n {
		if i > 0 && i == tail {
			text += "["
		}
		if i > 0 {
			text += rapid.StringMatching(`[A-Z.:-]{0,2}[#|/][A-Z.:-]{0,2}`).Draw(t, "literal")
		}
		text += "{" + names[i:i+1] + "}"
	}
	if tail < n {
		text += "]"
	} else {
		text += rapid.StringMatching(`(#[A-Z]{1,3})?`).Draw(t, "end")
	}
	return parse(t, text)
}

// hostile draws what a person may type: any text, often with separators.
func hostile(t *rapid.T, label string) string {
	return rapid.OneOf(rapid.StringN(1, 20, -1), rapid.StringMatching(`[A-Z#|/%0-9.:\[\]{}-]{1,12}`)).Draw(t, label)
}

// What Build makes of escaped values, Match reads back, with the tail or without.
func TestTemplateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tmpl := templates(t)
		values := map[string]string{}
		for _, name := range tmpl.requiredNames() {
			values[name] = tmpl.Escape(hostile(t, name))
		}
		if rapid.Bool().Draw(t, "with the tail") {
			for _, name := range tmpl.Names() {
				values[name] = tmpl.Escape(hostile(t, name))
			}
		}
		key, ok := tmpl.Build(getter(values))
		if !ok {
			t.Fatalf("%s is not built from %q", tmpl, values)
		}
		got := make([]string, len(tmpl.Names()))
		if !tmpl.Match(key, got) {
			t.Fatalf("%s does not match its own %q", tmpl, key)
		}
		for i, name := range tmpl.Names() {
			if got[i] != values[name] {
				t.Fatalf("%s of %q: %s is %q, not %q", tmpl, key, name, got[i], values[name])
			}
		}
	})
}

// Two different sets of typed values never make one key.
func TestNoValueForgesAnotherKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tmpl := templates(t)
		build := func(side string) (string, string) {
			values := map[string]string{}
			all := ""
			for _, name := range tmpl.requiredNames() {
				typed := hostile(t, side+name)
				values[name] = tmpl.Escape(typed)
				all += typed + "\x00"
			}
			key, _ := tmpl.Build(getter(values))
			return key, all
		}
		keyA, a := build("left ")
		keyB, b := build("right ")
		if a != b && keyA == keyB {
			t.Fatalf("%q and %q both make %q of %s", a, b, keyA, tmpl)
		}
	})
}

// Whatever a foreign key holds: when it matches, its values make that very key.
func TestForeignKeysReadAndBuildTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tmpl := templates(t)
		key := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-C#|/.:-]{0,20}`)).Draw(t, "key")
		readsBack(t, tmpl, key)
	})
}

func TestEscape(t *testing.T) {
	for _, c := range []struct{ text, in, want string }{
		{"A#{a}", "plain", "plain"},
		{"A#{a}", "a#b|c/d%e", "a%23b|c/d%25e"},
		{"{a}|{b}", "a#b|c", "a#b%7Cc"},
		{"A#{a}", "", ""},
		{"A#{a}", "\xff#é", "\xff%23é"},
		{"AB{a}", "AB", "AB"},
		{"{a}", "a#b%", "a#b%"}, // the whole key is the value
	} {
		if got := parse(t, c.text).Escape(c.in); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", c.text, c.in, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		tmpl, a := templates(t), hostile(t, "a")
		escaped := tmpl.Escape(a)
		if !tmpl.Whole() && (strings.ContainsFunc(escaped, tmpl.isBorder) || Unescape(escaped) != a) {
			t.Fatalf("%s: %q becomes %q, and that %q", tmpl, a, escaped, Unescape(escaped))
		}
	})
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{"": "", "plain": "plain", "a%23b": "a#b", "%25": "%", "%": "%", "%2": "%2", "%zz%23": "%zz#", "%2523": "%23"} {
		if got := Unescape(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// readings returns all lists of texts from which a template's parts build a key.
func (t *Template) readings(parts []part, key string) (all [][]string) {
	if len(parts) == 0 {
		if key == "" {
			all = append(all, make([]string, len(t.names)))
		}
		return all
	}
	if p := parts[0]; p.slot < 0 {
		if rest, ok := strings.CutPrefix(key, p.literal); ok {
			return t.readings(parts[1:], rest)
		}
		return nil
	}
	for n := 1; n <= len(key); n++ {
		for _, r := range t.readings(parts[1:], key[n:]) {
			r[parts[0].slot] = key[:n]
			all = append(all, r)
		}
	}
	return all
}

// TestMisread: of all lists of texts that make one key, at most one can be read back, and one
// whose texts were escaped, or hold no separator, always can.
func TestMisread(t *testing.T) {
	for _, text := range []string{"D#{x}#{y}", "{x}#{y}#{z}", "{x}|{y}-E", "{x}/{y}[/{z}]", "A{x}.{y}"} {
		tmpl := parse(t, text)
		rapid.Check(t, func(t *rapid.T) {
			values, escaped := map[string]string{}, map[string]string{}
			for _, name := range tmpl.names {
				values[name] = rapid.StringMatching(`[a#|/.%-]{1,4}`).Draw(t, name)
				escaped[name] = tmpl.Escape(values[name])
			}
			key, _ := tmpl.Build(getter(values))
			var clear [][]string
			for _, parts := range [][]part{tmpl.parts, tmpl.parts[:tmpl.tail]} {
				for _, r := range tmpl.readings(parts, key) {
					if name, _ := tmpl.Misread(key, func(name string) string { return r[tmpl.Slot(name)] }); name == "" {
						clear = append(clear, r)
					}
				}
				if tmpl.tail == len(tmpl.parts) {
					break
				}
			}
			if len(clear) > 1 {
				t.Fatalf("%s: %q is made of each of %q", text, key, clear)
			}
			key, _ = tmpl.Build(getter(escaped))
			if name, says := tmpl.Misread(key, getter(escaped)); name != "" {
				t.Fatalf("%s: %q of %q says that %s is %q", text, key, escaped, name, says)
			}
		})
	}
}
