package model

import (
	"slices"

	"weir/internal/seq"
	"weir/internal/value"
)

// A pattern describes all keys that a template can make: literal bytes, and for each name
// anyByte followed by anyBytes, because a name is never empty.
type pattern []int16

const (
	anyByte  int16 = -1 // exactly one
	anyBytes int16 = -2 // any number, none included
	hexByte  int16 = -3 // exactly one digit of a leaf's name
	hexBytes int16 = -4 // any number of them
)

// bytesAgree reports whether some byte matches both elements.
// It may say yes where no key is both, never no where one is: a report is then a false alarm, and
// not a key that two rows share.
func bytesAgree(a, b int16) bool {
	if a < 0 {
		a, b = b, a
	}
	switch {
	case a < 0 || b == anyByte || b == anyBytes: // a digit is any byte too
		return true
	case b == hexByte || b == hexBytes:
		return isHex(string(rune(a)))
	}
	return a == b
}

// isMany reports whether a part of a pattern stands for any number of bytes.
func isMany(p int16) bool { return p == anyBytes || p == hexBytes }

// allPatterns returns the patterns of a template: one with its optional tail and one without.
// A name whose value is fixed counts as that value. The leaf name of a set is hexadecimal.
func (t *Template) allPatterns(fixed map[string]string) []pattern {
	out := []pattern{t.patternOf(t.parts, fixed)}
	if t.tail < len(t.parts) {
		out = append(out, t.patternOf(t.parts[:t.tail], fixed))
	}
	return out
}

// patternOf is the shape of the texts that a template makes: literals and fixed names as they are, at
// least one byte for every other name.
func (t *Template) patternOf(parts []part, fixed map[string]string) pattern {
	var out pattern
	for _, p := range parts {
		text := p.literal
		if p.slot >= 0 {
			text = t.caseText(fixed[t.names[p.slot]])
		}
		switch {
		case p.slot < 0 || text != "":
		case t.set && t.names[p.slot] == Leaf:
			out = append(out, hexByte, hexBytes)
		default:
			out = append(out, anyByte, anyBytes)
		}
		for i := 0; i < len(text); i++ {
			out = append(out, int16(text[i]))
		}
	}
	return out
}

// patternsMeet reports whether some key matches both patterns. It visits the pairs of places in the
// two patterns that the same bytes lead to, so its time is the product of their lengths, however many names
// they have. agree says which elements have a byte in common.
func patternsMeet(a, b pattern, agree func(a, b int16) bool) bool {
	width := len(b) + 1
	seen := make([]bool, (len(a)+1)*width)
	todo := []int{0}
	visit := func(i, j int) {
		if at := i*width + j; !seen[at] {
			seen[at] = true
			todo = append(todo, at)
		}
	}
	for len(todo) > 0 {
		i, j := todo[len(todo)-1]/width, todo[len(todo)-1]%width
		todo = todo[:len(todo)-1]
		if i == len(a) && j == len(b) {
			return true
		}
		manyA, manyB := i < len(a) && isMany(a[i]), j < len(b) && isMany(b[j])
		if manyA {
			visit(i+1, j)
		}
		if manyB {
			visit(i, j+1)
		}
		if i == len(a) || j == len(b) || !agree(a[i], b[j]) {
			continue
		}
		nextA, nextB := i+1, j+1
		if manyA {
			nextA = i
		}
		if manyB {
			nextB = j
		}
		visit(nextA, nextB)
	}
	return false
}

// beginApart reports whether the primary keys of two entities begin with different texts, so that no key is of both.
// It makes a check of all pairs cheap.
func beginApart(a, b *Entity) bool {
	for i, k := range a.PrimaryKey() {
		x, y := k.Template.firstText(), b.PrimaryKey()[i].Template.firstText()
		if n := min(len(x), len(y)); x[:n] != y[:n] {
			return true
		}
	}
	return false
}

// firstPairs calls report with each entity and the first one before it in its table for which meets is true: one of many is
// enough to find it. It leaves out entities of which something is wrong already. It does not ask meets about two whose keys begin
// or end with different texts or, with whereToo, whose wheres list different values of one attribute, so its time does not grow
// with all pairs.
func (c *compiler) firstPairs(meets func(a, b *Entity) bool, whereToo bool, report func(a, b *Entity)) {
	for _, t := range c.Tables {
		begin := map[string][]int{} // entities with a text that begins so; each text has an end
		for n, b := range t.Entities {
			if c.broken[b] || c.overlap[b] {
				continue
			}
			first, least, near := n, len(t.Entities)+1, [][]int(nil) // the fewest that can meet it
			for _, texts := range b.tellingTexts(t.kind, whereToo) {
				lists, size := [][]int(nil), 0
				for _, text := range texts {
					lists = append(lists, begin[text])
					for i := range text {
						lists = append(lists, begin[text[:i]+"\x00"])
					}
				}
				for _, list := range lists {
					size += len(list)
				}
				if size < least {
					near, least = lists, size
				}
				for _, text := range texts {
					for text += "\x00"; text != ""; text = text[:len(text)-1] {
						begin[text] = append(begin[text], n)
					}
				}
			}
			for _, list := range near {
				if at := slices.IndexFunc(list, func(i int) bool { return i >= first || meets(t.Entities[i], b) }); at >= 0 {
					first = min(first, list[at])
				}
			}
			if first < n {
				report(t.Entities[first], b)
			}
		}
	}
}

// tellingTexts returns lists of texts. A row of the entity can be of another one only if, in each list, a text of the one begins
// with a text of the other: how keys begin; backwards, how they end; and, with whereToo, values that the where lists for a field.
func (e *Entity) tellingTexts(of *Field, whereToo bool) (out [][]string) {
	for i, k := range e.PrimaryKey() {
		last := k.Template.parts[len(k.Template.parts)-1]
		if last.slot >= 0 || k.Template.tail < len(k.Template.parts) {
			last.literal = ""
		}
		back := []byte(last.literal)
		slices.Reverse(back)
		out = append(out, []string{string(rune('0'+i)) + k.Template.firstText()}, []string{string(rune('a'+i)) + string(back)})
	}
	for i := range e.Where {
		if listed := e.Where[i].Listed(); whereToo && of != nil && len(listed) > 0 && sameField(e.Where[i].Field, of) {
			return append(out, seq.Map(listed, func(v value.Value) string { return "=" + value.Scalar(v) + "\x00" })) // it begins no other
		}
	}
	return append(out, []string{"="})
}

// firstText returns the text with which every key that the template makes begins.
func (t *Template) firstText() string {
	if t.tail == 0 || t.parts[0].slot >= 0 {
		return ""
	}
	return t.parts[0].literal
}

// keyCases reports whether rows of the two entities can have the same key, given the values
// to which their wheres limit names in it.
func keyCases(a, b *Entity, rule textRule) bool {
	return !beginApart(a, b) && slices.ContainsFunc(listFixings(a, maxFixings), func(fa map[string]string) bool {
		return slices.ContainsFunc(listFixings(b, maxFixings), func(fb map[string]string) bool { return sameKey(a, b, fa, fb, rule) })
	})
}

// sameKey reports whether rows of two entities of one table can have the same primary key,
// given the fixed values of each entity's names.
func sameKey(a, b *Entity, fixedA, fixedB map[string]string, rule textRule) bool {
	for i, ka := range a.PrimaryKey() {
		if !keysMeet(ka.Template, b.PrimaryKey()[i].Template, fixedA, fixedB, rule) {
			return false
		}
	}
	return true
}

// keysMeet reports whether the two templates, in which some names are fixed, can make the same key.
func keysMeet(a, b *Template, fixedA, fixedB map[string]string, rule textRule) bool {
	for _, pa := range a.allPatterns(fixedA) {
		for _, pb := range b.allPatterns(fixedB) {
			if patternsMeet(pa, pb, rule(a, b)) {
				return true
			}
		}
	}
	return false
}

// textRule says which values names may have in keys of two templates: it returns whether elements of their patterns agree.
type textRule func(a, b *Template) func(x, y int16) bool

// anyTexts are all that are not empty, as applications may write them.
func anyTexts(_, _ *Template) func(x, y int16) bool { return bytesAgree }

// escapedTexts are those without a separator of either template, as commands and weir write them.
func escapedTexts(a, b *Template) func(x, y int16) bool {
	return func(x, y int16) bool {
		if x < 0 {
			x, y = y, x
		}
		separator := x >= 0 && x < int16(len(a.separators)) && (a.separators[x] || b.separators[x])
		return bytesAgree(x, y) && (y >= 0 || !separator)
	}
}

// fixedNames returns the names whose value the entity's where fixes, with the text that a key
// holds for them.
func (e *Entity) fixedNames() map[string]string {
	out := map[string]string{}
	for _, t := range e.Where {
		if listed := t.Listed(); len(listed) == 1 {
			out[t.Field.Name] = value.Scalar(listed[0])
		}
	}
	return out
}

// testsExclude reports whether no row can pass both wheres, because no value of some field passes
// the tests of both.
func testsExclude(a, b []Test) bool {
	for i := range a {
		for j := range b {
			if sameField(a[i].Field, b[j].Field) && slices.Concat(a[i].Is, b[j].Is).Empty() {
				return true
			}
		}
	}
	return false
}

// sameField reports whether two fields, of rows of one table, read the same thing.
func sameField(a, b *Field) bool {
	return a.Name == b.Name && a.Attr == b.Attr && (a.Key == nil) == (b.Key == nil) && (a.Key == nil || a.Key.text == b.Key.text)
}
