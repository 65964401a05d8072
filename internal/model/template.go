package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/value"
)

// Template is a key template: literals and {names}, with at most one optional tail in
// brackets at its end, as in "/{show}[/{season}]". Build makes the key from values; Match
// reads the values out of a key, whether weir or an application wrote it. A name never
// stands for the empty string.
type Template struct {
	text  string
	parts []part
	tail  int // parts from here on are the optional tail; len(parts) without one
	names []string
	set   bool // of a set's rows: Leaf is hexadecimal
	lower bool // keys have no capital letters, whatever the values have

	separators [128]bool // signs that Escape makes others of
}

// maxNames is the largest number of names in a template. It lets callers give Match room on
// the stack.
const maxNames = 8

// part is a literal, or a name if slot is not -1.
type part struct {
	literal string
	slot    int // index into names, -1 for a literal
}

// ParseTemplate parses the text of a template.
// The error is for people, and names the template. A template has at most maxNames names and is not
// empty.
func ParseTemplate(text string) (*Template, error) {
	t := &Template{text: text, tail: -1}
	main, tail, optional := strings.Cut(text, "[")
	if err := t.parseParts(main); err != nil {
		return nil, err
	}
	t.tail = len(t.parts)
	if optional {
		inner, ok := strings.CutSuffix(tail, "]")
		if !ok || strings.ContainsAny(inner, "[]") {
			return nil, fmt.Errorf("template %q: an optional part is one [...] at the end", text)
		}
		names := len(t.names)
		if err := t.parseParts(inner); err != nil {
			return nil, err
		}
		if t.tail == 0 || len(t.names) == names {
			return nil, fmt.Errorf("template %q: an optional part has a name in it and something before it", text)
		}
	}
	if len(t.parts) == 0 {
		return nil, fmt.Errorf("a template cannot be empty")
	}
	for r := range t.separators {
		t.separators[r] = t.mustEscape(rune(r))
	}
	return t, nil
}

// parseParts splits a template into literals and slots. It refuses a brace or bracket without its
// partner; the caller checks the names of the slots.
func (t *Template) parseParts(s string) error {
	for s != "" {
		open := strings.IndexByte(s, '{')
		if end := strings.IndexAny(s, "}]"); open != 0 && end >= 0 && (open < 0 || end < open) {
			return fmt.Errorf("template %q: %q without its opening", t.text, s[end])
		}
		if open != 0 {
			if open < 0 {
				open = len(s)
			}
			t.parts = append(t.parts, part{literal: s[:open], slot: -1})
			s = s[open:]
			continue
		}
		name, rest, ok := strings.Cut(s[1:], "}")
		if !ok || name == "" || strings.ContainsRune(name, '{') {
			return fmt.Errorf("template %q: a name stands in braces, {name}", t.text)
		}
		if n := len(t.parts); n > 0 && t.parts[n-1].slot >= 0 {
			return fmt.Errorf("template %q: {%s} follows another name directly, so the key could not be read back; put a separator between them", t.text, name)
		}
		if slices.Contains(t.names, name) {
			return fmt.Errorf("template %q: {%s} stands twice", t.text, name)
		}
		if len(t.names) == maxNames {
			return fmt.Errorf("template %q: at most %d names", t.text, maxNames)
		}
		t.parts = append(t.parts, part{slot: len(t.names)})
		t.names = append(t.names, name)
		s = rest
	}
	return nil
}

// lowerCase makes the template one of keys in lower case, as ElectroDB writes them: values are lower-cased
// in keys alone. A key with a capital letter is none of its keys.
func (t *Template) lowerCase() {
	t.lower = true
	for i := range t.parts {
		t.parts[i].literal = strings.ToLower(t.parts[i].literal)
	}
}

// IsLower reports whether keys are in lower case.
func (t *Template) IsLower() bool { return t.lower }

// caseText returns a text as it stands in a key.
func (t *Template) caseText(text string) string {
	if t.lower {
		return strings.ToLower(text)
	}
	return text
}

// definition is the part that decides which keys the template makes.
func (t *Template) definition() string {
	if t.lower {
		return "lower case " + t.text
	}
	return t.text
}

// Names returns the template's names in order. Do not write to the slice.
func (t *Template) Names() []string { return t.names }

// Slot returns the index of a name in Names, -1 if the template does not have it.
func (t *Template) Slot(name string) int { return slices.Index(t.names, name) }

// After returns the literal that follows a name, which ends the name's text in a key; "" for the last.
func (t *Template) After(name string) string {
	for i, p := range t.parts {
		if p.slot == t.Slot(name) && p.slot >= 0 && i+1 < len(t.parts) {
			return t.parts[i+1].literal
		}
	}
	return ""
}

// Ends reports whether a text can be no name's text in a key, since it has the separator that ends the name there.
func (t *Template) Ends(name, text string) bool {
	after := t.After(name)
	return after != "" && strings.Contains(t.caseText(text), after)
}

// Whole reports whether the template consists of a single name. The key attribute then has
// the type of that name.
func (t *Template) Whole() bool { return len(t.parts) == 1 && t.parts[0].slot == 0 }

// String is the template as the file has it. Two templates with one text make the same keys.
func (t *Template) String() string { return t.text }

// Prefix builds the key up to the first name for which get has no value. whole reports
// whether the result is the complete key, including the optional tail (which only Build may
// leave out).
func (t *Template) Prefix(get func(name string) string) (prefix string, whole bool) {
	return t.joinParts(t.parts, get)
}

// Build returns the key. It leaves the optional tail out if its names have no values, and
// reports false if any other name has no value.
func (t *Template) Build(get func(name string) string) (string, bool) {
	key, whole := t.joinParts(t.parts, get)
	if !whole && t.tail < len(t.parts) {
		key, whole = t.joinParts(t.parts[:t.tail], get)
	}
	if !whole {
		return "", false // a key with an empty part would be that of another row
	}
	return key, true
}

// joinParts makes the text of some parts, up to the first name that has no value.
func (t *Template) joinParts(parts []part, get func(name string) string) (prefix string, whole bool) {
	if len(parts) == 1 && parts[0].slot < 0 {
		return parts[0].literal, true
	}
	var buf [96]byte
	b := buf[:0]
	for _, p := range parts {
		if p.slot < 0 {
			b = append(b, p.literal...)
			continue
		}
		v := get(t.names[p.slot])
		if v == "" {
			return t.caseText(string(b)), false
		}
		b = append(b, v...)
	}
	return t.caseText(string(b)), true
}

// isPlain reports whether the key is built from the row's attributes without escaping. Match
// cannot tell that if a value contains a separator.
func (t *Template) isPlain(row value.Item, key string) bool {
	var buf [maxNames]string
	values := buf[:len(t.names)]
	if !t.Match(key, values) {
		return false
	}
	made, ok := t.Build(func(name string) string {
		if v := value.Scalar(row.Get(name)); v != "" {
			return v
		}
		return values[t.Slot(name)]
	})
	return ok && made == key
}

// Match reads the values of the names out of a key into values, which must have room for
// each name. A name takes the shortest text up to the next literal; the last name takes the
// rest. It reports false if the key does not match the template.
func (t *Template) Match(key string, values []string) bool {
	if t.caseText(key) != key {
		return false
	}
	if t.tail < len(t.parts) && t.matchParts(t.parts, key, values) {
		return true
	}
	for i := range values {
		values[i] = ""
	}
	return t.matchParts(t.parts[:t.tail], key, values)
}

// matchParts reads the names out of a key by literals from left to right: a slot ends where the next
// literal begins. It is false for a key that the template cannot have made.
func (t *Template) matchParts(parts []part, key string, values []string) bool {
	for i, p := range parts {
		if p.slot < 0 {
			if !strings.HasPrefix(key, p.literal) {
				return false
			}
			key = key[len(p.literal):]
			continue
		}
		end := len(key)
		if i+1 < len(parts) {
			next := parts[i+1].literal
			if i+2 == len(parts) { // the literal at the key's end
				if !strings.HasSuffix(key, next) {
					return false
				}
				end -= len(next)
			} else if end = strings.Index(key, next); end < 0 {
				return false
			}
		}
		if end <= 0 {
			return false
		}
		values[p.slot] = key[:end]
		key = key[end:]
	}
	return key == ""
}

// Escape makes a value that a person typed safe inside a key that weir builds from this
// template. It writes the template's separators and "%" as %XX, so that no value can forge
// another row's key. It keeps all other characters, so that "auth0|7" in "USER#{userId}"
// gives the key that people expect. Its case is that of the value, also for keys in lower case, which Build makes.
func (t *Template) Escape(s string) string {
	if t.Whole() || !t.hasSeparator(s) {
		return s
	}
	var b strings.Builder
	for _, r := range []byte(s) {
		if r < 0x80 && t.separators[r] {
			fmt.Fprintf(&b, "%%%02X", r)
		} else {
			b.WriteByte(r)
		}
	}
	return b.String()
}

// Misread returns the first name of which a key that was built from texts says another text, and
// the reason; "" if the key can be read back. Only a text that holds a separator can be read
// in two ways, so a key of other texts is not looked at. Of several lists of texts that make one
// key, at most one can be read back, or holds no separator.
func (t *Template) Misread(key string, text func(name string) string) (name, says string) {
	if t.Whole() || !slices.ContainsFunc(t.names, func(name string) bool { return t.hasSeparator(text(name)) }) {
		return "", ""
	}
	values := make([]string, len(t.names))
	t.Match(key, values)
	for i, name := range t.names {
		if values[i] != t.caseText(text(name)) {
			return name, values[i]
		}
	}
	return "", ""
}

// hasSeparator reports whether a text contains a character that Escape would change.
func (t *Template) hasSeparator(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x80 && t.separators[c] {
			return true
		}
	}
	return false
}

// mustEscape reports whether Escape must escape the character: "%", and every ASCII character in a
// literal that is neither a letter nor a digit.
func (t *Template) mustEscape(r rune) bool {
	if r == '%' {
		return true
	}
	if r >= 0x80 || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return false
	}
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.slot < 0 && strings.ContainsRune(p.literal, r) })
}

// Unescape undoes Escape.
// A text that is no escape stays as it is, so it never fails; two texts may give one result.
func Unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if n, err := strconv.ParseUint(s[min(i+1, len(s)):min(i+3, len(s))], 16, 8); s[i] == '%' && err == nil && i+3 <= len(s) {
			b.WriteByte(byte(n))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
